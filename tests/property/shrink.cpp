// SPDX-License-Identifier: Apache-2.0
#include "shrink.h"

#include <chrono>

#include "edit.h"
#include "ops/interpret.h"

namespace rlx::test {

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
using Contents = std::map<std::string, std::vector<Tensor>>;  // of inputs, by name: one for each run

class Shrinker {
 public:
  Shrinker(RandomGraph failing, const std::function<bool(const RandomGraph&)>& fails, double seconds)
      : best_(std::move(failing)),
        fails_(fails),
        end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(seconds))) {}

  RandomGraph run() {
    while (Clock::now() < end_ && (fewer_runs() || fewer_outputs() || fewer_nodes() || smaller_bodies())) {}
    return std::move(best_);
  }

 private:
  bool accept(RandomGraph candidate) {
    if (Clock::now() > end_ || !fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  // This graph with the inputs that it still has, and others of these contents.
  bool accept(Result<Graph> graph, const Contents& more = {}) {
    if (!graph.ok() || graph->outputs().empty()) return false;
    RandomGraph candidate{std::move(*graph), {}, best_.params};
    for (size_t run = 0; run < best_.runs.size(); run++) {
      candidate.runs.emplace_back();
      for (uint32_t leaf : candidate.graph.inputs()) {
        const std::string& name = candidate.graph.leaf_name(leaf);
        auto extra = more.find(name);
        candidate.runs[run].push_back(extra != more.end() ? extra->second[run] : old_input(name, run));
        if (!candidate.runs[run].back()) return false;
      }
    }
    return accept(std::move(candidate));
  }

  Tensor old_input(const std::string& name, size_t run) const {
    for (size_t i = 0; i < best_.graph.inputs().size(); i++)
      if (best_.graph.leaf_name(best_.graph.inputs()[i]) == name) return best_.runs[run][i];
    return {};
  }

  bool fewer_runs() {
    for (size_t run = 0; run < best_.runs.size() && best_.runs.size() > 1; run++) {
      RandomGraph candidate = best_;
      candidate.runs = {best_.runs[run]};
      if (accept(std::move(candidate))) return true;
    }
    return false;
  }

  bool fewer_outputs() {
    std::vector<GraphOutput> outputs = best_.graph.outputs();
    if (outputs.size() < 2) return false;
    for (const GraphOutput& output : outputs)
      if (accept(with_outputs(best_.graph, {output}))) return true;
    for (size_t i = 0; i < outputs.size(); i++) {
      std::vector<GraphOutput> fewer = outputs;
      fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
      if (accept(with_outputs(best_.graph, fewer))) return true;
    }
    return false;
  }

  bool fewer_nodes() {
    for (auto i = static_cast<uint32_t>(best_.graph.nodes().size()); i-- > 0;)
      if (cut(i) || bypass(i)) return true;
    return false;
  }

  // What the node gives becomes inputs, with the contents that they had.
  bool cut(uint32_t index) {
    const Node& node = best_.graph.node(index);
    if (node.op == Op::kInput || node.op == Op::kParam || node.op == Op::kConstant) return false;
    Contents contents;
    std::vector<GraphOutput> outputs;
    for (uint32_t i = 0; i < node.out.size(); i++)
      outputs.push_back({"cut" + std::to_string(cuts_) + "." + std::to_string(i), {index, i}});
    cuts_++;
    auto above = with_outputs(best_.graph, outputs);
    if (!above.ok()) return false;
    for (size_t run = 0; run < best_.runs.size(); run++) {
      std::vector<Tensor> inputs;
      for (uint32_t leaf : above->inputs()) inputs.push_back(old_input(above->leaf_name(leaf), run));
      auto values = interpret(*above, inputs, best_.params);
      if (!values.ok()) return false;
      for (size_t i = 0; i < values->size(); i++) contents[outputs[i].name].push_back((*values)[i]);
    }
    return accept(
        edited(best_.graph,
               [&](Graph& to, uint32_t at, const Values& in) -> Result<Values> {
                 if (at != index) return copy_node(best_.graph, at, in, to);
                 Values leaves;
                 for (uint32_t i = 0; i < node.out.size(); i++)
                   leaves.push_back(RLX_TRY(to.add_input(outputs[i].name, node.out[i].dtype, node.out[i].dims)));
                 return leaves;
               }),
        contents);
  }

  // The k-th of the ways to put an input of a node in its place; none where it has no input of its type.
  static std::vector<size_t> same_inputs(const Graph& graph, const Node& node) {
    std::vector<size_t> same;
    for (size_t k = 0; k < node.in.size() && node.out.size() == 1; k++)
      if (present(node.in[k]) && graph.type(node.in[k]) == node.out[0]) same.push_back(k);
    return same;
  }

  static Result<Graph> bypassed(const Graph& graph, uint32_t index, size_t input, Leaves leaves) {
    return edited(
        graph,
        [&](Graph& to, uint32_t at, const Values& in) -> Result<Values> {
          return at == index ? Values{in[input]} : copy_node(graph, at, in, to);
        },
        leaves);
  }

  bool bypass(uint32_t index) {
    for (size_t input : same_inputs(best_.graph, best_.graph.node(index)))
      if (accept(bypassed(best_.graph, index, input, Leaves::kNeeded))) return true;
    return false;
  }

  // A loop keeps its condition, and its body if nothing else ends it.
  bool smaller_bodies() {
    for (uint32_t i = 0; i < best_.graph.nodes().size(); i++) {
      Node node = best_.graph.node(i);
      if (!has_bodies(node) || (node.op == Op::kWhile && node.attrs.i64("max_trips") < 0)) continue;
      for (const AttrDef& def : node.attrs.info()->attrs) {
        if (def.kind != AttrKind::kGraph || def.name == "cond") continue;
        const Graph& body = *node.attrs.graph(def.name);
        auto clean = pruned(body, Leaves::kAll);
        if (clean.ok() && clean->nodes().size() < body.nodes().size() &&
            accept(with_body(i, def.name, std::move(*clean))))
          return true;
        for (auto inner = static_cast<uint32_t>(body.nodes().size()); inner-- > 0;)
          for (size_t input : same_inputs(body, body.node(inner))) {
            auto smaller = bypassed(body, inner, input, Leaves::kAll);
            if (smaller.ok() && accept(with_body(i, def.name, std::move(*smaller)))) return true;
          }
      }
    }
    return false;
  }

  Result<Graph> with_body(uint32_t index, std::string_view name, Graph body) const {
    auto shared = std::make_shared<const Graph>(std::move(body));
    return edited(best_.graph, [&](Graph& to, uint32_t at, const Values& in) {
      const Attrs& attrs = best_.graph.node(at).attrs;
      return copy_node(best_.graph, at, in, to, at == index ? attrs.with(name, shared) : attrs);
    });
  }

  RandomGraph best_;
  const std::function<bool(const RandomGraph&)>& fails_;
  Clock::time_point end_;
  int cuts_ = 0;
};

}  // namespace

RandomGraph shrunk(RandomGraph failing, const std::function<bool(const RandomGraph&)>& fails, double seconds) {
  return Shrinker(std::move(failing), fails, seconds).run();
}

static std::string tensor_text(const Tensor& tensor) {
  std::string text = type_text(tensor.dtype(), tensor.dims());
  if (tensor.count() > 100 || is_complex(tensor.dtype())) return text;
  for (int64_t i = 0; i < tensor.count(); i++)
    text += is_integer(tensor.dtype()) ? " " + std::to_string(element_as_i64(tensor, i))
                                       : format(" {:.9}", element_as_f64(tensor, i));
  return text;
}

std::string contents_text(const RandomGraph& random) {
  std::string text;
  for (size_t run = 0; run < random.runs.size(); run++)
    for (size_t i = 0; i < random.runs[run].size(); i++)
      text += "; run " + std::to_string(run) + ": " + random.graph.leaf_name(random.graph.inputs()[i]) + " = " +
              tensor_text(random.runs[run][i]) + "\n";
  for (const auto& [name, tensor] : random.params)
    if (random.graph.find_leaf(name)) text += "; param " + name + " = " + tensor_text(tensor) + "\n";
  return text;
}

}  // namespace rlx::test
