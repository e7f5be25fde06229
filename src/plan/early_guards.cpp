// SPDX-License-Identifier: Apache-2.0
// Guards and nodes go into batches by the time at which a run knows their sizes. The batches are taken in order of
// time; each node is inferred on a graph that has the guards of its batch and of earlier ones.
#include "plan/early_guards.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/infer.h"
#include "ir/normal.h"

namespace rlx {

namespace {

// The order of the times at which a run knows a size: before all steps (PlanSymbol::kGiven), or before one of them.
struct Earlier {
  bool operator()(uint32_t a, uint32_t b) const { return a != b && PlanSymbol::later(a, b) == b; }
};

class EarlyGuards {
 public:
  explicit EarlyGuards(const Plan& plan) : plan_(plan), scope_(plan.graph().name(), &plan.graph().table()) {
    scope_.set_customs(plan.graph().customs());
    if (plan.graph().is_prologue()) scope_.set_prologue();
  }

  // A guard that contradicts others ends the search: a run checks it before the steps of its time, and fails.
  std::vector<Guard> find() {
    // A batch for each time at which a size is found, even if no guard or node belongs to it.
    for (const PlanSymbol& symbol : plan_.symbols) batches_.try_emplace(symbol.made_by);
    if (batches_.empty() || batches_.rbegin()->first == PlanSymbol::kGiven) return {};
    for (const auto& [name, range] : plan_.graph().symbols())
      if (!scope_.declare_symbol(name, range).ok()) return {};
    for (const Guard& guard : plan_.graph().guards()) add(guard);
    for (uint32_t node = 0; node < plan_.graph().nodes().size(); node++) add(node);
    batches_.erase(std::prev(batches_.end()));  // then all guards have been checked
    for (const auto& [time, batch] : batches_) {
      visits_ += batch.guards.size() + batch.nodes.size();
      for (const Guard* guard : batch.guards)
        if (!scope_.add_guard(*guard).ok()) return std::move(found_);
      for (uint32_t node : batch.nodes) infer(plan_.graph().node(node));
    }
    return std::move(found_);
  }
  uint64_t visits() const { return visits_; }

 private:
  void add(const Guard& guard) {
    visits_++;
    batches_[PlanSymbol::later(plan_.known_at(guard.a), plan_.known_at(guard.b))].guards.push_back(&guard);
  }

  // A node may run once the sizes that it names are known, but for those that it finds itself.
  void add(uint32_t index) {
    visits_++;
    const Graph& graph = plan_.graph();
    const Node& node = graph.node(index);
    std::set<std::string> own;
    visit_decided_sizes(node, [&](const std::string& symbol, bool) { own.insert(symbol); });
    uint32_t time = PlanSymbol::kGiven;
    bool names_size = false;
    auto note = [&](const std::string& name) {
      names_size = true;
      if (!own.contains(name)) time = PlanSymbol::later(time, plan_.known_at(Dim::symbol(name)));
    };
    visit_symbols(node, note);
    for (Value value : node.in)
      if (present(value))
        for (const Dim& dim : graph.type(value).dims) visit_symbols(dim, note);
    if (names_size) batches_[time].nodes.push_back(index);
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
      (void)scope_.add_guard({.relation = Guard::kEqual,
                              .a = inferred[i],
                              .b = stored[i],
                              .where = std::string(scope_.info(node).name),
                              .is_derived = true});
  }

  void keep(const Guard& guard) {
    if (plan_.graph().implies(guard.relation, guard.a, guard.b)) found_.push_back(guard);
  }

  const Plan& plan_;
  Graph scope_;  // symbols, and the guards that are known by now
  struct Batch {
    std::vector<const Guard*> guards;
    std::vector<uint32_t> nodes;  // those that name sizes
  };
  std::map<uint32_t, Batch, Earlier> batches_;  // by the time from which the run knows their sizes
  std::vector<Guard> found_;
  uint64_t visits_ = 0;  // of guards and nodes
};

}  // namespace

std::vector<Guard> early_guards(const Plan& plan, uint64_t* visits) {
  EarlyGuards search(plan);
  std::vector<Guard> found = search.find();
  if (visits) *visits = search.visits();
  return found;
}

}  // namespace rlx
