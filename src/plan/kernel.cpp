// SPDX-License-Identifier: Apache-2.0
#include "plan/kernel.h"

#include "base/format.h"

namespace rlx {

std::string Form::text() const {
  std::string text(layout);
  if (groups > 1) text += format(", {} groups", groups);
  if (transposed) text += ", transposed";
  return text;
}

NamedAttrs Form::attrs() const {
  return {{"layout", std::string(layout)}, {"bytes", bytes}, {"groups", groups}, {"transposed", transposed}};
}

}  // namespace rlx
