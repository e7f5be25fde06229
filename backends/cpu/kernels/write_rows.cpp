// SPDX-License-Identifier: Apache-2.0
// Rows written into an axis: the loop over WriteRowsArgs.
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/crowd.h"
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
int64_t position_of(const WriteRowsArgs& args, int64_t b, int64_t i) {
  int64_t at = index_at(args, args.per_batch ? b : 0);
  if (!args.wraps) {
    at = add(args, at < 0 ? add(args, at, args.n) : at, i);
    return at < 0 ? add(args, at, -args.n) : at;  // before the axis: find_place must not count from the end again
  }
  if (args.n == 0) return 0;
  int64_t first = at % args.n;
  return ((first < 0 ? first + args.n : first) + i) % args.n;
}

// ---- the places of rows [i, i + count) of batch b: of each its row in y, or -1 ----

BadIndex find_positions(const WriteRowsArgs& args, int64_t b, int64_t i, int64_t count, int64_t* at) {
  for (int64_t k = 0; k < count; k++)
    if (int64_t index = position_of(args, b, i + k); !find_place(args.bounds, index, args.n, at[k]))
      return {index, args.per_batch ? b * args.count + i + k : i + k, args.n};
  return kAllGood;
}

template <class Index>
BadIndex find_tuples(const WriteRowsArgs& args, int64_t b, int64_t i, int64_t count, int64_t* at) {
  const int64_t first = (b * args.count + i) * args.depth;
  const auto* index = static_cast<const Index*>(args.index) + first;
  for (int64_t k = 0; k < count; k++) {
    int64_t place = 0;
    for (int32_t axis = 0; axis < args.depth; axis++, index++) {
      int64_t one = *index, n = args.tuple_dims[axis];
      bool is_inside = one >= 0 && one < n;  // the usual case: no call is needed
      if (!is_inside && !find_place(args.bounds, *index, n, one)) return {*index, first + k * args.depth + axis, n};
      place = one < 0 || place < 0 ? -1 : place * n + one;
    }
    at[k] = place;
  }
  return kAllGood;
}

template <class Index>
BadIndex find_indices(const WriteRowsArgs& args, int64_t i, int64_t count, int64_t* at) {
  const auto* index = static_cast<const Index*>(args.index) + i;
  for (int64_t k = 0; k < count; k++) {
    at[k] = index[k];
    bool is_inside = at[k] >= 0 && at[k] < args.n;
    if (!is_inside && !find_place(args.bounds, index[k], args.n, at[k])) return {index[k], i + k, args.n};
  }
  return kAllGood;
}

BadIndex find_rows(const WriteRowsArgs& args, int64_t b, int64_t i, int64_t count, int64_t* at) {
  switch (args.from) {
    case WriteRowsArgs::kPosition: return find_positions(args, b, i, count, at);
    case WriteRowsArgs::kIndex:
      return (args.index_is_i64 ? find_indices<int64_t> : find_indices<int32_t>)(args, i, count, at);
    default: return (args.index_is_i64 ? find_tuples<int64_t> : find_tuples<int32_t>)(args, b, i, count, at);
  }
}

// ---- writing ----

constexpr int64_t kBlock = 256;  // rows whose places are found together

// Rows to places [first, last) of y; others are left out.
void write_block(const WriteRowsArgs& args, std::byte* y, const std::byte* rows, int64_t* at, int64_t count,
                 int64_t first, int64_t last) {
  if (args.write) {
    if (first > 0 || last < args.n)
      for (int64_t k = 0; k < count; k++) at[k] = at[k] >= first && at[k] < last ? at[k] : -1;
    return args.write(y, at, rows, count);
  }
  for (int64_t k = 0; k < count; k++, rows += args.bytes) {
    if (at[k] < first || at[k] >= last) continue;
    std::byte* to = y + at[k] * args.bytes;
    if (args.fold)
      args.fold(to, rows, args.bytes);
    else
      std::memcpy(to, rows, static_cast<size_t>(args.bytes));
  }
}

// Positions [first, last) of one [b, m].
BadIndex write_slice(const WriteRowsArgs& args, int64_t slice, int64_t first, int64_t last) {
  std::byte* y = args.y + slice * args.n * args.bytes;
  if (args.x != args.y && last > first && args.bytes)
    std::memcpy(y + first * args.bytes, args.x + (slice * args.n + first) * args.bytes,
                static_cast<size_t>((last - first) * args.bytes));
  int64_t at[kBlock];
  for (int64_t i = 0; i < args.count; i += kBlock) {
    int64_t count = std::min(kBlock, args.count - i);
    if (BadIndex bad = find_rows(args, slice / args.mid, i, count, at); bad.n >= 0) return bad;
    if (args.bytes) write_block(args, y, args.rows + (slice * args.count + i) * args.bytes, at, count, first, last);
  }
  return kAllGood;
}

// Vectors of 16 bytes: the fold of each lane is that of `Fold`, and integers wrap.
template <Fold::Kind kKind, class V>
V folded(V a, V b) {
  if constexpr (kKind == Fold::kSum) return a + b;
  if constexpr (kKind == Fold::kProd) return a * b;
  return ((kKind == Fold::kMax ? a < b : b < a) | (b != b)) ? b : a;  // NaN wins
}
template <class T>
constexpr bool kHasVectors = std::is_floating_point_v<T> || std::is_integral_v<T>;
template <class T, Fold::Kind kKind>
using Lane = std::conditional_t<std::is_integral_v<T> && (kKind == Fold::kSum || kKind == Fold::kProd),
                                std::make_unsigned<T>, std::type_identity<T>>;

template <class T, Fold::Kind kKind>
void fold_row(std::byte* to, const std::byte* from, int64_t bytes) {
  int64_t done = 0;
  if constexpr (kHasVectors<T>) {
    using V [[gnu::vector_size(16)]] = typename Lane<T, kKind>::type;
    for (V y, row; done + 16 <= bytes; done += 16) {
      std::memcpy(&y, to + done, sizeof y);
      std::memcpy(&row, from + done, sizeof row);
      y = folded<kKind>(y, row);
      std::memcpy(to + done, &y, sizeof y);
    }
  }
  constexpr Fold fold{kKind};
  for (constexpr auto kSize = static_cast<int64_t>(sizeof(T)); done < bytes; done += kSize) {
    auto& y = *reinterpret_cast<T*>(to + done);
    y = T(fold(static_cast<Compute<T>>(y), static_cast<Compute<T>>(*reinterpret_cast<const T*>(from + done))));
  }
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

bool crowds_rows(const WriteRowsArgs& args) {
  Crowd crowd;
  int64_t at[kBlock];
  for (int64_t b = 0; b < args.batch; b++)
    for (int64_t i = 0; i < args.count; i += kBlock) {
      int64_t count = std::min(kBlock, args.count - i);
      if (find_rows(args, b, i, count, at).n >= 0) return false;  // write_rows tells of it
      if (crowd.exceeds_with(b * args.n, at, count)) return true;
    }
  return false;
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
