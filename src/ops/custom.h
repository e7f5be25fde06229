// SPDX-License-Identifier: Apache-2.0
// Ops that the host registers under names of their own. `custom` calls one, or stands for its body.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/eval.h"

namespace rlx {

// Either `body` is set, or `infer` and `run`, which any thread may call, several at once.
struct CustomOp {
  using Infer =
      std::function<Result<std::vector<ValueType>>(std::span<const ValueType* const> in, const NamedAttrs& attrs)>;
  using Run = std::function<Status(std::span<const Operand> in, std::span<const Operand> out, const NamedAttrs& attrs)>;

  std::string name;
  std::shared_ptr<const Graph> body = nullptr;  // its meaning as a graph, for inputs of any sizes that fit
  Infer infer = nullptr;
  Run run = nullptr;
  std::shared_ptr<const void> keeps = nullptr;  // what lives as long as the op
};

// What `infer` told of a node: for inputs of the types `in`, outputs of the types `out`.
struct HostAnswer {
  std::vector<ValueType> in, out;
};

// The ops of an environment, by name. They only become more.
class CustomOps {
 public:
  // RLX_E_EXISTS for a name that is taken, RLX_E_UNSUPPORTED for a body that cannot be inlined.
  Status add(std::shared_ptr<const CustomOp> op);
  Result<std::shared_ptr<const CustomOp>> find(const std::string& name) const;  // RLX_E_NOT_FOUND

 private:
  mutable std::mutex mutex_;
  ByName<std::shared_ptr<const CustomOp>> ops_;
};

// The op that a node of `custom` names.
const CustomOp& custom_op(const Attrs& attrs);

Status infer_custom(InferArgs& args);
Status infer_host_call(InferArgs& args);
Status infer_custom_fn(InferArgs& args);

}  // namespace rlx
