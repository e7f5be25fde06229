// SPDX-License-Identifier: Apache-2.0
// bitcast, which reinterprets bytes, and the parts of complex numbers, which are made with it.
#include <cstring>
#include <memory>

#include "ops/eval.h"
#include "ops/expr.h"

namespace rlx {

// ---- bitcast ----

Status infer_bitcast(InferArgs& args) {
  DType from = args.in[0]->dtype, to = args.attrs.dtype("to");
  int64_t wide = element_bytes(from), narrow = element_bytes(to);
  std::vector<Dim> dims = args.dims();
  if (wide > narrow) {
    dims.push_back(wide / narrow);
  } else if (wide < narrow) {
    int64_t parts = narrow / wide;
    if (dims.empty() || !dims.back().is(parts))
      return args.fail(Code::kShape, format("{} from {} needs a last axis of {}", to, from, parts))
          .with("expected", std::to_string(parts))
          .with("got", text_of(dims));
    dims.pop_back();
  }
  args.out[0] = {to, std::move(dims)};
  return {};
}

// `count` elements of one dtype as those of another: halves, floats and doubles, or complex numbers of both widths.
static void convert_elements(DType from, const std::byte* in, DType to, std::byte* out, int64_t count) {
  visit<dtypes::F | dtypes::Z>(from, [&]<class From>() {
    visit<dtypes::F | dtypes::Z>(to, [&]<class To>() {
      if constexpr (is_complex_type<From> == is_complex_type<To>)
        for (int64_t i = 0; i < count; i++)
          reinterpret_cast<To*>(out)[i] = To(static_cast<Compute<From>>(reinterpret_cast<const From*>(in)[i]));
    });
  });
}

// Reinterprets bytes of the declared dtypes; an operand that the oracle stores wider is converted to them and back.
Status eval_bitcast(EvalArgs& args) {
  const Operand &in = args.in[0], &out = args.out[0];
  DType from = args.declared_in[0], to = args.declared_out[0];
  int64_t elements = in.count();
  if (elements == 0) return {};
  DType whole = is_complex(from) ? from : to, part = is_complex(from) ? to : from;
  bool parts = is_complex(whole) && is_float(part) && element_bytes(whole) == 2 * element_bytes(part);
  bool both_stored_wide = in.dtype != from && out.dtype != to;
  if ((in.dtype == from && out.dtype == to) || (parts && both_stored_wide)) {
    std::memcpy(out.data, in.data, static_cast<size_t>(elements * element_bytes(in.dtype)));
    return {};
  }
  auto bytes = std::make_unique<std::byte[]>(static_cast<size_t>(elements * element_bytes(from)));
  if (in.dtype == from)
    std::memcpy(bytes.get(), in.data, static_cast<size_t>(elements * element_bytes(from)));
  else
    convert_elements(in.dtype, in.data, from, bytes.get(), elements);
  if (out.dtype == to)
    std::memcpy(out.data, bytes.get(), static_cast<size_t>(elements * element_bytes(from)));
  else
    convert_elements(to, bytes.get(), out.dtype, out.data, out.count());
  return {};
}

// ---- parts of complex numbers ----

static DType part_of(DType dtype) {
  return dtype == DType::kC64 ? DType::kF32 : DType::kF64;
}

// The same elements in one axis if there is no room for another one, which the parts of a number take.
static Expr with_room(Expr x) {
  return x.rank() == kMaxRank ? reshape(x, {element_count(x.dims())}) : x;
}

Outputs decompose_complex(const Inputs& in, const Attrs&) {
  Builder& b = in.builder();
  Expr re = in[0], im = in[1];
  DType part = re.dtype();
  if (is_half(part)) return {b.fail(Status(Code::kDtype, "complex takes parts of f32 or f64"))};
  std::vector<Dim> dims;
  if (std::max(re.rank(), im.rank()) == kMaxRank) {
    Expr either = b.scalar(DType::kBool, 1);
    re = where(either, in[0], in[1]), im = where(either, in[1], in[0]);  // broadcasts them
    if (!re.valid()) return {re};
    dims = re.dims();
    re = with_room(re), im = with_room(im);
  }
  Expr is_real = equal(iota(b, {2}, 0, DType::kI64), 0);  // broadcasts the parts while it interleaves them
  Expr pairs = where(is_real, unsqueeze(re, -1), unsqueeze(im, -1));
  Expr y = b.op(Op::kBitcast, {pairs}, {{"to", part == DType::kF32 ? DType::kC64 : DType::kC128}});
  return {dims.empty() ? y : reshape(y, dims)};
}

static Expr part(Expr whole, int64_t which) {
  Expr x = with_room(whole);
  Expr pairs = x.builder().op(Op::kBitcast, {x}, {{"to", part_of(x.dtype())}});
  return reshape(slice(pairs, -1, which, which + 1), whole.dims());
}

Outputs decompose_real(const Inputs& in, const Attrs&) {
  return {part(in[0], 0)};
}
Outputs decompose_imag(const Inputs& in, const Attrs&) {
  return {part(in[0], 1)};
}
Outputs decompose_conj(const Inputs& in, const Attrs&) {
  return {binary(Op::kComplex, unary(Op::kReal, in[0]), -unary(Op::kImag, in[0]))};
}
Outputs decompose_angle(const Inputs& in, const Attrs&) {
  return {atan2(unary(Op::kImag, in[0]), unary(Op::kReal, in[0]))};
}
Outputs decompose_abs_squared(const Inputs& in, const Attrs&) {
  return {unary(Op::kSquare, unary(Op::kReal, in[0])) + unary(Op::kSquare, unary(Op::kImag, in[0]))};
}

}  // namespace rlx
