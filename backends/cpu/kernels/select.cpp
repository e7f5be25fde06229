// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/select.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <type_traits>

#include "backends/cpu/kernels/radix_sort.h"
#include "base/visit.h"

namespace rlx::cpu {

namespace {

constexpr DTypeSet kSelected = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16,
                                DType::kI8,  DType::kU8,  DType::kI32, DType::kI64};
constexpr int64_t kPartElements = 16384;

// Adjacent lines are processed together, row by row.
constexpr int64_t kSideBySide = 64;

int64_t groups(const SelectArgs& p) {
  return ceil_div(p.inner, kSideBySide);
}

// The number of lines of the last axis in a part.
int64_t lines_per_part(const SelectArgs& p) {
  return p.inner > 1 || p.n == 0 ? 1 : std::max<int64_t>(1, kPartElements / p.n);
}

int64_t select_parts(const SelectArgs& p) {
  int64_t each = lines_per_part(p);
  return p.inner > 1 ? p.outer * groups(p) : p.inner * ceil_div(p.outer, each);
}

// ---- keys: what is compared, one by one or by vectors of 16 bytes

// Halves are compared as integers in the order of their values.
template <class T>
using Key = std::conditional_t<is_small_float<T>, int16_t, T>;
template <class T>
constexpr int64_t kWidth = 16 / sizeof(T);
template <class T>
using Keys [[gnu::vector_size(16)]] = Key<T>;

template <class K>
K all(auto key) {
  if constexpr (std::is_arithmetic_v<K>)
    return static_cast<K>(key);
  else
    return static_cast<std::remove_reference_t<decltype(K{}[0])>>(key) - K{};
}

// The order of elements of T: of single keys, or lane by lane.
template <class T>
struct Order {
  explicit Order(const SelectArgs& p) : largest(p.largest), last(p.last), nan_is_first(p.largest || p.nan_wins) {}

  const bool largest, last, nan_is_first;

  // NaN becomes the first or the last key, and -0 the same as 0.
  template <class K>
  K key_of(K bits) const {
    if constexpr (is_small_float<T>) {
      K size = bits & all<K>(0x7fff), key = bits < all<K>(0) ? all<K>(0) - size : size;
      K nan = all<K>(largest || !nan_is_first ? INT16_MAX : INT16_MIN);
      return size > all<K>(std::is_same_v<T, f16> ? 0x7c00 : 0x7f80) ? nan : key;
    } else {
      return bits;
    }
  }

  // Whether a strictly precedes b in the order.
  template <class K>
  auto precedes(K a, K b) const {
    auto is_first = largest ? a > b : a < b;
    if constexpr (std::is_floating_point_v<T>)
      return nan_is_first ? (is_first | (a != a)) & (b == b) : is_first | ((a == a) & (b != b));
    else
      return is_first;
  }

  // Whether x, which comes later, takes the place of `best`.
  template <class K>
  auto is_better(K x, K best) const {
    return last ? precedes(best, x) == 0 : precedes(x, best);
  }

  Key<T> one(const T* x) const { return key_of(*reinterpret_cast<const Key<T>*>(x)); }
  Keys<T> several(const T* x) const {
    Keys<T> keys;
    std::memcpy(&keys, x, sizeof keys);
    return key_of(keys);
  }
};

template <class Mask>
bool any(Mask mask) {
  uint64_t halves[2];
  std::memcpy(halves, &mask, sizeof mask);
  return (halves[0] | halves[1]) != 0;
}

// The first of the adjacent elements [i, n) that is better than `best`, or n. Few are, so whole blocks are passed over.
template <class T>
int64_t find_better(const Order<T>& order, const T* x, int64_t i, int64_t n, Key<T> best) {
  constexpr int64_t kBlock = 4 * kWidth<T>;
  Keys<T> bests = all<Keys<T>>(best);
  for (; i + kBlock <= n; i += kBlock) {
    auto better = order.is_better(order.several(x + i), bests);
    for (int64_t v = 1; v < 4; v++) better |= order.is_better(order.several(x + i + v * kWidth<T>), bests);
    if (any(better)) break;
  }
  while (i < n && !order.is_better(order.one(x + i), best)) i++;
  return i;
}

// A run of elements of one line, or of lines side by side, p.inner apart.
struct Stretch {
  int64_t n, first = 0;                // first: its place in the line
  const int64_t* positions = nullptr;  // of each element in the line, where they are not adjacent
  int64_t position(int64_t i) const { return positions ? positions[i] : first + i; }
};

// Element i of the stretch x is what was selected as number `at`.
template <class T>
void store_selected(const SelectArgs& p, const T* x, const Stretch& stretch, int64_t i, int64_t at) {
  if (p.wide_indices)
    static_cast<int64_t*>(p.indices)[at] = stretch.position(i);
  else
    static_cast<int32_t*>(p.indices)[at] = static_cast<int32_t>(stretch.position(i));
  if (p.values) static_cast<T*>(p.values)[at] = x[i * p.inner];
}

// The place of the extreme `best` among adjacent elements.
template <class T>
int64_t place_of(const Order<T>& order, const T* x, int64_t n, Key<T> best) {
  constexpr int64_t kWide = kWidth<T>;
  const Keys<T> bests = all<Keys<T>>(best);
  int64_t i = 0;
  if (order.last) {
    for (i = n; i >= kWide && !any(order.precedes(bests, order.several(x + i - kWide)) == 0);) i -= kWide;
    while (order.precedes(best, order.one(x + i - 1))) i--;
    return i - 1;
  }
  while (i + kWide <= n && !any(order.precedes(bests, order.several(x + i)) == 0)) i += kWide;
  while (order.precedes(best, order.one(x + i))) i++;
  return i;
}

// The extreme of a line that is so short that looking for a better one costs more than comparing lane by lane. Several
// vectors take turns, so that no comparison waits for the one before it.
constexpr int64_t kComparedByLane = 512;
template <class T>
int64_t extreme_of_short(const Order<T>& order, const T* x, int64_t n) {
  constexpr int64_t kWide = kWidth<T>, kBlock = 4 * kWide;
  auto better = [&](auto a, auto b) { return order.precedes(a, b) ? a : b; };
  Key<T> best = order.one(x);
  int64_t i = 1;
  if (n >= kBlock) {
    auto keys = [&](int64_t at) { return order.several(x + at); };
    Keys<T> a = keys(0), b = keys(kWide), c = keys(2 * kWide), d = keys(3 * kWide);
    for (i = kBlock; i + kBlock <= n; i += kBlock) {
      a = better(keys(i), a), b = better(keys(i + kWide), b);
      c = better(keys(i + 2 * kWide), c), d = better(keys(i + 3 * kWide), d);
    }
    a = better(better(a, b), better(c, d));
    for (int64_t lane = 0; lane < kWide; lane++) best = better(Key<T>(a[lane]), best);
  }
  for (; i < n; i++) best = better(order.one(x + i), best);
  return place_of(order, x, n, best);
}

// Long integers, which not every instruction set compares as vectors.
template <class T>
int64_t extreme_of_longs(const SelectArgs& p, const T* x, int64_t n) {
  auto find = [&](auto is_better) {
    int64_t found = 0;
    T best = x[0];
    for (int64_t i = 1; i < n; i++)
      if (is_better(x[i], best)) best = x[i], found = i;
    return found;
  };
  if (p.largest) return p.last ? find(std::greater_equal<T>()) : find(std::greater<T>());
  return p.last ? find(std::less_equal<T>()) : find(std::less<T>());
}

template <class T>
void select_extreme(const SelectArgs& p, const T* x, const Stretch& stretch, int64_t to) {
  const Order<T> order(p);
  int64_t found = 0;
  if constexpr (sizeof(T) == 8 && std::is_integral_v<T>)
    return store_selected(p, x, stretch, extreme_of_longs(p, x, stretch.n), to);
  if constexpr (sizeof(Key<T>) > 1)
    if (stretch.n <= kComparedByLane) return store_selected(p, x, stretch, extreme_of_short(order, x, stretch.n), to);
  for (int64_t i = 0; (i = find_better(order, x, i + 1, stretch.n, order.one(x + found))) < stretch.n;) found = i;
  store_selected(p, x, stretch, found, to);
}

// The extremes of up to kSideBySide lines.
template <class T>
void select_extremes(const SelectArgs& p, const T* x, const Stretch& stretch, int64_t lines, int64_t to) {
  using Place = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  Key<T> best[kSideBySide];
  Place found[kSideBySide] = {};
  const Order<T> order(p);
  for (int64_t line = 0; line < lines; line++) best[line] = order.one(x + line);
  for (int64_t i = 1; i < stretch.n; i++) {
    const T* row = x + i * p.inner;
    int64_t line = 0;
    if constexpr (sizeof(T) == sizeof(Place)) {
      using Places [[gnu::vector_size(16)]] = Place;
      for (; line + kWidth<T> <= lines; line += kWidth<T>) {
        Keys<T> bests, keys = order.several(row + line);
        Places places;
        std::memcpy(&bests, best + line, sizeof bests);
        std::memcpy(&places, found + line, sizeof places);
        auto better = order.is_better(keys, bests);
        bests = better ? keys : bests;
        places = better ? all<Places>(i) : places;
        std::memcpy(best + line, &bests, sizeof bests);
        std::memcpy(found + line, &places, sizeof places);
      }
    }
    for (; line < lines; line++) {
      Key<T> key = order.one(row + line);
      if (!order.is_better(key, best[line])) continue;
      best[line] = key;
      found[line] = static_cast<Place>(i);
    }
  }
  for (int64_t line = 0; line < lines; line++) store_selected(p, x + line, stretch, found[line], to + line);
}

// ---- many of one line of short keys ----

// Elements that may be selected are gathered in a batch. It is sorted from time to time, and keeps only its first k:
// from then on an element must precede the last of them to be gathered.
constexpr int64_t kMostInBatches = 1024, kBatchesFrom = 64;  // elements for each that is selected
bool suits_batches(const SelectArgs& p, int64_t n) {
  return p.inner == 1 && p.k <= kMostInBatches && n >= kBatchesFrom * p.k && n <= INT32_MAX;
}
template <class T>
[[gnu::noinline]] void select_in_batches(const SelectArgs& p, const T* x, const Stretch& stretch, int64_t to) {
  uint64_t packed[2][kMaxRadixSorted], *batch = packed[0];
  const Order<T> order(p);
  const int64_t n = stretch.n, first = std::min({n, std::max<int64_t>(8 * p.k, 1024), kMaxRadixSorted});
  const int64_t full = p.k + std::max<int64_t>(p.k, 256);
  int64_t count = 0, i = 0;
  auto gather = [&] {
    batch[count++] = packed_entry(static_cast<Compute<T>>(x[i]), i, p.largest);
    i++;
  };
  while (i < first) gather();
  for (;;) {
    batch = sort_packed(batch, packed[batch == packed[0]], count);
    count = std::min(count, p.k);
    if (i == n) break;
    Key<T> last = order.one(x + packed_place(batch[p.k - 1]));
    while (count < full) {
      if (i = find_better(order, x, i, n, last); i == n) break;
      gather();
    }
  }
  for (i = 0; i < p.k; i++) store_selected(p, x, stretch, packed_place(batch[i]), to + i);
}

// Those up to a rank are found by counting, then sorted.

template <class T>
uint32_t rank_in(const SelectArgs& p, const T* x, int64_t i) {
  return static_cast<uint32_t>(packed_entry(static_cast<Compute<T>>(x[i * p.inner]), 0, p.largest) >> 32);
}

template <class T>
[[gnu::noinline]] void select_many(const SelectArgs& p, const T* x, const Stretch& stretch, int64_t to) {
  uint64_t packed[2][kMaxRadixSorted];
  int64_t places[kMaxRadixSorted], found = 0;
  RankLimit limit;  // takes all
  if (stretch.n > kMaxRadixSorted || 2 * p.k < stretch.n) {
    int64_t most = std::min(kMaxRadixSorted, 4 * p.k + 256);
    limit = limit_of_ranks(stretch.n, p.k, most, [&p, x](int64_t i) { return rank_in(p, x, i); });
  }
  for (int64_t i = 0; i < stretch.n; i++) {
    uint32_t rank = rank_in(p, x, i);
    if (!limit.takes(rank)) continue;
    packed[0][found] = uint64_t{rank} << 32 | static_cast<uint32_t>(found);
    places[found++] = i;
  }
  const uint64_t* sorted = sort_packed(packed[0], packed[1], found);
  for (int64_t i = 0; i < p.k; i++) store_selected(p, x, stretch, places[packed_place(sorted[i])], to + i * p.inner);
}

// ---- few of a line of short keys: those found so far are kept in order

// In random order k (1 + log(n / k)) elements of a line enter, and each moves some of the k. In a line that rises all
// of them do.
constexpr int64_t kMostInserted = 64, kShortLine = 256;
int64_t most_entering(int64_t n, int64_t k) {
  return n <= kShortLine ? n : 64 + k * (1 + static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(n / k))));
}
// Returns false, and has written nothing, if too many enter.
template <class T>
bool select_by_insertion(const SelectArgs& p, const T* x, const Stretch& stretch, int64_t to) {
  uint64_t first[kMostInserted];
  const Order<T> order(p);
  int64_t entering = 0;
  const int64_t most = most_entering(stretch.n, p.k);
  auto offer = [&](int64_t i) {
    auto entry = packed_entry(static_cast<Compute<T>>(x[i * p.inner]), i, p.largest);
    int64_t at = std::min(i, p.k - 1);
    if (i >= p.k && entry > first[at]) return;
    entering++;
    for (; at > 0 && first[at - 1] > entry; at--) first[at] = first[at - 1];
    first[at] = entry;
  };
  int64_t i = 0;
  for (; i < p.k; i++) offer(i);
  constexpr int64_t kBlock = 4 * kWidth<T>;
  auto last = [&] { return all<Keys<T>>(order.one(x + packed_place(first[p.k - 1]))); };
  for (; p.inner == 1 && i + kBlock <= stretch.n; i += kBlock) {
    Keys<T> worst = last();
    auto better = order.precedes(order.several(x + i), worst);
    for (int64_t v = 1; v < 4; v++) better |= order.precedes(order.several(x + i + v * kWidth<T>), worst);
    if (!any(better)) continue;
    for (int64_t v = i; v < i + kBlock; v += kWidth<T>) {
      if (!any(order.precedes(order.several(x + v), last()))) continue;
      for (int64_t lane = 0; lane < kWidth<T>; lane++) offer(v + lane);
    }
    if (entering > most) return false;
  }
  for (; i < stretch.n; i++) offer(i);
  for (i = 0; i < p.k; i++) store_selected(p, x, stretch, packed_place(first[i]), to + i * p.inner);
  return true;
}

// Up to kSideBySide lines of a few adjacent elements, which are laid side by side first. Elements of the size of a
// place are then compared by vectors.
template <class T>
constexpr int64_t kFew = sizeof(T) == sizeof(int32_t) ? 64 : 8;
template <class T>
void select_extremes_of_few(const SelectArgs& p, int64_t line, int64_t lines) {
  T transposed[kFew<T> * kSideBySide];
  const T* x = static_cast<const T*>(p.x) + line * p.n;
  for (int64_t i = 0; i < p.n; i++)
    for (int64_t at = 0; at < lines; at++) transposed[i * lines + at] = x[at * p.n + i];
  SelectArgs beside = p;
  beside.inner = lines;
  select_extremes(beside, transposed, Stretch{p.n}, lines, line);
}

// ---- few of a line, in a heap

template <class T>
struct Entry {
  Key<T> key;
  int64_t at;
};

// The first k elements of a line so far. The top of the heap is the last of them: most elements come after it.
template <class T>
struct Heap {
  const SelectArgs& p;
  const Order<T>& order;
  Entry<T>* entries;

  int64_t k() const { return p.k; }
  auto comes_first() const {
    return [this](const Entry<T>& a, const Entry<T>& b) {
      return order.precedes(a.key, b.key) || (!order.precedes(b.key, a.key) && a.at < b.at);
    };
  }
  void start(const T* x) {
    for (int64_t i = 0; i < k(); i++) entries[i] = {order.one(x + i * p.inner), i};
    std::make_heap(entries, entries + k(), comes_first());
  }
  Key<T> last() const { return entries[0].key; }
  void take(Key<T> key, int64_t at) {
    std::pop_heap(entries, entries + k(), comes_first());
    entries[k() - 1] = {key, at};
    std::push_heap(entries, entries + k(), comes_first());
  }
  void finish(const T* x, const Stretch& stretch, int64_t to) {
    std::sort_heap(entries, entries + k(), comes_first());
    for (int64_t i = 0; i < k(); i++) store_selected(p, x, stretch, entries[i].at, to + i * p.inner);
  }
};

template <class T>
void select_several(const SelectArgs& p, const T* x, const Stretch& stretch, int64_t to) {
  Entry<T> entries[kMaxSelected];
  const Order<T> order(p);
  Heap<T> best{p, order, entries};
  best.start(x);
  for (int64_t i = p.k; i < stretch.n; i++) {
    if (p.inner == 1 && (i = find_better(order, x, i, stretch.n, best.last())) == stretch.n) break;
    Key<T> key = order.one(x + i * p.inner);
    if (order.precedes(key, best.last())) best.take(key, i);
  }
  best.finish(x, stretch, to);
}

// Of lines side by side, a vector of them at a time is compared with the last ones of their heaps.
template <class T>
void select_several_beside(const SelectArgs& p, const T* x, const Stretch& stretch, int64_t lines, int64_t to) {
  Entry<T> entries[kMaxSelected];
  Key<T> last[kSideBySide];
  const Order<T> order(p);
  auto heap = [&](int64_t line) { return Heap<T>{p, order, entries + line * p.k}; };
  for (int64_t line = 0; line < lines; line++) {
    heap(line).start(x + line);
    last[line] = heap(line).last();
  }
  auto offer = [&](const T* row, int64_t line, int64_t i) {
    Key<T> key = order.one(row + line);
    if (!order.precedes(key, last[line])) return;
    heap(line).take(key, i);
    last[line] = heap(line).last();
  };
  for (int64_t i = p.k; i < stretch.n; i++) {
    const T* row = x + i * p.inner;
    int64_t line = 0;
    for (; line + kWidth<T> <= lines; line += kWidth<T>) {
      Keys<T> lasts;
      std::memcpy(&lasts, last + line, sizeof lasts);
      if (!any(order.precedes(order.several(row + line), lasts))) continue;
      for (int64_t lane = 0; lane < kWidth<T>; lane++) offer(row, line + lane, i);
    }
    for (; line < lines; line++) offer(row, line, i);
  }
  for (int64_t line = 0; line < lines; line++) heap(line).finish(x + line, stretch, to + line);
}

// In random order about k log(n / k) elements enter a heap, each in log k steps; counting costs less from here on.
bool is_many(const SelectArgs& p, int64_t n) {
  constexpr int64_t kCounted = 20;  // elements in the time of a step
  return p.k > kMaxSelected || kCounted * p.k * static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(p.k))) > n;
}

// An element that enters costs as many moves as there are others, so twice as many pay in a line four times as long.
// Short lines pay, too: counting has a cost of its own. Where few elements enter, lines side by side are faster in
// heaps.
bool suits_insertion(const SelectArgs& p, int64_t n) {
  if (p.k > kMostInserted || n > INT32_MAX) return false;
  return is_many(p, n) ? (p.k <= 16 && n <= kShortLine) || n >= p.k * (p.k + 24) : p.inner == 1;
}

template <class T>
void select_lines(const SelectArgs& p, int64_t outer, int64_t first, int64_t lines) {
  const T* x = static_cast<const T*>(p.x) + outer * p.n * p.inner + first;
  int64_t to = outer * p.k * p.inner + first;
  Stretch stretch{p.n};
  if (p.positions) stretch.positions = p.positions + outer * p.n;
  if (p.line) {
    int64_t pieces = ceil_div(p.line, p.n);
    stretch.first = outer % pieces * p.n;
    stretch.n = std::min(p.n, p.line - stretch.first);
    x = static_cast<const T*>(p.x) + outer / pieces * p.line + stretch.first;
  }
  if (p.k == 1) return p.inner == 1 ? select_extreme(p, x, stretch, to) : select_extremes(p, x, stretch, lines, to);
  if constexpr (sizeof(T) <= sizeof(uint32_t))
    if (bool are_few = suits_insertion(p, stretch.n);
        (p.largest || !p.nan_wins) && (are_few || is_many(p, stretch.n))) {
      // In a line that rises each element would be gathered in a batch, too.
      const bool in_batches = !are_few && suits_batches(p, stretch.n);
      for (int64_t line = 0; line < lines; line++)
        if (!are_few || !select_by_insertion(p, x + line, stretch, to + line))
          (in_batches ? select_in_batches<T> : select_many<T>)(p, x + line, stretch, to + line);
      return;
    }
  for (int64_t line = 0, at_once = kMaxSelected / p.k; line < lines; line += at_once)
    if (int64_t now = std::min(at_once, lines - line); now >= kWidth<T>)
      select_several_beside(p, x + line, stretch, now, to + line);
    else
      for (int64_t i = line; i < line + now; i++) select_several(p, x + i, stretch, to + i);
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
      int64_t line = part * each, last = std::min(p.outer, line + each);
      if (p.k == 1 && p.n <= kFew<T> && !p.line && !p.positions)
        for (; line < last; line += kSideBySide) select_extremes_of_few<T>(p, line, std::min(kSideBySide, last - line));
      for (; line < last; line++) select_lines<T>(p, line, 0, 1);
    }
  });
}

constexpr int64_t kLargestElement = 8;

// A piece is so long that after its beginning few elements are among the first k. The last piece, too, has at least k.
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

int64_t most_selected(DType dtype) {
  return element_bytes(dtype) <= static_cast<int64_t>(sizeof(uint32_t)) ? kMaxRadixSorted : kMaxSelected;
}

Loop<SelectArgs> select_loop() {
  return {select_parts, select_run};
}

}  // namespace rlx::cpu
