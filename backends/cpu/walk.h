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

// Consecutive steps that are executed together: short steps one after another on one worker, or one step in chunks over
// the team.
struct StepGroup {
  uint32_t first, count;
  int64_t grain;           // parts in a chunk; 0 for a serial group
  double nanoseconds = 0;  // of shared work on one thread
  int workers = 1;         // for which there is enough work
};

// The number of workers that finishes work of `nanoseconds` soonest, if each additional worker costs `of_each`
// nanoseconds.
int workers_fed(double nanoseconds, double of_each);

// The number of workers that a run of several groups can use.
int workers_fed(std::span<const StepGroup> groups);

void group_steps(std::span<const EncodedStep> steps, std::vector<StepGroup>& groups);

Status walk_alone(std::span<const EncodedStep> steps, CancelToken cancel);
Status walk(std::span<const EncodedStep> steps, std::span<const StepGroup> groups, ThreadPool& pool, int threads,
            CancelToken cancel);

}  // namespace rlx::cpu
