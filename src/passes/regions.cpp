// SPDX-License-Identifier: Apache-2.0
// Groups elementwise nodes into regions. A node joins the region of its users if all of them are in one region and it
// has the region's dims. So a region has one output, computes nothing twice, and closes no cycle. If the device has no
// kernel for a region, its nodes stay.
#include <algorithm>
#include <numeric>

#include "base/contains.h"
#include "ir/facts.h"
#include "ir/infer.h"
#include "ir/normal.h"
#include "passes/pass.h"
#include "passes/region_bodies.h"

namespace rlx {

namespace {

constexpr size_t kMaxNodes = 40, kMaxInputs = 24;
constexpr uint32_t kNone = UINT32_MAX, kUnused = UINT32_MAX - 1;

struct Region {
  std::vector<uint32_t> members;  // from the last, which makes the output, to the first
  size_t reads = 0;               // an upper bound of its inputs
  uint32_t made = kNone;          // the node that stands for it, if the device has a kernel
  uint32_t root() const { return members[0]; }
};

class Grouping {
 public:
  Grouping(Graph graph, PassContext& context)
      : graph_(std::move(graph)), facts_(graph_), bodies_(graph_), context_(context) {}

  Result<Graph> run() {
    assign();
    bool changes = false;
    std::reverse(regions_.begin(), regions_.end());  // into the order of the graph
    for (uint32_t& region : region_)
      if (region != kNone) region = static_cast<uint32_t>(regions_.size()) - 1 - region;
    for (uint32_t region = 0; region < regions_.size(); region++) changes |= try_make(region);
    if (!changes) return std::move(graph_);
    find_replacements();
    rewire();
    if (context_.report) report();
    return std::move(graph_).reordered(order());
  }

 private:
  bool is_candidate(uint32_t index) const {
    const Node& node = graph_.node(index);
    const OpInfo& info = graph_.info(node);
    if (!info.is(kElementwise) || info.is(kView) || node.out.size() != 1) return false;
    if (facts_.is_resident({index, 0})) return false;
    const auto& joins = context_.joins_regions ? context_.joins_regions : context_.is_native;
    // A region has no kernel where one of its nodes has none.
    return joins ? joins(facts_, {index, 0}) : context_.supports(facts_, {index, 0});
  }

  // From the last node to the first, so that users have their region before what they use.
  void assign() {
    size_t count = graph_.nodes().size();
    region_.assign(count, kNone);
    std::vector<uint32_t> region_of_users(count, kUnused);  // kNone: they are not all in one
    for (const GraphOutput& output : graph_.outputs()) region_of_users[output.value.node] = kNone;
    for (auto i = static_cast<uint32_t>(count); i-- > 0;) {
      if (is_candidate(i)) join(i, region_of_users[i]);
      for (Value value : graph_.node(i).in) {
        if (!present(value)) continue;
        uint32_t& users = region_of_users[value.node];
        users = users == kUnused || users == region_[i] ? region_[i] : kNone;
      }
    }
  }

  void join(uint32_t index, uint32_t region) {
    size_t reads = inputs_read(index);
    if (region < kUnused) {
      Region& it = regions_[region];
      if (graph_.node(it.root()).out[0].dims == graph_.node(index).out[0].dims && it.members.size() < kMaxNodes &&
          it.reads + reads - 1 <= kMaxInputs) {
        it.members.push_back(index);
        it.reads += reads - 1;  // the node was one of them
        region_[index] = region;
        return;
      }
    }
    region_[index] = static_cast<uint32_t>(regions_.size());
    regions_.push_back({{index}, reads});
  }

  // How many values the node reads that are not scalars: it adds at most so many inputs to its region.
  size_t inputs_read(uint32_t index) const {
    const auto& in = graph_.node(index).in;
    return static_cast<size_t>(
        std::count_if(in.begin(), in.end(), [&](Value value) { return present(value) && !is_scalar(value); }));
  }

  bool is_scalar(Value value) const {
    const Node& node = graph_.node(value);
    const std::vector<Dim>& dims = node.out[0].dims;
    return node.op == Op::kConstant && std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is(1); });
  }

  // The inputs stand in the order in which the members read them.
  RegionParts parts_of(uint32_t region) const {
    RegionParts parts;
    parts.members.assign(regions_[region].members.rbegin(), regions_[region].members.rend());
    for (uint32_t member : parts.members)
      for (Value value : graph_.node(member).in)
        if (present(value) && region_[value.node] != region && !is_scalar(value) && !contains(parts.inputs, value))
          parts.inputs.push_back(value);
    return parts;
  }

  // Makes a node for the region, at the end of the graph for now, and asks the device for a kernel. Returns whether
  // there is one; if not, the node goes.
  bool try_make(uint32_t index) {
    Region& region = regions_[index];
    if (region.members.size() < 2) return false;
    RegionParts parts = parts_of(index);
    std::vector<Value> inputs = parts.inputs;
    auto body = bodies_.body_of(std::move(parts));
    if (!body.ok()) return false;
    Graph::Mark mark = graph_.mark();
    const Node& root = graph_.node(region.root());
    const OpInfo& info = graph_.info(Op::kElementwiseRegion);
    Node node{info.op(), inputs, Attrs(&info, {std::move(*body)}), {}, root.name};
    bool fits = infer_node(graph_, info, input_types(graph_, info, inputs), node).ok();
    if (fits && graph_.guards().size() == mark.sizes.guards) {
      node.out = root.out;
      Value made = graph_.append(std::move(node));
      facts_.extend();
      if (context_.supports(facts_, made)) {
        region.made = made.node;
        return true;
      }
    }
    graph_.roll_back(mark);
    facts_.shorten(mark.nodes);
    return false;
  }

  void find_replacements() {
    replacement_.resize(graph_.nodes().size());
    std::iota(replacement_.begin(), replacement_.end(), 0U);
    for (const Region& region : regions_)
      if (region.made != kNone) replacement_[region.root()] = region.made;
  }

  // Lets all that read the root of a region read the region.
  void rewire() {
    for (uint32_t i = 0; i < graph_.nodes().size(); i++)
      for (size_t k = 0; k < graph_.node(i).in.size(); k++)
        if (Value value = graph_.node(i).in[k]; present(value) && replacement_[value.node] != value.node)
          graph_.set_input(i, k, {replacement_[value.node], value.output});
    for (size_t i = 0; i < graph_.outputs().size(); i++) {
      Value value = graph_.outputs()[i].value;
      graph_.set_output(i, {replacement_[value.node], value.output});
    }
  }

  void report() const {
    for (const Region& region : regions_)
      if (region.made != kNone)
        context_.report->lines.push_back({"regions",
                                          "elementwise_region",
                                          format("{}, {} ops", graph_.describe(region.root()), region.members.size()),
                                          {}});
  }

  // The order of nodes: inputs and params first, each region in the place of its root, and no members of regions.
  std::vector<uint32_t> order() const {
    std::vector<uint32_t> order(graph_.inputs().begin(), graph_.inputs().end());
    order.insert(order.end(), graph_.params().begin(), graph_.params().end());
    for (uint32_t i = 0; i < region_.size(); i++) {
      bool is_inside = region_[i] != kNone && regions_[region_[i]].made != kNone && replacement_[i] == i;
      if (!is_inside && !graph_.info(graph_.node(i)).is(kInterface)) order.push_back(replacement_[i]);
    }
    return order;
  }

  Graph graph_;
  Facts facts_;
  RegionBodies bodies_;
  PassContext& context_;
  std::vector<Region> regions_;
  std::vector<uint32_t> region_;       // by node
  std::vector<uint32_t> replacement_;  // by node: the node that computes its value now
};

}  // namespace

bool may_group(const Graph& graph, const PassContext& context) {
  auto is_elementwise = [&](const Node& node) { return graph.info(node).is(kElementwise); };
  return context.refuses && std::ranges::any_of(graph.nodes(), is_elementwise);
}

Result<Graph> group_elementwise(Graph graph, PassContext& context) {
  if (!context.refuses) return graph;
  return Grouping(std::move(graph), context).run();
}

}  // namespace rlx
