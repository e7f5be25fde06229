// SPDX-License-Identifier: Apache-2.0
// The form of every CPU kernel: pure loops over raw pointers. The work of a Loop is divided into parts whose borders
// depend only on the sizes in its arguments; `run` computes parts [begin, end). Parts do not depend on each other or on
// the thread that runs them, so any split over threads gives the same bits. It allocates nothing, starts no thread, and
// needs at most 128 KiB of stack.
#pragma once

#include <cstdint>

namespace rlx::cpu {

template <class Args>
struct Loop {
  int64_t (*parts)(const Args&);
  void (*run)(const Args&, int64_t begin, int64_t end);
};

constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Long work in few parts is cut into pieces, each a part of a first phase; a second one joins what they have found.
// Every piece but the last is `size` long, and there are no empty ones.
struct Pieces {
  int64_t count, size;
};

// As many parts feed many workers; work in half as many is cut no further.
inline constexpr int64_t kManyParts = 32;

// Cuts the n terms of each of `parts` parts into pieces of at least `least` terms, in whole groups of `group`.
constexpr Pieces cut(int64_t n, int64_t parts, int64_t least, int64_t group = 1) {
  int64_t most = parts > 0 && parts < kManyParts / 2 ? kManyParts / parts : 1;
  int64_t count = n / least < most ? n / least : most;
  if (count < 2) return {1, n};
  int64_t size = ((n + count - 1) / count + group - 1) / group * group;
  return size < n ? Pieces{(n + size - 1) / size, size} : Pieces{1, n};
}

}  // namespace rlx::cpu
