// SPDX-License-Identifier: Apache-2.0
// ONNX node kinds whose result has a size that its contents decide.
#include "import/onnx/call.h"

namespace rlx::onnx {

namespace {

void build_nonzero(Call& call) {
  Expr in[] = {call.in(0)};
  Outputs found = call.ops("nonzero", in);
  if (found[0].valid()) call.out(0, transpose(found[0], {1, 0}));
}

// A condition may be shorter than the axis: what is after it is left out.
void build_compress(Call& call) {
  Expr x = call.in(0), condition = call.in(1);
  NamedAttrs attrs;
  if (!x.valid() || !condition.valid()) return;
  bool is_flat = !call.has_attr("axis");
  int64_t axis = is_flat ? 0 : call.axis(call.i64("axis", 0), x.rank());
  if (is_flat) x = reshape(x, {element_count(x.dims())});
  if (condition.rank() == 1 && !(condition.dim(0) == x.dim(axis))) x = slice(x, axis, 0, condition.dim(0));
  Expr in[] = {x, condition};
  call.out(0, call.ops("compress", in, {{"axis", axis}})[0]);
}

void build_unique(Call& call) {
  Expr x = call.in(0);
  int64_t sorted = call.i64("sorted", 1);
  if (!x.valid()) return;
  if (call.has_attr("axis") && (call.axis(call.i64("axis", 0), x.rank()) != 0 || x.rank() != 1))
    return call.fail(Code::kUnsupported, "distinct slices along an axis");
  Expr in[] = {reshape(x, {element_count(x.dims())})};
  Outputs y = call.ops("unique", in, {{"sorted", sorted}});
  for (size_t i = 0; i < 4 && i < y.size(); i++) call.out(i, y[i]);
}

constexpr NodeKind kKinds[] = {
    {"NonZero", build_nonzero},
    {"Compress", build_compress},
    {"Unique", build_unique},
    {"Unique", build_unique, "", nullptr, {}, "com.microsoft"},
};

}  // namespace

std::span<const NodeKind> contents_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
