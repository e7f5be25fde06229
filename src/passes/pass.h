// SPDX-License-Identifier: Apache-2.0
// A pass: graph in, graph out. What it may ask of the compilation stands in the context, and what it did is noted
// there for the report. Invariant: a pass keeps inputs, params, outputs and their order.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/device.h"
#include "ir/graph.h"

namespace rlx {

struct PassEvent {
  std::string pass, rule, where;
  std::string missed;  // why a near miss did not fire; empty: it fired
};

struct PassContext {
  const Device* device = nullptr;  // null where a graph is optimised for no device in particular
  KernelOptions options;           // dispatch: of ops that dispatch_of does not name
  std::vector<std::pair<std::string, Dispatch>> dispatch_of;  // by op name
  std::vector<std::string> skip;                              // passes and rules to leave out
  std::string pass;                                           // the one that runs now
  std::vector<PassEvent> events;

  KernelOptions options_of(const OpInfo& info) const;
  // The device's kernel for a node of this graph; without a device composites have none.
  Found find(const Graph& graph, uint32_t node) const;
  bool skips(std::string_view rule) const;
  void fired(std::string_view rule, std::string where) {
    events.push_back({pass, std::string(rule), std::move(where), {}});
  }
  void missed(std::string_view rule, std::string where, std::string why) {
    events.push_back({pass, std::string(rule), std::move(where), std::move(why)});
  }
};

struct Pass {
  std::string_view name;
  Result<Graph> (*run)(const Graph&, PassContext&);
};

Result<Graph> expand_composites(const Graph&, PassContext&);
Result<Graph> drop_dead(const Graph&, PassContext&);
Result<Graph> check_supported(const Graph&, PassContext&);

}  // namespace rlx
