// SPDX-License-Identifier: Apache-2.0
// Rows written into an axis: the loop over WriteRowsArgs.
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/movement.h"
#include "backends/cpu/kernels/places.h"
#include "base/visit.h"
#include "ops/fold.h"

namespace rlx::cpu {

namespace {

constexpr int64_t kPartBytes = 1 << 17;

// Integers wrap, an i32 as an i32.
int64_t add(const WriteRowsArgs& args, int64_t a, int64_t b) {
  auto sum = static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  return args.index_is_i64 ? sum : static_cast<int32_t>(sum);
}

// The target of row i as the op defines it, not yet checked.
int64_t target_of(const WriteRowsArgs& args, int64_t b, int64_t i) {
  if (args.from == WriteRowsArgs::kIndex) return index_at(args, i);
  int64_t at = index_at(args, args.per_batch ? b : 0);
  if (!args.wraps) {
    at = add(args, at < 0 ? add(args, at, args.n) : at, i);
    return at < 0 ? add(args, at, -args.n) : at;  // before the axis: find_place must not count from the end again
  }
  at = add(args, at, i);
  if (args.n == 0) return 0;
  return at % args.n < 0 ? at % args.n + args.n : at % args.n;
}

// The row that row i of batch b goes to, or -1.
BadIndex find_row(const WriteRowsArgs& args, int64_t b, int64_t i, int64_t& at) {
  if (args.from != WriteRowsArgs::kTuple) {
    int64_t index = target_of(args, b, i);
    return find_place(args.bounds, index, args.n, at)
               ? kAllGood
               : BadIndex{index, args.per_batch ? b * args.count + i : i, args.n};
  }
  at = 0;
  for (int32_t k = 0; k < args.depth; k++) {
    int64_t position = (b * args.count + i) * args.depth + k, one = 0, index = index_at(args, position);
    if (!find_place(args.bounds, index, args.tuple_dims[k], one)) return {index, position, args.tuple_dims[k]};
    at = one < 0 || at < 0 ? -1 : at * args.tuple_dims[k] + one;
  }
  return kAllGood;
}

// Rows of single elements, as in gather_singles.
template <size_t kBytes, class Index>
BadIndex write_singles_at(const WriteRowsArgs& args, int64_t slice, int64_t first, int64_t last) {
  constexpr auto kSize = static_cast<int64_t>(kBytes);
  const auto* index = static_cast<const Index*>(args.index);
  const std::byte* rows = args.rows + slice * args.count * kSize;
  std::byte* y = args.y + slice * args.n * kSize;
  for (int64_t i = 0; i < args.count; i++) {
    int64_t at = index[i];
    bool is_inside = at >= 0 && at < args.n;
    if (!is_inside && !find_place(args.bounds, index[i], args.n, at)) return {index[i], i, args.n};
    if (at >= first && at < last) std::memcpy(y + at * kSize, rows + i * kSize, kBytes);
  }
  return kAllGood;
}
template <size_t kBytes>
BadIndex write_singles(const WriteRowsArgs& args, int64_t slice, int64_t first, int64_t last) {
  return args.index_is_i64 ? write_singles_at<kBytes, int64_t>(args, slice, first, last)
                           : write_singles_at<kBytes, int32_t>(args, slice, first, last);
}

// Positions [first, last) of one [b, m].
BadIndex write_slice(const WriteRowsArgs& args, int64_t slice, int64_t first, int64_t last) {
  int64_t b = slice / args.mid;
  if (args.x != args.y && last > first && args.bytes)
    std::memcpy(args.y + (slice * args.n + first) * args.bytes, args.x + (slice * args.n + first) * args.bytes,
                static_cast<size_t>((last - first) * args.bytes));
  if (args.from == WriteRowsArgs::kIndex && !args.fold) {
    switch (args.bytes) {
      case 1: return write_singles<1>(args, slice, first, last);
      case 2: return write_singles<2>(args, slice, first, last);
      case 4: return write_singles<4>(args, slice, first, last);
      case 8: return write_singles<8>(args, slice, first, last);
      default: break;
    }
  }
  for (int64_t i = 0; i < args.count; i++) {
    int64_t at = -1;
    if (BadIndex bad = find_row(args, b, i, at); bad.n >= 0) return bad;
    if (at < first || at >= last || !args.bytes) continue;
    std::byte* to = args.y + (slice * args.n + at) * args.bytes;
    const std::byte* row = args.rows + (slice * args.count + i) * args.bytes;
    if (args.fold)
      args.fold(to, row, args.bytes);
    else
      std::memcpy(to, row, static_cast<size_t>(args.bytes));
  }
  return kAllGood;
}

constexpr DTypeSet kFolded = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8,
                              DType::kU8,  DType::kI16, DType::kU16, DType::kI32,  DType::kU32,
                              DType::kI64, DType::kU64, DType::kBool};

template <class T, Fold::Kind kKind>
void fold_row(std::byte* to, const std::byte* from, int64_t bytes) {
  auto* y = reinterpret_cast<T*>(to);
  const auto* row = reinterpret_cast<const T*>(from);
  constexpr Fold fold{kKind};
  for (int64_t i = 0; i < bytes / static_cast<int64_t>(sizeof(T)); i++)
    y[i] = T(fold(static_cast<Compute<T>>(y[i]), static_cast<Compute<T>>(row[i])));
}

}  // namespace

// A slice that is copied may be cut if it has so few indices that each part can check all of them again.
void cut_rows(WriteRowsArgs& args) {
  int64_t whole = (args.x == args.y ? std::min(args.count, args.n) : args.n) * args.bytes;
  args.slices = std::max<int64_t>(1, kPartBytes / std::max<int64_t>(1, whole + args.count));
  args.blocks = 1;
  if (args.x != args.y && args.slices == 1)
    args.blocks = std::clamp<int64_t>(std::min(whole / kPartBytes, args.n / (1 + 4 * args.count)), 1, 1024);
}

int64_t write_rows_parts(const WriteRowsArgs& args) {
  return ceil_div(args.batch * args.mid, args.slices) * args.blocks;
}

BadIndex write_rows(const WriteRowsArgs& args, int64_t begin, int64_t end) {
  for (int64_t part = begin; part < end; part++) {
    int64_t slice = part / args.blocks * args.slices, block = part % args.blocks;
    int64_t rows = ceil_div(args.n, args.blocks), first = std::min(block * rows, args.n);
    int64_t last = std::min(first + rows, args.n);
    for (int64_t end_slice = std::min(slice + args.slices, args.batch * args.mid); slice < end_slice; slice++)
      if (BadIndex bad = write_slice(args, slice, first, last); bad.n >= 0) return bad;
  }
  return kAllGood;
}

bool folds_exactly(std::string_view reduction, DType dtype) {
  return !is_float(dtype) || dtype == DType::kF64 || reduction == "max" || reduction == "min";
}

FoldRowFn row_fold(std::string_view reduction, DType dtype) {
  if (!kFolded.has(dtype)) return nullptr;
  return visit<kFolded>(dtype, [&]<class T>() -> FoldRowFn {
    switch (Fold::named(reduction).kind) {
      case Fold::kSum: return fold_row<T, Fold::kSum>;
      case Fold::kProd: return fold_row<T, Fold::kProd>;
      case Fold::kMax: return fold_row<T, Fold::kMax>;
      default: return fold_row<T, Fold::kMin>;
    }
  });
}

}  // namespace rlx::cpu
