// SPDX-License-Identifier: Apache-2.0
// The steps of a plan that is being made. Invariant: a step comes after the steps that make its inputs, and the
// lifetime of every buffer spans the steps that touch it.
#pragma once

#include "plan/buffers.h"
#include "plan/in_place.h"

namespace rlx {

class Steps {
 public:
  Steps(const LoweredGraph& lowered, Plan& plan, SizeTable& sizes, Buffers& buffers, const UpperSizes& upper)
      : lowered_(lowered),
        graph_(lowered.graph),
        plan_(plan),
        sizes_(sizes),
        buffers_(buffers),
        upper_(upper),
        step_of_(graph_.nodes().size(), PlanSymbol::kGiven) {}

  Status add_all();     // sized steps first; afterwards the maker of each fresh symbol is known
  void cut_segments();  // fills Plan::segments
  void place();         // sets the offsets of buffers and scratch in the arena, and of sized values

 private:
  Status add(uint32_t index);
  std::vector<Dims> upper_dims(const Node& node) const;
  bool joins_next(uint32_t step) const;
  void decide_aliases();
  std::string why_copied(const SlotAlias& alias, const SlotUses& uses) const;
  int64_t unchanged_input(size_t output) const;
  void add_output_copies();
  void add_copy(size_t output, const Access& from, uint32_t base, uint32_t buffer);
  void place_arena();
  void place_sized();
  void note_sizes(const AttrValue& value, std::vector<SizeId>& depends);
  void finish(Step step);

  const LoweredGraph& lowered_;
  const Graph& graph_;
  Plan& plan_;
  SizeTable& sizes_;
  Buffers& buffers_;
  const UpperSizes& upper_;        // for the plans of bodies
  std::vector<uint32_t> step_of_;  // by node
};

}  // namespace rlx
