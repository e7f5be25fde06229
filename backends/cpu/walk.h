// SPDX-License-Identifier: Apache-2.0
// Running the phases of encoded steps in order: alone, with a team that shares the larger ones, or step by step on a
// host's threads. Invariant: the results are the same in all three.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "backends/cpu/table.h"
#include "base/os/thread_pool.h"

namespace rlx::cpu {

// One phase of a step, with at least one part.
struct EncodedPhase {
  const void* args;
  Launch::Phase launch;
  bool keeps_denormals;
};

// Neighbours that run together: short phases one after another on one worker, or one phase in chunks over the team.
struct PhaseGroup {
  uint32_t first, count;
  int64_t grain;           // parts in a chunk; 0 for a serial group
  double nanoseconds = 0;  // of shared work on one thread
  int workers = 1;         // for which there is enough work
  int least = 1;           // with fewer workers than this one alone is faster
};

// The number of workers with which some work ends soonest. It takes one worker `nanoseconds`, and each further worker
// costs `of_each`.
int useful_workers(double nanoseconds, double of_each);

// A run of several groups: how many workers it can use.
int useful_workers(std::span<const PhaseGroup> groups);

void group_phases(std::span<const EncodedPhase> phases, std::vector<PhaseGroup>& groups);

Status walk_alone(std::span<const EncodedPhase> phases, CancelToken cancel);
Status walk(std::span<const EncodedPhase> phases, std::span<const PhaseGroup> groups, ThreadPool& pool, int threads,
            CancelToken cancel);

}  // namespace rlx::cpu
