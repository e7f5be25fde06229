// SPDX-License-Identifier: Apache-2.0
// Single elements written or folded into x, each at an index of its own: the loop over WriteElementsArgs. A slab is
// what lies behind one place of the axes before `axis`; no update leaves its slab. In a slab, the rows of the index's
// last axis are walked in blocks: first the places of a block are found, then its updates are written.
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/crowd.h"
#include "backends/cpu/kernels/movement.h"
#include "backends/cpu/kernels/places.h"
#include "base/visit.h"
#include "ops/fold.h"

namespace rlx::cpu {

namespace {

constexpr int64_t kPartElements = 1 << 14, kBlock = 256;

struct Slabs {
  explicit Slabs(const WriteElementsArgs& args) : args(args) {
    last_is_axis = args.axis + 1 == args.rank;
    length = args.dims[args.rank - 1];
    for (int32_t d = args.rank - 1; d >= 0; d--) {
      if (d == args.axis) stride = size;
      if (d >= args.axis) size *= args.x_dims[d];
      if (d < args.axis) count *= args.x_dims[d];
      if (d >= args.axis && d + 1 < args.rank) rows *= args.dims[d];
    }
  }
  int64_t in_part() const { return std::max<int64_t>(1, kPartElements / std::max<int64_t>(1, size)); }

  // The number of the slab among those of the index, or -1 if the index has none there.
  int64_t in_index(int64_t slab) const {
    int64_t number = 0, scale = 1;
    for (int32_t d = args.axis - 1; d >= 0; slab /= args.x_dims[d--]) {
      int64_t i = slab % args.x_dims[d];
      if (i >= args.dims[d]) return -1;
      number += i * scale;
      scale *= args.dims[d];
    }
    return number;
  }
  // The offset in x's slab of row r of the index, but for the part of the axis.
  int64_t offset_of_row(int64_t r) const {
    int64_t offset = 0, x_stride = last_is_axis ? 1 : args.x_dims[args.rank - 1];
    for (int32_t d = args.rank - 2; d >= args.axis; d--) {
      if (d != args.axis) offset += r % args.dims[d] * x_stride;
      r /= args.dims[d];
      x_stride *= args.x_dims[d];
    }
    return offset;
  }

  const WriteElementsArgs& args;
  int64_t count = 1, size = 1;   // of x's slabs, and of their elements
  int64_t stride = 1;            // of the axis in x
  int64_t rows = 1, length = 1;  // of the index, in a slab
  bool last_is_axis = true;
};

// The places of indices [0, count) of a row in x's slab, or -1. Returns the first bad one, or `count`.
template <class Index>
int64_t find_places(const Slabs& slabs, const Index* index, int64_t count, int64_t place, int64_t* at) {
  const int64_t n = slabs.args.x_dims[slabs.args.axis], stride = slabs.stride, step = slabs.last_is_axis ? 0 : 1;
  for (int64_t i = 0; i < count; i++, place += step) {
    int64_t one = index[i];
    bool is_inside = one >= 0 && one < n;  // the usual case: no call is needed
    if (!is_inside && !find_place(slabs.args.bounds, index[i], n, one)) return i;
    at[i] = one < 0 ? -1 : one * stride + place;
  }
  return count;
}

// Calls write(at, first, count) for each block of a slab; `at` holds places in x's slab, `first` is the block's first
// update.
template <class Write>
BadIndex walk_slab(const Slabs& slabs, int64_t slab, Write write) {
  const WriteElementsArgs& args = slabs.args;
  const int64_t number = slabs.in_index(slab);
  if (number < 0) return kAllGood;
  int64_t at[kBlock];
  for (int64_t r = 0; r < slabs.rows; r++) {
    int64_t row = (number * slabs.rows + r) * slabs.length, offset = slabs.offset_of_row(r);
    for (int64_t i = 0; i < slabs.length; i += kBlock) {
      int64_t count = std::min(kBlock, slabs.length - i), place = slabs.last_is_axis ? offset : offset + i;
      int64_t good = args.index_is_i64
                         ? find_places(slabs, static_cast<const int64_t*>(args.index) + row + i, count, place, at)
                         : find_places(slabs, static_cast<const int32_t*>(args.index) + row + i, count, place, at);
      if (good < count) return {index_at(args, row + i + good), row + i + good, args.x_dims[args.axis]};
      if (!write(at, row + i, count)) return kAllGood;
    }
  }
  return kAllGood;
}

template <class T>
void write_each(std::byte* to, const int64_t* at, const std::byte* from, int64_t count) {
  auto* y = reinterpret_cast<T*>(to);
  const auto* updates = reinterpret_cast<const T*>(from);
  for (int64_t i = 0; i < count; i++)
    if (at[i] >= 0) y[at[i]] = updates[i];
}
template <class T, Fold::Kind kKind>
void fold_each(std::byte* to, const int64_t* at, const std::byte* from, int64_t count) {
  constexpr Fold fold{kKind};
  auto* y = reinterpret_cast<T*>(to);
  const auto* updates = reinterpret_cast<const T*>(from);
  for (int64_t i = 0; i < count; i++)
    if (at[i] >= 0) y[at[i]] = T(fold(static_cast<Compute<T>>(y[at[i]]), static_cast<Compute<T>>(updates[i])));
}

}  // namespace

int64_t write_elements_parts(const WriteElementsArgs& args) {
  Slabs slabs(args);
  return ceil_div(slabs.count, slabs.in_part());
}

BadIndex write_elements(const WriteElementsArgs& args, int64_t begin, int64_t end) {
  const Slabs slabs(args);
  const int64_t each = slabs.in_part(), bytes = slabs.size * args.element;
  for (int64_t slab = begin * each; slab < std::min(end * each, slabs.count); slab++) {
    std::byte* y = args.y + slab * bytes;
    if (args.x != args.y && bytes) std::memcpy(y, args.x + slab * bytes, static_cast<size_t>(bytes));
    BadIndex bad = walk_slab(slabs, slab, [&](const int64_t* at, int64_t first, int64_t count) {
      args.write(y, at, args.updates + first * args.element, count);
      return true;
    });
    if (bad.n >= 0) return bad;
  }
  return kAllGood;
}

bool crowds_elements(const WriteElementsArgs& args) {
  const Slabs slabs(args);
  Crowd crowd;
  bool exceeds = false;
  for (int64_t slab = 0; slab < slabs.count && !exceeds; slab++)
    walk_slab(slabs, slab, [&](const int64_t* at, int64_t, int64_t count) {
      exceeds = crowd.exceeds_with(slab * slabs.size, at, count);
      return !exceeds;
    });
  return exceeds;
}

WriteElementsFn element_writer(int64_t bytes) {
  switch (bytes) {
    case 1: return write_each<uint8_t>;
    case 2: return write_each<uint16_t>;
    case 4: return write_each<uint32_t>;
    case 8: return write_each<uint64_t>;
    default: return nullptr;
  }
}
WriteElementsFn element_writer(std::string_view reduction, DType dtype) {
  if (reduction == "none") return element_writer(element_bytes(dtype));
  return visit<kFolded>(dtype, [&]<class T>() -> WriteElementsFn {
    switch (Fold::named(reduction).kind) {
      case Fold::kSum: return fold_each<T, Fold::kSum>;
      case Fold::kProd: return fold_each<T, Fold::kProd>;
      case Fold::kMax: return fold_each<T, Fold::kMax>;
      default: return fold_each<T, Fold::kMin>;
    }
  });
}

}  // namespace rlx::cpu
