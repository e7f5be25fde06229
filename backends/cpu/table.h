// SPDX-License-Identifier: Apache-2.0
// The CPU's kernel table: per op an ordered list of rows, the best first; the last row of every primitive is its
// typed `eval`, so every op runs and kernels only make it fast.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "device/device.h"
#include "plan/plan.h"

namespace rlx::cpu {

struct Caps;  // what rows may know about this machine: caps.h

// One step at its present sizes and places. Absent operands test false.
struct StepView {
  const Plan& plan;
  const Step& step;
  const Node& node;
  std::span<const View> in, out;
  std::byte* scratch = nullptr;
  const int64_t* symbols = nullptr;  // current sizes, by symbol of the plan; does not move
  const void* compiled = nullptr;    // what the row's `compile` made
};

using RunFn = Status (*)(const void* args, int64_t begin, int64_t end);

// How a step is launched: in phases that follow one another, most often in one. The parts of a phase depend on sizes
// only and may run in any order, anywhere; a later phase finds what all parts of the earlier ones have written.
struct Launch {
  struct Phase {
    RunFn run;
    int64_t parts;
    double nanoseconds;  // of all parts on one thread, about
    bool operator==(const Phase&) const = default;
  };
  static constexpr size_t kMaxPhases = 3;
  StaticVector<Phase, kMaxPhases> phases;
  void then(RunFn run, int64_t parts, double nanoseconds) { phases.push_back({run, parts, nanoseconds}); }
  bool operator==(const Launch&) const = default;
};

struct CpuKernel : Kernel {
  size_t (*args_bytes)(const Step&) = nullptr;
  // Fills the argument block, which is trivially destructible and aligned to 16, and says what runs over it. Allocates
  // nothing.
  void (*encode)(const StepView&, const Caps&, void* args, Launch&) = nullptr;
  bool keeps_denormals = true;  // false: FTZ and DAZ are set around it
  bool may_fail = false;        // by the contents of its operands: it runs even if its results have no elements
  // Makes data of a step that do not depend on sizes, once per program.
  std::shared_ptr<const void> (*compile)(const Graph&, const Node&) = nullptr;
  // For a step that decides sizes: sets them, by symbol of the plan, before the step is encoded and run.
  Status (*measure)(const StepView&, FunctionRef<Status(uint32_t symbol, int64_t size)>) = nullptr;
};

class Table {
 public:
  explicit Table(const OpTable& ops);
  std::span<const CpuKernel> rows(Op op) const;
  std::vector<std::string_view> names(Op op) const;  // of its rows, except for `eval`
  Found find(const KernelQuery&) const;

 private:
  std::vector<std::vector<CpuKernel>> by_op_;
};

// A lookup of the present sizes of a plan. Both arguments must outlive it.
SymbolLookup lookup_of(const Plan& plan, const int64_t* symbols);

extern const CpuKernel kCopyKernel;         // of steps without a kernel
CpuKernel eval_kernel(const OpInfo& info);  // the reference row of a primitive
// What that row runs, for a row that needs it at some contents: the size of its arguments, the arguments, the run.
size_t eval_bytes(const Step&);
void fill_eval(const StepView&, void* args);
Status run_eval(const void* args, int64_t begin, int64_t end);

using RowsByOp = std::vector<std::vector<CpuKernel>>;
void add_product_rows(RowsByOp&);
void add_int8_rows(RowsByOp&);
void add_int8_conv_rows(RowsByOp&);
void add_integer_rows(RowsByOp&);
void add_nbits_rows(RowsByOp&);
void add_conv_rows(RowsByOp&);
void add_norm_rows(RowsByOp&);
void add_attention_rows(RowsByOp&);
void add_typed_bytes_rows(RowsByOp&);
void add_region_rows(RowsByOp&);
void add_typed_rows(RowsByOp&);
void add_movement_rows(RowsByOp&);
void add_scatter_rows(RowsByOp&);
void add_reduce_rows(RowsByOp&);
void add_window_rows(RowsByOp&);
void add_gather_sum_rows(RowsByOp&);
void add_quantize_rows(RowsByOp&);
void add_select_rows(RowsByOp&);
void add_keep_boxes_rows(RowsByOp&);
void add_nonzero_rows(RowsByOp&);
void add_col2im_rows(RowsByOp&);
void add_grid_sample_rows(RowsByOp&);
void add_roi_align_rows(RowsByOp&);

}  // namespace rlx::cpu
