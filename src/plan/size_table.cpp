// SPDX-License-Identifier: Apache-2.0
// Upper sizes of symbols and dims. Most of it is about sizes that nodes decide: they are bounded by what decides
// them, and are open if there is no useful bound.
#include "plan/size_table.h"

#include <algorithm>

#include "base/check_size.h"
#include "base/shortened.h"
#include "ir/body.h"
#include "plan/control.h"

namespace rlx {

static constexpr int64_t kTooMany = int64_t{1} << 24;  // elements, along an axis or of a value

// A size that is decided must come from one node, and from no input: kernels read an input at its own size.
static Status check_sources(const Graph& graph, const std::vector<DecidedSize>& decided,
                            SizeTable::NodeBySymbol& decider_of) {
  auto refuse = [&](const std::string& symbol, const std::string& other) {
    return Status(Code::kShape, "the size '" + symbol + "', which " + graph.describe(decider_of.at(symbol)) +
                                    " finds in its data, is also that of " + other)
        .with("value", symbol);
  };
  for (const DecidedSize& size : decided)
    if (auto [found, is_new] = decider_of.emplace(size.symbol, size.node); !is_new && found->second != size.node)
      return refuse(size.symbol, graph.describe(size.node));
  if (decided.empty()) return {};
  for (uint32_t input : graph.inputs())
    for (const Dim& dim : graph.node(input).out[0].dims) {
      std::string taken;
      visit_symbols(dim, [&](const std::string& name) {
        if (decider_of.contains(name)) taken = name;
      });
      if (!taken.empty()) return refuse(taken, "the input '" + graph.leaf_name(input) + "'");
    }
  return {};
}

// Every size that a node names must be known when the node runs: a symbol of the graph, which no later node decides.
static Status check_order(const Graph& graph, const SizeTable::NodeBySymbol& decider_of) {
  auto refuse = [&](const std::string& symbol, uint32_t node, const std::string& why) {
    return Status(Code::kShape, graph.describe(node) + " names the size '" + symbol + "', " + why)
        .with("value", symbol);
  };
  for (uint32_t node = 0; node < graph.nodes().size(); node++) {
    Status status;
    visit_symbols(graph.node(node), [&](const std::string& symbol) {
      auto decider = decider_of.find(symbol);
      if (decider != decider_of.end() && decider->second > node)
        status = refuse(symbol, node, "which " + graph.describe(decider->second) + " decides later");
      else if (!graph.has_symbol(symbol))
        status = refuse(symbol, node, "which no input has and no node decides");
    });
    RLX_TRY(std::move(status));
  }
  return {};
}

// The bound that a node sets on what it counts, or null.
static const Dim* bound_of_count(const Node& node) {
  return node.op == Op::kDynamicIota && node.attrs.has("max") ? &node.attrs.dim("max") : nullptr;
}

// A branch of an `if`, and the symbols that it decides itself, each with the bound on its count.
struct SizeTable::Branch {
  explicit Branch(const Graph& of) : graph(of) {
    for (DecidedSize& size : decided_sizes(of))
      bounds.emplace(std::move(size.symbol), bound_of_count(of.node(size.node)));
  }
  const Graph& graph;
  ByName<const Dim*> bounds;  // null: none but its range
};

// The sizes in which the branches of one `if` differ.
struct SizeTable::Join {
  Branch then, otherwise;
  std::map<std::string, JoinedSize> sizes = {};  // by symbol
};

SizeTable::Joins SizeTable::find_joins(const std::vector<DecidedSize>& decided) const {
  Joins joins;
  for (const DecidedSize& size : decided) {
    const Node& node = plan_.graph().node(size.node);
    if (node.op != Op::kIf || joins.contains(size.node)) continue;
    Join join{Branch(*node.attrs.graph("then")), Branch(*node.attrs.graph("else"))};
    for (const JoinedSize& joined : joined_sizes(node)) join.sizes.try_emplace(joined.symbol, joined);
    joins.emplace(size.node, std::move(join));
  }
  return joins;
}

static Status no_upper_sizes(std::span<const std::string> names) {
  std::string missing, options;  // "'n'", "dims.n=512"
  for (const std::string& name : names) {
    missing += (missing.empty() ? "'" : ", '") + name + "'";
    options += (options.empty() ? "dims." : " dims.") + name + "=512";
  }
  return Status(Code::kShape, format("no upper size for {}: give the options {}, or declare a maximum; a model needs "
                                     "neither and plans for the sizes of each run",
                                     missing, options))
      .with("value", names[0])
      .with("expected", options);
}

Status SizeTable::set_symbols(const UpperSizes& upper) {
  const Graph& graph = plan_.graph();
  std::vector<DecidedSize> decided = decided_sizes(graph);
  NodeBySymbol decider_of;
  RLX_TRY(check_sources(graph, decided, decider_of));
  RLX_TRY(check_order(graph, decider_of));
  const Joins joins = find_joins(decided);
  RLX_TRY(add_symbols(upper, decider_of, joins));
  Names found;  // decided by nodes, and not bounded by an option
  for (const auto& [name, node] : decider_of) found.insert(name);
  for (const auto& [name, size] : upper) found.erase(name);
  Names too_large;
  if (!found.empty()) note_too_large(graph, found, too_large);
  open(too_large);
  note_chosen(joins);
  return {};
}

// A size that a node decides may have a very large maximum, which only says what an i32 or i64 can hold, or what a
// size without a bound can be. No plan can reserve memory for it, so the size is open, and this is its upper size.
static int64_t upper_if_open(const Interval& range) {
  return std::min(std::max(kLargestSymbol, range.lo), range.hi);
}

Status SizeTable::add_symbols(const UpperSizes& upper, const NodeBySymbol& decider_of, const Joins& joins) {
  std::unordered_map<std::string_view, int64_t> wanted;
  for (const auto& [name, size] : upper) wanted[name] = size;
  std::vector<std::string> missing;
  for (const auto& [name, range] : plan_.graph().symbols()) {
    int64_t upper_size = range.hi;
    auto decider = decider_of.find(name);
    if (decider != decider_of.end()) upper_size = most_of(name, decider->second, joins, upper_size);
    auto given = wanted.find(name);
    if (given != wanted.end()) upper_size = given->second;
    bool is_large = decider != decider_of.end() && upper_size >= std::max(kLargestSymbol, range.lo);
    bool is_open = is_large || (upper_size >= Interval::kUnbounded && plan_.is_body);
    if (is_open) upper_size = upper_if_open(range);
    if (given == wanted.end() && upper_size >= Interval::kUnbounded)
      missing.push_back(name);
    else
      RLX_TRY(check_upper_size(name, upper_size, range));
    plan_.symbol_ids.emplace(name, static_cast<uint32_t>(plan_.symbols.size()));
    plan_.symbols.push_back({name, range, upper_size, is_open});
  }
  return missing.empty() ? Status() : no_upper_sizes(missing);
}

// What rests on these sizes keeps the bound that it has from them.
void SizeTable::open(const Names& names) {
  if (names.empty()) return;
  for (PlanSymbol& symbol : plan_.symbols)
    if (names.contains(symbol.name)) symbol.is_open = true, symbol.upper = upper_if_open(symbol.range);
}

// The decided sizes that would make a value too large to reserve memory for, in the graph or in a body. Several of them
// multiply, or a chain of branches doubles one, where nearly every run has little: such sizes are open as well.
void SizeTable::note_too_large(const Graph& graph, Names& found, Names& too_large) const {
  auto range_of_symbol = [&](std::string_view name) -> Interval {
    uint32_t symbol = found.contains(name) || &graph == &plan_.graph() ? plan_.symbol(name) : Plan::kNoSymbol;
    if (symbol == Plan::kNoSymbol) return graph.symbol_range(name);
    return {plan_.symbols[symbol].range.lo, plan_.symbols[symbol].upper};
  };
  auto is_too_large = [&](const ValueType& type) {
    int64_t count = 1;
    for (const Dim& dim : type.dims) {
      int64_t most = std::clamp<int64_t>(range_of(dim, range_of_symbol).hi, 0, kTooMany + 1);
      count = std::min(count * most, kTooMany + 1);
    }
    return count > kTooMany;
  };
  auto note = [&](const std::string& name) {
    if (auto known = found.find(name); known != found.end()) too_large.insert(*known);
  };
  for (const Node& node : graph.nodes()) {
    for (const ValueType& type : node.out)
      if (is_too_large(type))
        for (const Dim& dim : type.dims) visit_symbols(dim, note);
    for (const Graph* body : bodies_of(node.attrs)) {
      std::vector<std::string_view> hidden;  // by symbols of the body
      for (const std::string& own : own_symbols(node.attrs, *body))
        if (auto known = found.find(own); known != found.end()) hidden.push_back(*known), found.erase(known);
      if (!found.empty()) note_too_large(*body, found, too_large);
      found.insert(hidden.begin(), hidden.end());
    }
  }
}

// A size depends on those that earlier nodes choose, so the list is in the order of the nodes.
void SizeTable::note_chosen(const Joins& joins) {
  const Graph& graph = plan_.graph();
  for (const auto& [index, join] : joins)
    for (const auto& [symbol, size] : join.sizes)
      if (size.is_chosen)
        plan_.chosen.push_back({plan_.symbol(symbol), graph.node(index).attrs.dim("when"), size.then, size.otherwise});
}

// The upper size of a symbol that a node decides: its declared maximum, or less if the deciding sizes, at their upper
// ones, allow only less.
int64_t SizeTable::most_of(const std::string& symbol, uint32_t decider, const Joins& joins, int64_t declared) const {
  const Node& node = plan_.graph().node(decider);
  if (const Dim* max = bound_of_count(node)) return std::min(declared, open_range(*max).hi);
  auto join = joins.find(decider);
  if (join == joins.end()) return declared;
  const auto& [then, otherwise, sizes] = join->second;
  auto size = sizes.find(symbol);
  if (size == sizes.end()) return declared;
  return std::min(declared,
                  std::max(open_range(size->second.then, &then).hi, open_range(size->second.otherwise, &otherwise).hi));
}

// The range, in which open symbols have no bound. Symbols that `branch` decides itself have their declared range, up to
// the most that it counts.
Interval SizeTable::open_range(const Dim& dim, const Branch* branch) const {
  auto range_in_branch = [&](std::string_view name, const Dim* bound) {
    Interval range = branch->graph.symbol_range(name);
    if (bound) range.hi = std::max(range.lo, std::min(range.hi, open_range(*bound, branch).hi));
    return range;
  };
  return range_of(dim, [&](std::string_view name) -> Interval {
    if (branch)
      if (auto own = branch->bounds.find(name); own != branch->bounds.end()) return range_in_branch(name, own->second);
    uint32_t symbol = plan_.symbol(name);
    if (symbol == Plan::kNoSymbol) return {};
    const PlanSymbol& it = plan_.symbols[symbol];
    return {it.range.lo, it.is_open ? Interval::kUnbounded : it.upper};
  });
}

// The range if no open symbol exceeded kTooMany.
Interval SizeTable::capped_range(const Dim& dim) const {
  return range_of(dim, [this](std::string_view name) -> Interval {
    uint32_t symbol = plan_.symbol(name);
    if (symbol == Plan::kNoSymbol) return {};
    const PlanSymbol& it = plan_.symbols[symbol];
    return {it.range.lo, it.is_open ? std::max(kTooMany, it.range.lo) : it.upper};
  });
}

bool SizeTable::names_open_symbol(const Dim& dim) const {
  bool any = false;
  visit_symbols(dim, [&](const std::string& name) {
    uint32_t symbol = plan_.symbol(name);
    any |= symbol != Plan::kNoSymbol && plan_.symbols[symbol].is_open;
  });
  return any;
}

// Whether a plan can use no bound of the dim: there is none, or it rests on an open symbol. A bound far above all usual
// sizes counts as none, because no plan can reserve memory for it. Files write 2^31 - 1 for the end of an axis, or half
// of it for steps of 2.
bool SizeTable::is_open(const Dim& dim) const {
  if (dim.is_literal()) return false;
  int64_t most = open_range(dim).hi;
  if (most >= Interval::kUnbounded) return true;
  return (most > kTooMany && capped_range(dim).hi < most) || (most > kLargestSymbol && names_open_symbol(dim));
}

bool SizeTable::is_open(std::span<const Dim> dims) const {
  return std::any_of(dims.begin(), dims.end(), [this](const Dim& dim) { return is_open(dim); });
}

void SizeTable::add_room(uint32_t base, const ValueType& type) {
  plan_.rooms.push_back({base, type.dtype, ids(type.dims)});
}

Interval SizeTable::range(const Dim& dim) const {
  if (dim.is_literal()) return {dim.literal(), dim.literal()};
  return range_of(dim, [this](std::string_view name) -> Interval {
    uint32_t symbol = plan_.symbol(name);
    return symbol == Plan::kNoSymbol ? Interval()
                                     : Interval{plan_.symbols[symbol].range.lo, plan_.symbols[symbol].upper};
  });
}

SizeId SizeTable::id(const Dim& dim) {
  auto [found, is_new] = ids_.try_emplace(dim, static_cast<SizeId>(plan_.sizes.size()));
  if (is_new) plan_.sizes.push_back(dim);
  return found->second;
}

SizeIds SizeTable::ids(std::span<const Dim> dims) {
  SizeIds ids;
  for (const Dim& dim : dims) ids.push_back(id(dim));
  return ids;
}

Dims SizeTable::upper(std::span<const Dim> dims) const {
  Dims upper;
  for (const Dim& dim : dims) upper.push_back(std::max<int64_t>(range(dim).hi, 0));
  return upper;
}

// The largest value in bytes. No process can address more, and a sum of 2^15 such numbers does not overflow.
static constexpr int64_t kLargestValue = int64_t{1} << 47;

// Takes the smaller of two bounds: the bound of the product, and the product of the bounds. Either may be tighter.
Result<int64_t> SizeTable::upper_bytes(const ValueType& type, std::string_view name) const {
  auto product = element_count(std::span<const int64_t>(upper(type.dims)));
  int64_t whole = range(element_count(std::span<const Dim>(type.dims))).hi;
  int64_t count = std::min(product.value_or(Interval::kUnbounded), std::max<int64_t>(whole, 0));
  auto bytes = byte_size(type.dtype, count);
  if (!bytes || *bytes > kLargestValue)
    return Status(Code::kRange, "'" + std::string(name) + "' has too many elements: " + shortened(text_of(type)))
        .with("value", name)
        .with("expected", format("at most {} bytes", kLargestValue))
        .with("got", type_text(type.dtype, upper(type.dims)));
  return *bytes;
}

}  // namespace rlx
