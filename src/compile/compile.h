// SPDX-License-Identifier: Apache-2.0
// The compiler: a graph becomes a compiled graph (all passes, on symbolic sizes, once), that and upper sizes become a
// plan. Invariant: a compiled graph is immutable, and no symbol's value entered it.
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
  Device* fallback = nullptr;  // runs what the device has no kernel for; null: nothing does
  CompileOptions options;
  std::shared_ptr<const Lowered> lowered;
  std::vector<SlotAlias> aliases;
  std::vector<Piece> pieces;  // of the prologue, one for each resident value
  RewriteReport report;       // what the passes did

  const Graph& graph() const { return lowered->graph; }
};

// `host`, may be null: is told of progress, passes and kernels. `fallback`, may be null: as in CompiledGraph.
Result<std::shared_ptr<const CompiledGraph>> compile(const Graph& given, Device& device, CompileOptions options,
                                                     const Host* host = nullptr, Device* fallback = nullptr);
Status check_outputs(const Graph& graph);  // RLX_E_INVALID_ARGUMENT where there is none
Result<std::shared_ptr<const Plan>> plan_for(const CompiledGraph& source, const UpperSizes& upper,
                                             const Host* host = nullptr);

std::vector<std::string_view> pass_names();  // in order

// What the device says of one node under these options; composites have no kernel where dispatch is not native.
Found find_kernel(const Device& device, const CompileOptions& options, const Facts& facts, uint32_t node);
// Where it has none for a primitive op, what the fallback says, if there is one. What a device lacks of a composite is
// its formula, which is the device's own again.
Found find_kernel(const Device& device, const Device* fallback, const CompileOptions& options, const Facts& facts,
                  uint32_t node);

// Which kernels were chosen and refused (DEBUG), and what has none but the reference's, for a word to the user (WARN).
void log_kernels(const CompiledGraph& source, const Host& host);

// Reports, as JSON.
std::string dispatch_report(const CompiledGraph& source);  // for every node the path taken, and why kernels refused
std::string passes_report(const CompiledGraph& source, const Plan& plan);
// The dispatch report of a graph that is not compiled: what would happen on this device.
std::string dispatch_report(const Graph& graph, const Device& device, const CompileOptions& options,
                            const Device* fallback = nullptr);

}  // namespace rlx
