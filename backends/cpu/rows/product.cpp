// SPDX-License-Identifier: Apache-2.0
// Rows for matmul and linear. In f32 a resident right side is packed into panels once, and two variable sides are read
// by strides. OpenBLAS computes f64, complex and large f32 products.
#include <array>
#include <cassert>

#include "backends/cpu/gemm/blas_matmul.h"
#include "backends/cpu/rows/sides.h"
#include "base/visit.h"

namespace rlx::cpu {

namespace {

// ---- the packed form of w: [K,N], or [N,K] where it is transposed ----

bool is_transposed(const KernelQuery& query) {
  return query.node.attrs.flag(query.node.op == Op::kLinear ? "transpose_w" : "transpose_b");
}

struct MatrixDims {
  int64_t k, n;
};

MatrixDims matrix_dims(const ValueType& w, bool transposed) {
  int64_t first = w.dims[0].literal(), second = w.dims[1].literal();
  return transposed ? MatrixDims{second, first} : MatrixDims{first, second};
}

constexpr std::string_view kPanels = "panels_f32";

Form form_of(const KernelQuery& query) {
  bool transposed = is_transposed(query);
  MatrixDims dims = matrix_dims(query.type(1), transposed);
  return {.layout = kPanels,
          .bytes = packed_size(dims.k, dims.n) * static_cast<int64_t>(sizeof(float)),
          .transposed = transposed};
}

void encode_pack(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  bool transposed = view.node.attrs.flag("transposed");
  const View& w = view.in[0];
  PackArgs args;
  args.k = w.dims[transposed ? 1 : 0];
  args.n = w.dims[transposed ? 0 : 1];
  args.pieces[0] = {w.as<LooseFloat>(), args.n, transposed ? 1 : args.n, transposed ? args.k : 1};
  args.piece_count = 1;
  args.packed = view.out[0].as<float>();
  load(block, caps.fns.gemm.pack, args, static_cast<double>(args.k * args.n) / 2, launch);
}

// ---- few results of many terms ----

template <class Args>
void load_product(const StepView& view, const ProductLoops<Args>& loops, const Args& args, double work, void* block,
                  Launch& launch) {
  Pieces pieces = pieces_of_product(args.m, args.n, args.k, loops.whole.parts(args));
  if (pieces.count == 1) return load(block, loops.whole, args, work, launch);
  CutProduct<Args> cut{args, pieces, reinterpret_cast<float*>(view.scratch)};
  load(block, loops.pieces, cut, work, launch);
  double results = static_cast<double>(args.m) * static_cast<double>(args.n);
  load_after<CutProduct<Args>>(block, loops.join, cut, 50 + 0.1 * results * static_cast<double>(pieces.count), launch);
}

size_t product_scratch(const Node&, std::span<const Dims> upper) {
  const Dims& a = upper[0];
  int64_t k = std::max(a.back(), a.size() > 1 ? a[a.size() - 2] : 0);  // the left side may be transposed
  return cut_product_bytes(static_cast<double>(k), largest_count(upper.back()));
}

template <class Args>
constexpr Row product_row(Op op, std::string_view name, RefuseFn refuse, EncodeFn encode) {
  return native<CutProduct<Args>, CutProduct<Args>>(op, name, refuse, encode).scratch(product_scratch);
}

// ---- a packed product ----

std::string_view refuse_packed(const KernelQuery& query) {
  if (!all_f32(query)) return "takes f32 only";
  if (!query.resident(1)) return "the right side is neither a param nor a constant";
  if (query.type(1).rank() != 2) return "the right side is not a single matrix";
  if (query.node.op == Op::kMatmul && query.node.attrs.flag("transpose_a")) return "the left side is transposed";
  if (query.node.op == Op::kLinear && !fused_activation(query.node)) return "no kernel has this activation";
  return {};
}

void encode_packed(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  const View &x = view.in[0], &w = view.in[1], &y = view.out[0];
  ProductArgs args;
  args.n = y.dims.back();
  args.k = x.dims.back();
  args.m = 1;
  for (size_t i = 0; i + 1 < x.dims.size(); i++) args.m *= x.dims[i];
  args.a = x.as<float>();
  args.a_row = args.k;
  args.packed = w.as<float>();
  args.y = y.as<float>();
  args.y_row = args.n;
  if (view.node.op == Op::kLinear) {
    set_ending(view.node, args.epilogue);
    args.epilogue.bias = data_or_null<const float>(view.in[2]);
  }
  double work = product_nanoseconds(caps, 1, static_cast<double>(args.m), static_cast<double>(args.n),
                                    static_cast<double>(args.k));
  load_product(view, caps.fns.gemm.product, args, work, block, launch);
}

// ---- a product of two sides of the run ----

std::string_view refuse_strided(const KernelQuery& query) {
  if (!all_f32(query)) return "takes f32 only";
  if (query.node.out[0].rank() > kMaxBatchRank + 2) return "too many batch axes";
  return {};
}

// A product this large repays the packing of both sides that BLAS does in every call.
constexpr int64_t kBlasSide = 256;

constexpr Loop<MatmulArgs> kBlasLoop = {[](const MatmulArgs& args) { return blas_parts<float>(args); },
                                        [](const MatmulArgs& args, int64_t begin, int64_t end) {
                                          [[maybe_unused]] Status status = blas_run<float>(args, begin, end);
                                          assert(status.ok());  // blas_takes has checked the sizes
                                        }};

// One row against columns with adjacent terms is as many rows against one column.
void swap_sides(MatmulArgs& args) {
  std::swap(args.a, args.b);
  std::swap(args.m, args.n);
  std::swap(args.a_row, args.b_col);
  std::swap(args.a_col, args.b_row);
  std::swap(args.a_batch, args.b_batch);
  args.y_row = 1;
}

void encode_strided(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  MatmulArgs args;
  set_sides(view, args, view.node.attrs.flag("transpose_a"), view.node.attrs.flag("transpose_b"));
  bool large = std::min({args.m, args.n, args.k}) >= kBlasSide && blas_takes<float>(args);
  double work = product_nanoseconds(caps, args);
  if (large) return load(block, kBlasLoop, args, work, launch);
  if (args.m == 1 && args.n > 1 && args.a_col == 1 && args.b_row == 1) swap_sides(args);
  if (args.batches() > 1) return load(block, caps.fns.gemm.matmul.whole, args, work, launch);
  load_product(view, caps.fns.gemm.matmul, args, work, block, launch);
}

// ---- a product of two dense sides, by BLAS ----

template <DType kType>
using SidesOf = MatmulSides<typename Element<kType>::type>;

template <DType kType>
std::string_view refuse_blas(const KernelQuery& query) {
  if (query.type(0).dtype != kType || query.node.out[0].dtype != kType) return "takes another dtype";
  if (query.node.out[0].rank() > kMaxBatchRank + 2) return "too many batch axes";
  return {};
}

template <DType kType>
Status run_blas(const void* block, int64_t begin, int64_t end) {
  return blas_run(*static_cast<const SidesOf<kType>*>(block), begin, end);
}

template <DType kType>
void encode_blas(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  auto& sides = *new (block) SidesOf<kType>();
  set_sides(view, sides, view.node.attrs.flag("transpose_a"), view.node.attrs.flag("transpose_b"));
  constexpr double kSlower = double{sizeof(typename Element<kType>::type)} / sizeof(float);
  launch.then(run_blas<kType>, blas_parts(sides), kSlower * product_nanoseconds(caps, sides));
}

template <DType kType>
Row blas_row(std::string_view name) {
  return with_block<SidesOf<kType>>(Op::kMatmul, name, refuse_blas<kType>, encode_blas<kType>);
}

}  // namespace

void add_product_rows(RowsByOp& by_op) {
  add(by_op, packer<PackArgs, kPanels>(encode_pack));
  add(by_op, product_row<ProductArgs>(Op::kLinear, "linear_f32_packed", refuse_packed, encode_packed).form(1, form_of));
  add(by_op, product_row<ProductArgs>(Op::kMatmul, "matmul_f32_packed", refuse_packed, encode_packed).form(1, form_of));
  add(by_op, product_row<MatmulArgs>(Op::kMatmul, "matmul_f32", refuse_strided, encode_strided).strided(0b11));
  add(by_op, blas_row<DType::kF64>("matmul_f64_blas"));
  add(by_op, blas_row<DType::kC64>("matmul_c64_blas"));
  add(by_op, blas_row<DType::kC128>("matmul_c128_blas"));
}

}  // namespace rlx::cpu
