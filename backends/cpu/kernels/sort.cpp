// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/sort.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "backends/cpu/kernels/radix_sort.h"
#include "base/visit.h"

namespace rlx::cpu {

namespace {

constexpr DTypeSet kSorted = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8,
                              DType::kI16, DType::kI32, DType::kI64, DType::kU8,   DType::kU16,
                              DType::kU32, DType::kU64, DType::kBool};
constexpr int64_t kPieceElements = 16384;
constexpr int64_t kMaxEntries = int64_t{1} << 32;  // whose places have 32 bits

// ---- orders: what is sorted is an entry of the size of an index, which says which element it stands for

// Entries of short keys are compared as numbers.
template <class T>
struct Packed {
  using Entry = uint64_t;
  const T* x;
  bool descending;

  Entry entry(int64_t at) const { return packed_entry(static_cast<Compute<T>>(x[at]), at, descending); }
  static int64_t place(Entry entry) { return packed_place(entry); }
  bool operator()(Entry a, Entry b) const { return a < b; }
};

// The place alone: keys are looked up.
template <class T, class Index>
struct Places {
  using Entry = Index;
  const T* x;
  bool descending;

  static Entry entry(int64_t at) { return static_cast<Entry>(at); }
  static int64_t place(Entry entry) { return entry; }
  bool operator()(Entry a, Entry b) const {
    auto key = [&](Entry at) { return static_cast<Compute<T>>(x[at]); };
    auto p = key(descending ? b : a), q = key(descending ? a : b);
    if (precedes(p, q)) return true;
    return !precedes(q, p) && a < b;
  }

 private:
  static bool precedes(Compute<T> a, Compute<T> b) {
    if constexpr (std::is_floating_point_v<Compute<T>>)
      if (std::isnan(b)) return !std::isnan(a);
    return a < b;
  }
};

// ---- the phases of one line

struct Line {
  const SortArgs& args;
  int64_t number;

  template <class Entry>
  Entry* entries() const {
    return static_cast<Entry*>(args.indices) + number * args.n;
  }
  int64_t* counts(int64_t piece) const {
    return args.counts + (number * args.pieces.count + piece) * args.pieces.count;
  }
  // Where the elements begin that a piece has in a bucket.
  int64_t begin(int64_t bucket, int64_t piece) const {
    int64_t sum = 0;
    for (int64_t p = 0; p < args.pieces.count; p++)
      for (int64_t b = 0; b <= bucket; b++)
        if (b < bucket || p < piece) sum += counts(p)[b];
    return sum;
  }
};

// The first entries of all buckets but the first, from a sample of the line. Each piece finds the same ones.
template <class Order>
class Borders {
 public:
  using Entry = typename Order::Entry;
  Borders(const Order& order, int64_t n, int64_t buckets) : order_(order), count_(static_cast<size_t>(buckets) - 1) {
    constexpr size_t kEach = 32;
    std::array<Entry, kManyParts * kEach> sample;
    std::span<Entry> drawn = std::span(sample).first(static_cast<size_t>(buckets) * kEach);
    uint64_t state = 0;
    for (Entry& it : drawn) {
      state += 0x9e3779b97f4a7c15;  // draws evenly, but with no period that data may have
      it = order.entry(static_cast<int64_t>((state >> 32) * static_cast<uint64_t>(n) >> 32));
    }
    std::sort(drawn.begin(), drawn.end(), order);
    for (size_t i = 0; i < count_; i++) borders_[i] = drawn[(i + 1) * kEach];
  }
  int64_t bucket(Entry entry) const {
    return std::upper_bound(borders_.begin(), borders_.begin() + count_, entry, order_) - borders_.begin();
  }

 private:
  const Order& order_;
  size_t count_;
  std::array<Entry, kManyParts> borders_;
};

// Calls each(entry, bucket) for the elements of a piece.
template <class Order, class Each>
void visit_piece(const Order& order, const SortArgs& args, int64_t piece, Each&& each) {
  Borders borders(order, args.n, args.pieces.count);
  int64_t first = piece * args.pieces.size, last = std::min(args.n, first + args.pieces.size);
  for (int64_t i = first; i < last; i++) {
    auto entry = order.entry(i);
    each(entry, borders.bucket(entry));
  }
}

template <class Order>
void count_piece(const Order& order, const Line& line, int64_t piece) {
  std::array<int64_t, kManyParts> counts{};
  visit_piece(order, line.args, piece, [&](auto, int64_t bucket) { counts[static_cast<size_t>(bucket)]++; });
  std::copy_n(counts.begin(), line.args.pieces.count, line.counts(piece));
}

template <class Order>
void spread_piece(const Order& order, const Line& line, int64_t piece) {
  std::array<int64_t, kManyParts> to;
  for (int64_t b = 0; b < line.args.pieces.count; b++) to[static_cast<size_t>(b)] = line.begin(b, piece);
  auto* entries = line.entries<typename Order::Entry>();
  visit_piece(order, line.args, piece,
              [&](auto entry, int64_t bucket) { entries[to[static_cast<size_t>(bucket)]++] = entry; });
}

// A few entries of short keys.
template <class T, PlacesAscend kAscend, class Order>
void radix_sort_bucket(const Order& order, typename Order::Entry* entries, T* values, int64_t n) {
  uint64_t packed[2][kMaxRadixSorted];
  for (int64_t i = 0; i < n; i++) packed[0][i] = Packed<T>{order.x, order.descending}.entry(order.place(entries[i]));
  const uint64_t* sorted = radix_sort<kAscend>(packed[0], packed[1], n);
  for (int64_t i = 0; i < n; i++) {
    int64_t place = Packed<T>::place(sorted[i]);
    if (values) values[i] = order.x[place];
    entries[i] = static_cast<typename Order::Entry>(place);
  }
}

template <class T, class Order>
void name_places(const Order& order, typename Order::Entry* entries, T* values, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    int64_t place = order.place(entries[i]);
    if (values) values[i] = order.x[place];
    entries[i] = static_cast<typename Order::Entry>(place);
  }
}

// Many entries of short keys are halved until each part can be radix-sorted: then few are compared more than once or
// twice. A half is in any order.
template <class T, PlacesAscend kAscend = PlacesAscend::kYes, class Order>
void sort_entries(const Order& order, typename Order::Entry* entries, T* values, int64_t n) {
  if constexpr (sizeof(T) <= sizeof(uint32_t)) {
    if (is_radix_sorted(n)) return radix_sort_bucket<T, kAscend>(order, entries, values, n);
    if (n > kMaxRadixSorted) {
      int64_t half = n / 2;
      std::nth_element(entries, entries + half, entries + n, order);
      sort_entries<T, PlacesAscend::kNo>(order, entries, values, half);
      return sort_entries<T, PlacesAscend::kNo>(order, entries + half, values ? values + half : nullptr, n - half);
    }
  }
  std::sort(entries, entries + n, order);
  name_places(order, entries, values, n);
}

// Writes all entries of a line. If most have the last key, these stand behind the others, in order. Returns the number
// of those that are not in order.
template <class T>
int64_t write_entries(const Packed<T>& order, uint64_t* entries, int64_t n) {
  uint64_t last = 0;
  for (int64_t i = 0; i < n; i++) {
    entries[i] = order.entry(i);
    last = std::max(last, entries[i] >> 32);
  }
  if (n <= kMaxRadixSorted) return n;
  int64_t others = std::count_if(entries, entries + n, [&](uint64_t entry) { return entry >> 32 != last; });
  if (others > n / 2) return n;
  // Without branches, as they could not be predicted: each entry is written, and the next one over it or behind it.
  int64_t next = 0;
  for (int64_t i = 0; i < n; i++) {
    uint64_t entry = entries[i];
    entries[next] = entry;
    next += entry >> 32 != last;
  }
  for (int64_t i = 0; next < n; i++) {
    uint64_t entry = order.entry(i);
    entries[next] = entry;
    next += entry >> 32 == last;
  }
  return others;
}

template <class Order>
int64_t write_entries(const Order& order, typename Order::Entry* entries, int64_t n) {
  for (int64_t i = 0; i < n; i++) entries[i] = order.entry(i);
  return n;
}

template <class T, class Order>
void sort_bucket(const Order& order, const Line& line, int64_t bucket) {
  const SortArgs& args = line.args;
  auto* entries = line.entries<typename Order::Entry>();
  int64_t first = 0, last = args.n, open = args.n;
  if (args.pieces.count > 1) {
    first = line.begin(bucket, 0);
    last = open = line.begin(bucket, args.pieces.count);
  } else {
    open = write_entries(order, entries, args.n);
  }
  T* values = args.values ? static_cast<T*>(args.values) + line.number * args.n : nullptr;
  sort_entries<T>(order, entries + first, values ? values + first : nullptr, open - first);
  name_places(order, entries + open, values ? values + open : nullptr, last - open);
}

// ---- the first k of a line

// Writes the entries of the first k of n in any order.
template <class Order>
void write_first_by_heap(const Order& order, typename Order::Entry* entries, int64_t n, int64_t k) {
  for (int64_t i = 0; i < k; i++) entries[i] = order.entry(i);
  std::make_heap(entries, entries + k, order);
  for (int64_t i = k; i < n; i++) {
    auto entry = order.entry(i);
    if (!order(entry, entries[0])) continue;
    std::pop_heap(entries, entries + k, order);
    entries[k - 1] = entry;
    std::push_heap(entries, entries + k, order);
  }
}

template <class T, class Order>
void write_first(const Order& order, typename Order::Entry* entries, int64_t n, int64_t k) {
  if constexpr (sizeof(T) <= sizeof(uint32_t))
    if (n < kMaxEntries) {
      auto rank_at = [&](int64_t i) {
        return static_cast<uint32_t>(Packed<T>{order.x, order.descending}.entry(i) >> 32);
      };
      RankLimit limit = limit_of_ranks(n, k, k, rank_at);
      for (int64_t i = 0, found = 0; found < k; i++)
        if (limit.takes(rank_at(i))) entries[found++] = order.entry(i);
      return;
    }
  write_first_by_heap(order, entries, n, k);
}

// ---- loops

int64_t sort_parts(const SortArgs& p) {
  return p.outer * p.pieces.count;
}

// Calls each(order, line, number of the piece or bucket) for each part. The order is that of the line.
template <class T, class Each>
void visit_parts(const SortArgs& p, int64_t begin, int64_t end, Each&& each) {
  for (int64_t part = begin; part < end; part++) {
    Line line{p, part / p.pieces.count};
    int64_t own = part % p.pieces.count;
    const T* x = static_cast<const T*>(p.x) + line.number * p.n;
    if constexpr (sizeof(T) <= sizeof(uint32_t))
      if (p.wide_indices && p.n <= kMaxEntries) {
        each(Packed<T>{x, p.descending}, line, own);
        continue;
      }
    if (p.wide_indices)
      each(Places<T, int64_t>{x, p.descending}, line, own);
    else
      each(Places<T, int32_t>{x, p.descending}, line, own);
  }
}

void count_run(const SortArgs& p, int64_t begin, int64_t end) {
  visit<kSorted>(p.dtype, [&]<class T>() {
    visit_parts<T>(p, begin, end,
                   [](const auto& order, const Line& line, int64_t own) { count_piece(order, line, own); });
  });
}

void spread_run(const SortArgs& p, int64_t begin, int64_t end) {
  visit<kSorted>(p.dtype, [&]<class T>() {
    visit_parts<T>(p, begin, end,
                   [](const auto& order, const Line& line, int64_t own) { spread_piece(order, line, own); });
  });
}

void sort_run(const SortArgs& p, int64_t begin, int64_t end) {
  visit<kSorted>(p.dtype, [&]<class T>() {
    visit_parts<T>(p, begin, end,
                   [](const auto& order, const Line& line, int64_t own) { sort_bucket<T>(order, line, own); });
  });
}

int64_t sort_first_parts(const SortArgs& p) {
  return p.outer;
}

void sort_first_run(const SortArgs& p, int64_t begin, int64_t end) {
  visit<kSorted>(p.dtype, [&]<class T>() {
    visit_parts<T>(p, begin, end, [&]<class Order>(const Order& order, const Line& line, int64_t) {
      auto* entries = static_cast<typename Order::Entry*>(p.indices) + line.number * p.k;
      write_first<T>(order, entries, p.n, p.k);
      sort_entries<T>(order, entries, p.values ? static_cast<T*>(p.values) + line.number * p.k : nullptr, p.k);
    });
  });
}

}  // namespace

Pieces pieces_of_sort(int64_t outer, int64_t n) {
  return cut(n, outer, kPieceElements);
}

size_t sort_bytes(double n) {
  return n < 2 * kPieceElements ? 0 : static_cast<size_t>(kManyParts * kManyParts) * sizeof(int64_t);
}

bool can_sort(DType dtype) {
  return kSorted.has(dtype);
}

Loop<SortArgs> sort_count_loop() {
  return {sort_parts, count_run};
}

Loop<SortArgs> sort_spread_loop() {
  return {sort_parts, spread_run};
}

Loop<SortArgs> sort_loop() {
  return {sort_parts, sort_run};
}

Loop<SortArgs> sort_first_loop() {
  return {sort_first_parts, sort_first_run};
}

}  // namespace rlx::cpu
