// SPDX-License-Identifier: Apache-2.0
// Reports on a compiled graph: which kernel each node got and why others refused, which rules fired.
#include <algorithm>

#include "base/json.h"
#include "compile/compile.h"
#include "plan/control.h"
#include "plan/views.h"

namespace rlx {

static bool is_view(const Layouts& layouts, uint32_t node) {
  return layouts.copy_of[node] || !layouts.of[node][0].is_root({node, 0});
}

static std::string_view path_text(const Kernel* kernel, bool on_host) {
  if (!kernel) return "unsupported";
  if (on_host) return "host";
  switch (kernel->path) {
    case Path::kNative: return "native";
    case Path::kRegion: return "region";
    case Path::kReference: return "reference";
  }
  return "unsupported";
}

static std::string_view path_text(const LoweredGraph& lowered, const Layouts& layouts, uint32_t node) {
  if (lowered.phases[node] == Phase::kResident) return "prologue";
  if (layouts.copy_of[node]) return "native";  // a view that a reader needs dense
  if (is_view(layouts, node)) return "view";
  return path_text(lowered.kernels[node], lowered.on_host[node]);
}

static void write_node(JsonWriter& json, const Graph& graph, uint32_t node, std::string_view body,
                       std::string_view path, const Found& found) {
  json.begin_object()
      .member("op", graph.info(graph.node(node)).name)
      .member("node", std::string_view(graph.describe(node)))
      .member("path", path);
  if (!body.empty()) json.member("body", body);
  if (found.kernel) json.member("kernel", found.kernel->name);
  if (!found.why_not.empty()) json.member("refused", std::string_view(found.why_not));
  json.end_object();
}

// "while 'decode' (%7)/body": the body of which node, the outermost first.
static std::string body_path(const Graph& graph, uint32_t node, std::string_view around, std::string_view attr) {
  return format("{}{}{}/{}", around, around.empty() ? "" : "/", graph.describe(node), attr);
}

// Writes what a device would do with each node of a graph that no pass has changed.
static void write_nodes(JsonWriter& json, const Graph& graph, const Device& device, const Device* fallback,
                        const CompileOptions& options, const std::string& body) {
  Facts facts(graph);
  for (uint32_t i = 0; i < graph.nodes().size(); i++) {
    const OpInfo& info = graph.info(graph.node(i));
    if (info.is(kLeaf)) continue;
    Found found = find_kernel(device, fallback, options, facts, i);
    bool expands = !found.kernel && !info.primitive();
    std::string_view path = expands ? "expanded" : path_text(found.kernel, found.on_host);
    write_node(json, graph, i, body, path, found);
    for (std::string_view attr : body_attrs(graph.node(i).op))
      write_nodes(json, *graph.node(i).attrs.graph(attr), device, fallback, options, body_path(graph, i, body, attr));
  }
}

// Writes what was done with each node.
static void write_nodes(JsonWriter& json, const CompiledGraph& source, const LoweredGraph& lowered,
                        const std::string& body) {
  const Graph& graph = lowered.graph;
  Facts facts(graph);
  Layouts layouts = choose_views(lowered);
  for (uint32_t i = 0; i < graph.nodes().size(); i++) {
    const Node& node = graph.node(i);
    if (graph.info(node).is(kLeaf)) continue;
    bool has_kernel = lowered.kernels[i] && !is_view(layouts, i);
    write_node(json, graph, i, body, path_text(lowered, layouts, i),
               has_kernel ? find_kernel(*source.device, source.fallback, source.options, facts, i) : Found());
    auto planned = lowered.bodies.find(i);
    for (size_t k = 0; k < body_attrs(node.op).size(); k++) {
      std::string_view attr = body_attrs(node.op)[k];
      std::string path = body_path(graph, i, body, attr);
      if (planned != lowered.bodies.end())
        write_nodes(json, source, *planned->second[k].lowered, path);
      else
        write_nodes(json, *node.attrs.graph(attr), *source.device, source.fallback, source.options, path);
    }
  }
}

// ---- the log ----

namespace {

// The nodes that run on the reference path, by op and reason: one line for each pair, not for each node.
struct Slow {
  std::string op, why, first;
  size_t count = 0;
};

void collect(const CompiledGraph& source, const LoweredGraph& lowered, const Host& host, std::vector<Slow>& slow) {
  const Graph& graph = lowered.graph;
  Facts facts(graph);
  Layouts layouts = choose_views(lowered);
  for (uint32_t i = 0; i < graph.nodes().size(); i++) {
    const Node& node = graph.node(i);
    if (graph.info(node).is(kLeaf) || is_view(layouts, i) || !lowered.kernels[i]) continue;
    if (lowered.phases[i] == Phase::kResident) continue;
    Found found = find_kernel(*source.device, source.fallback, source.options, facts, i);
    if (!found.kernel) continue;
    host.log(LogLevel::kDebug, "kernel", [&] {
      std::string refused = found.why_not.empty() ? "" : "; refused: " + found.why_not;
      return format("{}: {}{}{}", graph.describe(i), found.kernel->name, found.on_host ? " on the host" : "", refused);
    });
    bool is_a_size = lowered.phases[i] == Phase::kSized && node.out[0].rank() == 0;  // one number costs nothing
    if (found.kernel->path == Path::kReference && !is_a_size) {
      std::string op = format("{} of {}", graph.info(node).name, node.out[0].dtype);
      auto is_it = [&](const Slow& it) { return it.op == op && it.why == found.why_not; };
      auto known = std::find_if(slow.begin(), slow.end(), is_it);
      if (known == slow.end()) known = slow.insert(slow.end(), {op, found.why_not, graph.describe(i)});
      known->count++;
    }
    if (auto planned = lowered.bodies.find(i); planned != lowered.bodies.end())
      for (const auto& body : planned->second) collect(source, *body.lowered, host, slow);
  }
}

}  // namespace

void log_kernels(const CompiledGraph& source, const Host& host) {
  if (!host.logs(LogLevel::kWarn)) return;
  std::vector<Slow> slow;
  collect(source, *source.lowered, host, slow);
  const DeviceInfo& device = source.device->info();
  // A user who asks for the reference path needs no warning.
  if (device.kind == "reference" || source.options.kernels.dispatch == Dispatch::kReference) return;
  for (const Slow& it : slow)
    host.log(LogLevel::kWarn, "kernel", [&] {
      std::string why = it.why.empty() ? "there is no other kernel" : it.why;
      return format("{} runs on the slow reference path of {}: {}, the first is {}; {}", it.op, device.name,
                    plural(it.count, "node"), it.first, why);
    });
}

// ---- reports ----

std::string dispatch_report(const CompiledGraph& source) {
  JsonWriter json;
  json.begin_object().key("nodes").begin_array();
  write_nodes(json, source, *source.lowered, "");
  json.end_array().key("expanded").begin_array();
  for (const RewriteReport::Line& line : source.report.lines)
    if (line.pass == "expand" && line.reason.empty()) json.value(std::string_view(line.where));
  json.end_array().end_object();
  return std::move(json).take();
}

std::string dispatch_report(const Graph& graph, const Device& device, const CompileOptions& options,
                            const Device* fallback) {
  JsonWriter json;
  json.begin_object().key("nodes").begin_array();
  write_nodes(json, graph, device, fallback, options, "");
  json.end_array().end_object();
  return std::move(json).take();
}

// A rule that fired at a node, or why it did not.
static void write_line(JsonWriter& json, std::string_view pass, std::string_view rule, std::string_view node,
                       std::string_view missed) {
  json.begin_object().member("pass", pass).member("rule", rule).member("node", node);
  if (!missed.empty()) json.member("missed", missed);
  json.end_object();
}

std::string passes_report(const CompiledGraph& source, const Plan& plan) {
  JsonWriter json;
  json.begin_array();
  for (const RewriteReport::Line& line : source.report.lines)
    write_line(json, line.pass, line.rule, line.where, line.reason);
  const Graph& graph = plan.graph();
  for (const SlotAlias& alias : plan.aliases) {
    std::string slots = graph.outputs()[alias.output].name + "=" + graph.leaf_name(graph.inputs()[alias.input]);
    write_line(json, "plan", "io.alias", slots, alias.why_copied);
  }
  for (const RewriteReport::PassTime& pass : source.report.passes)
    json.begin_object()
        .member("pass", std::string_view(pass.pass))
        .member("ms", pass.ms)
        .member("nodes", static_cast<uint64_t>(pass.nodes))
        .end_object();
  json.end_array();
  return std::move(json).take();
}

}  // namespace rlx
