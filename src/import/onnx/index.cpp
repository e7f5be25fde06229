// SPDX-License-Identifier: Apache-2.0
// ONNX node kinds that read or write at indices.
#include <algorithm>

#include "import/onnx/call.h"
#include "import/onnx/fold.h"

namespace rlx::onnx {

namespace {

void build_gather(Call& call) {
  call.out(0, gather(call.in(0), call.in(1), call.i64("axis", 0)));
}

// Elements of a list of sizes at literal places.
Folded fold_gather(Call& call) {
  const Sizes *x = call.sizes(0), *indices = call.sizes(1);
  if (!x || !indices || x->dims.size() != 1) return std::nullopt;
  int64_t axis = call.i64("axis", 0), n = x->dims[0];
  if (axis != 0 && axis != -1) return std::nullopt;
  std::vector<int64_t> places;
  for (const Dim& index : indices->items) {
    if (!index.is_literal() || index.literal() < -n || index.literal() >= n) return std::nullopt;
    places.push_back(index.literal() < 0 ? index.literal() + n : index.literal());
  }
  return move_sizes(*x, indices->dims, [&](int64_t i) { return places[static_cast<size_t>(i)]; });
}

void build_gather_elements(Call& call) {
  call.out(0, call.op("gather_elements", {call.in(0), call.in(1)}, {{"axis", call.i64("axis", 0)}}));
}

void build_gather_nd(Call& call) {
  call.out(0, call.op("gather_nd", {call.in(0), call.in(1)}, {{"batch_dims", call.i64("batch_dims", 0)}}));
}

// A sum of bools is true where one of them is, a product where all are.
std::string reduction_of(Call& call) {
  std::string reduction(call.text("reduction", "none"));
  if (call.type(0).dtype != DType::kBool) return reduction;
  return reduction == "add" ? "max" : reduction == "mul" ? "min" : reduction;
}

void build_scatter_elements(Call& call) {
  std::string reduction = reduction_of(call);
  call.out(0, call.op("scatter_elements", {call.in(0), call.in(1), call.in(2)},
                      {{"axis", call.i64("axis", 0)}, {"reduction", reduction}}));
}

void build_scatter_nd(Call& call) {
  std::string reduction = reduction_of(call);
  call.out(0, call.op("scatter_nd", {call.in(0), call.in(1), call.in(2)}, {{"reduction", reduction}}));
}

// Values are (off, on).
Folded fold_one_hot(Call& call) {
  const Sizes *indices = call.sizes(0), *depth = call.sizes(1), *values = call.sizes(2);
  if (!indices || !depth || !values || depth->items.size() != 1 || !depth->items[0].is_literal() ||
      values->items.size() != 2)
    return std::nullopt;
  int64_t n = depth->items[0].literal(), inner = 1;
  std::vector<int64_t> dims = indices->dims;
  int64_t axis = call.axis(call.i64("axis", -1), dims.size() + 1);
  dims.insert(dims.begin() + std::min<int64_t>(axis, static_cast<int64_t>(dims.size())), n);
  for (size_t i = static_cast<size_t>(axis) + 1; i < dims.size(); i++) inner *= dims[i];
  if (n <= 0 || inner <= 0 || !call.status().ok()) return std::nullopt;
  for (const Dim& index : indices->items)
    if (!index.is_literal()) return std::nullopt;
  return move_sizes(*values, std::move(dims), [&](int64_t flat) {
    int64_t index = indices->items[static_cast<size_t>(flat / (n * inner) * inner + flat % inner)].literal();
    return int64_t{(index < 0 ? index + n : index) == flat / inner % n};
  });
}

void build_one_hot(Call& call) {
  // A depth may be a float; then it is a size of the run.
  std::vector<Dim> depth;
  if (call.sizes(1))
    depth = call.dims(1, "depth");
  else
    depth = {call.run_dim(call.in(1))};
  if (depth.size() != 1) return call.fail(Code::kData, "'depth' is not one number");
  Expr values = call.in(2), index = cast(call.in(0), DType::kI64);
  auto value_at = [&](int64_t i) { return reshape(slice(values, 0, i, i + 1), {}); };
  call.out(
      0, call.op("one_hot", {index, value_at(1), value_at(0)}, {{"depth", depth[0]}, {"axis", call.i64("axis", -1)}}));
}

void build_reverse_sequence(Call& call) {
  int64_t batch = call.i64("batch_axis", 1), time = call.i64("time_axis", 0);
  call.out(0, call.op("reverse_sequence", {call.in(0), call.in(1)}, {{"time_axis", time}, {"batch_axis", batch}}));
}

// Rows written into a cache from a position per batch row, or from the start.
void build_tensor_scatter(Call& call) {
  Expr cache = call.in(0), rows = call.in(1), at = call.in(2);
  std::string_view mode = call.text("mode", "linear");
  if (mode != "linear" && mode != "circular") return call.fail(Code::kData, "'mode' is " + std::string(mode));
  if (!cache.valid() || !rows.valid()) return;
  int64_t axis = call.axis(call.i64("axis", -2), cache.rank());
  if (!at) at = call.builder().scalar(DType::kI64, 0);
  call.out(0, call.op("kv_append", {cache, rows, at}, {{"axis", axis}, {"wrap", int64_t{mode == "circular"}}}));
}

constexpr NodeKind kKinds[] = {
    {.op_type = "Gather", .build = build_gather, .fold = fold_gather, .moves = 1},
    {.op_type = "GatherElements", .build = build_gather_elements, .moves = 1},
    {.op_type = "GatherND", .build = build_gather_nd, .moves = 1},
    {"Scatter", build_scatter_elements},
    {"ScatterElements", build_scatter_elements},
    {"ScatterND", build_scatter_nd},
    {"OneHot", build_one_hot, "", fold_one_hot},
    {"ReverseSequence", build_reverse_sequence},
    {"TensorScatter", build_tensor_scatter},
    microsoft("GatherND", build_gather_nd),
};

}  // namespace

std::span<const NodeKind> index_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
