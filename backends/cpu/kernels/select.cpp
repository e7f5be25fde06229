// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/select.h"

#include <algorithm>
#include <type_traits>

#include "base/visit.h"

namespace rlx::cpu {

namespace {

constexpr DTypeSet kSelected = {DType::kF32, DType::kF64, DType::kI8, DType::kU8, DType::kI32, DType::kI64};
constexpr int64_t kPartElements = 16384;

// Adjacent lines are processed together, row by row.
constexpr int64_t kSideBySide = 64;

int64_t groups(const SelectArgs& p) {
  return (p.inner + kSideBySide - 1) / kSideBySide;
}

// The number of lines of the last axis in a part.
int64_t lines_per_part(const SelectArgs& p) {
  return p.inner > 1 || p.n == 0 ? 1 : std::max<int64_t>(1, kPartElements / p.n);
}

int64_t select_parts(const SelectArgs& p) {
  int64_t each = lines_per_part(p);
  return p.inner > 1 ? p.outer * groups(p) : p.inner * ((p.outer + each - 1) / each);
}

// Whether a strictly precedes b in the order.
template <class T>
struct Before {
  const SelectArgs& p;
  bool operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (a != a || b != b) return p.largest || p.nan_wins ? b == b : a == a;
    }
    return p.largest ? a > b : a < b;
  }
};

// A run of elements of one line, or of lines side by side, p.inner apart.
struct Stretch {
  int64_t n, first = 0;                // first: its place in the line
  const int64_t* positions = nullptr;  // of each element in the line, where they are not adjacent
  int64_t position(int64_t i) const { return positions ? positions[i] : first + i; }
};

void store_index(const SelectArgs& p, int64_t at, int64_t index) {
  if (p.wide_indices)
    static_cast<int64_t*>(p.indices)[at] = index;
  else
    static_cast<int32_t*>(p.indices)[at] = static_cast<int32_t>(index);
}

// The extremes of up to kSideBySide lines.
template <class T>
void select_extremes(const SelectArgs& p, const T* x, const Stretch& stretch, int64_t lines, int64_t to) {
  T best[kSideBySide];
  int64_t found[kSideBySide] = {};
  Before<T> before{p};
  std::copy_n(x, lines, best);
  for (int64_t i = 1; i < stretch.n; i++) {
    x += p.inner;
    for (int64_t line = 0; line < lines; line++) {
      bool is_better = p.last ? !before(best[line], x[line]) : before(x[line], best[line]);
      if (!is_better) continue;
      best[line] = x[line];
      found[line] = i;
    }
  }
  for (int64_t line = 0; line < lines; line++) {
    store_index(p, to + line, stretch.position(found[line]));
    if (p.values) static_cast<T*>(p.values)[to + line] = best[line];
  }
}

// The first k of one line, by insertion: most elements come after all that are kept.
template <class T>
void select_several(const SelectArgs& p, const T* x, const Stretch& stretch, int64_t to) {
  T best[kMostSelected];
  int64_t found[kMostSelected], count = 0;
  Before<T> before{p};
  for (int64_t i = 0; i < stretch.n; i++, x += p.inner) {
    if (count == p.k && !before(*x, best[count - 1])) continue;
    int64_t at = count < p.k ? count++ : count - 1;
    for (; at > 0 && before(*x, best[at - 1]); at--) {
      best[at] = best[at - 1];
      found[at] = found[at - 1];
    }
    best[at] = *x;
    found[at] = i;
  }
  for (int64_t i = 0; i < p.k; i++) {
    store_index(p, to + i * p.inner, stretch.position(found[i]));
    if (p.values) static_cast<T*>(p.values)[to + i * p.inner] = best[i];
  }
}

template <class T>
void select_lines(const SelectArgs& p, int64_t outer, int64_t first, int64_t lines) {
  const T* x = static_cast<const T*>(p.x) + outer * p.n * p.inner + first;
  int64_t to = outer * p.k * p.inner + first;
  Stretch stretch{p.n};
  if (p.positions) stretch.positions = p.positions + outer * p.n;
  if (p.line) {
    int64_t pieces = (p.line + p.n - 1) / p.n;
    stretch.first = outer % pieces * p.n;
    stretch.n = std::min(p.n, p.line - stretch.first);
    x = static_cast<const T*>(p.x) + outer / pieces * p.line + stretch.first;
  }
  if (p.k == 1) return select_extremes(p, x, stretch, lines, to);
  for (int64_t line = 0; line < lines; line++) select_several(p, x + line, stretch, to + line);
}

void select_run(const SelectArgs& p, int64_t begin, int64_t end) {
  if (p.n == 0 || p.k == 0) return;
  int64_t each = lines_per_part(p), across = groups(p);
  visit<kSelected>(p.dtype, [&]<class T>() {
    for (int64_t part = begin; part < end; part++) {
      if (p.inner > 1) {
        int64_t first = part % across * kSideBySide;
        select_lines<T>(p, part / across, first, std::min(kSideBySide, p.inner - first));
        continue;
      }
      for (int64_t line = part * each; line < std::min(p.outer, (part + 1) * each); line++)
        select_lines<T>(p, line, 0, 1);
    }
  });
}

constexpr int64_t kLargestElement = 8;

// A piece is so long that few of its elements are among the k first for a while, and that the last, too, has k.
Pieces pieces_of(const SelectArgs& p) {
  int64_t least = std::max(kPartElements, 2048 * p.k);
  Pieces pieces = p.inner == 1 && p.k > 0 ? cut(p.n, p.outer, least) : Pieces{1, p.n};
  int64_t last = p.n - (pieces.count - 1) * pieces.size;
  return last < p.k ? Pieces{1, p.n} : pieces;
}

}  // namespace

bool cut_lines(SelectArgs& args, SelectArgs& pieces, std::byte* partial) {
  Pieces cuts = pieces_of(args);
  if (cuts.count == 1) return false;
  int64_t found = cuts.count * args.k;
  pieces = args;
  pieces.line = args.n;
  pieces.n = cuts.size;
  pieces.outer *= cuts.count;
  pieces.indices = partial;
  pieces.values = partial + args.outer * found * static_cast<int64_t>(sizeof(int64_t));
  pieces.wide_indices = true;
  args.x = pieces.values;
  args.n = found;
  args.positions = static_cast<const int64_t*>(pieces.indices);
  return true;
}

size_t selected_bytes(double n, int64_t k) {
  if (n < 2 * kPartElements) return 0;
  return static_cast<size_t>(kManyParts * k) * (sizeof(int64_t) + kLargestElement);
}

bool can_select(DType dtype) {
  return kSelected.has(dtype);
}

Loop<SelectArgs> select_loop() {
  return {select_parts, select_run};
}

}  // namespace rlx::cpu
