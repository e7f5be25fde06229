// SPDX-License-Identifier: Apache-2.0
// Runs the list of passes on a graph and all its bodies, verifies the results, and finds a kernel for every node.
// Then a compiled graph is planned for upper sizes.
#include "compile/compile.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include "base/check_size.h"
#include "base/contains.h"
#include "base/function_ref.h"
#include "base/os/file.h"
#include "compile/aliases.h"
#include "compile/bodies.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/graph_copy.h"
#include "passes/widen.h"
#include "plan/control.h"
#include "plan/views.h"

namespace rlx {

struct Pass {
  std::string_view name;
  PassFn run;
  HasWorkFn has_work;
  bool inside_out = false;  // on bodies before the graph around them
};
constexpr bool kInsideOut = true;

// The whole compiler, in order. One line is one pass; each has a file in src/passes. All of them work on symbolic
// sizes. Two further stages make no graph: `lower` finds when each value is computed and which kernel computes it, and
// `prologue` cuts out the pieces that depend on params and constants alone.
static constexpr Pass kPasses[] = {
    {"inline", inline_customs, has_customs},                 // custom ops become their bodies, or calls of the host
    {"canonicalize", canonicalize, may_canonicalize},        // equal meanings get one form, equal values one node
    {"fold", fold_constants, has_foldable},                  // typed eval of constants
    {"precision", assign_precision, has_other_precision},    // the float dtype to compute in, if the option names one
    {"branches", inline_branches, has_known_branch},         // an `if` of a known condition is replaced by its branch
    {"sink", sink_residents, may_sink},                      // operands computed from params alone move into bodies
    {"hoist", hoist_invariants, has_loop, kInsideOut},       // values that do not vary move out of loops
    {"fuse", fuse_composites, may_fuse},                     // composites that this device has a kernel for
    {"layout", choose_layouts, may_choose_layouts},          // transposes and splits at composites become their layout
    {"merge-siblings", merge_siblings, may_merge_siblings},  // products that share their left input become one: QKV
    {"expand", expand_composites, has_composite},            // composites without a kernel on this device
    {"widen", widen_halves, may_widen},                      // ops on halves that this device has in f32 only
    {"simplify", simplify, may_simplify},                    // canonicalize and fold again; joins chains of scalars
    {"regions", group_elementwise, may_group},               // the remaining elementwise nodes, a kernel per region
    {"dce", drop_dead_nodes, has_dead_node},                 // nodes that no output, effect or guard needs
    {"check-supported", check_supported, has_unsupported},   // names every node left without a kernel, and why
};

std::vector<std::string_view> pass_names() {
  std::vector<std::string_view> names;
  for (const auto& pass : kPasses) names.push_back(pass.name);
  return names;
}

static KernelOptions options_of(const CompileOptions& options, const OpInfo& info) {
  KernelOptions own = options.kernels;
  for (const auto& [op, dispatch] : options.dispatch_of)
    if (op == info.name) own.dispatch = dispatch;
  return own;
}

Found find_kernel(const Device& device, const CompileOptions& options, const Facts& facts, uint32_t node) {
  const Graph& graph = facts.graph();
  const OpInfo& info = graph.info(graph.node(node));
  KernelOptions own = options_of(options, info);
  if (device.info().prologue && is_control(graph.node(node))) return {&kControlKernel, {}};
  if (!info.primitive() && own.dispatch != Dispatch::kNative)
    return {nullptr, own.dispatch == Dispatch::kCommon ? "dispatch=common" : "dispatch=reference"};
  return device.find(KernelQuery{graph, graph.node(node), own, facts.phases()});
}

Found find_kernel(const Device& device, const Device* fallback, const CompileOptions& options, const Facts& facts,
                  uint32_t node) {
  Found own = find_kernel(device, options, facts, node);
  const Graph& graph = facts.graph();
  const OpInfo& info = graph.info(graph.node(node));
  bool may_fall_back = options.falls_back || info.is(kOnHost);
  if (own.kernel || !fallback || !may_fall_back || !info.primitive()) return own;
  Found found = find_kernel(*fallback, options, facts, node);
  found.on_host = found.kernel != nullptr;
  if (!own.why_not.empty())
    found.why_not = own.why_not + (found.why_not.empty() ? "" : "; on the host: " + found.why_not);
  return found;
}

class Stopwatch {
 public:
  double ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

static Status check_expected(const CompileOptions& options, const RewriteReport& report) {
  for (const std::string& rule : options.expect) {
    auto fired = [&](const RewriteReport::Line& line) {
      return line.reason.empty() && (line.rule == rule || line.pass == rule);
    };
    if (std::none_of(report.lines.begin(), report.lines.end(), fired))
      return Status(Code::kNotFound, "passes.expect: the rule '" + rule + "' did not fire").with("value", rule);
  }
  return {};
}

// Writes "08-fuse.rlx" into the folder: the graph after the passes so far.
static Status dump(const Graph& graph, const CompileOptions& options, size_t number, std::string_view pass) {
  if (options.dump.empty()) return {};
  std::string path = format("{}/{:02}-{}.rlx", options.dump, number, pass);
  return write_file(path, std::as_bytes(std::span<const char>(print(graph))));
}

static void log_pass(const Host& host, const RewriteReport::PassTime& pass) {
  host.log(LogLevel::kTrace, "compile",
           [&] { return format("pass {}: {:.3} ms, {} made", pass.pass, pass.ms, plural(pass.nodes, "node")); });
}

static Status run_pass(const Pass& pass, Graph& graph, PassContext& context);

using SetBodyFn = FunctionRef<void(uint32_t node, std::string_view attr, Graph body)>;
static Status visit_changed_bodies(const Pass& pass, const Graph& graph, PassContext& context, SetBodyFn set);

static void set_body(Graph& graph, uint32_t node, std::string_view attr, Graph body) {
  graph.set_attr(node, attr, std::make_shared<const Graph>(std::move(body)));
}

// The body as the pass leaves it, or nothing if the pass has no work in it, nor in the bodies within it. Only a body in
// which there is work is copied. None is asked about again for each graph around it.
static Result<std::optional<Graph>> changed_body(const Pass& pass, const Graph& given, PassContext& context) {
  std::optional<Graph> body;
  if (pass.has_work(given, context)) {
    body = given;
    RLX_TRY(run_pass(pass, *body, context));
    return std::optional(RLX_TRY(with_sizes_of(given, *std::move(body))));
  }
  RLX_TRY(visit_changed_bodies(pass, given, context, [&](uint32_t node, std::string_view attr, Graph inner) {
    if (!body) body = given;
    set_body(*body, node, attr, std::move(inner));
  }));
  return body;
}

static Status visit_changed_bodies(const Pass& pass, const Graph& graph, PassContext& context, SetBodyFn set) {
  if (!graph.has_bodies()) return {};
  for (uint32_t i = 0; i < graph.nodes().size(); i++) {
    for (std::string_view attr : body_attrs(graph.node(i).op)) {
      auto body = changed_body(pass, *graph.node(i).attrs.graph(attr), context);
      if (!body.ok())
        return std::move(body).status().prefixed("in '" + std::string(attr) + "' of " + graph.describe(i) + ": ");
      if (*body) set(i, attr, **std::move(body));
    }
  }
  return {};
}

static Status run_in_bodies(const Pass& pass, Graph& graph, const PassContext& context) {
  PassContext inside = context;
  inside.is_body = true;
  return visit_changed_bodies(pass, graph, inside, [&](uint32_t node, std::string_view attr, Graph body) {
    set_body(graph, node, attr, std::move(body));
  });
}

// A body is a graph like any other: a pass runs on every one, at every level.
static Status run_pass(const Pass& pass, Graph& graph, PassContext& context) {
  if (pass.inside_out) RLX_TRY(run_in_bodies(pass, graph, context));
  if (pass.has_work(graph, context)) graph = RLX_TRY(pass.run(std::move(graph), context));
  return pass.inside_out ? Status() : run_in_bodies(pass, graph, context);
}

Status check_outputs(const Graph& graph) {
  if (!graph.outputs().empty()) return {};
  return Status(Code::kInvalidArgument,
                "the graph has no outputs, so there is nothing to compute: rlx_graph_output makes "
                "a value one")
      .with("value", graph.name())
      .with("expected", "1 output or more")
      .with("got", "0");
}

static void collect_symbols(const Graph& graph, std::set<std::string_view>& names) {
  for (const auto& [name, range] : graph.symbols()) names.insert(name);
  for (const Node& node : graph.nodes())
    for (std::string_view attr : body_attrs(node.op)) collect_symbols(*node.attrs.graph(attr), names);
}

std::vector<std::string_view> size_names(const Graph& graph) {
  std::set<std::string_view> names;
  collect_symbols(graph, names);
  return {names.begin(), names.end()};
}

static Status check_sizes(const Graph& graph, const UpperSizes& sizes) {
  if (sizes.empty()) return {};
  const std::vector<std::string_view> names = size_names(graph);
  for (const auto& [name, size] : sizes) {
    if (!std::ranges::binary_search(names, name)) return no_size("dims.", name, names);
    if (graph.has_symbol(name)) RLX_TRY(check_size(name, size, graph.symbol_range(name)));
  }
  return {};
}

Status check_options(const Graph& graph, const CompileOptions& options) {
  RLX_TRY(check_sizes(graph, options.dims));
  return find_aliases(graph, options.alias).status();
}

// Sets what passes may ask of the device. All arguments must outlive the context.
static void set_context(PassContext& context, const Device& device, const Device* fallback,
                        const CompileOptions& options) {
  context.device = device.info().name;
  context.math = options.kernels.math;
  context.skip = options.skip;
  context.precision = options.precision;
  context.plain_layout = options.plain_layout;
  context.checks_indices = options.kernels.bounds == Bounds::kError;
  context.is_native = [&](const Facts& facts, Value value) {
    Found found = find_kernel(device, options, facts, value.node);
    return found.kernel && found.kernel->path != Path::kReference;
  };
  context.joins_regions = [&](const Facts& facts, Value value) {
    Found found = find_kernel(device, options, facts, value.node);
    return found.kernel && found.kernel->path != Path::kReference && !found.kernel->is_alone;
  };
  context.refuses = [&, fallback](const Facts& facts, Value value) {
    Found found = find_kernel(device, fallback, options, facts, value.node);
    bool is_there = found.kernel || (context.may_widen && has_kernel_in_f32(facts, value.node, context.is_native));
    return is_there ? std::string() : found.why_not;
  };
}

static Status verified(const Graph& graph, const std::string& when) {
  Status status = verify(graph);
  return status.code() == Code::kInternal ? std::move(status).prefixed(when + ": ") : status;
}

// Whether the graph only moves and packs params, as most pieces of the prologue do. The passes have run on its nodes
// already, in the graph that it was cut out of: views and packing give them no new work.
static bool is_piece_of_views(const Graph& graph) {
  auto is_view = [&](const Node& node) {
    const OpInfo& info = graph.info(node);
    return info.is(kLeaf) || (info.is(kView) && info.primitive()) || node.op == Op::kPrepack;
  };
  return graph.is_prologue() && std::ranges::all_of(graph.nodes(), is_view);
}

static Result<Graph> run_passes(const Graph& given, const Device& device, const Device* fallback,
                                const CompileOptions& options, RewriteReport& report, const Host* host) {
  bool only_checks = is_piece_of_views(given);
  auto is_skipped = [&](std::string_view pass) {
    return contains(options.skip, pass) || (only_checks && pass != "check-supported");
  };
  PassContext context;
  set_context(context, device, fallback, options);
  context.may_widen = !is_skipped("widen");
  context.report = &report;
  Graph graph = RLX_TRY(ready_for_passes(given));
  size_t number = 0;
  RLX_TRY(dump(graph, options, number, "given"));
  for (const auto& pass : kPasses) {
    if (is_skipped(pass.name)) continue;
    if (host) RLX_TRY(host->progress("compile", static_cast<double>(&pass - kPasses) / std::size(kPasses)));
    Stopwatch watch;
    RLX_TRY(run_pass(pass, graph, context));
    context.may_widen &= pass.run != widen_halves;  // what a later rule makes is not widened any more
    report.passes.push_back({std::string(pass.name), watch.ms(), graph.nodes().size()});
    if (host) log_pass(*host, report.passes.back());
    if (options.verify_each) RLX_TRY(verified(graph, format("after the pass '{}'", pass.name)));
    RLX_TRY(dump(graph, options, ++number, pass.name));
  }
  if (!options.verify_each) RLX_TRY(verified(graph, "after all passes"));
  RLX_TRY(check_expected(options, report));
  return graph;
}

Result<std::shared_ptr<const CompiledGraph>> compile(const Graph& given, Device& device, CompileOptions options,
                                                     const Host* host, Device* fallback) {
  RLX_TRY(check_outputs(given));
  RLX_TRY(check_sizes(given, options.dims));
  Stopwatch whole;
  auto source = std::make_shared<CompiledGraph>();
  source->aliases = RLX_TRY(find_aliases(given, options.alias));
  Graph graph = RLX_TRY(run_passes(given, device, fallback, options, source->report, host));
  source->device = &device;
  source->fallback = fallback;
  auto kernel_of = [&](const Facts& facts, uint32_t node) {
    return find_kernel(device, fallback, options, facts, node);
  };
  auto note = [&](std::string_view pass, const Stopwatch& watch, size_t made) {
    source->report.passes.push_back({std::string(pass), watch.ms(), made});
    if (host) log_pass(*host, source->report.passes.back());
  };
  auto alignment = static_cast<int64_t>(device.info().alignment);
  if (fallback) alignment = std::max(alignment, static_cast<int64_t>(fallback->info().alignment));
  Stopwatch lowering;
  source->lowered =
      RLX_TRY(lower(std::move(graph),
                    {.kernels = options.kernels, .alignment = alignment, .whole = !device.info().prologue}, kernel_of));
  note("lower", lowering, source->lowered->graph.nodes().size());
  Stopwatch splitting;
  source->pieces = RLX_TRY(split_prologue(*source->lowered));
  note("prologue", splitting, source->pieces.size());
  source->options = std::move(options);
  if (!host) return std::shared_ptr<const CompiledGraph>(std::move(source));
  host->log(LogLevel::kTrace, "compile", [&] {
    return format("compiled the graph '{}' for {}: {}, {:.3} ms", given.name(), device.info().name,
                  plural(source->graph().nodes().size(), "node"), whole.ms());
  });
  log_kernels(*source, *host);
  RLX_TRY(host->progress("compile", 1));
  return std::shared_ptr<const CompiledGraph>(std::move(source));
}

// "needs 300 bytes, memory.limit is 100", and a line with the three largest: the memory report has them all, those of
// bodies too.
static Status above_limit(const CompiledGraph& source, const Plan& plan, int64_t bytes) {
  std::vector<std::pair<int64_t, std::string>> buffers;
  for (const MemoryPart& part : memory_parts(plan))
    if (part.region == "arena" || part.region == "sized") buffers.emplace_back(part.bytes, part.text());
  for (const Resident& resident : source.lowered->residents) {
    if (!resident.bytes()) continue;
    const Graph& graph = resident.scope->graph;
    std::string reader = resident.form ? " for " + graph.describe(resident.reader) : "";
    buffers.emplace_back(resident.bytes(), graph.describe(resident.value.node) + reader);
  }
  auto end = buffers.begin() + static_cast<ptrdiff_t>(std::min<size_t>(buffers.size(), 3));
  std::partial_sort(buffers.begin(), end, buffers.end(), [](auto& a, auto& b) { return a.first > b.first; });
  std::string largest;
  for (auto it = buffers.begin(); it != end; ++it)
    largest +=
        format("{}{} {}", largest.empty() ? "" : ", ", it->second, plural(static_cast<size_t>(it->first), "byte"));
  int64_t limit = source.options.memory_limit;
  return Status(Code::kNoMemory, format("the plan needs {} bytes, memory.limit is {}\nthe largest: {}", bytes, limit,
                                        largest.empty() ? "none" : largest))
      .with("value", "memory.limit")
      .with("expected", format("at most {}", limit))
      .with("got", std::to_string(bytes));
}

Result<std::shared_ptr<const Plan>> plan_for(const CompiledGraph& source, const UpperSizes& upper, const Host* host) {
  Stopwatch watch;
  std::shared_ptr<const Plan> plan = RLX_TRY(make_plan(source.lowered, upper, source.aliases));
  int64_t bytes = plan->arena_bytes + plan->sized_bytes + source.lowered->prepared_bytes();
  if (bytes > source.options.memory_limit) return above_limit(source, *plan, bytes);
  if (host)
    host->log(LogLevel::kTrace, "plan", [&] {
      std::string sizes;
      for (const PlanSymbol& symbol : plan->symbols)
        if (!symbol.is_open) sizes += format("{}{} <= {}", sizes.empty() ? "" : ", ", symbol.name, symbol.upper);
      return format("planned '{}' for {}: {}, {} bytes, {:.3} ms", source.graph().name(),
                    sizes.empty() ? "fixed sizes" : sizes, plural(plan->steps.size(), "step"), bytes, watch.ms());
    });
  return plan;
}

}  // namespace rlx
