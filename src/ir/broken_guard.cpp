// SPDX-License-Identifier: Apache-2.0
#include "ir/broken_guard.h"

#include <set>

namespace rlx {

// What a guard demands of the only symbol in it: "may be at most 512", "must be 4".
struct Demand {
  std::string_view verb, expected;
  int64_t size;
};

// None if the guard is not linear in the symbol, if it names a least size, or if no size meets it.
static std::optional<Demand> demand_of(const Guard& guard, const std::string& symbol) {
  const Dim difference = guard.b - guard.a;
  auto at = [&](int64_t size) { return evaluate(difference, [&](std::string_view) { return std::optional(size); }); };
  auto at_zero = at(0), at_one = at(1);
  int64_t slope = 0;
  if (!at_zero.ok() || !at_one.ok() || __builtin_sub_overflow(*at_one, *at_zero, &slope)) return std::nullopt;
  if (slope == 0 || difference != *at_zero + slope * Dim::symbol(symbol)) return std::nullopt;
  if (guard.relation == Guard::kLessEqual && slope > 0) return std::nullopt;  // a least size
  bool is_negative = *at_zero != 0 && (*at_zero < 0) == (slope < 0);
  if (is_negative || *at_zero == INT64_MIN || slope == INT64_MIN) return std::nullopt;
  int64_t size = *at_zero / -slope;
  if (guard.relation == Guard::kLessEqual) return Demand{"may be", "at most ", size};
  return *at_zero % slope == 0 ? std::optional(Demand{"must be", "", size}) : std::nullopt;
}

// "; the param 'positions' is f32[512,384]": names the params with an axis of this size.
static std::string params_of_size(const Graph& graph, int64_t size) {
  std::string text;
  for (uint32_t node : graph.params())
    for (const Dim& dim : graph.type({node, 0}).dims)
      if (dim.is(size) && size > 1) {
        text += format("; the param '{}' is {}", graph.leaf_name(node), graph.type({node, 0}));
        break;
      }
  return text;
}

static std::string_view op_of(const Graph& graph, std::string_view where) {
  std::string_view word = where.substr(0, where.find(' '));
  return graph.table().find(word) ? word : "";
}

Status broken_guard(const Graph& graph, const Guard& guard, const SymbolLookup& sizes) {
  std::set<std::string> symbols;
  auto note = [&](const std::string& name) { symbols.insert(name); };
  visit_symbols(guard.a, note);
  visit_symbols(guard.b, note);
  int64_t a = RLX_TRY(evaluate(guard.a, sizes)), b = RLX_TRY(evaluate(guard.b, sizes));
  std::optional<int64_t> got = symbols.size() == 1 ? sizes(*symbols.begin()) : std::nullopt;
  auto demand = got ? demand_of(guard, *symbols.begin()) : std::nullopt;
  if (demand)
    return Status(Code::kShape, format("'{}' {} {}{}: {} needs {}{}; got {}", *symbols.begin(), demand->verb,
                                       demand->expected, demand->size, guard.where.empty() ? "the graph" : guard.where,
                                       text_of(guard), params_of_size(graph, demand->size), *got))
        .with("op", op_of(graph, guard.where))
        .with("value", *symbols.begin())
        .with("expected", format("{}{}", demand->expected, demand->size))
        .with("got", std::to_string(*got));
  return Status(Code::kShape, format("{}{}{} does not hold: {} and {}", guard.where, guard.where.empty() ? "" : ": ",
                                     text_of(guard), a, b))
      .with("op", op_of(graph, guard.where))
      .with("expected", std::to_string(b))
      .with("got", std::to_string(a));
}

}  // namespace rlx
