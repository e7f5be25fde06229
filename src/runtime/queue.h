// SPDX-License-Identifier: Apache-2.0
// RunQueue: submitted runs. A run begins when the fences that it waits for are done, and ends without having begun as
// soon as one of them has failed, for the caller may hold the others until then. It runs on a thread of the queue,
// or on a thread that waits for any fence of this queue. Invariant: the fence of a run is signalled exactly once, and
// by then the queue holds nothing of the run.
#pragma once

#include <memory>
#include <span>

#include "runtime/run.h"

namespace rlx {

class RunQueue {
 public:
  // Makes at most as many threads as the pool has workers, callers not counted, when they are needed. Without a pool, a
  // run begins at once on the caller's thread or, if a fence is open, on the thread that waits for it.
  explicit RunQueue(const ThreadPool* pool);
  ~RunQueue();  // after the last run
  RunQueue(const RunQueue&) = delete;
  RunQueue& operator=(const RunQueue&) = delete;

  // The result is RLX_E_ABORTED if one of `before` has failed.
  Fence submit(std::shared_ptr<Run> run, const RunScope& scope, std::span<const Fence> before);
  // Helps, and returns when all submitted runs have ended. On a thread of the queue it returns at once.
  void finish();
  std::shared_ptr<Helper> helper() const;
  bool has_threads() const;

 private:
  class Shared;
  std::shared_ptr<Shared> shared_;  // with the threads
};

}  // namespace rlx
