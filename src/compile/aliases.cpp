// SPDX-License-Identifier: Apache-2.0
#include "compile/aliases.h"

#include <string_view>
#include <unordered_map>

#include "base/nearest.h"

namespace rlx {

static Status no_such_slot(std::string_view kind, std::string_view name, const std::vector<std::string_view>& known) {
  return Status(Code::kNotFound, format("io.alias: the graph has no {} '{}'{}", kind, name, only(known)))
      .with("value", name);
}

namespace {

class SlotNames {
 public:
  explicit SlotNames(const Graph& graph) {
    for (const GraphOutput& it : graph.outputs()) outputs_.push_back(it.name);
    for (uint32_t node : graph.inputs()) inputs_.push_back(graph.leaf_name(node));
    for (size_t i = 0; i < outputs_.size(); i++) output_of_.emplace(outputs_[i], i);
    for (size_t i = 0; i < inputs_.size(); i++) input_of_.emplace(inputs_[i], i);
  }

  // The slots that "output=input" names. A name may have an '=' in it.
  Result<SlotAlias> find(std::string_view text) const {
    size_t first = text.find('=');
    if (first == std::string_view::npos)
      return Status(Code::kOption, format("io.alias: '{}' is not 'output=input'", text))
          .with("value", text)
          .with("expected", "output=input");
    auto found = find(text, first);
    for (size_t at = first; !found.ok() && (at = text.find('=', at + 1)) != std::string_view::npos;)
      if (auto other = find(text, at); other.ok()) found = std::move(other);
    return found;
  }

 private:
  Result<SlotAlias> find(std::string_view text, size_t equals) const {
    std::string_view from = text.substr(0, equals), to = text.substr(equals + 1);
    auto output = output_of_.find(from), input = input_of_.find(to);
    if (output == output_of_.end()) return no_such_slot("output", from, outputs_);
    if (input == input_of_.end()) return no_such_slot("input", to, inputs_);
    return SlotAlias{output->second, input->second};
  }

  std::vector<std::string_view> outputs_, inputs_;
  std::unordered_map<std::string_view, size_t> output_of_, input_of_;
};

}  // namespace

Result<std::vector<SlotAlias>> find_aliases(const Graph& graph, const std::vector<std::string>& given) {
  std::vector<SlotAlias> aliases;
  if (given.empty()) return aliases;
  SlotNames names(graph);
  std::vector<bool> is_output_taken(graph.outputs().size()), is_input_taken(graph.inputs().size());
  for (const std::string& text : given) {
    SlotAlias alias = RLX_TRY(names.find(text));
    if (is_output_taken[alias.output] || is_input_taken[alias.input])
      return Status(Code::kOption, "io.alias: '" + text + "' names a slot that has an alias already")
          .with("value", text);
    is_output_taken[alias.output] = is_input_taken[alias.input] = true;
    const GraphOutput& output = graph.outputs()[alias.output];
    uint32_t input = graph.inputs()[alias.input];
    const ValueType &made = graph.type(output.value), &held = graph.node(input).out[0];
    if (!(made == held))
      return Status(made.dtype == held.dtype ? Code::kShape : Code::kDtype,
                    format("io.alias: the output '{}' is {}, the input '{}' is {}: they cannot share memory",
                           output.name, made, graph.leaf_name(input), held))
          .with("value", output.name);
    aliases.push_back(alias);
  }
  return aliases;
}

}  // namespace rlx
