// SPDX-License-Identifier: Apache-2.0
// The threads of one env. A caller shares out chunks of work, one step after another, and the pool's threads take them.
// Several callers may do so at once: the threads that no caller needs are shared out evenly, anew whenever a caller
// comes or goes. Nobody waits for a thread that has taken no chunk: a thread that lost its core only helps less.
// Invariant: how work is cut into chunks depends on its size alone. So results do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <memory>

#include "base/function_ref.h"
#include "base/host.h"

namespace rlx {

namespace detail {
class WorkerGroup;  // the threads and what they share; outlives the pool while a run goes on
}

using ChunkFn = FunctionRef<void(int64_t begin, int64_t end)>;

// The share of the threads that the caller of run_team has, for the length of one run.
class Team {
 public:
  // How many workers the team has now, the caller included. It changes as other runs begin and end.
  int workers();

  // Calls fn for [0, grain), [grain, 2 grain) ... up to n, each once, on at most `most` workers, and waits for all of
  // them. A worker takes its own share in order, the same at every step: so it finds in its cache what it wrote before.
  // Then it helps others. A single chunk runs on the caller. If there were more than kMaxChunks, each chunk is several
  // grains long. If fn throws, chunks that have not begun are left out, and the first exception is thrown here.
  void chunks(int64_t n, int64_t grain, ChunkFn fn, int most = INT32_MAX);
  static constexpr int64_t kMaxChunks = (int64_t{1} << 20) - 1;

 private:
  friend class ThreadPool;
  friend class detail::WorkerGroup;

  detail::WorkerGroup* group_ = nullptr;  // null: alone
  int place_ = 0;                         // of this run in the group
  uint64_t seen_ = 0;                     // the active runs when workers_ was counted
  int workers_ = 1;
};

struct PoolOptions {
  static constexpr int kAllCores = -1, kDefaultSpin = -1;
  int threads = kAllCores;  // the caller included; 0 and 1: no thread is ever made
  bool pin = false;         // every worker to a core of its own
  int spin = kDefaultSpin;  // microseconds that a thread waits awake; 0: never
};

// Threads are made when first needed, by the thread that needs them, and joined by the destructor. If the destructor
// runs inside a job of this pool, the thread that waits for the job joins them. With R runs and W workers each run has
// about W / R of them, its caller among them. A job that calls its own pool runs alone; but
// between two steps, parallel_for is a step of the job's team.
class ThreadPool {
 public:
  ThreadPool(std::shared_ptr<Host> host, PoolOptions options);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The most workers that a run may have, at least 1. The first call reads the topology of the machine (about 2 ms).
  int workers() const;

  // How many microseconds a thread that waits stays awake. Of a pool that has teams.
  int spin() const;

  // False: the threads are the host's. It may run jobs one after another, so no job may wait for another.
  bool has_teams() const { return host_->has_own_threads(); }

  // Calls job with up to `most` workers for its steps, the caller included. Without teams, the caller is alone. An
  // exception of the job is thrown here.
  void run_team(int most, FunctionRef<void(Team&)> job);

  // Team::chunks as a run of its own. Works on the host's threads too; work that they already do goes on alone.
  void parallel_for(int64_t n, int64_t grain, ChunkFn fn, int most = INT32_MAX);

 private:
  std::shared_ptr<detail::WorkerGroup> group() const;
  bool is_on_host_thread() const;
  void host_parallel_for(int64_t n, int64_t grain, ChunkFn fn, int calls);

  std::shared_ptr<Host> host_;
  PoolOptions options_;
  struct Lazy;
  std::unique_ptr<Lazy> lazy_;
};

}  // namespace rlx
