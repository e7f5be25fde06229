// SPDX-License-Identifier: Apache-2.0
// The threads of one env, in two forms: chunks handed out one after another (`parallel_for`), and a team that walks
// one list of steps together with a barrier between them (`run_team`), which spares the fork and join at every step.
// Invariant: how work is cut into chunks depends on its size alone, never on the number of threads, so results do not.
#pragma once

#include <cstdint>
#include <memory>

#include "base/allocator.h"
#include "base/function_ref.h"

namespace rlx {

namespace detail {
class Crew;  // the threads and what they share; outlives the pool while a run goes on
}

using ChunkFn = FunctionRef<void(int64_t begin, int64_t end, int worker)>;

// One worker's view of a run. Every worker makes the same calls of `barrier` and `chunks`, in the same order.
class Team {
 public:
  int worker() const { return worker_; }    // 0: the thread that called run_team
  int workers() const { return workers_; }  // of this run; 1: alone, nothing below waits

  void barrier();

  // Calls fn for [0, grain), [grain, 2 grain) ... up to n, each once, on any worker, and waits for all of them. A
  // worker takes its own share in order, the same at every step, so that it finds in its cache what it wrote before;
  // then it helps others. Up to one chunk runs on worker 0.
  void chunks(int64_t n, int64_t grain, ChunkFn fn);

  // Runs fn on worker 0 while the others wait: for work under about 2 us, and for what must run alone.
  void serial(FunctionRef<void()> fn);

 private:
  friend class ThreadPool;
  friend class detail::Crew;
  Team(detail::Crew* crew, int worker, int workers) : crew_(crew), worker_(worker), workers_(workers) {}

  detail::Crew* crew_;  // null: alone
  int worker_;
  int workers_;
};

struct PoolOptions {
  static constexpr int kAllCores = -1;
  int threads = kAllCores;  // that take part, the caller included; 0 and 1: no thread is ever made
  bool pin = false;         // every worker to a core of its own
};

// Threads are made when first needed, by the thread that needs them, and joined by the destructor; where that runs
// inside a job of this pool, the thread that waits for the job joins them. A job must not throw. One run at a time has
// the threads: a second caller, and a job that calls its own pool, runs alone instead of waiting.
class ThreadPool {
 public:
  ThreadPool(std::shared_ptr<Host> host, PoolOptions options);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The most workers that a run may have, at least 1. The first call reads the topology of the machine (about 2 ms).
  int workers() const;

  // False: the threads are the host's, which may run jobs one after another, so that none may wait for another.
  bool has_teams() const { return host_->has_own_threads(); }

  // Runs job on up to `most` workers at once, the caller among them. Without teams, on the caller alone.
  void run_team(int most, FunctionRef<void(Team&)> job);

  // As Team::chunks, as a run of its own; works on the host's threads too.
  void parallel_for(int64_t n, int64_t grain, ChunkFn fn, int most = INT32_MAX);

 private:
  std::shared_ptr<detail::Crew> crew() const;
  void host_parallel_for(int64_t n, int64_t grain, ChunkFn fn, int most);

  std::shared_ptr<Host> host_;
  PoolOptions options_;
  struct Lazy;
  std::unique_ptr<Lazy> lazy_;
};

}  // namespace rlx
