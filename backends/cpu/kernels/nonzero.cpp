// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/nonzero.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace rlx::cpu {

namespace {

static_assert(std::endian::native == std::endian::little);
constexpr int64_t kWord = 8;

// The highest bit of each byte that is not 0.
uint64_t truths_of(uint64_t word) {
  constexpr uint64_t kLow = 0x7f7f7f7f7f7f7f7f;
  return (((word & kLow) + kLow) | word) & ~kLow;
}
uint64_t word_at(const uint8_t* x, int64_t left) {
  uint64_t word = 0;
  std::memcpy(&word, x, static_cast<size_t>(std::min(left, kWord)));
  return word;
}

// Turns ascending places into index tuples. Only a place in another row costs divisions.
class Tuples {
 public:
  explicit Tuples(const NonzeroArgs& args) : args_(args), row_length_(args.rank ? args.dims[args.rank - 1] : 1) {}

  void store(int64_t place, int64_t at) {
    if (args_.rank == 0) return;
    int64_t* to = args_.index + at * args_.rank;
    if (args_.rank > 1) {
      if (place >= row_end_) go_to_row(place / row_length_);
      for (int32_t d = 0; d + 1 < args_.rank; d++) to[d] = row_[d];
    }
    to[args_.rank - 1] = place - row_begin_;
  }

 private:
  void go_to_row(int64_t row) {
    row_begin_ = row * row_length_;
    row_end_ = row_begin_ + row_length_;
    for (int32_t d = args_.rank - 2; d > 0; d--) {
      row_[d] = row % args_.dims[d];
      row /= args_.dims[d];
    }
    row_[0] = row;
  }

  const NonzeroArgs& args_;
  int64_t row_length_, row_begin_ = 0, row_end_ = 0;
  int64_t row_[kMaxRank] = {};
};

// Stores what [begin, end) holds as tuple `at` and later ones; returns the tuple behind them.
int64_t store_found(const NonzeroArgs& args, int64_t begin, int64_t end, int64_t at) {
  Tuples tuples(args);
  for (int64_t i = begin; i < end && at < args.most; i += kWord) {
    uint64_t found = truths_of(word_at(args.x + i, end - i));
    for (; found && at < args.most; found &= found - 1) tuples.store(i + std::countr_zero(found) / 8, at++);
  }
  return at;
}

int64_t nonzero_parts(const NonzeroArgs& args) {
  return nonzero_pieces(args.n).count;
}

void count_run(const NonzeroArgs& args, int64_t begin, int64_t end) {
  int64_t size = nonzero_pieces(args.n).size;
  for (int64_t part = begin; part < end; part++) {
    int64_t last = std::min(args.n, (part + 1) * size), count = 0;
    for (int64_t i = part * size; i < last; i += kWord)
      count += std::popcount(truths_of(word_at(args.x + i, last - i)));
    args.counts[part] = count;
  }
}

void nonzero_run(const NonzeroArgs& args, int64_t begin, int64_t end) {
  Pieces pieces = nonzero_pieces(args.n);
  for (int64_t part = begin; part < end; part++) {
    int64_t before = 0, all = 0;
    for (int64_t i = 0; i < pieces.count && args.counts; i++) (i < part ? before : all) += args.counts[i];
    int64_t behind = store_found(args, part * pieces.size, std::min(args.n, (part + 1) * pieces.size), before);
    int64_t count = std::min(args.most, args.counts ? before + all : behind);
    if (part == 0) *args.count = count;
    int64_t from = std::max(count, args.most * part / pieces.count), to = args.most * (part + 1) / pieces.count;
    if (from < to) std::fill(args.index + from * args.rank, args.index + to * args.rank, -1);
  }
}

}  // namespace

Loop<NonzeroArgs> nonzero_count_loop() {
  return {nonzero_parts, count_run};
}
Loop<NonzeroArgs> nonzero_loop() {
  return {nonzero_parts, nonzero_run};
}

}  // namespace rlx::cpu
