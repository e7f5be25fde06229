// SPDX-License-Identifier: Apache-2.0
// Computes what all plans of a graph share: phases, kernels, the lowered bodies, and the list of resident values in the
// forms in which they are read. Invariant: a value is listed once for each form, however many bodies read it or compute
// it anew.
#include <algorithm>

#include "base/hash.h"
#include "plan/control.h"
#include "plan/plan.h"

namespace rlx {

int64_t Resident::bytes() const {
  if (form) return form->bytes;
  const ValueType& type = scope->graph.type(value);
  return is_set() ? 0 : byte_size(type.dtype, element_count(type.dims).literal()).value();
}

bool Resident::is_set() const {
  return scope->graph.info(scope->graph.node(value)).is(kLeaf);
}

int64_t LoweredGraph::prepared_bytes() const {
  int64_t bytes = 0;
  for (const Resident& resident : residents) bytes += resident.bytes();
  return bytes;
}

namespace {

// Fills the list of residents, without duplicates.
class ResidentList {
 public:
  explicit ResidentList(LoweredGraph& lowered) : lowered_(lowered) {}

  void run() {
    const Graph& graph = lowered_.graph;
    lowered_.residents.reserve(graph.params().size());
    lowered_.of_value.resize(graph.nodes().size());
    lowered_.of_input.resize(graph.nodes().size());
    for (uint32_t i = 0; i < graph.nodes().size(); i++) {
      const Node& node = graph.node(i);
      lowered_.of_value[i].resize(node.out.size(), LoweredGraph::kNone);
      if (lowered_.phases[i] == Phase::kResident) continue;
      lowered_.of_input[i].resize(node.in.size(), LoweredGraph::kNone);
      for (uint32_t k = 0; k < node.in.size(); k++)
        if (present(node.in[k]) && lowered_.phases[node.in[k].node] == Phase::kResident)
          lowered_.of_input[i][k] = add_read(i, k);
    }
    for (const GraphOutput& output : graph.outputs())
      if (lowered_.phases[output.value.node] == Phase::kResident) add_dense(output.value);
  }

  uint32_t add_dense(Value value) {
    uint32_t& known = lowered_.of_value[value.node][value.output];
    if (known != LoweredGraph::kNone) return known;
    known = next();
    lowered_.residents.push_back({.value = value, .scope = &lowered_});
    return known;
  }

 private:
  // A node that can be a view is no step, even if there is a kernel for it.
  uint32_t add_read(uint32_t reader, uint32_t input) {
    Value value = lowered_.graph.node(reader).in[input];
    if (reads_form(reader, input)) return add_form(reader, value);
    bool is_view = lowered_.graph.info(lowered_.graph.node(reader)).view != nullptr;
    return lowered_.on_host[reader] && !is_view ? add_dense_on_host(value) : add_dense(value);
  }

  // A dense copy in host memory, in addition to the one that the device may have.
  uint32_t add_dense_on_host(Value value) {
    auto [found, is_new] = of_value_on_host_.emplace(key_of(value), next());
    if (is_new) lowered_.residents.push_back({.value = value, .scope = &lowered_, .on_host = true});
    return found->second;
  }

  uint32_t next() const { return static_cast<uint32_t>(lowered_.residents.size()); }

  bool reads_form(uint32_t reader, uint32_t input) const {
    return lowered_.kernels[reader] && lowered_.kernels[reader]->form_input == static_cast<int>(input);
  }

  uint32_t add_form(uint32_t reader, Value value) {
    bool on_host = lowered_.on_host[reader];
    Form form = lowered_.kernels[reader]->form_of(lowered_.query(reader));
    std::string key = format("{}{}/{}", on_host ? "host/" : "", form.text(), key_of(value));
    auto [found, is_new] = forms_.emplace(std::move(key), next());
    if (is_new) lowered_.residents.push_back({value, &lowered_, form, reader, on_host});
    return found->second;
  }

  LoweredGraph& lowered_;
  std::unordered_map<std::string, uint32_t> forms_;  // by form and value
  std::unordered_map<uint64_t, uint32_t> of_value_on_host_;
};

// Finds the phase and the kernel of each node. With `whole`, whatever is not a leaf runs in every run.
Status choose_kernels(LoweredGraph& lowered, bool whole, KernelOf kernel_of) {
  const Graph& graph = lowered.graph;
  Facts facts(graph);
  lowered.phases.assign(facts.phases().begin(), facts.phases().end());
  lowered.kernels.resize(graph.nodes().size(), nullptr);
  lowered.on_host.resize(graph.nodes().size(), false);
  for (uint32_t i = 0; i < graph.nodes().size(); i++) {
    bool is_leaf = graph.info(graph.node(i)).is(kLeaf);
    if (!is_leaf && lowered.phases[i] != Phase::kResident) {
      Found found = kernel_of(facts, i);
      if (!found.kernel)
        return Status(Code::kInternal, "no kernel computes " + graph.describe(i) + ": " + found.why_not);
      lowered.kernels[i] = found.kernel;
      lowered.on_host[i] = found.on_host;
    }
    if (whole && !is_leaf) lowered.phases[i] = Phase::kRun;
  }
  return {};
}

// A device that takes the whole graph needs the params of its bodies too.
void list_params_of_bodies(ResidentList& listing, const Graph& graph) {
  for (const Node& node : graph.nodes())
    for (const BodyParam& param : body_params(node))
      if (auto leaf = graph.find_leaf(param.name)) listing.add_dense(*leaf);
}

// Numbers the expressions over params and constants, so that equal ones are found in all bodies of a program: an
// operand that sinks into many bodies is copied into each. A param has one name in all graphs.
class Expressions {
 public:
  void note(LoweredGraph& lowered) {
    const Graph& graph = lowered.graph;
    std::vector<uint32_t> numbers(graph.nodes().size());
    for (uint32_t i = 0; i < graph.nodes().size(); i++)
      if (lowered.phases[i] == Phase::kResident) numbers[i] = number(graph.node(i), numbers);
    graphs_++;
    for (Resident& resident : lowered.residents)
      resident.expression = numbers[resident.value.node], resident.readers = graphs_;
  }

 private:
  struct Known {
    const Node* node;
    InlinedVector<Value, 2> in;  // the numbers of its inputs
    uint32_t number;
  };

  uint32_t number(const Node& node, const std::vector<uint32_t>& numbers) {
    InlinedVector<Value, 2> in = node.in;
    for (Value& value : in)
      if (present(value)) value.node = numbers[value.node];
    size_t hash = hash_mix(static_cast<size_t>(node.op), node.attrs.hash());
    for (Value value : in) hash = hash_mix(hash, key_of(value));
    auto [first, last] = known_.equal_range(hash);
    for (auto it = first; it != last; ++it)
      if (same(*it->second.node, node) && it->second.in == in) return it->second.number;
    known_.emplace(hash, Known{&node, std::move(in), next_});
    return next_++;
  }

  static bool same(const Node& a, const Node& b) { return a.op == b.op && a.attrs == b.attrs && a.out == b.out; }

  std::unordered_multimap<size_t, Known> known_;  // by hash
  uint32_t next_ = 0;
  uint64_t graphs_ = 0;
};

// Adds the residents of bodies to those of the graph around them, unless they are there already.
class SharedResidents {
 public:
  explicit SharedResidents(LoweredGraph& lowered) : residents_(lowered.residents) {
    for (uint32_t i = 0; i < residents_.size(); i++) index_.emplace(key(residents_[i]), i);
  }

  std::vector<uint32_t> add(const std::vector<Resident>& of_body) {
    std::vector<uint32_t> indices;
    for (const Resident& resident : of_body) {
      auto [found, is_new] = index_.emplace(key(resident), static_cast<uint32_t>(residents_.size()));
      if (is_new)
        residents_.push_back(resident);
      else
        residents_[found->second].readers = hash_combine(residents_[found->second].readers, resident.readers);
      indices.push_back(found->second);
    }
    return indices;
  }

 private:
  static std::string key(const Resident& resident) {
    return format("{}{}/{}.{}", resident.on_host ? "host/" : "", resident.form ? resident.form->text() : "",
                  resident.expression, resident.value.output);
  }

  std::vector<Resident>& residents_;
  std::unordered_map<std::string, uint32_t> index_;
};

Result<std::shared_ptr<const LoweredGraph>> lower_graph(Graph graph, const LowerOptions& options, KernelOf kernel_of,
                                                        Expressions* expressions);

Status lower_bodies(LoweredGraph& lowered, const LowerOptions& options, KernelOf kernel_of, Expressions* expressions) {
  const Graph& graph = lowered.graph;
  if (!has_control_flow(graph)) return {};
  SharedResidents listing(lowered);
  for (uint32_t i = 0; i < graph.nodes().size(); i++) {
    if (lowered.phases[i] == Phase::kResident) continue;
    for (std::string_view attr : body_attrs(graph.node(i).op)) {
      auto body = RLX_TRY(lower_graph(*graph.node(i).attrs.graph(attr), options, kernel_of, expressions));
      lowered.bodies[i].push_back({body, listing.add(body->residents)});
    }
  }
  return {};
}

// `expressions`: null where there is no control flow.
Result<std::shared_ptr<const LoweredGraph>> lower_graph(Graph graph, const LowerOptions& options, KernelOf kernel_of,
                                                        Expressions* expressions) {
  auto lowered = std::make_shared<LoweredGraph>(
      LoweredGraph{.graph = std::move(graph), .options = options.kernels, .alignment = options.alignment});
  const Graph& given = lowered->graph;
  lowered->has_effects = std::ranges::any_of(given.nodes(), [&](const Node& node) {
    return !given.info(node).is(kLeaf) && !is_pure(given.info(node), node.attrs);
  });
  RLX_TRY(choose_kernels(*lowered, options.whole, kernel_of));
  ResidentList listing(*lowered);
  listing.run();
  lowered->own_residents = lowered->residents.size();
  if (expressions) expressions->note(*lowered);
  if (options.whole)
    list_params_of_bodies(listing, lowered->graph);
  else
    RLX_TRY(lower_bodies(*lowered, options, kernel_of, expressions));
  return std::shared_ptr<const LoweredGraph>(std::move(lowered));
}

}  // namespace

Result<std::shared_ptr<const LoweredGraph>> lower(Graph graph, const LowerOptions& options, KernelOf kernel_of) {
  Expressions expressions;
  bool is_shared = has_control_flow(graph);
  return lower_graph(std::move(graph), options, kernel_of, is_shared ? &expressions : nullptr);
}

}  // namespace rlx
