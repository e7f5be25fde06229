// SPDX-License-Identifier: Apache-2.0
// RunQueue: runs that were submitted. One begins when the fences that it waits for are done; threads of the queue take
// it, or a caller that waits for any fence of this queue. Invariant: its fence is signalled once, whatever happens, and
// by then the queue holds nothing of the run.
#pragma once

#include <memory>
#include <span>

#include "runtime/run.h"

namespace rlx {

class RunQueue {
 public:
  // At most as many threads as the pool has workers, callers not counted, made when needed. No pool: runs begin at once
  // on the caller's thread, or, where a fence is open, on that of whoever waits.
  explicit RunQueue(const ThreadPool* pool);
  ~RunQueue();  // after the last run
  RunQueue(const RunQueue&) = delete;
  RunQueue& operator=(const RunQueue&) = delete;

  // RLX_E_ABORTED is its result where one of `before` has failed.
  Fence submit(std::shared_ptr<Run> run, const RunScope& scope, std::span<const Fence> before);
  // Returns when all that was submitted has ended, and helps. A thread of the queue does not wait.
  void finish();
  std::shared_ptr<Helper> helper() const;
  bool has_threads() const;

 private:
  class Shared;
  std::shared_ptr<Shared> shared_;  // of the threads too
};

}  // namespace rlx
