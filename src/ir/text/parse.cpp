// SPDX-License-Identifier: Apache-2.0
// Text to graph. Every statement goes through the builder, so text can only express what a user may build. Memory and
// recursion are bounded by the length of the text and a nesting limit.
#include <unordered_map>

#include "base/nearest.h"
#include "base/utf8.h"
#include "ir/body.h"
#include "ir/probe.h"
#include "ir/text.h"
#include "ir/text/value.h"

namespace rlx {

namespace {

using text::Scanner;

// A word and where it stands.
struct Word {
  std::string text;
  size_t at;
  bool is_quoted = false;  // a name, whatever its text is

  bool is_nothing() const { return text == "_" && !is_quoted; }
  bool is_a_name() const { return is_quoted || (text[0] != '%' && text != "_"); }
};

class Parser {
 public:
  Parser(Scanner& in, const OpTable& table, const std::shared_ptr<const CustomOps>& customs, Parser* parent, int depth)
      : in_(in), table_(table), parent_(parent), depth_(depth), graph_("", &table) {
    graph_.set_customs(customs);
  }

  // graph "name" (symbols) { statements }; "graph" is read already.
  Result<Graph> parse() {
    if (depth_ >= kMaxNestedGraphs) return in_.error("graphs are nested too deeply");
    in_.skip_blanks();
    if (in_.peek() == '"') graph_.set_graph_name(RLX_TRY(in_.quoted()));
    if (in_.take('(')) RLX_TRY(parse_symbols());
    if (!in_.take('{')) return in_.error("expected '{'");
    for (in_.skip_lines(); !in_.take('}'); in_.skip_lines()) {
      if (in_.at_end()) return in_.error("expected '}' at the end of the graph");
      RLX_TRY(parse_statement());
      if (!in_.at_line_end()) return in_.error("expected the end of the line");
    }
    return std::move(graph_);
  }

 private:
  // ---- symbols, guards, outputs ----

  Result<int64_t> parse_bound() {
    in_.skip_blanks();
    size_t at = in_.at();
    std::string_view word = in_.expression(",])");
    if (word == "inf") return Interval::kUnbounded;
    auto number = parse_dim(word);
    if (!number.ok() || !number->is_literal()) return in_.error_at(at, "expected a number or inf");
    return number->literal();
  }

  // Declares here a symbol that a graph around has; false if none has it. See ir/symbols.h.
  Result<bool> take_symbol(const std::string& symbol) {
    if (graph_.has_symbol(symbol)) return true;
    if (!parent_ || !RLX_TRY(parent_->take_symbol(symbol))) return false;
    RLX_TRY(graph_.declare_symbol(symbol, parent_->graph_.symbol_range(symbol)));
    return true;
  }

  Status use(const Dim& dim) {
    Status status;
    visit_symbols(dim, [&](const std::string& symbol) {
      if (status.ok()) status = take_symbol(symbol).status();
    });
    return status;
  }

  Status use(std::span<const Dim> dims) {
    for (const Dim& dim : dims) RLX_TRY(use(dim));
    return {};
  }

  Result<ValueType> parse_type() {
    ValueType type = RLX_TRY(text::scan_type(in_));
    RLX_TRY(use(type.dims));
    return type;
  }

  // What a body declares about a symbol holds in it, even if the graph around it has a symbol of this name.
  Status parse_symbols() {
    while (!in_.take(')')) {
      in_.skip_lines();
      size_t at = in_.at();
      auto symbol = parse_dim(in_.expression(" ,)"));
      if (!symbol.ok() || !symbol->symbol_name()) return in_.error_at(at, "expected the name of a size");
      Interval range;
      if (in_.take("in ")) {
        if (!in_.take('[')) return in_.error("expected '['");
        range.lo = RLX_TRY(parse_bound());
        if (!in_.take(',')) return in_.error("expected ','");
        range.hi = RLX_TRY(parse_bound());
        if (!in_.take(']')) return in_.error("expected ']'");
      }
      if (parent_) RLX_TRY(parent_->take_symbol(*symbol->symbol_name()));
      Status status = graph_.declare_symbol(*symbol->symbol_name(), range);
      if (!status.ok()) return in_.located(at, std::move(status));
      in_.skip_blanks();
      if (in_.peek() != ')' && !in_.take(',')) return in_.error("expected ',' or ')'");
    }
    return {};
  }

  Result<Dim> parse_size(std::string_view stops) {
    in_.skip_blanks();
    size_t at = in_.at();
    auto dim = parse_dim(in_.expression(stops));
    if (!dim.ok()) return in_.error_at(at, std::string(dim.status().message()));
    RLX_TRY(use(*dim));
    return dim;
  }

  Status parse_guard(size_t at) {
    Dim a = RLX_TRY(parse_size("<=\"}"));
    Guard guard{Guard::kEqual, std::move(a), {}, ""};
    if (in_.take("<="))
      guard.relation = Guard::kLessEqual;
    else if (!in_.take('='))
      return in_.error("expected '=' or '<='");
    guard.b = RLX_TRY(parse_size("\"}"));
    in_.skip_blanks();
    if (in_.peek() == '"') guard.where = RLX_TRY(in_.quoted());
    Status status = graph_.declare_guard(std::move(guard));
    return status.ok() ? status : in_.located(at, std::move(status));
  }

  Result<Word> parse_name() {
    in_.skip_blanks();
    size_t at = in_.at();
    if (in_.peek() == '"') return Word{RLX_TRY(in_.quoted()), at, true};
    Word name{std::string(in_.label()), at};
    if (name.text.empty()) return in_.error("expected a name");
    return name;
  }

  Status parse_output() {
    Word name = RLX_TRY(parse_name());
    Word value = name;
    if (in_.take('=')) value = RLX_TRY(parse_name());
    Status status = graph_.add_output(name.text, RLX_TRY(find(value)));
    return status.ok() ? status : in_.located(name.at, std::move(status));
  }

  // ---- values ----

  Result<Value> find(const Word& label) const {
    if (label.is_nothing()) return kAbsent;
    auto found = values_.find(label.text);
    if (found != values_.end()) return found->second;
    std::vector<std::string_view> known;
    for (const auto& [name, value] : values_) known.push_back(name);
    std::sort(known.begin(), known.end());
    return in_.error_at(label.at, "unknown value '" + label.text + "'" + did_you_mean(label.text, known))
        .with("value", label.text);
  }

  Status define(const Word& label, Value value) {
    if (label.is_nothing()) return {};
    if (!values_.emplace(label.text, value).second)
      return in_.error_at(label.at, "there is already a value '" + label.text + "'");
    if (value.output == 0 && label.is_a_name()) graph_.set_name(value, label.text);
    return {};
  }

  // ---- statements ----

  Status parse_statement() {
    size_t at = in_.at();
    std::vector<Word> labels;
    do {
      labels.push_back(RLX_TRY(parse_name()));
      in_.skip_blanks();
      bool alone = labels.size() == 1 && in_.peek() != '=' && in_.peek() != ',';
      if (alone && labels[0].text == "output") return parse_output();
      if (alone && labels[0].text == "guard") return parse_guard(at);
    } while (in_.take(','));
    if (!in_.take('=')) return in_.error("expected '='");
    in_.skip_blanks();
    Word op{"", in_.at()};
    op.text = in_.word();
    if (op.text.empty()) return in_.error("expected an op");
    const OpInfo* info = table_.find(op.text);
    if (!info) return unknown_op(op);
    Value first = RLX_TRY(info->is(kLeaf) ? parse_leaf(*info, labels[0], op) : parse_call(*info, labels, op));
    if (labels.size() > graph_.node(first).out.size())
      return in_.error_at(labels.back().at, format("{} has {}, not {}", op.text,
                                                   plural(graph_.node(first).out.size(), "output"), labels.size()));
    for (size_t i = 0; i < labels.size(); i++) RLX_TRY(define(labels[i], Value{first.node, static_cast<uint32_t>(i)}));
    return parse_types(labels, first);
  }

  Status unknown_op(const Word& op) const {
    return in_.error_at(op.at, "unknown op '" + op.text + "'" + table_.suggestion(op.text)).with("value", op.text);
  }

  Result<Value> parse_leaf(const OpInfo& info, const Word& label, const Word& op) {
    in_.skip_blanks();
    std::string name = label.text;
    if (info.op() != Op::kConstant && in_.peek() == '"') name = RLX_TRY(in_.quoted());
    Result<Value> leaf = kInvalid;
    if (info.op() == Op::kConstant) {
      leaf = graph_.add_constant(RLX_TRY(text::scan_tensor(in_)));
    } else {
      ValueType type = RLX_TRY(parse_type());
      leaf = info.op() == Op::kInput ? graph_.add_input(name, type.dtype, type.dims)
                                     : graph_.add_param(name, type.dtype, type.dims);
    }
    if (!leaf.ok()) return in_.located(op.at, std::move(leaf).status());
    return leaf;
  }

  // Where the parts of a call stand, for the messages of the builder.
  struct Call {
    std::vector<Word> arguments;
    std::vector<Value> in;
    std::vector<Word> keys;
    NamedAttrs attrs;
  };

  Result<Value> parse_call(const OpInfo& info, const std::vector<Word>& labels, const Word& op) {
    Call call;
    if (!in_.take('(')) return in_.error("expected '('");
    for (in_.skip_lines(); !in_.take(')'); in_.skip_lines()) {
      if (!call.in.empty() && !in_.take(',')) return in_.error("expected ',' or ')'");
      in_.skip_lines();
      call.arguments.push_back(RLX_TRY(parse_name()));
      call.in.push_back(RLX_TRY(find(call.arguments.back())));
    }
    RLX_TRY(parse_attrs(call));
    std::string name = labels[0].is_a_name() ? labels[0].text : "";
    auto added = add(info, call, name);
    if (added.ok()) return added;
    size_t at = place_of(added.status(), info, call, op);
    return in_.located(at, std::move(added).status());
  }

  // What is a size among the attributes is known by the row alone: in the text it is a word like others.
  Result<Value> add(const OpInfo& info, const Call& call, const std::string& name) {
    auto attrs = bind_attrs(info, call.attrs);
    if (!attrs.ok()) return graph_.with_subject(info, name, std::move(attrs).status());
    for (const AttrValue& value : attrs->values()) {
      if (auto* dim = std::get_if<Dim>(&value)) RLX_TRY(use(*dim));
      if (auto* dims = std::get_if<std::vector<Dim>>(&value)) RLX_TRY(use(*dims));
    }
    return graph_.add(info, call.in, *std::move(attrs), name);
  }

  // The attribute or argument that the failure names, else the op.
  static size_t place_of(const Status& status, const OpInfo& info, const Call& call, const Word& op) {
    if (auto* input = status.detail("input"))
      for (size_t i = 0; i < std::min(call.arguments.size(), info.signature.in.size()); i++)
        if (info.signature.in[i].name == *input && !info.signature.in[i].variadic) return call.arguments[i].at;
    if (auto* key = status.detail("value"))
      for (const Word& word : call.keys)
        if (word.text == *key) return word.at;
    return op.at;
  }

  Status parse_attrs(Call& call) {
    while (!in_.at_line_end() && in_.peek() != '-') {
      Word key{"", in_.at()};
      key.text = in_.word();
      if (key.text.empty() || in_.peek() != '=') return in_.error("expected an attribute, '->' or the end of the line");
      in_.advance(1);
      call.attrs.emplace_back(key.text, RLX_TRY(parse_attr_value()));
      call.keys.push_back(std::move(key));
    }
    return {};
  }

  Result<AttrValue> parse_attr_value() {
    size_t start = in_.at();
    if (in_.word() == "graph") {
      in_.skip_blanks();
      if (std::string_view("\"({").find(in_.peek()) != std::string_view::npos && !in_.at_end()) {
        Graph body = RLX_TRY(Parser(in_, table_, graph_.customs(), this, depth_ + 1).parse());
        return AttrValue(std::make_shared<const Graph>(std::move(body)));
      }
    }
    in_.rewind(start);
    return text::scan_value(in_);
  }

  // A type that equals the inferred one stays as written: it may have been inferred when not all guards were known.
  Status parse_types(const std::vector<Word>& labels, Value first) {
    if (!in_.take("->")) return {};
    for (uint32_t i = 0; i < labels.size(); i++) {
      if (i && !in_.take(',')) return in_.error("expected ',' and the type of the next output");
      in_.skip_blanks();
      size_t at = in_.at();
      ValueType type = RLX_TRY(parse_type());
      const ValueType& real = graph_.node(first).out[i];
      if (graph_.is_same_type(type, real)) {
        graph_.set_type({first.node, i}, std::move(type));
        continue;
      }
      if (is_same_at_samples(graph_, type, real)) continue;  // not proved, so the size of inference stays
      return in_.located(at, Status(type.dtype == real.dtype ? Code::kShape : Code::kDtype,
                                    "'" + labels[i].text + "' is " + text_of(real) + ", not " + text_of(type))
                                 .with("value", labels[i].text)
                                 .with("expected", text_of(type))
                                 .with("got", text_of(real)));
    }
    return {};
  }

  Scanner& in_;
  const OpTable& table_;
  Parser* parent_;  // of the graph around this body
  int depth_;
  Graph graph_;
  std::unordered_map<std::string, Value> values_;
};

}  // namespace

Result<Graph> parse(std::string_view text, const OpTable& table, const std::shared_ptr<const CustomOps>& customs) {
  if (!is_utf8(text)) return Status(Code::kData, "the text is not UTF-8");
  Scanner in(text, Scanner::kFile);
  in.skip_lines();
  if (in.word() != "graph") return in.error("expected graph");
  Graph graph = RLX_TRY(Parser(in, table, customs, nullptr, 0).parse());
  in.skip_lines();
  if (!in.at_end()) return in.error("expected the end after the graph");
  return graph;
}

}  // namespace rlx
