// SPDX-License-Identifier: Apache-2.0
#include "ir/broken_guard.h"

#include <set>

namespace rlx {

static bool holds(const Guard& guard, const std::string& symbol, int64_t size) {
  SymbolLookup lookup = [&](std::string_view name) { return name == symbol ? std::optional(size) : std::nullopt; };
  auto a = evaluate(guard.a, lookup), b = evaluate(guard.b, lookup);
  return a.ok() && b.ok() && holds(guard.relation, *a, *b);
}

// The largest size below `broken` at which the guard holds, if it also holds at all smaller sizes; else -1.
static int64_t largest_legal(const Guard& guard, const std::string& symbol, int64_t broken) {
  int64_t legal = 1, illegal = broken;
  if (broken <= 1 || !holds(guard, symbol, legal)) return -1;
  while (illegal - legal > 1) {
    int64_t middle = legal + (illegal - legal) / 2;
    (holds(guard, symbol, middle) ? legal : illegal) = middle;
  }
  return legal;
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
  int64_t most = got ? largest_legal(guard, *symbols.begin(), *got) : -1;
  if (most >= 0)
    return Status(Code::kShape, format("'{}' may be at most {}: {} needs {}{}; got {}", *symbols.begin(), most,
                                       guard.where.empty() ? "the graph" : guard.where, text_of(guard),
                                       params_of_size(graph, most), *got))
        .with("op", op_of(graph, guard.where))
        .with("value", *symbols.begin())
        .with("expected", format("at most {}", most))
        .with("got", std::to_string(*got));
  return Status(Code::kShape, format("{}{}{} does not hold: {} and {}", guard.where, guard.where.empty() ? "" : ": ",
                                     text_of(guard), a, b))
      .with("op", op_of(graph, guard.where))
      .with("expected", std::to_string(b))
      .with("got", std::to_string(a));
}

}  // namespace rlx
