// SPDX-License-Identifier: Apache-2.0
#include "ir/with_dims.h"

#include <algorithm>
#include <set>

#include "base/free_name.h"
#include "base/shortened.h"
#include "base/size_failure.h"
#include "ir/body.h"
#include "ir/symbols.h"

namespace rlx {

Dim with_dims(const Dim& dim, const SymbolDims& dims) {
  return substitute(dim, [&](std::string_view symbol) -> std::optional<Dim> {
    auto found = dims.find(symbol);
    return found == dims.end() ? std::nullopt : std::optional(found->second);
  });
}

std::vector<Dim> with_dims(const std::vector<Dim>& list, const SymbolDims& dims) {
  std::vector<Dim> made;
  for (const Dim& dim : list) made.push_back(with_dims(dim, dims));
  return made;
}

Status require_range(Graph& graph, const Dim& dim, Interval range, const std::string& where) {
  RLX_TRY(graph.add_guard({Guard::kLessEqual, range.lo, dim, where}));
  return range.hi == Interval::kUnbounded ? Status() : graph.add_guard({Guard::kLessEqual, dim, range.hi, where});
}

// `names`: new names for symbols that nodes of the graph decide, and for those of its carries.
static Result<Graph> copied(const Graph& graph, const SymbolDims& dims, const SymbolDims& names, Graph made);

// The symbols that enter a body: those of the dims that replace symbols of the body.
static std::vector<std::string> coming_into(const Graph& body, const SymbolDims& dims) {
  std::vector<std::string> coming;
  for (const auto& [symbol, dim] : dims)
    if (body.has_symbol(symbol)) visit_symbols(dim, [&](const std::string& name) { coming.push_back(name); });
  return coming;
}

// A symbol that has no meaning outside the bodies of a node gets a new name if the new dims have a symbol of its name,
// even one that does not enter these bodies: an option such as `dims.n` would set both.
static SymbolDims new_names(const Attrs& attrs, const SymbolDims& dims) {
  std::set<std::string> own, taken, coming;
  for (const Graph* body : bodies_of(attrs)) {
    for (std::string& name : own_symbols(attrs, *body)) own.insert(std::move(name));
    for (const auto& [name, range] : body->symbols()) taken.insert(name);
  }
  for (const auto& [symbol, dim] : dims)
    if (!own.contains(symbol)) visit_symbols(dim, [&](const std::string& name) { coming.insert(name); });
  taken.insert(coming.begin(), coming.end());
  SymbolDims renamed;
  for (const std::string& name : own) {
    if (!coming.contains(name)) continue;
    std::string other = free_name(name, [&](const std::string& it) { return taken.contains(it); });
    taken.insert(other);
    renamed.emplace(name, Dim::symbol(other));
  }
  return renamed;
}

// A body has declarations of its own, so it declares the symbols that enter it. The ranges of the symbols that it loses
// become conditions of the graph around it.
static Result<Graph> body_with_dims(const Attrs& attrs, const Graph& body, SymbolDims dims, const SymbolDims& renamed,
                                    Graph& scope) {
  std::vector<std::string> own = own_symbols(attrs, body);
  for (const std::string& name : own) dims.erase(name);
  Graph made(body.name(), &body.table());
  for (const std::string& name : coming_into(body, dims)) RLX_TRY(made.declare_symbol(name, scope.symbol_range(name)));
  for (const auto& [symbol, dim] : dims)
    if (body.has_symbol(symbol))
      RLX_TRY(require_range(scope, dim, body.symbol_range(symbol), "the body's size '" + symbol + "'"));
  SymbolDims names;
  for (const std::string& name : own)
    if (auto other = renamed.find(name); other != renamed.end()) names.insert(*other);
  return copied(body, dims, names, std::move(made));
}

static std::string renamed(const std::string& symbol, const SymbolDims& names) {
  auto found = names.find(symbol);
  return found == names.end() ? symbol : *found->second.symbol_name();
}

static AttrValue with_names(const AttrValue& value, const SymbolDims& names) {
  if (auto* name = std::get_if<std::string>(&value)) return renamed(*name, names);
  std::vector<std::string> list;
  if (auto* given = std::get_if<std::vector<std::string>>(&value))
    for (const std::string& name : *given) list.push_back(renamed(name, names));
  return list.empty() ? value : AttrValue(std::move(list));
}

static Status wrong_size(std::string message, const AttrDef& def, std::string expected, std::string got) {
  return Status(Code::kShape, std::move(message))
      .with(kDependsOnSizes, "1")
      .with("value", def.name)
      .with("expected", std::move(expected))
      .with("got", std::move(got));
}

// A number that a size becomes must be legal, as if it had been given: `k` of top_k may not be negative.
static Status check_number(const AttrDef& def, const AttrValue& made) {
  Status status = check_coerced(def, made);
  if (status.ok()) return {};
  auto detail = [&](std::string_view key) { return status.detail(key) ? *status.detail(key) : ""; };
  return wrong_size(std::string(status.message()), def, detail("expected"), detail("got"));
}

static Result<Dim> with_dims(const AttrDef& def, const Dim& dim, const SymbolDims& dims) {
  Dim made = with_dims(dim, dims);
  RLX_TRY(check_number(def, made));
  return made;
}

// The number -1 means "computed from the others"; an expression never does. So one that becomes -1 is an error.
static Result<std::vector<Dim>> with_dims(const AttrDef& def, const std::vector<Dim>& list, const SymbolDims& dims) {
  std::vector<Dim> made = with_dims(list, dims);
  for (size_t i = 0; i < list.size() && def.role == AttrRole::kSizes; i++)
    if (made[i].is(-1) && !list[i].is_literal())
      return wrong_size("the size " + shortened(list[i].text()) + " is negative", def, "0 or more", "-1");
  RLX_TRY(check_number(def, made));
  return made;
}

// The attributes at the new dims, without the names of the sizes that the node decides.
static Result<Attrs> with_dims(const Attrs& attrs, const SymbolDims& dims, Graph& scope) {
  Attrs made = attrs;
  const SymbolDims renamed = new_names(attrs, dims);
  for (size_t i = 0; i < attrs.values().size(); i++) {
    const AttrValue& value = attrs.values()[i];
    const AttrDef& def = attrs.info()->attrs[i];
    if (auto* dim = std::get_if<Dim>(&value)) made.set(i, RLX_TRY(with_dims(def, *dim, dims)));
    if (auto* list = std::get_if<std::vector<Dim>>(&value)) made.set(i, RLX_TRY(with_dims(def, *list, dims)));
    if (def.names_decided()) made.set(i, std::monostate());
    if (def.names == NamedSymbols::kCarried) made.set(i, with_names(value, renamed));
    if (auto* body = std::get_if<std::shared_ptr<const Graph>>(&value); body && *body)
      made.set(i, std::make_shared<const Graph>(RLX_TRY(body_with_dims(attrs, **body, dims, renamed, scope))));
  }
  return made;
}

namespace {

// Every node of the graph becomes one node of the copy, in the same order, so values stay the same. A size that a node
// has decided may follow from the new dims: then it stands for the symbol from there on. So such a symbol is declared,
// and a guard that names it, when the copy of its node is there.
class Copying {
 public:
  Copying(const Graph& from, const SymbolDims& dims, const SymbolDims& names, Graph to)
      : from_(from), names_(names), dims_(dims), to_(std::move(to)) {
    for (const auto& [symbol, name] : names) dims_.insert_or_assign(symbol, name);
    for (DecidedSize& size : decided_sizes(from)) decider_of_.emplace(std::move(size.symbol), size.node);
    for (const Guard& guard : from.guards())
      if (!guard.is_derived) guards_.emplace(ready_at(guard), &guard);  // the others are inferred again
  }

  Result<Graph> made() && {
    for (const auto& [symbol, range] : from_.symbols())
      if (!decider_of_.contains(symbol) && (!dims_.contains(symbol) || names_.contains(symbol)))
        RLX_TRY(declare(symbol));
    RLX_TRY(declare_guards(kAtOnce));
    for (uint32_t node = 0; node < from_.nodes().size(); node++) {
      Value value = RLX_TRY(add(node));
      RLX_TRY(note_known(from_.node(node), to_.node(value)));
      RLX_TRY(declare_guards(node));
    }
    for (const GraphOutput& output : from_.outputs()) RLX_TRY(to_.add_output(output.name, output.value));
    return std::move(to_);
  }

 private:
  static constexpr int64_t kAtOnce = -1;

  // The last node that decides a size which the guard names.
  int64_t ready_at(const Guard& guard) const {
    int64_t last = kAtOnce;
    visit_symbols(guard, [&](const std::string& symbol) {
      if (auto found = decider_of_.find(symbol); found != decider_of_.end())
        last = std::max<int64_t>(last, found->second);
    });
    return last;
  }

  Status declare_guards(int64_t node) {
    for (auto [at, end] = guards_.equal_range(node); at != end; ++at) {
      const Guard& guard = *at->second;
      RLX_TRY(to_.declare_guard({guard.relation, with_dims(guard.a, dims_), with_dims(guard.b, dims_), guard.where}));
    }
    return {};
  }

  Status declare(const std::string& symbol) {
    return to_.declare_symbol(renamed(symbol, names_), from_.symbol_range(symbol));
  }

  Result<Value> add(uint32_t index) {
    const Node& node = from_.node(index);
    if (node.op == Op::kConstant) return to_.append_copy(from_, index, {});
    if (node.op == Op::kInput || node.op == Op::kParam) {
      const ValueType& type = node.out[0];
      const std::string& name = from_.leaf_name(index);
      return node.op == Op::kInput ? to_.add_input(name, type.dtype, with_dims(type.dims, dims_))
                                   : to_.add_param(name, type.dtype, with_dims(type.dims, dims_));
    }
    auto attrs = with_dims(node.attrs, dims_, to_);
    if (!attrs.ok()) return to_.with_subject(from_.info(node), node.name, std::move(attrs).status());
    if (from_.info(node).decides_sizes) attrs = RLX_TRY(with_own_names(node, *std::move(attrs)));
    return add(node, *std::move(attrs));
  }

  Result<Value> add(const Node& node, Attrs attrs) {
    return to_.add(from_.info(node), std::span<const Value>(node.in.begin(), node.in.size()), std::move(attrs),
                   node.name);
  }

  // The attribute lists names by position, one for each size that the node decides; at the new dims these may be fewer.
  // So the node is first added without names, to see which sizes it still decides. Each then gets the name that the
  // original node gave to the same axis.
  Result<Attrs> with_own_names(const Node& node, Attrs attrs) {
    Graph::Mark mark = to_.mark();
    Value tried = RLX_TRY(add(node, std::move(attrs)));
    Attrs made = to_.node(tried).attrs;
    std::set<std::string> decided;
    visit_decided_sizes(to_.node(tried), [&](const std::string& symbol, bool) { decided.insert(symbol); });
    std::map<std::string, std::string> symbols;  // of this graph, by that of the node without names
    visit_decided_axes(node, [&](uint32_t output, uint32_t axis, const std::string& symbol, bool) {
      const std::string* open = to_.node(tried).out[output].dims[axis].symbol_name();
      if (open && decided.contains(*open)) symbols.emplace(*open, symbol);
    });
    to_.roll_back(mark);
    SymbolDims open;
    for (const auto& [tried_symbol, symbol] : symbols) {
      RLX_TRY(declare(symbol));
      open.emplace(tried_symbol, Dim::symbol(renamed(symbol, names_)));
    }
    for (const std::string& symbol : decided)
      if (!symbols.contains(symbol)) open.emplace(symbol, Dim::symbol(new_name(symbol)));
    for (size_t i = 0; i < made.values().size(); i++)
      if (made.info()->attrs[i].names_decided()) made.set(i, with_names(AttrValue(made.values()[i]), open));
    return made;
  }

  // For a size that the original node did not decide, because more was known of it: no later node may have its name.
  std::string new_name(const std::string& symbol) const {
    auto is_taken = [&](const std::string& name) {
      auto has_it = [&](const auto& of_original) { return renamed(of_original.first, names_) == name; };
      return to_.has_symbol(name) || std::any_of(from_.symbols().begin(), from_.symbols().end(), has_it);
    };
    return free_name(symbol, is_taken);
  }

  // Notes the sizes that the original node decided and that now follow from the new dims.
  Status note_known(const Node& before, const Node& now) {
    Status status;
    visit_decided_axes(before, [&](uint32_t output, uint32_t axis, const std::string& symbol, bool) {
      const Dim& dim = now.out[output].dims[axis];
      if (!status.ok() || dim == Dim::symbol(renamed(symbol, names_))) return;
      if (auto [at, is_new] = known_.insert(symbol); !is_new) return;
      dims_.insert_or_assign(symbol, dim);
      status = require_range(to_, dim, from_.symbol_range(symbol), "the size '" + symbol + "'");
    });
    return status;
  }

  const Graph& from_;
  const SymbolDims& names_;
  SymbolDims dims_;
  std::set<std::string> known_;  // of the symbols that nodes of the graph decide: those in `dims_` by now
  Graph to_;
  std::map<std::string, uint32_t, std::less<>> decider_of_;  // by symbol: the node that decides its size
  std::multimap<int64_t, const Guard*> guards_;              // by the node after which they are declared
};

}  // namespace

static Result<Graph> copied(const Graph& graph, const SymbolDims& dims, const SymbolDims& names, Graph made) {
  return Copying(graph, dims, names, std::move(made)).made();
}

Result<Graph> with_dims(const Graph& graph, const SymbolDims& dims, const Graph* around) {
  return copied(graph, dims, {}, Graph(graph.name(), &graph.table(), around));
}

}  // namespace rlx
