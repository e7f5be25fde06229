// SPDX-License-Identifier: Apache-2.0
// The pool. A run is three hand-offs: an Event wakes each worker, a Barrier stands between steps, and a last Event
// tells the caller that all have left. Nobody touches the job after that, so it may live on the caller's stack.
#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <mutex>
#include <vector>

#include "base/barrier.h"
#include "base/topology.h"

namespace rlx {
namespace detail {

constexpr int kMostThreads = 1024;

struct Worker {
  Event go;
  alignas(64) std::atomic<int64_t> next{0};  // chunk of its own share; others take from it too
  Crew* crew = nullptr;
  int index = 0;
  pthread_t thread{};
};

class Crew {
 public:
  Crew(std::vector<int> cores, int size, bool pin);
  ~Crew();

  int size() const { return static_cast<int>(workers_.size()); }

  // Runs the job on up to `most` workers; false, and nothing ran, if another run has the threads.
  bool run(int most, FunctionRef<void(Team&)> job);

  void barrier(int workers) {
    barrier_.arrive(static_cast<uint32_t>(workers), spin_, [] {});
  }
  void chunks(const Team& team, int64_t n, int64_t grain, ChunkFn fn);

 private:
  static void* main(void* worker);
  void start(int workers);
  void bring_caller_home() const;

  std::vector<int> cores_;  // where worker i belongs, with pin
  cpu_set_t mask_;          // of the thread that made the crew; its threads inherit it whoever starts them
  bool has_mask_;
  int spin_;
  pid_t process_ = getpid();
  std::vector<Worker> workers_;  // [0] is the caller and has no thread
  int started_ = 1;
  const FunctionRef<void(Team&)>* job_ = nullptr;  // null: time to leave
  int job_workers_ = 0;
  std::atomic<bool> busy_{false};
  alignas(64) std::atomic<int> running_{0};  // workers, without the caller, still inside the job
  Event done_;
  Barrier barrier_;
};

Crew::Crew(std::vector<int> cores, int size, bool pin)
    : cores_(pin ? std::move(cores) : std::vector<int>()), workers_(static_cast<size_t>(size)) {
  has_mask_ = sched_getaffinity(0, sizeof mask_, &mask_) == 0;
  spin_ = has_mask_ && size > CPU_COUNT(&mask_) ? 0 : kSpinMicroseconds;
}

// Never on a thread of the crew: a run keeps the crew alive until its caller has seen all workers leave.
Crew::~Crew() {
  if (getpid() != process_) return;  // a forked child has none of these threads
  job_ = nullptr;
  for (int i = 1; i < started_; i++) workers_[i].go.signal();
  for (int i = 1; i < started_; i++) pthread_join(workers_[i].thread, nullptr);
}

void* Crew::main(void* argument) {
  Worker& worker = *static_cast<Worker*>(argument);
  Crew& crew = *worker.crew;
  fesetenv(FE_DFL_ENV);  // not the mode of whoever happened to start this thread
  pthread_setname_np(pthread_self(), format("rlx-%d", worker.index).c_str());
  cpu_set_t mask = crew.mask_;
  if (!crew.cores_.empty()) {
    CPU_ZERO(&mask);
    CPU_SET(static_cast<size_t>(crew.cores_[static_cast<size_t>(worker.index) % crew.cores_.size()]), &mask);
  }
  if (crew.has_mask_) sched_setaffinity(0, sizeof mask, &mask);
  for (;;) {
    worker.go.wait(crew.spin_);
    if (!crew.job_) return nullptr;
    Team team(&crew, worker.index, crew.job_workers_);
    (*crew.job_)(team);
    if (crew.running_.fetch_sub(1, std::memory_order_acq_rel) == 1) crew.done_.signal();
  }
}

// Makes the threads that are missing; where the system refuses one, runs have fewer workers.
void Crew::start(int workers) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited: the host's handlers never run on our threads
  for (; started_ < workers; started_++) {
    Worker& worker = workers_[started_];
    worker.crew = this;
    worker.index = started_;
    if (pthread_create(&worker.thread, nullptr, main, &worker) != 0) break;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// With pin: a caller that happens to stand on another worker's core is moved to its own. It may leave again: its mask
// is the host's and is restored at once.
void Crew::bring_caller_home() const {
  if (cores_.empty() || sched_getcpu() == cores_[0]) return;
  cpu_set_t before, home;
  CPU_ZERO(&home);
  CPU_SET(static_cast<size_t>(cores_[0]), &home);
  if (sched_getaffinity(0, sizeof before, &before) != 0 || !CPU_ISSET(static_cast<size_t>(cores_[0]), &before)) return;
  if (sched_setaffinity(0, sizeof home, &home) == 0) sched_setaffinity(0, sizeof before, &before);
}

bool Crew::run(int most, FunctionRef<void(Team&)> job) {
  if (busy_.exchange(true, std::memory_order_acquire)) return false;
  int workers = std::min(most, size());
  if (started_ < workers) start(workers);
  workers = std::min(workers, started_);
  if (workers > 1) {
    bring_caller_home();
    job_ = &job;
    job_workers_ = workers;
    running_.store(workers - 1, std::memory_order_relaxed);
    for (int i = 1; i < workers; i++) workers_[i].go.signal();
  }
  Team team(workers > 1 ? this : nullptr, 0, workers);
  job(team);
  if (workers > 1) done_.wait(spin_);
  busy_.store(false, std::memory_order_release);
  return true;
}

void Crew::chunks(const Team& team, int64_t n, int64_t grain, ChunkFn fn) {
  int64_t count = (n + grain - 1) / grain, workers = team.workers();
  for (int64_t turn = 0; turn < workers; turn++) {
    int64_t owner = (team.worker() + turn) % workers;
    int64_t first = count * owner / workers, last = count * (owner + 1) / workers;
    std::atomic<int64_t>& next = workers_[owner].next;
    for (int64_t i = first + next.fetch_add(1, std::memory_order_relaxed); i < last;
         i = first + next.fetch_add(1, std::memory_order_relaxed)) {
      fn(i * grain, std::min(n, (i + 1) * grain), team.worker());
    }
  }
  barrier_.arrive(static_cast<uint32_t>(workers), spin_, [&] {
    for (int64_t i = 0; i < workers; i++) workers_[i].next.store(0, std::memory_order_relaxed);
  });
}

}  // namespace detail

void Team::barrier() {
  if (crew_) crew_->barrier(workers_);
}

void Team::chunks(int64_t n, int64_t grain, ChunkFn fn) {
  if (crew_ && n > grain) return crew_->chunks(*this, n, grain, fn);
  if (worker_ == 0) {
    for (int64_t begin = 0; begin < n; begin += grain) fn(begin, std::min(n, begin + grain), 0);
  }
  barrier();
}

void Team::serial(FunctionRef<void()> fn) {
  if (worker_ == 0) fn();
  barrier();
}

struct ThreadPool::Lazy {
  std::once_flag once;
  std::shared_ptr<detail::Crew> crew;
};

ThreadPool::ThreadPool(std::shared_ptr<Host> host, PoolOptions options)
    : host_(std::move(host)), options_(options), lazy_(std::make_unique<Lazy>()) {}

ThreadPool::~ThreadPool() = default;

std::shared_ptr<detail::Crew> ThreadPool::crew() const {
  std::call_once(lazy_->once, [this] {
    bool count_cores = options_.threads == PoolOptions::kAllCores;
    std::vector<int> cores = count_cores || options_.pin ? usable_cores() : std::vector<int>();
    int size = count_cores ? static_cast<int>(cores.size()) : options_.threads;
    if (int quota = count_cores ? cpu_quota() : 0; quota > 0) size = std::min(size, quota);
    lazy_->crew =
        std::make_shared<detail::Crew>(std::move(cores), std::clamp(size, 1, detail::kMostThreads), options_.pin);
  });
  return lazy_->crew;
}

int ThreadPool::workers() const {
  if (has_teams()) return crew()->size();
  uint32_t count = host_->services().thread_count(host_->services().user);
  return static_cast<int>(std::clamp<uint32_t>(count, 1, detail::kMostThreads));
}

void ThreadPool::run_team(int most, FunctionRef<void(Team&)> job) {
  if (most > 1 && has_teams()) {
    std::shared_ptr<detail::Crew> held = crew();  // the job may end the pool
    if (held->run(most, job)) return;
  }
  Team alone(nullptr, 0, 1);
  job(alone);
}

void ThreadPool::parallel_for(int64_t n, int64_t grain, ChunkFn fn, int most) {
  int64_t count = n / grain + (n % grain != 0);
  most = static_cast<int>(std::min<int64_t>(most, count));
  if (most > 1 && !has_teams()) return host_parallel_for(n, grain, fn, most);
  run_team(most, [&](Team& team) { team.chunks(n, grain, fn); });
}

// The host calls `work` any way it likes; each call takes chunks until none is left, so none waits for another.
void ThreadPool::host_parallel_for(int64_t n, int64_t grain, ChunkFn fn, int most) {
  struct Work {
    int64_t n, grain;
    ChunkFn fn;
    std::atomic<int64_t> next{0};
    void take(int worker) {
      for (int64_t begin; (begin = next.fetch_add(1, std::memory_order_relaxed) * grain) < n;) {
        fn(begin, std::min(n, begin + grain), worker);
      }
    }
  } work{n, grain, fn};
  auto take = [](void* argument, size_t i) { static_cast<Work*>(argument)->take(static_cast<int>(i)); };
  const HostServices& services = host_->services();
  services.parallel_for(services.user, static_cast<size_t>(std::min(most, workers())), take, &work);
  work.take(0);  // whatever a host that skipped calls has left
}

}  // namespace rlx
