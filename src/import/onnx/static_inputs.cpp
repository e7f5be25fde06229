// SPDX-License-Identifier: Apache-2.0
// Which inputs of the model decide a value, or a size that the run finds: with these as constants a graph can be made
// where a general one cannot.
#include "import/onnx/importer.h"

namespace rlx::onnx {

namespace {

using NodeAt = std::pair<size_t, uint32_t>;  // level and node

}  // namespace

// Walks from values and sizes back to the inputs that they are computed from. An input of a body stands for its value
// in the graph around it.
class Importer::StaticWalk {
 public:
  explicit StaticWalk(const Importer& importer) : importer_(importer) {}

  void from(size_t level, Value value) {
    if (present(value) && seen_.emplace(level, value.node).second) open_.emplace_back(level, value.node);
  }
  void from(std::span<const Dim> dims) {
    for (const Dim& dim : dims) {
      reads_sizes |= !dim.is_literal();
      visit_symbols(dim, [this](const std::string& symbol) { from_symbol(symbol); });
    }
  }

  // False if other data decide it too: tensors of floats, or what a trip changes.
  bool finish() {
    while (!open_.empty()) {
      NodeAt next = open_.back();
      open_.pop_back();
      if (!step(next)) return false;
    }
    return true;
  }

  std::set<std::string> names;
  bool reads_sizes = false;

 private:
  bool step(NodeAt at) {
    auto [level, id] = at;
    const Graph& graph = importer_.graph_at(level);
    const Node& node = graph.node(id);
    if (node.op == Op::kInput) return level == 0 ? add_input(graph, id) : from_outside(at);
    if (node.op == Op::kDimSize) {
      const std::vector<Dim>& dims = graph.type(node.in[0]).dims;
      from(std::span(dims).subspan(static_cast<size_t>(node.attrs.i64("axis")), 1));
      reads_sizes = true;
      return true;
    }
    for (Value in : node.in) from(level, in);
    from(node.out[0].dims);
    return true;
  }

  bool add_input(const Graph& graph, uint32_t id) {
    const ValueType& type = graph.node(id).out[0];
    if (!is_integer(type.dtype) && type.dtype != DType::kBool && type.rank() > 1) return false;
    names.emplace(graph.leaf_name(id));
    return true;
  }

  bool from_outside(NodeAt at) {
    for (const auto& [outer, input] : importer_.levels_[at.first - 1].inputs) {
      if (input.node != at.second) continue;
      from(outer->level, outer->value);
      return true;
    }
    return false;  // a trip changes it
  }

  void from_symbol(const std::string& symbol) {
    if (!is_fresh(symbol)) return;
    for (; listed_ <= importer_.levels_.size(); listed_++) {
      for (const DecidedSize& it : decided_sizes(importer_.graph_at(listed_)))
        if (it.is_fresh) decider_of_.emplace(it.symbol, NodeAt(listed_, it.node));
    }
    auto decider = decider_of_.find(symbol);
    if (decider != decider_of_.end()) from(decider->second.first, Value{decider->second.second, 0});
  }

  bool is_fresh(const std::string& symbol) const {
    for (size_t level = 0; level <= importer_.levels_.size(); level++)
      if (importer_.graph_at(level).is_fresh(symbol)) return true;
    return false;
  }

  const Importer& importer_;
  std::set<NodeAt> seen_;
  std::vector<NodeAt> open_;
  size_t listed_ = 0;  // levels whose nodes are in `decider_of_`
  std::unordered_map<std::string, NodeAt> decider_of_;
};

const Graph& Importer::graph_at(size_t level) const {
  return level < levels_.size() ? *levels_[level].around : out_.graph;
}

std::optional<std::vector<std::string>> Importer::static_inputs(const OnnxValue& value) const {
  StaticWalk walk(*this);
  walk.from(value.level, value.value);
  if (value.sizes) walk.from(value.sizes->items), walk.reads_sizes = true;
  if (!walk.finish() || (walk.names.empty() && !walk.reads_sizes)) return std::nullopt;
  return std::vector<std::string>(walk.names.begin(), walk.names.end());
}

std::set<std::string> Importer::static_inputs_of_sizes(const NodeProto& node) {
  StaticWalk walk(*this);
  for (std::string_view name : node.input) {
    auto value = name.empty() ? Result<OnnxValue*>(nullptr) : find(name);
    if (!value.ok() || !*value) continue;
    walk.from((*value)->type.dims);
    if ((*value)->sizes) walk.from((*value)->sizes->items);
  }
  return walk.finish() ? std::move(walk.names) : std::set<std::string>();
}

}  // namespace rlx::onnx
