// SPDX-License-Identifier: Apache-2.0
// Building, reading and rewriting graphs. The inference of a node is in infer.cpp.
#include "ir/graph.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "base/shortened.h"
#include "base/undo.h"
#include "ir/body.h"
#include "ir/infer.h"
#include "ir/normal.h"
#include "ir/symbols.h"

namespace rlx {

std::string text_of(const ValueType& type) {
  return std::string(name(type.dtype)) + text_of(type.dims);
}

Dim element_count(std::span<const Dim> dims) {
  Dim count = 1;
  for (const Dim& dim : dims) count *= dim;
  return count;
}

bool all_literal(std::span<const Dim> dims) {
  return std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is_literal(); });
}

// ---- building ----

std::string Graph::describe(uint32_t node) const {
  const Node& it = nodes_[node];
  std::string text(info(it).name);
  if (info(it).is(kInterface)) return text + " '" + leaf_name(node) + "'";
  if (!it.name.empty()) text += " '" + it.name + "'";
  return text + " (%" + std::to_string(node) + ")";
}

Status Graph::with_subject(const OpInfo& info, std::string_view name, Status status) const {
  if (is_definition_) return status;
  // The user has written a call of the host as `custom`.
  std::string_view op = info.is(kOnHost) ? this->info(Op::kCustom).name : info.name;
  std::string subject(op);
  if (!name.empty()) subject += format(" '{}'", name);
  return std::move(status).prefixed(subject + ": ").with("op", op).with("value", name);
}

// "; a is input 'x' f32[2,3], b is exp f32[5,4]": helps a person to find the call.
std::string Graph::operands_text(const OpInfo& info, std::span<const Value> in) const {
  constexpr size_t kMost = 6;
  std::string text;
  for (size_t i = 0; i < std::min(in.size(), kMost); i++) {
    if (!present(in[i])) continue;
    const auto& ports = info.signature.in;
    const Node& from = node(in[i]);
    const std::string& name = this->info(from).is(kInterface) ? leaf_name(in[i].node) : from.name;
    bool is_known = i < ports.size() && !ports[i].variadic;  // else a variadic input, or one too many
    text += format("{}{} is {}", text.empty() ? "; " : ", ", is_known ? ports[i].name : format("input {}", i),
                   this->info(from).name);
    text += (name.empty() ? " " : " '" + name + "' ") + shortened(text_of(type(in[i])));
  }
  return in.size() > kMost ? text + ", ..." : text;
}

// The failure without names of inputs, if it is about a dtype. Within a definition it reaches the user of another op,
// whose inputs have other names.
static Status without_ports(Status status) {
  const std::string *expected = status.detail("expected"), *got = status.detail("got");
  bool names_port = status.code() == Code::kDtype && status.detail("input") && expected && got;
  if (!names_port || !find_dtype(*expected)) return status;
  return Status(Code::kDtype, format("{} is given where {} is needed (a cast converts)", *got, *expected))
      .with("expected", *expected)
      .with("got", *got);
}

Result<Value> Graph::add(const OpInfo& info, std::span<const Value> in, Attrs attrs, std::string name) {
  for (const Value& value : in)
    if (value != kAbsent && (value.node >= nodes_.size() || value.output >= nodes_[value.node].out.size()))
      return with_subject(info, name, Status(Code::kInvalidArgument, "an input is not a value of this graph"));
  while (!in.empty() && in.back() == kAbsent) in = in.first(in.size() - 1);
  Node node{info.op(), {in.begin(), in.end()}, std::move(attrs), {}, std::move(name)};
  Mark before = mark();
  Status status = infer_node(*this, info, input_types(*this, info, in), node);
  if (!status.ok()) {
    roll_back(before);
    std::string leaf = info.is(kInterface) ? node.attrs.str("name") : "";
    status = is_definition_ ? without_ports(std::move(status)) : std::move(status).suffixed(operands_text(info, in));
    if (leaf.empty() || is_definition_) return with_subject(info, node.name, std::move(status));
    return std::move(status).prefixed(format("{} '{}': ", info.name, leaf)).with("value", leaf);
  }
  return append(std::move(node));
}

Result<Value> Graph::add(Op op, std::span<const Value> in, const NamedAttrs& attrs, std::string name) {
  const OpInfo& row = info(op);
  auto bound = bind_attrs(row, attrs);
  if (!bound.ok()) return with_subject(row, name, std::move(bound).status());
  return add(row, in, std::move(*bound), std::move(name));
}

static Status check_leaf(const Graph& graph, Op op, std::string_view name, std::span<const Dim> dims) {
  if (name.empty()) return Status(Code::kInvalidArgument, "an input or param needs a name").with("input", "name");
  if (graph.find_leaf(name))
    return Status(Code::kExists, "there is already an input or param '" + std::string(name) + "'").with("value", name);
  for (const Dim& dim : dims)
    if (graph.range(dim).hi < 0)
      return Status(Code::kShape,
                    format("{} '{}': the size {} is negative{}", graph.info(op).name, name, dim,
                           op == Op::kInput ? "; an open size is a dim of rlx_graph_dim, or a name in text" : ""))
          .with("value", name)
          .with("expected", "0 or more")
          .with("got", dim.text());
  return {};
}

// In the order of the attributes of the rows.
static Attrs leaf_attrs(const OpInfo& info, std::string_view name, DType dtype, std::vector<Dim> dims) {
  std::vector<AttrValue> values;
  values.reserve(info.attrs.size());
  values.emplace_back(std::string(name));
  values.emplace_back(dtype);
  values.emplace_back(std::move(dims));
  return {&info, std::move(values)};
}

void Graph::note_leaf(uint32_t node) {
  bool is_param = nodes_[node].op == Op::kParam;
  auto& list = is_param ? params_ : inputs_;
  list.push_back(node);
  Undo undo([&] { list.pop_back(); });
  leaf_places_.emplace(leaf_name(node), LeafPlace{is_param, static_cast<uint32_t>(list.size() - 1)});
  undo.commit();
}

void Graph::forget_leaf(uint32_t node) {
  if (!info(nodes_[node]).is(kInterface)) return;
  const std::string& name = leaf_name(node);
  if (auto known = find_leaf(name); known && known->node == node) leaf_places_.erase(name);
  for (auto* list : {&inputs_, &params_})
    if (!list->empty() && list->back() == node) list->pop_back();
}

Result<Value> Graph::add_input(std::string_view name, DType dtype, std::vector<Dim> dims) {
  RLX_TRY(check_leaf(*this, Op::kInput, name, dims));
  RLX_TRY(check_parts(dims));
  for (const Dim& dim : dims) {
    if (dim.is_literal()) continue;
    std::vector<std::string> symbols;
    visit_symbols(dim, [&](const std::string& symbol) { symbols.push_back(symbol); });
    for (const std::string& symbol : symbols) RLX_TRY(declare_symbol(symbol, {}));
    if (range(dim).lo < 0)
      RLX_TRY(
          add_guard({.relation = Guard::kLessEqual, .a = 0, .b = dim, .where = std::string(name), .is_derived = true}));
  }
  Value value = RLX_TRY(add(info(Op::kInput), {}, leaf_attrs(info(Op::kInput), name, dtype, std::move(dims))));
  note_leaf(value.node);
  return value;
}

Result<Value> Graph::add_param(std::string_view name, DType dtype, std::vector<Dim> dims) {
  RLX_TRY(check_leaf(*this, Op::kParam, name, dims));
  Value value = RLX_TRY(add(info(Op::kParam), {}, leaf_attrs(info(Op::kParam), name, dtype, std::move(dims))));
  note_leaf(value.node);
  return value;
}

Result<Value> Graph::add_constant(Tensor value) {
  return add(Op::kConstant, {}, {{"value", std::move(value)}});
}

Status Graph::add_output(std::string_view name, Value value) {
  if (!present(value) || value.node >= nodes_.size() || value.output >= nodes_[value.node].out.size())
    return Status(Code::kInvalidArgument, "output '" + std::string(name) + "': not a value of this graph")
        .with("value", name);
  if (name.empty()) return Status(Code::kInvalidArgument, "an output needs a name").with("input", "name");
  if (has_output(name))
    return Status(Code::kExists, "there is already an output '" + std::string(name) + "'").with("value", name);
  outputs_.push_back({std::string(name), value});
  Undo undo([&] { outputs_.pop_back(); });
  output_index_.emplace(name, static_cast<uint32_t>(outputs_.size() - 1));
  undo.commit();
  return {};
}

// ---- looking ----

std::vector<bool> Graph::ops() const {
  std::span<const OpInfo> rows = table_->rows();
  std::vector<bool> is_there;
  for (size_t row = 0; row < count_of_.size(); row++) {
    if (count_of_[row] == 0) continue;
    if (is_there.size() <= rows[row].id) is_there.resize(rows[row].id + size_t{1});
    is_there[rows[row].id] = true;
  }
  return is_there;
}

std::optional<Value> Graph::find_param(std::string_view name) const {
  auto leaf = find_leaf(name);
  return leaf && node(*leaf).op == Op::kParam ? leaf : std::nullopt;
}

std::optional<Value> Graph::find_leaf(std::string_view name) const {
  auto found = leaf_places_.find(name);
  if (found == leaf_places_.end()) return std::nullopt;
  auto [is_param, index] = found->second;
  return Value{(is_param ? params_ : inputs_)[index], 0};
}

static std::optional<size_t> index_of(const auto& leaf_places, std::string_view name, bool is_param) {
  auto found = leaf_places.find(name);
  bool is_there = found != leaf_places.end() && found->second.is_param == is_param;
  return is_there ? std::optional<size_t>(found->second.index) : std::nullopt;
}

std::optional<size_t> Graph::index_of_input(std::string_view name) const {
  return index_of(leaf_places_, name, false);
}

std::optional<size_t> Graph::index_of_param(std::string_view name) const {
  return index_of(leaf_places_, name, true);
}

std::optional<size_t> Graph::index_of_output(std::string_view name) const {
  auto found = output_index_.find(name);
  return found == output_index_.end() ? std::nullopt : std::optional(found->second);
}

const Tensor* Graph::constant(Value value) const {
  if (!present(value)) return nullptr;
  const Node& it = node(value);
  return it.op == Op::kConstant ? &it.attrs.tensor("value") : nullptr;
}

ByValue<uint32_t> use_counts(const Graph& graph) {
  ByValue<uint32_t> uses(graph.nodes().size());
  for (uint32_t i = 0; i < uses.size(); i++) uses[i].resize(graph.node(i).out.size(), 0);
  for (const Node& node : graph.nodes())
    for (Value value : node.in)
      if (present(value)) uses[value.node][value.output]++;
  for (const GraphOutput& output : graph.outputs()) uses[output.value.node][output.value.output]++;
  return uses;
}

static void visit_symbols_around(const Node& node, const Graph& graph, VisitSymbol visit) {
  std::vector<std::string> names = own_symbols(node.attrs, graph);
  std::unordered_set<std::string> own(names.begin(), names.end());
  auto visit_shared = [&](const std::string& symbol) {
    if (!own.contains(symbol)) visit(symbol);
  };
  visit_symbols(graph, visit_shared);
}

void visit_symbols(const Node& node, VisitSymbol visit) {
  auto visit_all = [&](const std::vector<Dim>& dims) {
    for (const Dim& dim : dims) visit_symbols(dim, visit);
  };
  for (const ValueType& type : node.out) visit_all(type.dims);
  for (const AttrValue& value : node.attrs.values()) {
    if (auto* dim = std::get_if<Dim>(&value)) visit_symbols(*dim, visit);
    if (auto* dims = std::get_if<std::vector<Dim>>(&value)) visit_all(*dims);
    if (auto* graph = std::get_if<std::shared_ptr<const Graph>>(&value); graph && *graph)
      visit_symbols_around(node, **graph, visit);
  }
}

void visit_decided_sizes(const Node& node, VisitDecided visit) {
  if (!node.attrs.info()->decides_sizes) return;
  const Attrs& attrs = node.attrs;
  for (const AttrDef& def : attrs.info()->attrs) {
    if (!def.names_decided() || !attrs.has(def.name)) continue;
    bool is_fresh = def.names == NamedSymbols::kFresh;
    if (def.kind == AttrKind::kStr) visit(attrs.str(def.name), is_fresh);
    if (def.kind == AttrKind::kStrs)
      for (const std::string& symbol : attrs.strs(def.name)) visit(symbol, is_fresh);
  }
}

std::vector<DecidedSize> decided_sizes(const Graph& graph) {
  std::vector<DecidedSize> sizes;
  if (!graph.may_decide_sizes()) return sizes;
  for (uint32_t i = 0; i < graph.nodes().size(); i++)
    visit_decided_sizes(graph.node(i), [&](const std::string& symbol, bool is_fresh) {
      sizes.push_back({symbol, i, is_fresh});
    });
  return sizes;
}

// ---- sizes ----

bool Graph::is_fresh(std::string_view symbol) const {
  return fresh_.contains(symbol) || (around_ && around_->is_fresh(symbol));
}

bool Graph::is_same_type(const ValueType& a, const ValueType& b) const {
  if (a == b) return true;
  if (a.dtype != b.dtype || a.rank() != b.rank()) return false;
  auto is_same = [&](const Dim& x, const Dim& y) {
    return x == y || implies(Guard::kEqual, x, y) || implies(Guard::kEqual, resolved(x), resolved(y));
  };
  for (size_t i = 0; i < a.rank(); i++)
    if (!is_same(a.dims[i], b.dims[i])) return false;
  return true;
}

// ---- rewriting ----

void Graph::count(const Node& node, int by) {
  const OpInfo& info = this->info(node);
  auto row = static_cast<size_t>(&info - table_->rows().data());
  if (count_of_.size() <= row) count_of_.resize(row + 1);
  count_of_[row] += by;
  with_bodies_ += info.has_bodies ? by : 0;
  deciding_ += info.decides_sizes ? by : 0;
  if (info.decides_sizes) count_decided(node, by);
}

void Graph::count_decided(const Node& node, int by) {
  visit_decided_sizes(node, [&](const std::string& symbol, bool is_fresh) {
    if (is_fresh && (fresh_[symbol] += by) == 0) fresh_.erase(symbol);
  });
}

Value Graph::append(Node node) {
  count(node, 1);
  nodes_.push_back(std::move(node));
  return {static_cast<uint32_t>(nodes_.size() - 1), 0};
}

Value Graph::append_copy(const Graph& from, uint32_t index, std::span<const Value> in) {
  Node copy = from.nodes_[index];
  copy.in = {in.begin(), in.end()};
  Value value = append(std::move(copy));
  if (info(nodes_[value.node]).is(kInterface)) note_leaf(value.node);
  return value;
}

void Graph::set_attr(uint32_t node, std::string_view name, AttrValue value) {
  nodes_[node].attrs = nodes_[node].attrs.with(name, std::move(value));
}

void Graph::drop_bytes(uint32_t node) {
  if (constant({node, 0})) set_attr(node, "value", Tensor());
}

void Graph::roll_back(const Mark& mark) {
  SizeScope::roll_back(mark.sizes);
  while (nodes_.size() > mark.nodes) {
    forget_leaf(static_cast<uint32_t>(nodes_.size() - 1));
    count(nodes_.back(), -1);
    nodes_.pop_back();
  }
}

Graph Graph::reordered(std::span<const uint32_t> order) && {
  std::vector<std::string> decided = decided_symbols(*this);
  std::set<std::string> gone(decided.begin(), decided.end());
  std::vector<uint32_t> map(nodes_.size(), UINT32_MAX);
  StableVector<Node> nodes;
  for (uint32_t index : order) {
    map[index] = static_cast<uint32_t>(nodes.size());
    nodes.push_back(std::move(nodes_[index]));
    for (Value& value : nodes.back().in)
      if (present(value)) value.node = map[value.node];
  }
  nodes_ = std::move(nodes);
  fresh_.clear();
  count_of_.clear();
  with_bodies_ = deciding_ = 0;
  for (const Node& node : nodes_) count(node, 1);
  for (auto* list : {&inputs_, &params_})
    for (uint32_t& node : *list) node = map[node];
  for (GraphOutput& output : outputs_) output.value.node = map[output.value.node];
  if (gone.empty()) return std::move(*this);
  // A symbol that no node decides any more must go: a plan would ask the caller for its size.
  for (const std::string& symbol : decided_symbols(*this)) gone.erase(symbol);
  remove_symbols(gone);
  return std::move(*this);
}

}  // namespace rlx
