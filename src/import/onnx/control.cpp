// SPDX-License-Identifier: Apache-2.0
// ONNX node kinds that are decided while importing: literals, and branches whose condition is known.
#include "import/onnx/call.h"
#include "import/onnx/importer.h"

namespace rlx::onnx {

namespace {

template <class T>
Tensor list_tensor(Call& call, DType dtype, const std::vector<T>& values, bool is_scalar) {
  int64_t dims[] = {static_cast<int64_t>(values.size())};
  auto tensor = Tensor::create(dtype, std::span<const int64_t>(dims, is_scalar ? 0 : 1));
  if (!tensor.ok()) return call.fail(tensor.status().code(), std::string(tensor.status().message())), Tensor();
  std::copy(values.begin(), values.end(), tensor->as<T>());
  return *tensor;
}

void build_constant(Call& call) {
  if (const TensorProto* proto = call.tensor("value")) {
    auto tensor = call.importer().read(*proto);
    if (!tensor.ok()) return call.fail(tensor.status().code(), std::string(tensor.status().message()));
    return call.out(0, *tensor);
  }
  if (call.has_attr("value_int"))
    return call.out(0, list_tensor<int64_t>(call, DType::kI64, {call.i64("value_int", 0)}, true));
  if (call.has_attr("value_ints")) return call.out(0, list_tensor(call, DType::kI64, call.i64s("value_ints"), false));
  bool is_scalar = call.has_attr("value_float");
  if (!is_scalar && !call.has_attr("value_floats"))
    return call.fail(Code::kUnsupported, "a constant of strings, or sparse");
  std::vector<double> wide = is_scalar ? std::vector<double>{call.f64("value_float", 0)} : call.f64s("value_floats");
  call.out(0, list_tensor(call, DType::kF32, std::vector<float>(wide.begin(), wide.end()), is_scalar));
}

// Exporters write the choice of a code path as an If whose condition follows from sizes or literals.
void build_if(Call& call) {
  const GraphProto *yes = call.graph("then_branch"), *no = call.graph("else_branch");
  std::vector<int64_t> condition = call.numbers(0, "cond");
  if (!call.status().ok() || condition.size() != 1) return call.fail(Code::kData, "the condition is not one bool");
  auto results = call.importer().inline_graph(condition[0] ? *yes : *no);
  if (!results.ok()) return call.fail(results.status().code(), std::string(results.status().message()));
  if (results->size() != call.outputs()) return call.fail(Code::kData, "the branch has another number of outputs");
  for (size_t i = 0; i < results->size(); i++) call.out(i, (*results)[i]);
}

constexpr NodeKind kKinds[] = {
    {.op_type = "Constant", .build = build_constant, .control = true},
    {.op_type = "If", .build = build_if, .control = true},
};

}  // namespace

std::span<const NodeKind> control_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
