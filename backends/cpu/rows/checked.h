// SPDX-License-Identifier: Apache-2.0
// What rows share whose loops check indices.
#pragma once

#include "backends/cpu/kernels/movement.h"
#include "backends/cpu/rows/native.h"

namespace rlx::cpu {

// What the message for a bad index needs stands beside the arguments.
template <class Args>
struct CheckedBlock {
  Args args;
  const Node* node;
  const OpInfo* op;
};

template <class Args, BadIndex (*loop)(const Args&, int64_t, int64_t)>
Status run_checked(const void* block, int64_t begin, int64_t end) {
  const auto& it = *static_cast<const CheckedBlock<Args>*>(block);
  BadIndex bad = loop(it.args, begin, end);
  if (bad.n < 0) return {};
  const std::string& name = it.node->name;
  return Status(Code::kRange, format("{}{}: index {} at position {} is outside a size of {}", it.op->name,
                                     name.empty() ? "" : format(" '{}'", name), bad.value, bad.position, bad.n))
      .with("op", it.op->name)
      .with("value", it.node->name);
}

template <class Args, BadIndex (*loop)(const Args&, int64_t, int64_t)>
void load_checked(const StepView& view, const Args& args, int64_t parts, double work, void* block, Launch& launch) {
  new (block) CheckedBlock<Args>{args, &view.node, &view.plan.graph().info(view.node)};
  launch.then(run_checked<Args, loop>, parts, work);
}

inline std::string_view refuse_blocks(const KernelQuery& query) {
  return is_block(query.type(0).dtype) ? "rows are block-quantised" : "";
}

}  // namespace rlx::cpu
