// SPDX-License-Identifier: Apache-2.0
// The reductions of every instruction set, and the table that chooses among them.
#include "backends/cpu/kernels/reduce.h"

#include <algorithm>
#include <type_traits>

#include "base/visit.h"

namespace rlx::cpu {

static constexpr DTypeSet kReduced = dtypes::I | DTypeSet{DType::kF32, DType::kF64};
static constexpr int64_t kResultTile = 256;       // results side by side
static constexpr int64_t kPieceElements = 32768;  // at least, of a row that is cut

static int64_t result_tiles(const ReduceArgs& p) {
  return ceil_div(p.inner, kResultTile);
}

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

bool cut_rows(ReduceArgs& args, ReduceArgs& pieces, void* partial) {
  int64_t kept = args.kept.count(), each = args.folded.count() * args.inner;  // of a term of a row, elements
  if (kept * each == 0 || args.kept.rank == static_cast<int32_t>(kMaxRank)) return false;
  int64_t least = ceil_div(kPieceElements, each);
  Pieces cuts = cut(args.n, kept * result_tiles(args), least, args.inner == 1 ? 64 : 1);
  if (cuts.count == 1) return false;
  pieces = args;
  pieces.y = partial;
  pieces.root = false;
  pieces.n = cuts.size;
  pieces.row_terms = args.n;
  pieces.kept.dims[pieces.kept.rank] = cuts.count;
  pieces.kept.strides[pieces.kept.rank++] = cuts.size * args.inner;
  args.x = partial;
  args.squares = false;
  args.n = cuts.count;
  args.folded = {};
  args.kept.rank = 1;
  args.kept.dims[0] = kept;
  args.kept.strides[0] = cuts.count * args.inner;
  return true;
}

size_t partial_bytes(double elements, double results) {
  if (elements < 2 * kPieceElements) return 0;
  constexpr size_t kMaxParts = kManyParts, kLargestElement = 8;
  return kMaxParts * kLargestElement * static_cast<size_t>(std::min<double>(results, kResultTile));
}

const ReduceFns& reduce_fns(Isa isa) {
  static constexpr const ReduceFns* kTable[kIsaCount] = {&baseline::kReduce, &avx2::kReduce, &avx512::kReduce};
  return *kTable[static_cast<int>(isa)];
}

}  // namespace rlx::cpu
