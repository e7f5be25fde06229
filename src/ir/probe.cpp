// SPDX-License-Identifier: Apache-2.0
#include "ir/probe.h"

#include <algorithm>
#include <map>

namespace rlx {
namespace {

using Sizes = std::map<std::string, int64_t, std::less<>>;

// Most guards compare small numbers, so most samples are small.
void draw(const Graph& graph, uint64_t sample, Sizes& sizes) {
  uint64_t state = sample;
  for (auto& [name, size] : sizes) {
    state = (state + 1) * 0x9e3779b97f4a7c15u;
    Interval range = graph.symbol_range(name);
    int64_t most = std::min(range.hi - range.lo, sample % 4 ? int64_t{3} : int64_t{40});
    size = range.lo + static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(most + 1));
  }
}

bool holds_at(const Guard& guard, const Sizes& sizes) {
  auto size_of = [&](std::string_view name) { return std::optional(sizes.find(name)->second); };
  auto x = evaluate(guard.a, size_of), y = evaluate(guard.b, size_of);
  return x.ok() && y.ok() && holds(guard.relation, *x, *y);
}

}  // namespace

bool holds_at_samples(const Graph& graph, const Guard& guard) {
  constexpr uint64_t kSamples = 400;
  Sizes sizes;
  auto name = [&](const std::string& symbol) { sizes[symbol] = 0; };
  visit_symbols(guard, name);
  for (const Guard& known : graph.guards()) visit_symbols(known, name);
  for (uint64_t sample = 0; sample < kSamples; sample++) {
    draw(graph, sample, sizes);
    if (holds_at(guard, sizes)) continue;  // asked first: a graph may have many guards
    if (std::ranges::all_of(graph.guards(), [&](const Guard& known) { return holds_at(known, sizes); })) return false;
  }
  return true;
}

bool guards_contradict(const Graph& graph) {
  return holds_at_samples(graph, {Guard::kEqual, 0, 1, ""});
}

bool is_same_at_samples(const Graph& graph, const ValueType& a, const ValueType& b) {
  if (graph.is_same_type(a, b)) return true;
  if (a.dtype != b.dtype || a.rank() != b.rank()) return false;
  for (size_t i = 0; i < a.rank(); i++)
    if (!holds_at_samples(graph, {Guard::kEqual, a.dims[i], b.dims[i], ""})) return false;
  return true;
}

}  // namespace rlx
