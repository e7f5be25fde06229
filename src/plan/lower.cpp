// SPDX-License-Identifier: Apache-2.0
// From a graph with kernels to what all plans share: phases, and the list of resident values in the forms that are
// read.
#include <algorithm>

#include "plan/plan.h"

namespace rlx {

static bool reads_form(const Lowered& lowered, const Node& reader, const Kernel* kernel, size_t input) {
  return kernel && kernel->form_input == static_cast<int>(input) &&
         lowered.phases[reader.in[input].node] == Phase::kResident;
}

static void add_dense(Lowered& lowered, Value value) {
  for (const Resident& known : lowered.residents)
    if (known.value == value && !known.kernel) return;
  lowered.residents.push_back({value});
}

static void add_form(Lowered& lowered, const Kernel* kernel, uint32_t reader, Value value) {
  KernelQuery query = lowered.query(reader);
  std::string packing = kernel->form.packing(query);
  for (const Resident& known : lowered.residents)
    if (known.value == value && known.packing == packing) return;
  lowered.residents.push_back({value, kernel, reader, packing, kernel->form.bytes(query)});
}

Lowered lower(Graph graph, KernelOptions options, std::vector<const Kernel*> kernels, bool with_prologue) {
  Lowered lowered{std::move(graph), options, {}, std::move(kernels), {}};
  const Graph& g = lowered.graph;
  Facts facts(g);
  lowered.phases.assign(facts.phases().begin(), facts.phases().end());
  if (!with_prologue)
    for (uint32_t i = 0; i < g.nodes().size(); i++)
      if (!g.node(i).in.empty() || !g.info(g.node(i)).is(kLeaf)) lowered.phases[i] = Phase::kRun;
  for (uint32_t i = 0; i < g.nodes().size(); i++) {
    if (lowered.phases[i] == Phase::kResident) continue;
    const Node& node = g.node(i);
    for (size_t k = 0; k < node.in.size(); k++) {
      if (!present(node.in[k]) || lowered.phases[node.in[k].node] != Phase::kResident) continue;
      reads_form(lowered, node, lowered.kernels[i], k) ? add_form(lowered, lowered.kernels[i], i, node.in[k])
                                                       : add_dense(lowered, node.in[k]);
    }
  }
  for (uint32_t i = 0; i < g.nodes().size(); i++)
    for (const BodyParam& param : body_params(g.node(i)))
      if (auto leaf = g.find_leaf(param.name)) add_dense(lowered, *leaf);
  for (const GraphOutput& output : g.outputs())
    if (lowered.phases[output.value.node] == Phase::kResident) add_dense(lowered, output.value);
  return lowered;
}

uint32_t Lowered::dense_resident(Value value) const {
  auto found = std::find_if(residents.begin(), residents.end(),
                            [&](const Resident& it) { return it.value == value && !it.kernel; });
  return static_cast<uint32_t>(found - residents.begin());
}

uint32_t Lowered::resident_of(uint32_t reader, size_t input) const {
  const Node& node = graph.node(reader);
  const Kernel* kernel = kernels[reader];
  if (!reads_form(*this, node, kernel, input)) return dense_resident(node.in[input]);
  std::string packing = kernel->form.packing(query(reader));
  auto found = std::find_if(residents.begin(), residents.end(),
                            [&](const Resident& it) { return it.value == node.in[input] && it.packing == packing; });
  return static_cast<uint32_t>(found - residents.begin());
}

}  // namespace rlx
