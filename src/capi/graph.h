// SPDX-License-Identifier: Apache-2.0
// rlx_graph_t: a graph under construction, and the first thing that went wrong with it.
#pragma once

#include "capi/env.h"
#include "ir/graph.h"

struct rlx_graph : rlx::capi::Counted {
  rlx_graph(rlx_env* owner, rlx::Graph made) : env(owner), graph(std::move(made)), tag(next_tag()) {
    graph.set_customs(owner->customs);
  }
  const uint32_t* alive() const { return env->alive(); }
  static uint32_t next_tag();

  const rlx::capi::Ref<rlx_env> env;
  rlx::Graph graph;
  rlx::Status status;
  std::vector<std::string> open_ranks;  // inputs of a model of a file that does not say their rank; here scalars
  const uint32_t tag;                   // part of its values; repeats after millions of graphs
  std::vector<std::string> scopes;      // of rlx_graph_push_name, the outermost first
  rlx::ByName<size_t> named;            // how many ops got each name in these scopes, by the name of the first
};

namespace rlx::capi {

rlx_value_t to_c(const rlx_graph_t& graph, Value value);  // 0 if it does not fit the bits of rlx_value_t
// RLX_ABSENT is kAbsent; 0 and values of other graphs are errors. `what` the value is, for the message.
Result<Value> from_c(const rlx_graph_t& graph, rlx_value_t value, std::string_view what = "the value");
Result<Value> present_from_c(const rlx_graph_t& graph, rlx_value_t value);  // RLX_ABSENT is an error too

}  // namespace rlx::capi
