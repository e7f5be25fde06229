// SPDX-License-Identifier: Apache-2.0
// Graph to text. The text is canonical: equal graphs with equal names print equally.
#include <algorithm>
#include <span>
#include <unordered_set>

#include "base/escape.h"
#include "ir/body.h"
#include "ir/normal.h"
#include "ir/text.h"
#include "ir/text/value.h"

namespace rlx {

namespace {

class Printer {
 public:
  // `carried`: symbols that are a body's own, even if the graph around it has symbols of these names.
  Printer(const Graph& graph, const Printer* around, std::string indent, std::span<const std::string> carried = {})
      : graph_(graph), around_(around), carried_(carried), indent_(std::move(indent)), uses_(use_counts(graph)) {
    for (uint32_t node = 0; node < graph.nodes().size(); node++) assign_labels(node);
  }

  std::string print() {
    text_ = "graph ";
    if (!graph_.name().empty()) text_ += quoted(graph_.name()) + " ";
    print_symbols();
    text_ += "{\n";
    print_guards();
    for (uint32_t node = 0; node < graph_.nodes().size(); node++) print_node(node);
    for (const GraphOutput& output : graph_.outputs()) print_output(output);
    return text_ + indent_ + "}";
  }

 private:
  // ---- names ----

  std::string unique(std::string wanted, const std::string& otherwise) {
    if (!text::is_label(wanted) || !taken_.insert(wanted).second) return otherwise;
    return wanted;
  }

  bool is_named_leaf(const Node& node) const { return node.op == Op::kInput || node.op == Op::kParam; }

  void assign_labels(uint32_t index) {
    const Node& node = graph_.node(index);
    std::string number = "%" + std::to_string(index);
    std::string first = unique(is_named_leaf(node) ? graph_.leaf_name(index) : node.name, number);
    labels_.push_back({first});
    const auto& ports = graph_.info(node).signature.out;
    for (size_t i = 1; i < node.out.size(); i++) {
      std::string suffix = "." + (i < ports.size() && !ports[i].variadic ? ports[i].name : std::to_string(i));
      labels_.back().push_back(first[0] == '%' ? first + suffix : unique(first + suffix, number + suffix));
    }
  }

  const std::string& label(Value value) const { return labels_[value.node][value.output]; }

  // ---- statements ----

  // Prints what the scope around it does not know. A size that a node of a body decides is another one than that of its
  // name around.
  void print_symbols() {
    std::string list;
    std::unordered_set<std::string> own(carried_.begin(), carried_.end());
    for (DecidedSize& size : decided_sizes(graph_)) own.insert(std::move(size.symbol));
    for (const auto& [symbol, range] : graph_.symbols()) {
      if (around_ && around_->knows(symbol, range) && !own.contains(symbol)) continue;
      list += (list.empty() ? "" : ", ") + Dim::symbol(symbol).text();
      bool bounded = range.hi < Interval::kUnbounded;
      if (range.lo == 0 && !bounded) continue;
      list += " in [" + std::to_string(range.lo) + ", " + (bounded ? std::to_string(range.hi) : "inf") + "]";
    }
    if (!list.empty()) text_ += "(" + list + ") ";
  }
  // As the parser does: by the innermost graph that has the symbol.
  bool knows(const std::string& symbol, Interval range) const {
    if (!graph_.has_symbol(symbol)) return around_ && around_->knows(symbol, range);
    return graph_.symbol_range(symbol) == range;
  }

  void print_node(uint32_t index) {
    const Node& node = graph_.node(index);
    size_t shown = shown_outputs(index);
    text_ += indent_ + "  ";
    for (size_t i = 0; i < shown; i++) {
      bool used = i == 0 || uses_[index][i] > 0;
      text_ += (i ? ", " : "") + (used ? labels_[index][i] : "_");
    }
    text_ += " = " + std::string(graph_.info(node).name);
    if (is_named_leaf(node)) {
      if (labels_[index][0] != graph_.leaf_name(index)) text_ += " " + quoted(graph_.leaf_name(index));
      text_ += " " + text_of(node.out[0]);
    } else if (node.op == Op::kConstant) {
      text_ += " " + text::tensor_text(node.attrs.tensor("value"));
    } else {
      print_call(node, shown);
    }
    text_ += "\n";
  }

  // The first output, which has the node's name, and all up to the last one that is used.
  size_t shown_outputs(uint32_t index) const {
    const auto& uses = uses_[index];
    size_t count = uses.size();
    while (count > 1 && uses[count - 1] == 0) count--;
    return count;
  }

  void print_call(const Node& node, size_t shown) {
    text_ += "(";
    for (size_t i = 0; i < node.in.size(); i++)
      text_ += (i ? ", " : "") + (present(node.in[i]) ? label(node.in[i]) : "_");
    text_ += ")";
    for (const auto& [name, value] :
         non_default_attrs(graph_.info(node), input_types(graph_, graph_.info(node), node.in), node.attrs)) {
      if (auto* free = std::get_if<std::shared_ptr<const FreeAttrs>>(&value)) {
        for (const auto& [key, given] : (*free)->values) text_ += " " + key + "=" + text::free_text(given);
        continue;
      }
      text_ += " " + name + "=";
      if (auto* body = std::get_if<std::shared_ptr<const Graph>>(&value))
        text_ += Printer(**body, this, indent_ + "  ", carried_symbols(node.attrs)).print();
      else
        text_ += text::value_text(kind_of(node, name), value);
    }
    for (size_t i = 0; i < shown; i++) text_ += (i ? ", " : " -> ") + text_of(node.out[i]);
  }

  static AttrKind kind_of(const Node& node, const std::string& attr) {
    const auto& defs = node.attrs.info()->attrs;
    return std::find_if(defs.begin(), defs.end(), [&](const AttrDef& def) { return def.name == attr; })->kind;
  }

  void print_guards() {
    std::vector<std::string> lines;
    for (const Guard& guard : graph_.guards())
      lines.push_back("guard " + text_of(guard) + (guard.where.empty() ? "" : " " + quoted(guard.where)));
    std::sort(lines.begin(), lines.end());
    for (const std::string& line : lines) text_ += indent_ + "  " + line + "\n";
  }

  void print_output(const GraphOutput& output) {
    std::string name = text::is_label(output.name) ? output.name : quoted(output.name);
    text_ += indent_ + "  output " + name;
    if (label(output.value) != name) text_ += " = " + label(output.value);
    text_ += "\n";
  }

  const Graph& graph_;
  const Printer* around_;  // null at the top
  std::span<const std::string> carried_;
  std::string indent_;
  ByValue<uint32_t> uses_;
  std::vector<std::vector<std::string>> labels_;  // [node][output]
  std::unordered_set<std::string> taken_;
  std::string text_;
};

}  // namespace

std::string print(const Graph& graph) {
  return Printer(graph, nullptr, "").print() + "\n";
}

}  // namespace rlx
