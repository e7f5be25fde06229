// SPDX-License-Identifier: Apache-2.0
// Running encoded steps in order: alone, with a team that shares the larger ones, or step by step on a host's threads.
// Invariant: the results are the same in all three.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "backends/cpu/table.h"
#include "base/os/thread_pool.h"

namespace rlx::cpu {

struct EncodedStep {
  const void* args = nullptr;
  Status (*run)(const void* args, int64_t begin, int64_t end) = nullptr;
  Launch launch;
  bool keeps_denormals = true;
};

// Neighbours that run together: short steps one after another on one worker, or one step in chunks over the team.
struct StepGroup {
  uint32_t first, count;
  int64_t grain;           // parts in a chunk; 0: a serial group
  double nanoseconds = 0;  // of shared work on one thread
  int workers = 1;         // that the work feeds
};

// How many workers end work of so many nanoseconds soonest, where each costs some: `of_each` to hand it its part.
int workers_fed(double nanoseconds, double of_each);

// A run of several groups: how many workers it can use.
int workers_fed(std::span<const StepGroup> groups);

void group_steps(std::span<const EncodedStep> steps, std::vector<StepGroup>& groups);

Status walk_alone(std::span<const EncodedStep> steps, CancelToken cancel);
Status walk(std::span<const EncodedStep> steps, std::span<const StepGroup> groups, ThreadPool& pool, int threads,
            CancelToken cancel);

}  // namespace rlx::cpu
