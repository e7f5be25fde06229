// SPDX-License-Identifier: Apache-2.0
// The threads of one env. A caller shares out chunks of work, one step after another, and the pool's threads take them.
// Nobody waits for a thread that has taken nothing: one that lost its core to another program only helps less.
// Invariant: how work is cut into chunks depends on its size alone. So results do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <memory>

#include "base/allocator.h"
#include "base/function_ref.h"

namespace rlx {

namespace detail {
class Crew;  // the threads and what they share; outlives the pool while a run goes on
}

using ChunkFn = FunctionRef<void(int64_t begin, int64_t end)>;

// What the caller of run_team has: the threads, for the length of one run.
class Team {
 public:
  int workers() const { return workers_; }  // the caller among them; 1: alone

  // Calls fn for [0, grain), [grain, 2 grain) ... up to n, each once, on any worker, and waits for all of them. A
  // worker takes its own share in order, the same at every step, so that it finds in its cache what it wrote before;
  // then it helps others. One chunk runs on the caller. Of more than kMostChunks, each is some grains long.
  void chunks(int64_t n, int64_t grain, ChunkFn fn);
  static constexpr int64_t kMostChunks = (int64_t{1} << 20) - 1;

 private:
  friend class ThreadPool;
  Team(detail::Crew* crew, int workers) : crew_(crew), workers_(workers) {}

  detail::Crew* crew_;  // null: alone
  int workers_;
};

struct PoolOptions {
  static constexpr int kAllCores = -1;
  int threads = kAllCores;  // the caller included; 0 and 1: no thread is ever made
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

  // False: the threads are the host's. It may run jobs one after another, so no job may wait for another.
  bool has_teams() const { return host_->has_own_threads(); }

  // Calls job with up to `most` workers for its steps, the caller among them. Without teams, the caller is alone.
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
