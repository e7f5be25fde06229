// SPDX-License-Identifier: Apache-2.0
#include "ops/act.h"

namespace rlx {

Expr apply_act(Expr x, std::string_view act) {
  if (act == "none") return x;
  if (act == "relu2") return unary(Op::kSquare, unary(Op::kRelu, x));
  if (act == "gelu_tanh") return x.builder().op(Op::kGelu, {x}, {{"approx", "tanh"}});
  if (act == "quick_gelu") return x.builder().op(Op::kSilu, {x}, {{"beta", 1.702}});
  const OpInfo* info = x.builder().graph().table().find(act);  // the others are ops with their default attributes
  return unary(info->op(), x);
}

}  // namespace rlx
