// SPDX-License-Identifier: Apache-2.0
// Infers every node again. A stored type or guard may have another form than the one inferred now, because fewer
// guards were known when it was stored. Such a form is accepted where it is proved to be equal, or where no sample
// of sizes shows a difference (ir/probe.h).
#include "ir/verify.h"

#include <algorithm>
#include <unordered_set>

#include "ir/infer.h"
#include "ir/normal.h"
#include "ir/probe.h"

namespace rlx {

namespace {

// Infers every node again, from the stored types of its inputs.
class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph), scope_(graph.name(), &graph.table()) {
    if (graph.is_prologue()) scope_.set_prologue();
  }

  Status run() {
    for (const auto& [symbol, range] : graph_.symbols()) RLX_TRY(scope_.declare_symbol(symbol, range));
    for (const Guard& guard : graph_.guards()) RLX_TRY(scope_.add_guard(guard));
    known_guards_ = scope_.guards().size();
    for (uint32_t node = 0; node < graph_.nodes().size(); node++) {
      Status status = check_row(node);
      if (status.ok()) status = check_order(node);
      if (status.ok()) status = check_attrs(node);
      if (status.ok()) status = check_types(node);
      if (status.ok()) scope_.note_decided(graph_.node(node));
      if (!status.ok()) return host_failed_ ? at_call(node, std::move(status)) : at_node(node, status);
    }
    RLX_TRY(check_guards());
    RLX_TRY(check_leaves());
    return check_outputs();
  }

 private:
  static Status wrong(std::string message) { return Status(Code::kInternal, std::move(message)); }

  Status at_node(uint32_t node, const Status& status) const {
    if (status.code() == Code::kNoMemory) return status;  // says nothing about the graph
    std::string op = graph_.table().has(graph_.node(node).op) ? graph_.describe(node) : "%" + std::to_string(node);
    return Status(Code::kInternal, "not a valid graph: " + op + ": " + std::string(status.message())).with("value", op);
  }

  Status at_call(uint32_t node, Status status) const {
    const Node& call = graph_.node(node);
    return graph_.with_subject(graph_.info(call), call.name, std::move(status));
  }

  Status check_row(uint32_t index) const {
    Op op = graph_.node(index).op;
    if (!graph_.table().has(op)) return wrong(format("no row has the id {}", static_cast<unsigned>(op)));
    if (graph_.node(index).attrs.info() != &graph_.info(op)) return wrong("its attributes belong to another op");
    return {};
  }

  Status check_order(uint32_t index) const {
    for (Value value : graph_.node(index).in) {
      if (value == kAbsent) continue;
      if (value.node >= index) return wrong(format("uses %{}, which does not come before it", value.node));
      if (value.output >= graph_.node(value).out.size())
        return wrong(format("uses output {} of {}, which has {}", value.output, graph_.describe(value.node),
                            graph_.node(value).out.size()));
    }
    return {};
  }

  // A body that several nodes share is verified once.
  Status check_attrs(uint32_t index) {
    const Attrs& attrs = graph_.node(index).attrs;
    if (attrs.values().size() != attrs.info()->attrs.size()) return wrong("does not have the attributes of its row");
    for (size_t i = 0; i < attrs.values().size(); i++) RLX_TRY(check_attr(attrs.info()->attrs[i], attrs.values()[i]));
    for (const AttrValue& value : attrs.values())
      if (auto* body = std::get_if<std::shared_ptr<const Graph>>(&value); body && bodies_.insert(body->get()).second)
        RLX_TRY(check_body(**body));
    return {};
  }

  Status check_body(const Graph& body) {
    Verifier inner(body);
    Status status = inner.run();
    host_failed_ = inner.host_failed_;
    return status;
  }

  static Status check_attr(const AttrDef& def, const AttrValue& value) {
    if (std::holds_alternative<std::monostate>(value)) {
      bool may_miss = !def.required && std::holds_alternative<std::monostate>(def.fallback);
      return may_miss ? Status() : wrong("the attribute '" + std::string(def.name) + "' is missing");
    }
    return check_coerced(def, value);
  }

  Status check_types(uint32_t index) {
    const Node& node = graph_.node(index);
    const OpInfo& info = graph_.info(node);
    Node inferred{node.op, node.in, node.attrs, {}, node.name};
    Status again = infer_node(scope_, info, input_types(graph_, info, node.in), inferred);
    // If no sizes meet the guards, it depends on their order which of them is found to be in error, if any.
    if (again.code() == Code::kShape && guards_contradict(graph_)) return {};
    host_failed_ = !again.ok() && info.is(kOnHost);
    RLX_TRY(again);
    if (!(inferred.attrs == node.attrs)) return wrong("its attributes are not in normal form");
    if (inferred.out.size() != node.out.size())
      return wrong(format("has {}, inference gives {}", plural(node.out.size(), "output"), inferred.out.size()));
    for (size_t i = 0; i < node.out.size(); i++)
      if (!is_same_at_samples(scope_, inferred.out[i], node.out[i]))
        return wrong(format("output {} is stored as {}, inference gives {}", i, node.out[i], inferred.out[i]));
    return {};
  }

  // Every guard that inference asks for must be known. One that was recorded before another one, which decides a min or
  // max in it, has another form than inference finds now. So we compare values, not forms.
  Status check_guards() const {
    for (size_t i = known_guards_; i < scope_.guards().size(); i++) {
      const Guard& guard = scope_.guards()[i];
      if (!holds_at_samples(graph_, guard))
        return wrong("not a valid graph: " + guard.where + " needs the guard " + text_of(guard));
    }
    return {};
  }

  // The lists of leaves hold every input and param, in order.
  Status check_leaves() const {
    std::vector<uint32_t> inputs, params;
    for (uint32_t node = 0; node < graph_.nodes().size(); node++) {
      Op op = graph_.node(node).op;
      if (op != Op::kInput && op != Op::kParam) continue;
      (op == Op::kInput ? inputs : params).push_back(node);
      auto known = graph_.find_leaf(graph_.leaf_name(node));
      if (known && known->node != node) return at_node(node, wrong("another leaf has the same name"));
    }
    if (!std::equal(inputs.begin(), inputs.end(), graph_.inputs().begin(), graph_.inputs().end()) ||
        !std::equal(params.begin(), params.end(), graph_.params().begin(), graph_.params().end()))
      return wrong("not a valid graph: an input or param was not added as one");
    return {};
  }

  Status check_outputs() const {
    std::unordered_set<std::string_view> names;
    for (const GraphOutput& output : graph_.outputs()) {
      bool exists =
          output.value.node < graph_.nodes().size() && output.value.output < graph_.node(output.value).out.size();
      if (!exists) return wrong("not a valid graph: output '" + output.name + "' is not a value of it");
      if (!names.insert(output.name).second) return wrong("not a valid graph: two outputs '" + output.name + "'");
    }
    return {};
  }

  const Graph& graph_;
  Graph scope_;
  size_t known_guards_ = 0;
  bool host_failed_ = false;  // the failure is an answer of the host to inference, which says nothing about the graph
  std::unordered_set<const Graph*> bodies_;  // verified
};

}  // namespace

Status verify(const Graph& graph) {
  return Verifier(graph).run();
}

}  // namespace rlx
