// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/table.h"
#include "base/contains.h"

#include <algorithm>

namespace rlx::cpu {

Table::Table(const OpTable& ops) {
  size_t last = 0;
  for (const OpInfo& info : ops.rows()) last = std::max<size_t>(last, info.id);
  by_op_.resize(last + 1);
  for (auto add :
       {add_product_rows, add_int8_rows,        add_int8_conv_rows, add_integer_rows,     add_nbits_rows,
        add_conv_rows,    add_norm_rows,        add_attention_rows, add_typed_bytes_rows, add_region_rows,
        add_typed_rows,   add_movement_rows,    add_scatter_rows,   add_reduce_rows,      add_gather_sum_rows,
        add_window_rows,  add_quantize_rows,    add_select_rows,    add_keep_boxes_rows,  add_col2im_rows,
        add_nonzero_rows, add_grid_sample_rows, add_roi_align_rows})
    add(by_op_);
  for (const OpInfo& info : ops.rows())
    if (info.eval) by_op_[info.id].push_back(eval_kernel(info));
}

std::span<const CpuKernel> Table::rows(Op op) const {
  auto id = static_cast<size_t>(op);
  return id < by_op_.size() ? std::span<const CpuKernel>(by_op_[id]) : std::span<const CpuKernel>();
}

std::vector<std::string_view> Table::names(Op op) const {
  std::vector<std::string_view> names;
  for (const CpuKernel& row : rows(op))
    if (row.path != Path::kReference && !contains(names, row.name)) names.push_back(row.name);
  return names;
}

// Adds "name: reason" to a list, unless it has that already.
static void add_reason(std::string& list, std::string_view name, std::string_view reason) {
  size_t before = list.size();
  if (before > 0) list += "; ";
  size_t begin = list.size();
  list.append(name).append(": ").append(reason);
  std::string_view all = list, known = all.substr(0, before);
  if (known.find(all.substr(begin)) != known.npos) list.resize(before);
}

Found Table::find(const KernelQuery& query) const {
  Found found;
  for (const CpuKernel& row : rows(query.node.op)) {
    std::string_view reason = row.refuse ? row.refuse(query) : std::string_view();
    if (query.options.dispatch == Dispatch::kReference && row.path != Path::kReference) reason = "dispatch=reference";
    if (reason.empty()) {
      found.kernel = &row;
      return found;
    }
    add_reason(found.why_not, row.name, reason);
  }
  if (found.why_not.empty()) found.why_not = "no kernel";
  return found;
}

}  // namespace rlx::cpu
