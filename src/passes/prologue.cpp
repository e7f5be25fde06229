// SPDX-License-Identifier: Apache-2.0
// Cuts the pieces of the prologue out of a compiled graph. Residents that share computed values are computed
// together, unless it costs little to compute the shared values once for each.
#include "passes/prologue.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "ir/structure.h"
#include "passes/graph_copy.h"

namespace rlx {

namespace {

constexpr uint32_t kNone = UINT32_MAX;

bool is_leaf(const Graph& graph, Value value) {
  return graph.info(graph.node(value)).is(kLeaf);
}

// The params that values depend on, in a fixed order.
std::vector<uint32_t> params_below(const Graph& graph, std::span<const Value> values) {
  std::vector<uint32_t> found, waiting;
  std::unordered_set<uint32_t> seen;
  auto visit = [&](Value value) {
    if (present(value) && seen.insert(value.node).second) waiting.push_back(value.node);
  };
  for (Value value : values) {
    visit(value);
    while (!waiting.empty()) {
      uint32_t node = waiting.back();
      waiting.pop_back();
      if (graph.node(node).op == Op::kParam) found.push_back(node);
      for (Value input : graph.node(node).in) visit(input);
    }
  }
  return found;
}

// Walks over the nodes that compute a value: goes below a node where `enter` says so.
void walk(const Graph& graph, Value value, FunctionRef<bool(uint32_t node)> enter) {
  std::vector<Value> waiting{value};
  while (!waiting.empty()) {
    Value next = waiting.back();
    waiting.pop_back();
    if (!present(next) || is_leaf(graph, next) || !enter(next.node)) continue;
    const auto& in = graph.node(next).in;
    waiting.insert(waiting.end(), in.begin(), in.end());
  }
}

struct Group {
  std::vector<uint32_t> residents;
  std::vector<Value> values;  // by resident
  size_t work = 0;            // to compute them together
};

// The work of a node: an estimate that counts its inputs, because it may read thousands of params.
size_t work_of(const Graph& graph, uint32_t node) {
  return 1 + graph.node(node).in.size();
}

// Cuts the residents that one device computes of one graph into groups that share no computed value.
class SharingGroups {
 public:
  explicit SharingGroups(const Graph& graph) : graph_(graph), reader_(graph.nodes().size(), kNone) {}

  // A node that no earlier resident reads counts for this one. A node that an earlier one reads joins the two groups.
  void add(uint32_t resident, Value value) {
    auto self = static_cast<uint32_t>(groups_.size());
    groups_.push_back({{resident}, {value}});
    joined_with_.push_back(self);
    walk(graph_, value, [&](uint32_t node) {
      if (reader_[node] == self) return false;
      if (reader_[node] != kNone) {
        uint32_t a = root(reader_[node]), b = root(self);
        joined_with_[std::max(a, b)] = std::min(a, b);
        return false;
      }
      reader_[node] = self;
      groups_[self].work += work_of(graph_, node);
      return true;
    });
  }

  std::vector<Group> groups() {
    std::vector<Group> joined(groups_.size());
    for (uint32_t i = 0; i < groups_.size(); i++) {
      Group& to = joined[root(i)];
      to.residents.push_back(groups_[i].residents[0]);
      to.values.push_back(groups_[i].values[0]);
      to.work += groups_[i].work;
    }
    std::erase_if(joined, [](const Group& group) { return group.residents.empty(); });
    return joined;
  }

 private:
  // The group that stands for all that are joined with this one (union-find, with path halving).
  uint32_t root(uint32_t group) {
    while (joined_with_[group] != group) group = joined_with_[group] = joined_with_[joined_with_[group]];
    return group;
  }

  const Graph& graph_;
  std::vector<uint32_t> reader_;       // by node: the first group that reads it
  std::vector<Group> groups_;          // by resident
  std::vector<uint32_t> joined_with_;  // by group: itself, or an earlier one
};

// Whether each resident of a group gets a piece of its own, although they share values. That is good where it costs
// little to compute the shared values once for each: then a resident is computed again only if its own params change,
// and the dense values of two residents need not be in memory at the same time.
bool may_be_apart(const Graph& graph, const Group& group) {
  constexpr size_t kMaxTimes = 4;
  size_t work = 0;
  for (Value value : group.values) {
    std::unordered_set<uint32_t> seen;
    walk(graph, value, [&](uint32_t node) {
      bool is_new = work <= kMaxTimes * group.work && seen.insert(node).second;
      if (is_new) work += work_of(graph, node);
      return is_new;
    });
  }
  return work <= kMaxTimes * group.work;
}

// The index of a param among those of the program. A param of a body has the name of one around it.
class Indices {
 public:
  explicit Indices(const Graph& graph) : graph_(graph), index_(graph.nodes().size()) {
    for (uint32_t i = 0; i < graph.params().size(); i++) index_[graph.params()[i]] = i;
  }
  uint32_t at(const Graph& scope, uint32_t node) const {
    return index_[&scope == &graph_ ? node : graph_.find_leaf(scope.leaf_name(node))->node];
  }

 private:
  const Graph& graph_;
  std::vector<uint32_t> index_;  // by node
};

// Keeps equal graphs once.
class UniqueGraphs {
 public:
  std::shared_ptr<const Graph> one_of(Graph made) {
    size_t hash = structure_hash(made);
    auto [first, last] = graphs_.equal_range(hash);
    for (auto it = first; it != last; ++it)
      if (same_structure(*it->second, made)) return it->second;
    return graphs_.emplace(hash, std::make_shared<const Graph>(std::move(made)))->second;
  }

 private:
  std::unordered_multimap<size_t, std::shared_ptr<const Graph>> graphs_;
};

}  // namespace

static Graph prologue_graph(const OpTable& table) {
  Graph graph("", &table);
  graph.set_prologue();
  return graph;
}

// A copy of the graph that computes the residents, with inputs in place of params.
static Result<Graph> body_of(const Graph& scope, std::span<const Value> values, const Indices& indices,
                             InlinedVector<uint32_t, 2>& params) {
  Graph body = prologue_graph(scope.table());
  GraphCopy copy(scope, body);
  for (uint32_t param : params_below(scope, values)) {
    const ValueType& type = scope.node(param).out[0];
    copy.set({param, 0}, RLX_TRY(body.add_input(std::to_string(params.size()), type.dtype, type.dims)));
    params.push_back(indices.at(scope, param));
  }
  for (size_t i = 0; i < values.size(); i++)
    RLX_TRY(body.add_output("value" + std::to_string(i), RLX_TRY(copy.copy_cone(values[i]))));
  return body;
}

static Result<Graph> pack_of(const Resident& resident) {
  const Graph& scope = resident.scope->graph;
  const ValueType& type = scope.type(resident.value);
  Graph graph = prologue_graph(scope.table());
  Value x = RLX_TRY(graph.add_input("x", type.dtype, type.dims));
  RLX_TRY(graph.add_output("form", RLX_TRY(graph.add(Op::kPrepack, {&x, 1}, resident.form->attrs()))));
  return graph;
}

namespace {

class Splitter {
 public:
  explicit Splitter(const LoweredGraph& lowered) : lowered_(lowered), indices_(lowered.graph) {}

  Result<std::vector<Piece>> split() {
    pieces_.reserve(lowered_.residents.size());
    for (uint32_t i = 0; i < lowered_.residents.size(); i++) {
      const Resident& resident = lowered_.residents[i];
      if (is_leaf(resident.scope->graph, resident.value))
        RLX_TRY(add_leaf(i));
      else
        sharing_.try_emplace(where(resident), resident.scope->graph).first->second.add(i, resident.value);
    }
    for (auto& [from, sharing] : sharing_)
      for (const Group& group : sharing.groups()) RLX_TRY(add_group(from.scope->graph, group));
    auto is_first = [](const Piece& a, const Piece& b) { return a.residents[0] < b.residents[0]; };
    // Leaves alone are in order.
    if (!std::ranges::is_sorted(pieces_, is_first)) std::ranges::sort(pieces_, is_first);
    return std::move(pieces_);
  }

 private:
  // What is computed together: of one graph, on one device, and read by the same bodies, because all fail where one
  // fails, and a failure must reach no body that does not read it (semantics.md B3).
  struct Where {
    const LoweredGraph* scope;
    bool on_host;
    uint64_t readers;
    auto operator<=>(const Where&) const = default;
  };
  Where where(const Resident& resident) const {
    return {resident.scope, resident.on_host, resident.scope == &lowered_ ? 0 : resident.readers};
  }

  // A dense param or constant is read unchanged: there is nothing to compute or to keep.
  Status add_leaf(uint32_t index) {
    const Resident& resident = lowered_.residents[index];
    const Graph& graph = resident.scope->graph;
    if (resident.form) {
      Piece piece = RLX_TRY(piece_of(graph, {index}, {&resident.value, 1}));
      piece.is_leaf = true;
      pieces_.push_back(std::move(piece));
      return {};
    }
    Piece piece{.residents = {index}, .body = nullptr, .params = {}, .packs = {nullptr}, .is_leaf = true};
    if (graph.node(resident.value).op == Op::kParam) piece.params.push_back(indices_.at(graph, resident.value.node));
    pieces_.push_back(std::move(piece));
    return {};
  }

  Status add_group(const Graph& graph, const Group& group) {
    if (!may_be_apart(graph, group)) {
      pieces_.push_back(RLX_TRY(piece_of(graph, group.residents, group.values)));
      return {};
    }
    for (size_t i = 0; i < group.residents.size(); i++)
      pieces_.push_back(RLX_TRY(piece_of(graph, {group.residents[i]}, {&group.values[i], 1})));
    return {};
  }

  Result<Piece> piece_of(const Graph& graph, InlinedVector<uint32_t, 2> residents, std::span<const Value> values) {
    Piece piece{.residents = std::move(residents), .body = nullptr, .params = {}, .packs = {}};
    piece.body = unique_.one_of(RLX_TRY(body_of(graph, values, indices_, piece.params)));
    for (uint32_t index : piece.residents) {
      const Resident& resident = lowered_.residents[index];
      piece.packs.push_back(resident.form ? unique_.one_of(RLX_TRY(pack_of(resident))) : nullptr);
    }
    return piece;
  }

  const LoweredGraph& lowered_;
  Indices indices_;
  UniqueGraphs unique_;
  std::map<Where, SharingGroups> sharing_;
  std::vector<Piece> pieces_;
};

}  // namespace

Result<std::vector<Piece>> split_prologue(const LoweredGraph& lowered) {
  return Splitter(lowered).split();
}

}  // namespace rlx
