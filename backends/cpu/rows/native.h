// SPDX-License-Identifier: Apache-2.0
// What rows over the kernels' loops share. An argument block is a loop and its arguments, both plain data.
#pragma once

#include <new>
#include <type_traits>

#include "backends/cpu/caps.h"
#include "backends/cpu/table.h"

namespace rlx::cpu {

template <class Args>
struct Loaded {
  Loop<Args> loop;
  Args args;
  static_assert(std::is_trivially_destructible_v<Args>);
};

template <class Args>
size_t loaded_bytes(const Step&) {
  return sizeof(Loaded<Args>);
}

template <class Args>
Status run_loaded(const void* block, int64_t begin, int64_t end) {
  const auto& it = *static_cast<const Loaded<Args>*>(block);
  it.loop.run(it.args, begin, end);
  return {};
}

template <class Args>
void load(void* block, const Loop<Args>& loop, const Args& args, double nanoseconds, Launch& launch) {
  const auto& it = *new (block) Loaded<Args>{loop, args};
  launch = {it.loop.parts(it.args), nanoseconds};
}

template <class T>
T* data_or_null(const View& view) {
  return view ? view.as<T>() : nullptr;
}

inline std::vector<CpuKernel>& rows_of(RowsByOp& by_op, Op op) {
  return by_op[static_cast<size_t>(op)];
}

inline bool all_f32(const KernelQuery& query) {
  for (size_t i = 0; i < query.node.in.size(); i++)
    if (query.has(i) && query.type(i).dtype != DType::kF32) return false;
  return query.node.out[0].dtype == DType::kF32;
}

}  // namespace rlx::cpu
