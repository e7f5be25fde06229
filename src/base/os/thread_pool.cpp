// SPDX-License-Identifier: Apache-2.0
// The pool. A thread claims a chunk by a compare-and-swap on the share that the chunk belongs to. The step stays alive
// until every claimed chunk is counted as finished, and a thread reads what the caller owns only while it has a claim.
// So a thread may come late to a step, or sleep through many, and the caller never waits for it to leave.
#include "base/os/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <mutex>
#include <vector>

#include "base/os/signal.h"
#include "base/os/topology.h"

namespace rlx {
namespace detail {

constexpr int kMostThreads = 1024;

// The chunks [next, end) of one worker that nobody has claimed yet, and how many workers may claim them.
struct Share {
  uint32_t next, end, workers;
  static constexpr int kChunkBits = 20;
  static_assert(Team::kMostChunks < int64_t{1} << kChunkBits && kMostThreads < int64_t{1} << (64 - 2 * kChunkBits));

  static Share of(uint64_t word) {
    constexpr uint64_t kMask = (uint64_t{1} << kChunkBits) - 1;
    return {static_cast<uint32_t>(word & kMask), static_cast<uint32_t>(word >> kChunkBits & kMask),
            static_cast<uint32_t>(word >> 2 * kChunkBits)};
  }
  uint64_t word() const { return next | uint64_t{end} << kChunkBits | uint64_t{workers} << 2 * kChunkBits; }
};

struct Worker {
  alignas(64) std::atomic<uint64_t> share{0};  // a Share
  Crew* crew = nullptr;
  int index = 0;
  pthread_t thread{};
};

class Crew {
 public:
  Crew(std::vector<int> cores, int size, bool pin);
  ~Crew();

  int size() const { return static_cast<int>(workers_.size()); }

  // For one run at a time: up to `most` workers, the caller among them; 0 if another run has the threads.
  int hire(int most);
  void dismiss() { busy_.store(false, std::memory_order_release); }

  void chunks(int workers, int64_t n, int64_t grain, ChunkFn fn);

 private:
  static void* main(void* argument);
  void start(int workers);
  void bring_caller_home() const;
  bool claim(Worker& owner, uint32_t worker, int64_t& chunk);
  void help(int worker);

  std::vector<int> cores_;  // where worker i belongs, with pin
  cpu_set_t mask_;          // of the thread that made the crew; its threads inherit it whoever starts them
  bool has_mask_;
  int spin_;
  pid_t process_ = getpid();
  std::vector<Worker> workers_;  // [0] is the caller and has no thread
  int started_ = 1;
  std::atomic<bool> busy_{false};
  std::atomic<bool> leaving_{false};

  // The current step. Only a thread that has claimed one of its chunks may read these.
  const ChunkFn* fn_ = nullptr;
  int64_t n_ = 0, grain_ = 1;

  alignas(64) std::atomic<int64_t> unfinished_{0};  // chunks of this step
  Signal work_;                                     // there are chunks to claim, or it is time to leave
  Signal finished_;                                 // someone else finished the last chunk
};

Crew::Crew(std::vector<int> cores, int size, bool pin)
    : cores_(pin ? std::move(cores) : std::vector<int>()), workers_(static_cast<size_t>(size)) {
  has_mask_ = sched_getaffinity(0, sizeof mask_, &mask_) == 0;
  spin_ = has_mask_ && size > CPU_COUNT(&mask_) ? 0 : kSpinMicroseconds;
}

// Never on a thread of the crew: a run keeps the crew alive until its caller has seen all chunks finished.
Crew::~Crew() {
  if (getpid() != process_) return;  // a forked child has none of these threads
  leaving_.store(true);
  work_.raise();
  for (int i = 1; i < started_; i++) pthread_join(workers_[static_cast<size_t>(i)].thread, nullptr);
}

void* Crew::main(void* argument) {
  Worker& worker = *static_cast<Worker*>(argument);
  Crew& crew = *worker.crew;
  fesetenv(FE_DFL_ENV);  // not the mode of whoever happened to start this thread
  pthread_setname_np(pthread_self(), format("rlx-{}", worker.index).c_str());
  cpu_set_t mask = crew.mask_;
  if (!crew.cores_.empty()) {
    CPU_ZERO(&mask);
    CPU_SET(static_cast<size_t>(crew.cores_[static_cast<size_t>(worker.index) % crew.cores_.size()]), &mask);
  }
  if (crew.has_mask_) sched_setaffinity(0, sizeof mask, &mask);
  for (uint32_t seen = 0;;) {
    crew.work_.wait(seen, crew.spin_);
    seen = crew.work_.now();
    if (crew.leaving_.load()) return nullptr;
    crew.help(worker.index);
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

// With pin: moves a caller that runs on another worker's core to its own. Its mask belongs to the host and is restored
// at once, so the caller may move away again.
void Crew::bring_caller_home() const {
  if (cores_.empty() || sched_getcpu() == cores_[0]) return;
  cpu_set_t before, home;
  CPU_ZERO(&home);
  CPU_SET(static_cast<size_t>(cores_[0]), &home);
  if (sched_getaffinity(0, sizeof before, &before) != 0 || !CPU_ISSET(static_cast<size_t>(cores_[0]), &before)) return;
  if (sched_setaffinity(0, sizeof home, &home) == 0) sched_setaffinity(0, sizeof before, &before);
}

int Crew::hire(int most) {
  if (busy_.exchange(true, std::memory_order_acquire)) return 0;
  int workers = std::min(most, size());
  if (started_ < workers) start(workers);
  workers = std::min(workers, started_);
  if (workers > 1) bring_caller_home();
  return workers;
}

bool Crew::claim(Worker& owner, uint32_t worker, int64_t& chunk) {
  uint64_t word = owner.share.load(std::memory_order_acquire);
  for (Share share = Share::of(word); share.next < share.end && worker < share.workers; share = Share::of(word)) {
    chunk = share.next++;
    if (owner.share.compare_exchange_weak(word, share.word(), std::memory_order_acq_rel)) return true;
  }
  return false;
}

// Takes chunks until there are none: first those of its own share, then those of others.
void Crew::help(int worker) {
  for (int turn = 0; turn < size(); turn++) {
    Worker& owner = workers_[static_cast<size_t>((worker + turn) % size())];
    int64_t finished = 0;
    for (int64_t chunk; claim(owner, static_cast<uint32_t>(worker), chunk); finished++)
      (*fn_)(chunk * grain_, std::min(n_, (chunk + 1) * grain_));
    bool was_last = finished && unfinished_.fetch_sub(finished, std::memory_order_acq_rel) == finished;
    if (was_last && worker > 0) finished_.raise();
  }
}

void Crew::chunks(int workers, int64_t n, int64_t grain, ChunkFn fn) {
  int64_t count = n / grain + (n % grain != 0);
  fn_ = &fn;
  n_ = n;
  grain_ = grain;
  unfinished_.store(count, std::memory_order_relaxed);
  for (int64_t i = 0; i < workers; i++) {
    Share share{static_cast<uint32_t>(count * i / workers), static_cast<uint32_t>(count * (i + 1) / workers),
                static_cast<uint32_t>(workers)};
    workers_[static_cast<size_t>(i)].share.store(share.word(), std::memory_order_release);
  }
  work_.raise();
  help(0);
  for (uint32_t seen = finished_.now(); unfinished_.load(std::memory_order_acquire) > 0; seen = finished_.now())
    finished_.wait(seen, spin_);
}

}  // namespace detail

void Team::chunks(int64_t n, int64_t grain, ChunkFn fn) {
  grain *= n / grain / kMostChunks + 1;
  if (crew_ && n > grain) return crew_->chunks(workers_, n, grain, fn);
  for (int64_t begin = 0; begin < n; begin += grain) fn(begin, std::min(n, begin + grain));
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
  std::shared_ptr<detail::Crew> held = most > 1 && has_teams() ? crew() : nullptr;  // the job may end the pool
  int workers = held ? held->hire(most) : 0;
  Team team(workers > 1 ? held.get() : nullptr, std::max(workers, 1));
  job(team);
  if (workers > 0) held->dismiss();
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
    void take() {
      for (int64_t begin; (begin = next.fetch_add(1, std::memory_order_relaxed) * grain) < n;)
        fn(begin, std::min(n, begin + grain));
    }
  } work{n, grain, fn};
  auto take = [](void* argument, size_t) { static_cast<Work*>(argument)->take(); };
  const HostServices& services = host_->services();
  services.parallel_for(services.user, static_cast<size_t>(std::min(most, workers())), take, &work);
  work.take();  // what is left where the host skipped calls
}

}  // namespace rlx
