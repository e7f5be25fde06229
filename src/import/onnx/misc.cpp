// SPDX-License-Identifier: Apache-2.0
// ONNX node kinds whose result has a size that its contents decide, and others that make or move elements.
#include <algorithm>

#include "import/onnx/call.h"
#include "import/onnx/tensor.h"

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

void build_reverse_sequence(Call& call) {
  int64_t batch = call.i64("batch_axis", 1), time = call.i64("time_axis", 0);
  call.out(0, call.op("reverse_sequence", {call.in(0), call.in(1)}, {{"time_axis", time}, {"batch_axis", batch}}));
}

void build_center_crop_pad(Call& call) {
  NamedAttrs attrs{{"shape", call.run_dims(1, "shape")}};
  if (call.has_attr("axes")) attrs.emplace_back("axes", call.axes(call.i64s("axes"), call.type(0).rank()));
  call.out(0, call.op("center_crop_pad", {call.in(0)}, attrs));
}

void build_eye_like(Call& call) {
  const ValueType& type = call.type(0);
  DType dtype = type.dtype;
  if (call.has_attr("dtype")) {
    auto given = dtype_of(static_cast<int32_t>(call.i64("dtype", 0)));
    if (!given.ok()) return call.fail(given.status().code(), std::string(given.status().message()));
    dtype = *given;
  }
  if (type.rank() != 2) return call.fail(Code::kData, "its input is no matrix");
  call.out(0,
           call.op("eye", {}, {{"n", type.dims[0]}, {"m", type.dims[1]}, {"k", call.i64("k", 0)}, {"dtype", dtype}}));
}

void build_bit_cast(Call& call) {
  auto to = dtype_of(static_cast<int32_t>(call.i64("to", 0)));
  if (!to.ok()) return call.fail(to.status().code(), std::string(to.status().message()));
  Expr x = call.in(0);
  if (!x.valid() || element_bytes(x.dtype()) != element_bytes(*to))
    return call.fail(Code::kData, "the widths of its dtypes differ");
  // A bool has two values only, so its bits are those of a number.
  bool from_bool = x.dtype() == DType::kBool, to_bool = *to == DType::kBool;
  if (from_bool) x = cast(x, DType::kU8);
  DType inner = to_bool ? DType::kU8 : *to;
  if (x.dtype() != inner) x = call.op("bitcast", {x}, {{"to", inner}});
  call.out(0, to_bool ? cast(x, *to) : x);
}

void build_swiglu(Call& call) {
  Expr gate = call.op("silu", {call.in(0)}, {{"beta", call.f64("alpha", 1)}});
  call.out(0, gate * call.in(1));
}

// Rows written into a cache from one place per batch row, or from the start.
void build_tensor_scatter(Call& call) {
  Expr cache = call.in(0), rows = call.in(1), at = call.in(2);
  std::string_view mode = call.text("mode", "linear");
  if (!cache.valid() || !rows.valid()) return;
  int64_t axis = call.axis(call.i64("axis", -2), cache.rank());
  if (!at) at = call.builder().scalar(DType::kI64, 0);
  call.out(0, call.op("kv_append", {cache, rows, at}, {{"axis", axis}, {"wrap", int64_t{mode == "circular"}}}));
}

constexpr NodeKind kKinds[] = {
    {"NonZero", build_nonzero},
    {"Compress", build_compress},
    {"Unique", build_unique},
    {"ReverseSequence", build_reverse_sequence},
    {"CenterCropPad", build_center_crop_pad},
    {"EyeLike", build_eye_like},
    {"BitCast", build_bit_cast},
    {"SwiGLU", build_swiglu},
    {"TensorScatter", build_tensor_scatter},
};

}  // namespace

std::span<const NodeKind> misc_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
