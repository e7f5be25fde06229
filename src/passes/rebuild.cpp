// SPDX-License-Identifier: Apache-2.0
#include "passes/rebuild.h"

namespace rlx {

Rebuild::Rebuild(const Graph& from) : from_(from), to_(from.name(), &from.table()), map_(from.nodes().size()) {
  auto declare = [&]() -> Status {
    for (const auto& [name, range] : from.symbols()) RLX_TRY(to_.declare_symbol(name, range));
    for (const Guard& guard : from.guards()) RLX_TRY(to_.add_guard(guard));
    return {};
  };
  status_ = declare();
  for (uint32_t node : from.inputs()) copy(node);
  for (uint32_t node : from.params()) copy(node);
}

void Rebuild::copy(uint32_t index) {
  const Node& node = from_.node(index);
  std::vector<Value> in;
  for (Value value : node.in) in.push_back(mapped(value));
  Value first = to_.append_copy(from_, index, std::move(in));
  std::vector<Value> values;
  for (uint32_t i = 0; i < node.out.size(); i++) values.push_back({first.node, i});
  set(index, std::move(values));
}

Result<Graph> Rebuild::finish() {
  for (const GraphOutput& output : from_.outputs()) RLX_TRY(to_.add_output(output.name, mapped(output.value)));
  return std::move(to_);
}

}  // namespace rlx
