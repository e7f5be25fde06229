// SPDX-License-Identifier: Apache-2.0
// The compiler: all passes run once, on symbolic sizes, and make a compiled graph. A compiled graph and upper sizes
// make a plan. Invariant: a compiled graph is immutable, and does not depend on the value of any symbol.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compile/options.h"
#include "device/device.h"
#include "ir/graph.h"
#include "passes/pass.h"
#include "passes/prologue.h"
#include "plan/plan.h"

namespace rlx {

struct CompiledGraph {
  Device* device = nullptr;    // of the env
  Device* fallback = nullptr;  // runs nodes for which the device has no kernel; null: none
  CompileOptions options;
  std::shared_ptr<const LoweredGraph> lowered;
  std::vector<SlotAlias> aliases;
  std::vector<Piece> pieces;  // of the prologue
  RewriteReport report;       // what the passes did

  const Graph& graph() const { return lowered->graph; }
};

// `host` (may be null) receives progress and logs. `fallback` (may be null): as in CompiledGraph.
Result<std::shared_ptr<const CompiledGraph>> compile(const Graph& given, Device& device, CompileOptions options,
                                                     const Host* host = nullptr, Device* fallback = nullptr);
Status check_outputs(const Graph& graph);  // RLX_E_INVALID_ARGUMENT if there is none
// Of all symbols, those of bodies included; sorted.
std::vector<std::string_view> size_names(const Graph& graph);
// Whether the graph has the sizes and slots that the options name.
Status check_options(const Graph& graph, const CompileOptions& options);
Result<std::shared_ptr<const Plan>> plan_for(const CompiledGraph& source, const UpperSizes& upper,
                                             const Host* host = nullptr);

std::vector<std::string_view> pass_names();  // in order

// The device's kernel for one node under these options, or why there is none. Composites have a kernel only if dispatch
// is native.
Found find_kernel(const Device& device, const CompileOptions& options, const Facts& facts, uint32_t node);
// The same, but a primitive op for which the device has no kernel gets that of the fallback, if there is one. A
// composite does not: it is expanded, and the device is asked about the nodes of its formula.
Found find_kernel(const Device& device, const Device* fallback, const CompileOptions& options, const Facts& facts,
                  uint32_t node);

// Logs which kernels were chosen and refused (DEBUG), and warns about nodes that run on the reference path (WARN).
void log_kernels(const CompiledGraph& source, const Host& host);

// Reports, as JSON.
std::string dispatch_report(const CompiledGraph& source);  // for every node its path, and why kernels refused it
std::string passes_report(const CompiledGraph& source, const Plan& plan);
// The dispatch report of a graph that is not compiled: what would happen on this device.
std::string dispatch_report(const Graph& graph, const Device& device, const CompileOptions& options,
                            const Device* fallback = nullptr);

}  // namespace rlx
