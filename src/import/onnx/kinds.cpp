// SPDX-License-Identifier: Apache-2.0
// The node kinds of all groups, and what they tell about a graph before its nodes are built.
#include "import/onnx/importer.h"

namespace rlx::onnx {

const NodeKind* find_kind(std::string_view op_type, std::string_view domain) {
  if (domain == "ai.onnx") domain = "";
  using Kinds = std::span<const NodeKind>;
  static const std::initializer_list<Kinds (*)()> kGroups = {
      elementwise_kinds,
      shape_kinds,
      movement_kinds,
      index_kinds,
      reduce_kinds,
      nn_kinds,
      control_kinds,
      loop_kinds,
      scan_kinds,
      loss_kinds,
      quantize_kinds,
      contents_kinds,
      recurrent_kinds,
      attention_kinds,
      sequence_kinds,
      linear_attention_kinds,
      ngram_kinds,
      ml_kinds,
      svm_kinds,
      tree_kinds,
      conv_kinds,
      image_kinds,
      random_kinds,
      signal_kinds,
      contrib_kinds,
      contrib_attention_kinds,
      contrib_quantize_kinds,
      contrib_expert_kinds,
      contrib_gate_kinds,
      contrib_position_kinds,
      experiment_kinds,
  };
  for (Kinds (*kinds)() : kGroups)
    for (const NodeKind& kind : kinds())
      if (kind.op_type == op_type && kind.domain == domain) return &kind;
  return nullptr;
}

std::unordered_set<std::string_view> numbers_per_channel(const GraphProto& graph) {
  std::unordered_set<std::string_view> names;
  for (const NodeProto& node : graph.node) {
    const NodeKind* kind = find_kind(node.op_type, node.domain);
    if (!kind || !kind->per_channel) continue;
    for (size_t i = 0; i < node.input.size() && i < 8 * sizeof kind->per_channel; i++)
      if (kind->per_channel >> i & 1) names.insert(node.input[i]);
  }
  return names;
}

}  // namespace rlx::onnx
