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
  // Helps, and returns when all submitted runs have ended. On a thread that does work of one it returns at once.
  void finish();
  std::shared_ptr<Helper> helper() const;
  bool has_threads() const;

 private:
  class Shared;

 public:
  // As long as it lives, the thread that made it does work of a run of this queue. The queue itself makes one for
  // whoever executes a run; those who share the work of a callback need their own.
  class InRun {
   public:
    explicit InRun(const RunQueue& queue) : InRun(queue.shared_.get()) {}
    ~InRun() { innermost_ = around_; }
    InRun(const InRun&) = delete;
    InRun& operator=(const InRun&) = delete;

   private:
    friend class Shared;
    explicit InRun(const Shared* queue) : queue_(queue), around_(innermost_) { innermost_ = this; }
    static bool is_of(const Shared* queue);

    static thread_local const InRun* innermost_;
    const Shared* const queue_;
    const InRun* const around_;
  };

 private:
  std::shared_ptr<Shared> shared_;  // with the threads
};

}  // namespace rlx
