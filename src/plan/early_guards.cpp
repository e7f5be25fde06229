// SPDX-License-Identifier: Apache-2.0
#include "plan/early_guards.h"

#include <algorithm>
#include <set>

#include "ir/normal.h"

namespace rlx {

namespace {

// When the run knows a size: before all steps, or before one of them.
struct Later {
  bool operator()(uint32_t a, uint32_t b) const { return a != b && PlanSymbol::later(a, b) == b; }
};

class EarlyGuards {
 public:
  explicit EarlyGuards(const Plan& plan) : plan_(plan), scope_(plan.graph().name(), &plan.graph().table()) {
    scope_.set_customs(plan.graph().customs());
    if (plan.graph().is_prologue()) scope_.set_prologue();
  }

  std::vector<Guard> find() {
    std::set<uint32_t, Later> times = {PlanSymbol::kGiven};
    for (const PlanSymbol& symbol : plan_.symbols) times.insert(symbol.made_by);
    if (times.size() == 1) return {};
    for (const auto& [name, range] : plan_.graph().symbols())
      if (!scope_.declare_symbol(name, range).ok()) return {};
    note_times();
    times.erase(std::prev(times.end()));  // then all guards have been checked
    for (uint32_t time : times) {
      for (const Guard& guard : plan_.graph().guards())
        if (known_at(guard) == time && !scope_.add_guard(guard).ok()) return std::move(found_);
      for (uint32_t node = 0; node < plan_.graph().nodes().size(); node++)
        if (time_of_[node] == time && names_size_[node]) infer(plan_.graph().node(node));
    }
    return std::move(found_);
  }

 private:
  uint32_t known_at(const Guard& guard) const {
    return PlanSymbol::later(plan_.known_at(guard.a), plan_.known_at(guard.b));
  }

  // A node may run once the sizes that it names are known, but for those that it finds itself.
  void note_times() {
    const Graph& graph = plan_.graph();
    time_of_.assign(graph.nodes().size(), PlanSymbol::kGiven);
    names_size_.assign(graph.nodes().size(), false);
    for (uint32_t i = 0; i < graph.nodes().size(); i++) {
      const Node& node = graph.node(i);
      std::set<std::string> own;
      visit_decided_sizes(node, [&](const std::string& symbol, bool) { own.insert(symbol); });
      auto note = [&](const std::string& name) {
        names_size_[i] = true;
        if (!own.contains(name)) time_of_[i] = PlanSymbol::later(time_of_[i], plan_.known_at(Dim::symbol(name)));
      };
      visit_symbols(node, note);
      for (Value value : node.in)
        if (present(value))
          for (const Dim& dim : graph.type(value).dims) visit_symbols(dim, note);
    }
  }

  // The host answers for its own ops: their kernels see all sizes.
  void infer(const Node& node) {
    const OpInfo& info = plan_.graph().info(node);
    if (info.is(kOnHost)) return;
    size_t known = scope_.guards().size();
    Node again{node.op, node.in, node.attrs, {}, node.name};
    if (infer_node(scope_, info, input_types(plan_.graph(), info, node.in), again).ok())
      for (size_t i = 0; i < node.out.size(); i++) require_same(again.out[i].dims, node.out[i].dims, again);
    for (size_t i = known; i < scope_.guards().size(); i++) keep(scope_.guards()[i]);
  }

  // A stored type may be simpler, by what guards prove.
  void require_same(std::span<const Dim> inferred, std::span<const Dim> stored, const Node& node) {
    for (size_t i = 0; i < std::min(inferred.size(), stored.size()); i++)
      (void)scope_.add_guard({Guard::kEqual, inferred[i], stored[i], std::string(scope_.info(node).name), true});
  }

  void keep(const Guard& guard) {
    if (plan_.graph().implies(guard.relation, guard.a, guard.b)) found_.push_back(guard);
  }

  const Plan& plan_;
  Graph scope_;                    // symbols, and the guards that are known by now
  std::vector<uint32_t> time_of_;  // by node
  std::vector<bool> names_size_;   // by node
  std::vector<Guard> found_;
};

}  // namespace

std::vector<Guard> early_guards(const Plan& plan) {
  return EarlyGuards(plan).find();
}

}  // namespace rlx
