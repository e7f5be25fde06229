// SPDX-License-Identifier: Apache-2.0
#include "capi/variables.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>

namespace rlx::capi {

struct Known {
  std::string_view suffix, summary;
};
static constexpr Known kKnown[] = {
    {"DEVICE", "the device where none is named"},
    {"THREADS", "the most threads of a run, as the option threads"},
};

Variables::Variables(std::string_view prefix) {
  for (const Known& known : kKnown) {
    Variable variable{known.suffix, known.summary, std::string(prefix) + "_" + std::string(known.suffix), std::nullopt};
    if (const char* value = std::getenv(variable.name.c_str())) variable.value = value;
    variables_.push_back(std::move(variable));
  }
}

const Variable& Variables::find(std::string_view suffix) const {
  auto found = std::ranges::find(variables_, suffix, &Variable::suffix);
  assert(found != variables_.end());
  return *found;
}

const std::optional<std::string>& Variables::operator[](std::string_view suffix) const {
  return find(suffix).value;
}

const std::string& Variables::name(std::string_view suffix) const {
  return find(suffix).name;
}

}  // namespace rlx::capi
