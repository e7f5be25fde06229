// SPDX-License-Identifier: Apache-2.0
// The buffers of a plan that is being made, and where each value lies in them. Invariant: a value that a step makes
// has exactly one buffer; views, inputs and resident values have none.
#pragma once

#include "plan/size_table.h"
#include "plan/views.h"

namespace rlx {

class Buffers {
 public:
  Buffers(const LoweredGraph& lowered, Plan& plan, SizeTable& sizes);

  Status add_all();
  uint32_t add_copy(size_t output);  // a copy of the output's value, in the arena
  // The output is not written directly after all. Another output slot of the same value may be instead.
  void release_output(size_t output);
  const Layout& layout(Value value) const { return layouts_.of[value.node][value.output]; }
  const std::optional<Layout>& copy_of(uint32_t node) const { return layouts_.copy_of[node]; }
  bool is_whole(Value value) const;                                // the value covers all of its root
  int64_t input_behind(size_t output) const;                       // the input whose bytes an output shows; -1: none
  bool is_left_out(Value value) const;                             // nobody reads it, and its kernel may omit it
  bool is_direct(size_t output) const { return direct_[output]; }  // a step writes the output slot itself
  int64_t alias_of(size_t output) const { return alias_of_[output]; }  // the input that it is written over; -1: none

  Access access(Value value) { return access(lowered_.graph.type(value), layout(value)); }
  Access access(const ValueType& type, const Layout& layout);
  Access input_access(uint32_t reader, size_t input);  // in the form that the reader's kernel takes

 private:
  void claim_outputs();
  void claim_output(size_t output);

  const LoweredGraph& lowered_;
  const Graph& graph_;
  Plan& plan_;
  SizeTable& sizes_;
  Layouts layouts_;
  ByValue<uint32_t> uses_;
  ByValue<uint32_t> buffer_of_;
  ByValue<int64_t> output_of_;     // the output slot it is written to, or -1
  std::vector<uint32_t> slot_of_;  // by node that is an input
  std::vector<bool> direct_;       // by output slot
  std::vector<int64_t> alias_of_;  // by output slot
};

}  // namespace rlx
