// SPDX-License-Identifier: Apache-2.0
// Groups elementwise nodes into regions: a node joins the region of its users when all of them are in one and it has
// the region's dims, so a region has one output, computes nothing twice and cannot contain a cycle. A region that the
// device has no kernel for stays as its nodes.
#include <algorithm>
#include <map>

#include "ir/facts.h"
#include "passes/pass.h"
#include "passes/rebuild.h"

namespace rlx {

namespace {

constexpr uint32_t kNoRegion = UINT32_MAX;
constexpr size_t kMostNodes = 40, kMostInputs = 24;

class Grouping {
 public:
  Grouping(const Graph& graph, PassContext& context) : graph_(graph), facts_(graph), context_(context) {}

  Result<Graph> run() {
    assign();
    Rebuild rebuild(graph_);
    RLX_TRY(Status(rebuild.status()));
    for (uint32_t i = 0; i < graph_.nodes().size(); i++) {
      if (rebuild.is_done(i)) continue;
      bool is_inner = region_[i] != kNoRegion && region_[i] != i && stands_[region_[i]];
      if (is_inner) continue;  // made as part of its region
      bool is_root = region_[i] == i && stands_[i];
      if (!is_root || members_[i].size() < 2) {
        rebuild.copy(i);
      } else {
        RLX_TRY(add_region(i, rebuild));
      }
    }
    return rebuild.finish();
  }

 private:
  bool is_candidate(uint32_t index) const {
    const Node& node = graph_.node(index);
    const OpInfo& info = graph_.info(node);
    if (!info.is(kElementwise) || info.is(kLeaf) || info.is(kView) || node.out.size() != 1) return false;
    return !facts_.is_resident({index, 0}) && context_.supports(facts_, {index, 0});
  }

  // From the last node to the first, so that users have their region before what they use.
  void assign() {
    size_t count = graph_.nodes().size();
    region_.assign(count, kNoRegion);
    members_.resize(count);
    inputs_.resize(count, 0);
    made_.resize(count);
    std::vector<std::vector<uint32_t>> users(count);
    std::vector<bool> is_output(count, false);
    for (uint32_t i = 0; i < count; i++)
      for (Value value : graph_.node(i).in)
        if (present(value)) users[value.node].push_back(i);
    for (const GraphOutput& output : graph_.outputs()) is_output[output.value.node] = true;
    for (auto i = static_cast<uint32_t>(count); i-- > 0;) {
      if (!is_candidate(i)) continue;
      uint32_t joined = is_output[i] ? kNoRegion : common_region(users[i]);
      size_t read = inputs_read(i);
      bool joins = joined != kNoRegion && graph_.node(joined).out[0].dims == graph_.node(i).out[0].dims &&
                   members_[joined].size() < kMostNodes && inputs_[joined] + read - 1 <= kMostInputs;
      region_[i] = joins ? joined : i;
      members_[region_[i]].push_back(i);
      inputs_[region_[i]] += joins ? read - 1 : read;  // it was one itself
    }
    decide();
  }

  // How many values that are no scalars the node reads: at most so many inputs of its region.
  size_t inputs_read(uint32_t index) const {
    const std::vector<Value>& in = graph_.node(index).in;
    return static_cast<size_t>(std::count_if(
        in.begin(), in.end(), [&](Value value) { return present(value) && !is_scalar(graph_.constant(value)); }));
  }

  uint32_t common_region(const std::vector<uint32_t>& users) const {
    uint32_t region = users.empty() ? kNoRegion : region_[users[0]];
    for (uint32_t user : users)
      if (region_[user] != region) return kNoRegion;
    return region;
  }

  // Which regions stand: those that the device takes whole.
  void decide() {
    stands_.assign(graph_.nodes().size(), false);
    for (uint32_t root = 0; root < members_.size(); root++) {
      if (members_[root].size() < 2) continue;
      std::reverse(members_[root].begin(), members_[root].end());  // into the order of the graph
      stands_[root] = external_inputs(root).size() <= kMostInputs && is_taken(root);
    }
  }

  static bool is_scalar(const Tensor* tensor) { return tensor && tensor->count() == 1; }

  std::vector<Value> external_inputs(uint32_t root) const {
    std::vector<Value> list;
    for (uint32_t member : members_[root])
      for (Value value : graph_.node(member).in)
        if (present(value) && region_[value.node] != root && !is_scalar(graph_.constant(value)) &&
            std::find(list.begin(), list.end(), value) == list.end())
          list.push_back(value);
    return list;
  }

  // Those that the region names, with what is known of them.
  Status declare_symbols(uint32_t root, Graph& graph) const {
    Status status;
    auto declare = [&](const std::string& symbol) {
      if (status.ok()) status = graph.declare_symbol(symbol, graph_.symbol_range(symbol));
    };
    for (uint32_t member : members_[root]) visit_symbols(graph_.node(member), declare);
    for (Value value : external_inputs(root))
      for (const Dim& dim : graph_.type(value).dims) visit_symbols(dim, declare);
    return status;
  }

  // As they are where all guards hold: the body on its own has none.
  std::vector<Dim> resolved_dims(Value value) const {
    std::vector<Dim> dims = graph_.type(value).dims;
    for (Dim& dim : dims) dim = graph_.resolved(dim);
    return dims;
  }

  Result<std::shared_ptr<const Graph>> body_of(uint32_t root) const {
    Graph body("", &graph_.table());
    RLX_TRY(declare_symbols(root, body));
    std::map<Value, Value> map;
    std::vector<Value> inputs = external_inputs(root);
    for (size_t i = 0; i < inputs.size(); i++)
      map[inputs[i]] =
          RLX_TRY(body.add_input("x" + std::to_string(i), graph_.type(inputs[i]).dtype, resolved_dims(inputs[i])));
    for (uint32_t member : members_[root]) {
      const Node& node = graph_.node(member);
      std::vector<Value> in;
      for (Value value : node.in) {
        if (present(value) && !map.contains(value)) map[value] = RLX_TRY(body.add_constant(*graph_.constant(value)));
        in.push_back(present(value) ? map[value] : value);
      }
      map[{member, 0}] = RLX_TRY(body.add(graph_.info(node), in, node.attrs, node.name));
    }
    RLX_TRY(body.add_output("y", map[{root, 0}]));
    return std::make_shared<const Graph>(std::move(body));
  }

  // Asks the device about the region on its own.
  bool is_taken(uint32_t root) {
    auto body = body_of(root);
    if (!body.ok()) return false;
    Graph trial("", &graph_.table());
    if (!declare_symbols(root, trial).ok()) return false;
    std::vector<Value> in;
    for (uint32_t leaf : (*body)->inputs()) {
      const ValueType& type = (*body)->node(leaf).out[0];
      auto value = trial.add_input((*body)->leaf_name(leaf), type.dtype, type.dims);
      if (!value.ok()) return false;
      in.push_back(*value);
    }
    auto region = trial.add(Op::kElementwiseRegion, in, {{"body", *body}});
    if (!region.ok() || !context_.supports(Facts(trial), *region)) return false;
    made_[root] = trial.node(*region);
    return true;
  }

  Status add_region(uint32_t root, Rebuild& rebuild) {
    std::vector<Value> in;
    for (Value value : external_inputs(root)) in.push_back(rebuild.mapped(value));
    Node node{Op::kElementwiseRegion, std::move(in), made_[root].attrs, graph_.node(root).out, graph_.node(root).name};
    Value value = rebuild.graph().append(std::move(node));
    rebuild.set(root, {value});
    if (context_.report)
      context_.report->lines.push_back(
          {"regions", "elementwise_region", format("{}, {} ops", graph_.describe(root), members_[root].size()), {}});
    return {};
  }

  const Graph& graph_;
  Facts facts_;
  PassContext& context_;
  std::vector<uint32_t> region_;                // by node: the root of its region
  std::vector<std::vector<uint32_t>> members_;  // by root
  std::vector<size_t> inputs_;                  // by root: at most so many
  std::vector<bool> stands_;                    // by root
  std::vector<Node> made_;                      // by root: the region, of those that stand
};

}  // namespace

Result<Graph> group_elementwise(Graph graph, PassContext& context) {
  if (!context.refuses) return graph;
  return Grouping(graph, context).run();
}

}  // namespace rlx
