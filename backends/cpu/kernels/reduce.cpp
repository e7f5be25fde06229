// SPDX-License-Identifier: Apache-2.0
// The reductions of every instruction set, and the table that chooses among them.
#include "backends/cpu/kernels/reduce.h"

#include <type_traits>

#include "base/visit.h"

namespace rlx::cpu {

static constexpr DTypeSet kReduced = dtypes::I | DTypeSet{DType::kF32, DType::kF64};

}  // namespace rlx::cpu

#define RLX_KERNELS "backends/cpu/kernels/reduce.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

bool can_reduce(DType dtype) {
  return kReduced.has(dtype) || dtype == DType::kBool;
}

void set_axes(ReduceArgs& args, std::span<const int64_t> dims, uint32_t axes) {
  struct Group {
    int64_t size, stride;
    bool is_folded;
  };
  StaticVector<Group, kMaxRank> groups;  // from the last axis on; neighbours of one kind are merged
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0; stride *= dims[i]) {
    bool is_folded = axes >> i & 1;
    if (dims[i] == 1) continue;
    if (!groups.empty() && groups.back().is_folded == is_folded)
      groups.back().size *= dims[i];
    else
      groups.push_back({dims[i], stride, is_folded});
  }
  size_t next = 0;
  if (next < groups.size() && !groups[next].is_folded) args.inner = groups[next++].size;
  if (next < groups.size()) args.n = groups[next++].size;
  for (size_t i = groups.size(); i-- > next;) {  // from the first
    ReduceAxes& to = groups[i].is_folded ? args.folded : args.kept;
    to.dims[to.rank] = groups[i].size;
    to.strides[to.rank++] = groups[i].stride;
  }
}

const ReduceFns& reduce_fns(Isa isa) {
  static constexpr const ReduceFns* kTable[kIsaCount] = {&baseline::kReduce, &avx2::kReduce, &avx512::kReduce};
  return *kTable[static_cast<int>(isa)];
}

}  // namespace rlx::cpu
