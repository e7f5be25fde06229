// SPDX-License-Identifier: Apache-2.0
// Rows for matmul and linear over f32: a resident right side is packed into panels once; two sides of a run are
// multiplied by strides.
#include <array>

#include "backends/cpu/rows/native.h"

namespace rlx::cpu {

namespace {

// ---- the packed form of w: [K,N], or [N,K] where it is transposed ----

bool is_transposed(const Query& query) {
  return query.node.attrs.flag(query.node.op == Op::kLinear ? "transpose_w" : "transpose_b");
}

struct MatrixDims {
  int64_t k, n;
};

MatrixDims matrix_dims(const ValueType& w, bool transposed) {
  int64_t first = w.dims[0].literal(), second = w.dims[1].literal();
  return transposed ? MatrixDims{second, first} : MatrixDims{first, second};
}

std::string panel_name(const Query& query) {
  return is_transposed(query) ? "panels_f32_transposed" : "panels_f32";
}

size_t panel_bytes(const Query& query) {
  MatrixDims dims = matrix_dims(query.type(1), is_transposed(query));
  return static_cast<size_t>(packed_size(dims.k, dims.n)) * sizeof(float);
}

void pack_panels(const Query& query, const std::byte* source, std::byte* form) {
  bool transposed = is_transposed(query);
  MatrixDims dims = matrix_dims(query.type(1), transposed);
  PackArgs args;
  args.pieces[0] = {reinterpret_cast<const float*>(source), dims.n, transposed ? 1 : dims.n, transposed ? dims.k : 1};
  args.piece_count = 1;
  args.k = dims.k;
  args.n = dims.n;
  args.packed = reinterpret_cast<float*>(form);
  const Loop<PackArgs>& pack = gemm_fns(Isa::kBaseline).pack;  // the form is the same for every Isa
  pack.run(args, 0, pack.parts(args));
}

constexpr Form kPanels = {panel_name, panel_bytes, pack_panels};

// ---- a packed product ----

constexpr std::pair<std::string_view, Activation> kFusedActivations[] = {
    {"none", Activation::kNone},          {"relu", Activation::kRelu}, {"gelu", Activation::kGelu},
    {"gelu_tanh", Activation::kGeluTanh}, {"silu", Activation::kSilu}, {"sigmoid", Activation::kSigmoid},
    {"tanh", Activation::kTanh}};

const Activation* fused_activation(const Node& node) {
  for (const auto& [name, activation] : kFusedActivations)
    if (node.attrs.is("act", name)) return &activation;
  return nullptr;
}

std::string_view refuse_packed(const Query& query) {
  if (!all_f32(query)) return "takes f32 only";
  if (!query.resident(1)) return "the right side is no param or constant";
  if (query.type(1).rank() != 2) return "the right side is no single matrix";
  if (query.node.op == Op::kMatmul && query.node.attrs.flag("transpose_a")) return "the left side is transposed";
  if (query.node.op == Op::kLinear && !fused_activation(query.node)) return "no kernel has this activation";
  return {};
}

double product_nanoseconds(double m, double n, double k) {
  return 100 + 2 * m * n * k / 60;
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
    args.epilogue.act = *fused_activation(view.node);
    args.epilogue.bias = data_or_null<const float>(view.in[2]);
  }
  double work =
      product_nanoseconds(static_cast<double>(args.m), static_cast<double>(args.n), static_cast<double>(args.k));
  load(block, caps.fns.gemm.product, args, work, launch);
}

// ---- a product of two sides of the run ----

std::string_view refuse_strided(const Query& query) {
  if (!all_f32(query)) return "takes f32 only";
  if (query.node.out[0].rank() > kMaxBatchRank + 2) return "too many batch axes";
  return {};
}

// Strides of the batch axes of an operand, aligned right with those of y; 0 where it is broadcast.
void set_batch(int64_t* strides, const View& operand, int32_t batch_rank) {
  auto own = static_cast<int32_t>(operand.dims.size()) - 2;
  for (int32_t i = 0; i < own; i++)
    if (operand.dims[static_cast<size_t>(i)] != 1)
      strides[batch_rank - own + i] = operand.strides[static_cast<size_t>(i)];
}

void encode_strided(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  const View &a = view.in[0], &b = view.in[1], &y = view.out[0];
  size_t ra = a.dims.size(), rb = b.dims.size(), ry = y.dims.size();
  bool flip_a = view.node.attrs.flag("transpose_a"), flip_b = view.node.attrs.flag("transpose_b");
  MatmulArgs args;
  args.a = a.as<float>();
  args.b = b.as<float>();
  args.y = y.as<float>();
  args.m = y.dims[ry - 2];
  args.n = y.dims[ry - 1];
  args.k = a.dims[ra - 1 - flip_a];
  args.a_row = a.strides[ra - 2 + flip_a];
  args.a_col = a.strides[ra - 1 - flip_a];
  args.b_row = b.strides[rb - 2 + flip_b];
  args.b_col = b.strides[rb - 1 - flip_b];
  args.y_row = y.strides[ry - 2];
  args.batch_rank = static_cast<int32_t>(ry) - 2;
  double batches = 1;
  for (int32_t i = 0; i < args.batch_rank; i++) {
    args.batch[i] = y.dims[static_cast<size_t>(i)];
    batches *= static_cast<double>(args.batch[i]);
  }
  set_batch(args.a_batch, a, args.batch_rank);
  set_batch(args.b_batch, b, args.batch_rank);
  set_batch(args.y_batch, y, args.batch_rank);
  double work = product_nanoseconds(batches * static_cast<double>(args.m), static_cast<double>(args.n),
                                    static_cast<double>(args.k));
  load(block, caps.fns.gemm.matmul, args, work, launch);
}

}  // namespace

void add_product_rows(RowsByOp& by_op) {
  for (Op op : {Op::kLinear, Op::kMatmul})
    rows_of(by_op, op).push_back({{.op = op,
                                   .name = op == Op::kLinear ? "linear_f32_packed" : "matmul_f32_packed",
                                   .refuse = refuse_packed,
                                   .form_input = 1,
                                   .form = kPanels},
                                  loaded_bytes<ProductArgs>,
                                  encode_packed,
                                  run_loaded<ProductArgs>,
                                  false});
  rows_of(by_op, Op::kMatmul)
      .push_back({{.op = Op::kMatmul, .name = "matmul_f32", .refuse = refuse_strided, .strided = 3},
                  loaded_bytes<MatmulArgs>,
                  encode_strided,
                  run_loaded<MatmulArgs>,
                  false});
}

}  // namespace rlx::cpu
