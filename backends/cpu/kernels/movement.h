// SPDX-License-Identifier: Apache-2.0
// Loops that move elements of any type; only the folds of rows do arithmetic on them. One source for every Isa: memory
// is the limit. Strides and sizes count bytes unless they say otherwise.
#pragma once

#include <string_view>

#include "backends/cpu/loop.h"
#include "base/bounds.h"
#include "base/dtype.h"
#include "base/static_vector.h"

namespace rlx::cpu {

// to[index] = from[sum index * stride], dense row-major in dims. Elements of 1, 2, 4, 8 or 16 bytes.
struct CopyArgs {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  int64_t element = 1;
  int32_t rank = 0;
  int64_t dims[kMaxRank] = {};
  int64_t strides[kMaxRank] = {};  // of from
};
Loop<CopyArgs> copy_loop();     // a part: one block of rows
void collapse_dims(CopyArgs&);  // see collapse.h; a short contiguous row becomes one element

// Rows of `bytes` picked by index: to[o, i] = from[o, index[i]]. Indices are checked row by row, as rows are copied.
struct GatherArgs {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  const void* index = nullptr;  // of i32, or of i64
  bool index_is_i64 = false;
  int64_t outer = 1, n = 0, count = 0, bytes = 0;
  Bounds bounds = Bounds::kError;
};
constexpr int64_t kGatherPart = 64;  // rows
int64_t gather_parts(const GatherArgs&);
// The position of the first index of these parts that is out of range, or -1.
int64_t gather_rows(const GatherArgs&, int64_t begin, int64_t end);

struct BadIndex {
  int64_t value, position, n;  // n < 0: no index is bad
};
constexpr BadIndex kAllGood{0, 0, -1};

// Rows of `bytes` at index tuples: to[b, i] = from[b, index[b, i]]. A batch of `from` is the n rows over `dims`.
struct GatherTuplesArgs {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  const void* index = nullptr;  // of i32, or of i64
  bool index_is_i64 = false;
  int64_t batch = 1, count = 1, n = 1, bytes = 1;
  int32_t depth = 0;
  int64_t dims[kMaxRank] = {};
  Bounds bounds = Bounds::kError;
};
int64_t gather_tuples_parts(const GatherTuplesArgs&);
BadIndex gather_tuples(const GatherTuplesArgs&, int64_t begin, int64_t end);

// to[i] = from[i with i_axis = index[i]]; strides are of `from`, in elements. Dims of the index, of rank 1 or more.
struct GatherElementsArgs {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  const void* index = nullptr;  // of i32, or of i64
  bool index_is_i64 = false;
  int64_t element = 1;  // bytes: 1, 2, 4 or 8
  int32_t rank = 1, axis = 0;
  int64_t n = 0;  // of the axis of `from`
  int64_t dims[kMaxRank] = {}, strides[kMaxRank] = {};
  Bounds bounds = Bounds::kError;
};
int64_t gather_elements_parts(const GatherElementsArgs&);
int64_t gather_elements(const GatherElementsArgs&, int64_t begin, int64_t end);  // as gather_rows

// Single elements: replaces y[at[i]] by updates[i], or folds it into y[at[i]]; ignores i where at[i] < 0.
using WriteElementsFn = void (*)(std::byte* y, const int64_t* at, const std::byte* updates, int64_t count);
// That replaces; null unless elements have 1, 2, 4 or 8 bytes.
WriteElementsFn element_writer(int64_t bytes);
// By the name of the reduction; "none" replaces.
WriteElementsFn element_writer(std::string_view reduction, DType dtype);

// Replaces rows along an axis of x: y is x with y[b, m, at(b, i)] = rows[b, m, i], i in order. If y is x, nothing else
// is written. With `fold`, a row is folded into what y holds.
using FoldRowFn = void (*)(std::byte* y, const std::byte* row, int64_t bytes);
struct WriteRowsArgs {
  enum From : uint8_t {  // what at(b, i) is
    kPosition,           // the position plus i, in its type; below 0 it counts from the end; modulo n with `wraps`
    kIndex,              // index i
    kTuple,              // the place of index tuple i, over the axes of `tuple_dims`
  };
  const std::byte* x = nullptr;
  std::byte* y = nullptr;
  const std::byte* rows = nullptr;
  const void* index = nullptr;                                  // of i32, or of i64
  bool index_is_i64 = false, wraps = false, per_batch = false;  // per_batch: position or indices are those of each b
  From from = kIndex;
  FoldRowFn fold = nullptr;
  WriteElementsFn write = nullptr;  // if rows are single elements
  bool adds_f32 = false;
  Bounds bounds = Bounds::kError;
  int64_t batch = 1, mid = 1, n = 0, count = 0, bytes = 0;  // bytes: of a row
  int32_t depth = 0;
  int64_t tuple_dims[kMaxRank] = {};
  int64_t slices = 1, blocks = 1;  // of a part: this many [b, m], or one of this many blocks of one [b, m]
};
void cut_rows(WriteRowsArgs&);  // into parts
int64_t write_rows_parts(const WriteRowsArgs&);
BadIndex write_rows(const WriteRowsArgs&, int64_t begin, int64_t end);

// y is x with y[i with i_axis = index[i]] = updates[i], or with the update folded into it; i in row-major order. If y
// is x, nothing else is written.
struct WriteElementsArgs {
  const std::byte* x = nullptr;
  std::byte* y = nullptr;
  const std::byte* updates = nullptr;
  const void* index = nullptr;  // of i32, or of i64
  bool index_is_i64 = false;
  int64_t element = 1;  // bytes: 1, 2, 4 or 8
  int32_t rank = 1, axis = 0;
  int64_t x_dims[kMaxRank] = {}, dims[kMaxRank] = {};  // dims: of the index, and of the updates
  WriteElementsFn write = nullptr;
  Bounds bounds = Bounds::kError;
};
int64_t write_elements_parts(const WriteElementsArgs&);
BadIndex write_elements(const WriteElementsArgs&, int64_t begin, int64_t end);

// Whether one place may take more than kMaxUpdates updates. It counts in a table of bounded size, so it may say yes
// where no place does, if there are millions of updates.
inline constexpr int64_t kMaxUpdates = 511;
bool crowds_rows(const WriteRowsArgs&);
bool crowds_elements(const WriteElementsArgs&);

inline constexpr DTypeSet kFolded = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8,
                                     DType::kU8,  DType::kI16, DType::kU16, DType::kI32,  DType::kU32,
                                     DType::kI64, DType::kU64, DType::kBool};
// Folds a row into another, element by element, in the type of the rows (halves in f32); null if `reduction` is not
// "add", "mul", "max" or "min".
FoldRowFn row_fold(std::string_view reduction, DType dtype);
// Whether the fold is the same to the bit whatever the accumulator: of integers, in f64, and extremes.
bool folds_exactly(std::string_view reduction, DType dtype);

}  // namespace rlx::cpu
