// SPDX-License-Identifier: Apache-2.0
#include "ir/graph.h"

#include <algorithm>

#include "ir/normal.h"

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

// ---- symbols and guards ----

Interval Graph::symbol_range(std::string_view name) const {
  for (const auto& [symbol, range] : symbols_)
    if (symbol == name) return range;
  return {};
}

Interval Graph::range(const Dim& dim) const {
  return range_of(dim, [this](std::string_view name) { return symbol_range(name); });
}

Status Graph::declare_symbol(std::string_view name, Interval range) {
  for (auto& [symbol, known] : symbols_) {
    if (symbol != name) continue;
    Interval both{std::max(known.lo, range.lo), std::min(known.hi, range.hi)};
    if (both.lo > both.hi)
      return Status(Code::kRange, format("the size '%s' cannot be in [%lld, %lld] and in [%lld, %lld]", symbol.c_str(),
                                         static_cast<long long>(known.lo), static_cast<long long>(known.hi),
                                         static_cast<long long>(range.lo), static_cast<long long>(range.hi)))
          .with("value", symbol);
    known = both;
    return {};
  }
  if (range.lo > range.hi || range.lo < 0)
    return Status(Code::kRange, format("the size '%s' has no legal value: [%lld, %lld]", std::string(name).c_str(),
                                       static_cast<long long>(range.lo), static_cast<long long>(range.hi)))
        .with("value", name);
  symbols_.emplace_back(name, range);
  return {};
}

Status Graph::add_guard(Guard guard) {
  Interval difference = range(guard.b - guard.a);
  bool proved = guard.relation == Guard::kEqual ? guard.a == guard.b : difference.lo >= 0;
  bool refuted = guard.relation == Guard::kEqual ? difference.lo > 0 || difference.hi < 0 : difference.hi < 0;
  if (proved) return {};
  if (refuted)
    return Status(Code::kShape,
                  format("%s%s %s %s does not hold", guard.where.empty() ? "" : (guard.where + ": ").c_str(),
                         guard.a.text().c_str(), guard.relation == Guard::kEqual ? "=" : "<=", guard.b.text().c_str()));
  if (std::find(guards_.begin(), guards_.end(), guard) == guards_.end()) guards_.push_back(std::move(guard));
  return {};
}

bool Graph::implies_le(const Dim& a, const Dim& b) const {
  if (range(b - a).lo >= 0) return true;
  return std::find(guards_.begin(), guards_.end(), Guard{Guard::kLessEqual, a, b, {}}) != guards_.end();
}

// ---- building ----

std::string Graph::describe(uint32_t node) const {
  const Node& it = nodes_[node];
  std::string text(info(it).name);
  if (info(it).is(kLeaf) && it.attrs.info()->attrs[0].name == "name") return text + " '" + leaf_name(node) + "'";
  if (!it.name.empty()) text += " '" + it.name + "'";
  return text + " (%" + std::to_string(node) + ")";
}

static std::string ordinal_input(const OpInfo& info, size_t i) {
  const auto& ports = info.signature.in;
  const Port& port = ports[std::min(i, ports.size() - 1)];
  return "input '" + port.name + "'" + (port.variadic ? " " + std::to_string(i) : "");
}

static Status check_arity(const OpInfo& info, std::span<const Value> in) {
  const auto& ports = info.signature.in;
  bool variadic = !ports.empty() && ports.back().variadic;
  if (in.size() > ports.size() && !variadic)
    return Status(Code::kInvalidArgument,
                  format("takes %zu input%s, not %zu", ports.size(), &"s"[ports.size() == 1], in.size()))
        .with("expected", std::to_string(ports.size()))
        .with("got", std::to_string(in.size()));
  for (size_t i = 0; i < std::max(in.size(), ports.size()); i++) {
    const Port& port = ports[std::min(i, ports.size() - 1)];
    bool here = i < in.size() && in[i] != kAbsent;
    bool may_miss = port.optional || (port.variadic && i >= ports.size());
    if (!here && !may_miss)
      return Status(Code::kInvalidArgument, ordinal_input(info, i) + " is missing").with("input", port.name);
  }
  return {};
}

static Status check_dtypes(const Graph& graph, const OpInfo& info, std::span<const Value> in) {
  const auto& ports = info.signature.in;
  std::vector<std::pair<std::string_view, size_t>> letters;  // and the input that bound it
  for (size_t i = 0; i < in.size(); i++) {
    if (in[i] == kAbsent) continue;
    const Port& port = ports[std::min(i, ports.size() - 1)];
    DType dtype = graph.type(in[i]).dtype;
    std::string got(name(dtype));
    if (!port.set.has(dtype))
      return Status(Code::kDtype, format("%s may not be %s (takes %s)", ordinal_input(info, i).c_str(), got.c_str(),
                                         port.letter.c_str()))
          .with("input", port.name)
          .with("expected", port.letter)
          .with("got", got);
    if (port.letter == kAnyDtype || is_block(dtype)) continue;  // a block type stands for itself: "x:F, w:FQ"
    std::string_view letter = port.letter;
    if (letter.ends_with('Q')) letter.remove_suffix(1);
    auto bound = std::find_if(letters.begin(), letters.end(), [&](auto& pair) { return pair.first == letter; });
    if (bound == letters.end()) {
      letters.emplace_back(letter, i);
    } else if (DType first = graph.type(in[bound->second]).dtype; first != dtype) {
      std::string expected(name(first));
      return Status(Code::kDtype,
                    format("%s is %s, but %s is %s: they must agree (a cast converts)", ordinal_input(info, i).c_str(),
                           got.c_str(), ordinal_input(info, bound->second).c_str(), expected.c_str()))
          .with("input", port.name)
          .with("expected", expected)
          .with("got", got);
    }
  }
  return {};
}

// The dtype that the signature gives an output: that of the first input with its letter, or the one dtype it names.
static DType signature_dtype(const Graph& graph, const OpInfo& info, std::span<const Value> in, const Port& out) {
  if (out.letter.empty()) return DType::kNone;
  const auto& ports = info.signature.in;
  for (size_t i = 0; i < in.size(); i++)
    if (in[i] != kAbsent && ports[std::min(i, ports.size() - 1)].letter == out.letter) return graph.type(in[i]).dtype;
  return find_dtype(out.letter).value_or(DType::kNone);
}

Status infer_node(Graph& graph, const OpInfo& info, Node& node) {
  RLX_TRY(check_arity(info, node.in));
  RLX_TRY(check_dtypes(graph, info, node.in));
  std::vector<const ValueType*> in(std::max(node.in.size(), info.signature.in.size()), nullptr);
  if (!info.signature.in.empty() && info.signature.in.back().variadic) in.resize(node.in.size());
  for (size_t i = 0; i < node.in.size(); i++)
    if (node.in[i] != kAbsent) in[i] = &graph.type(node.in[i]);
  node.attrs = RLX_TRY(normal_attrs(info, in, std::move(node.attrs)));
  node.out.clear();
  for (const Port& port : info.signature.out) node.out.push_back({signature_dtype(graph, info, node.in, port), {}});
  InferArgs args{graph,      info,     in,
                 node.attrs, node.out, std::string(info.name) + (node.name.empty() ? "" : " '" + node.name + "'")};
  RLX_TRY(info.infer(args));
  for (const ValueType& type : node.out)
    if (type.rank() > kMaxRank)
      return Status(Code::kShape, format("the result has rank %zu, the limit is %zu", type.rank(), kMaxRank));
  return {};
}

Result<Value> Graph::add(const OpInfo& info, std::span<const Value> in, Attrs attrs, std::string name) {
  for (const Value& value : in)
    if (value != kAbsent && (value.node >= nodes_.size() || value.output >= nodes_[value.node].out.size()))
      return Status(Code::kInvalidArgument, std::string(info.name) + ": an input is no value of this graph");
  while (!in.empty() && in.back() == kAbsent) in = in.first(in.size() - 1);
  Node node{info.op(), {in.begin(), in.end()}, std::move(attrs), {}, std::move(name)};
  size_t guards = guards_.size(), symbols = symbols_.size();
  Status status = infer_node(*this, info, node);
  if (!status.ok()) {
    guards_.resize(guards);
    symbols_.resize(symbols);
    std::string subject = std::string(info.name) + (node.name.empty() ? "" : " '" + node.name + "'");
    return std::move(status).prefixed(subject + ": ").with("op", info.name).with("value", node.name);
  }
  nodes_.push_back(std::move(node));
  return Value{static_cast<uint32_t>(nodes_.size() - 1), 0};
}

Result<Value> Graph::add(Op op, std::span<const Value> in, const NamedAttrs& attrs, std::string name) {
  const OpInfo& row = info(op);
  auto bound = bind_attrs(row, attrs);
  if (!bound.ok())
    return std::move(bound).status().prefixed(std::string(row.name) + ": ").with("op", row.name).with("value", name);
  return add(row, in, std::move(*bound), std::move(name));
}

static Status check_leaf(const Graph& graph, std::string_view name, std::span<const Dim> dims) {
  if (name.empty()) return Status(Code::kInvalidArgument, "an input or param needs a name");
  if (graph.find_leaf(name))
    return Status(Code::kExists, "there is already an input or param '" + std::string(name) + "'").with("value", name);
  for (const Dim& dim : dims)
    if (graph.range(dim).hi < 0)
      return Status(Code::kShape,
                    format("'%s': the size %s is negative", std::string(name).c_str(), dim.text().c_str()));
  return {};
}

static NamedAttrs leaf_attrs(std::string_view name, DType dtype, std::vector<Dim> dims) {
  return {{"name", std::string(name)}, {"dtype", dtype}, {"shape", std::move(dims)}};
}

Result<Value> Graph::add_input(std::string_view name, DType dtype, std::vector<Dim> dims) {
  RLX_TRY(check_leaf(*this, name, dims));
  for (const Dim& dim : dims) {
    std::vector<std::string> symbols;
    visit_symbols(dim, [&](const std::string& symbol) { symbols.push_back(symbol); });
    for (const std::string& symbol : symbols) RLX_TRY(declare_symbol(symbol, {}));
  }
  Value value = RLX_TRY(add(Op::kInput, {}, leaf_attrs(name, dtype, std::move(dims))));
  inputs_.push_back(value.node);
  return value;
}

Result<Value> Graph::add_param(std::string_view name, DType dtype, std::vector<Dim> dims) {
  RLX_TRY(check_leaf(*this, name, dims));
  Value value = RLX_TRY(add(Op::kParam, {}, leaf_attrs(name, dtype, std::move(dims))));
  params_.push_back(value.node);
  return value;
}

Result<Value> Graph::add_constant(Tensor value) {
  return add(Op::kConstant, {}, {{"value", std::move(value)}});
}

Status Graph::add_output(std::string_view name, Value value) {
  if (!present(value) || value.node >= nodes_.size() || value.output >= nodes_[value.node].out.size())
    return Status(Code::kInvalidArgument, "output '" + std::string(name) + "': no value of this graph")
        .with("value", name);
  if (name.empty()) return Status(Code::kInvalidArgument, "an output needs a name");
  for (const GraphOutput& output : outputs_)
    if (output.name == name)
      return Status(Code::kExists, "there is already an output '" + std::string(name) + "'").with("value", name);
  outputs_.push_back({std::string(name), value});
  return {};
}

// ---- looking ----

std::optional<Value> Graph::find_leaf(std::string_view name) const {
  for (auto* list : {&inputs_, &params_})
    for (uint32_t node : *list)
      if (leaf_name(node) == name) return Value{node, 0};
  return std::nullopt;
}

const Tensor* Graph::constant(Value value) const {
  if (!present(value)) return nullptr;
  const Node& it = node(value);
  return it.op == Op::kConstant ? &it.attrs.tensor("value") : nullptr;
}

std::vector<std::vector<uint32_t>> use_counts(const Graph& graph) {
  std::vector<std::vector<uint32_t>> uses;
  for (const Node& node : graph.nodes()) uses.emplace_back(node.out.size(), 0);
  for (const Node& node : graph.nodes())
    for (Value value : node.in)
      if (present(value)) uses[value.node][value.output]++;
  for (const GraphOutput& output : graph.outputs()) uses[output.value.node][output.value.output]++;
  return uses;
}

void visit_symbols(const Node& node, const std::function<void(const std::string&)>& body) {
  auto visit_all = [&](const std::vector<Dim>& dims) {
    for (const Dim& dim : dims) visit_symbols(dim, body);
  };
  for (const ValueType& type : node.out) visit_all(type.dims);
  for (const AttrValue& value : node.attrs.values()) {
    if (auto* dim = std::get_if<Dim>(&value)) visit_symbols(*dim, body);
    if (auto* dims = std::get_if<std::vector<Dim>>(&value)) visit_all(*dims);
    if (auto* graph = std::get_if<std::shared_ptr<const Graph>>(&value); graph && *graph)
      for (const Node& inner : (*graph)->nodes()) visit_symbols(inner, body);
  }
}

// By the attributes that name such sizes, `symbol` and `symbols`.
std::vector<DecidedSize> decided_sizes(const Graph& graph) {
  std::vector<DecidedSize> sizes;
  for (uint32_t i = 0; i < graph.nodes().size(); i++) {
    const Attrs& attrs = graph.node(i).attrs;
    for (const AttrDef& def : attrs.info()->attrs) {
      if (!attrs.has(def.name)) continue;
      if (def.name == "symbol" && def.kind == AttrKind::kStr) sizes.push_back({attrs.str("symbol"), i});
      if (def.name == "symbols" && def.kind == AttrKind::kStrs)
        for (const std::string& symbol : attrs.strs("symbols")) sizes.push_back({symbol, i});
    }
  }
  return sizes;
}

}  // namespace rlx
