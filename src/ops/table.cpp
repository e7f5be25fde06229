// SPDX-License-Identifier: Apache-2.0
// The op table: every row of ops.def with its functions from the family files.
#include "base/lasting.h"
#include "ir/op.h"
#include "ops/attr_defs.h"
#include "ops/control.h"
#include "ops/custom.h"
#include "ops/expr.h"
#include "ops/facts.h"
#include "ops/fused_act.h"
#include "ops/views.h"
#include "ops/work.h"

namespace rlx {

// Declarations, from the rows themselves. Several rows may share an infer function.
#define RLX_PRIMITIVE(id, Enum, name, infer, ...) \
  Status infer_##infer(InferArgs& args);          \
  Status eval_##name(EvalArgs& args);
#define RLX_WALKED(id, Enum, name, infer, ...) Status infer_##infer(InferArgs& args);
#define RLX_COMPOSITE(id, Enum, name, ...) Outputs decompose_##name(const Inputs& in, const Attrs& attrs);
#include "ops/ops.def"
#undef RLX_PRIMITIVE
#undef RLX_WALKED
#undef RLX_COMPOSITE

static std::vector<OpInfo> make_rows() {
  using namespace attr_defs;
  // NOLINTBEGIN: `name` of the macro is the op, `infer` the rule
#define RLX_PRIMITIVE(number, Enum, op_name, rule, ...) \
  OpInfo{.id = number, .name = #op_name, __VA_ARGS__, .infer = infer_##rule, .eval = eval_##op_name},
#define RLX_WALKED(number, Enum, op_name, rule, ...) \
  OpInfo{.id = number, .name = #op_name, __VA_ARGS__, .infer = infer_##rule},
#define RLX_COMPOSITE(number, Enum, op_name, ...) \
  OpInfo{.id = number, .name = #op_name, __VA_ARGS__, .decompose = decompose_##op_name},
  std::vector<OpInfo> rows = {
#include "ops/ops.def"
  };
#undef RLX_PRIMITIVE
#undef RLX_WALKED
#undef RLX_COMPOSITE
  // NOLINTEND
  for (OpInfo& row : rows)
    if (!row.infer) row.infer = infer_composite;
  return rows;
}

const OpTable& op_table() {
  // Built on first use: loading the library does nothing.
  static const OpTable& kTable = lasting([] { return OpTable(make_rows()); });
  return kTable;
}

}  // namespace rlx
