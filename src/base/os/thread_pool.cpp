// SPDX-License-Identifier: Apache-2.0
// The pool. Each active run has a state on which its caller posts steps. One atomic word says which runs are active,
// and every thread computes from this word alone which of them it serves. Nothing is assigned, so nothing must be taken
// back. A thread that has not seen the latest word only serves another run a little longer.
//
// A thread claims a chunk by a compare-and-swap on the share that the chunk belongs to. The step stays alive until
// every claimed chunk is counted as finished, and a thread reads data of the caller only while it has a claim. So a
// thread may come late to a step, or miss many, and the caller never waits for it to leave.
#include "base/os/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <vector>

#include "base/exception.h"
#include "base/once.h"
#include "base/os/event_count.h"
#include "base/os/topology.h"

namespace rlx {

namespace {

// The first exception in a step that several threads share. A thread that sees one begins no more work.
class FirstException {
 public:
  bool is_set() const { return is_set_.load(std::memory_order_relaxed); }
  void keep_current() noexcept {
    if (!is_set_.exchange(true, std::memory_order_relaxed)) exception_ = std::current_exception();
  }
  // Called on one thread, when all work has ended.
  void rethrow() {
    if (!is_set()) return;
    is_set_.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(exception_, nullptr));
  }

 private:
  std::atomic<bool> is_set_{false};
  std::exception_ptr exception_;
};

// n may be as large as an int64_t can be, so nothing is added to it.
int64_t chunk_count(int64_t n, int64_t grain) {
  return n / grain + (n % grain != 0);
}

}  // namespace

namespace detail {

constexpr int kMaxThreads = 1024;

// The distance between variables that different threads write. Processors fetch cache lines in pairs.
constexpr size_t kApart = 128;

// The chunks [next, end) of one worker that nobody has claimed yet, and how many workers may claim them.
struct Share {
  uint32_t next, end, workers;
  static constexpr int kChunkBits = 20;
  static_assert(Team::kMaxChunks < int64_t{1} << kChunkBits && kMaxThreads < int64_t{1} << (64 - 2 * kChunkBits));

  static Share of(uint64_t word) {
    constexpr uint64_t kMask = (uint64_t{1} << kChunkBits) - 1;
    return {static_cast<uint32_t>(word & kMask), static_cast<uint32_t>(word >> kChunkBits & kMask),
            static_cast<uint32_t>(word >> 2 * kChunkBits)};
  }
  uint64_t word() const { return next | uint64_t{end} << kChunkBits | uint64_t{workers} << 2 * kChunkBits; }
};

struct alignas(kApart) SharedWord {
  std::atomic<uint64_t> word{0};  // a Share
};

// Where a caller posts steps for its helpers. Later runs use the same state.
struct RunState {
  explicit RunState(size_t workers) : shares(workers) {}

  std::vector<SharedWord> shares;
  std::atomic<int> most{1};  // workers that the run can use

  // The low bits hold how many workers take part in the step, the others a number of the step.
  static constexpr uint32_t kStep = 1 << 11, kWorkers = kStep - 1;
  static_assert(kMaxThreads < kStep);
  alignas(kApart) std::atomic<uint32_t> step{0};

  // The current step. Only a thread that has claimed one of its chunks may use these.
  alignas(kApart) std::optional<ChunkFn> fn;
  int64_t n = 0, grain = 1;
  FirstException exception;

  uint32_t of_helpers = 0;  // chunks that helpers have taken, in all steps so far; only the caller uses it
  EventCount finished;      // counts the chunks that helpers have finished
};

struct Worker {
  WorkerGroup* group = nullptr;
  int index = 0;
  pthread_t thread{};
  alignas(kApart) std::atomic<bool> is_asleep{false};
  EventCount wake;
};

// Which run a worker serves, and its index among the workers of that run.
struct Assignment {
  int place = kNone, index = 0;
  static constexpr int kNone = -1;
};

class WorkerGroup {
 public:
  WorkerGroup(std::vector<int> cores, int size, const PoolOptions& options);
  ~WorkerGroup();

  int size() const { return static_cast<int>(workers_.size()); }
  int spin() const { return spin_; }

  // Makes `team` a run of up to `most` workers. Returns false if the caller is alone; end_run is not called then.
  bool begin_run(int most, Team& team);
  void end_run(const Team& team);

  int count_workers(Team& team) const;
  void chunks(Team& team, int workers, int64_t n, int64_t grain, ChunkFn fn);

 private:
  // The active runs: one bit per place, and above the bits a count of changes. If two reads give equal words, nothing
  // has changed between them.
  static constexpr int kMaxRuns = 48;
  static constexpr uint64_t kChange = uint64_t{1} << kMaxRuns, kRuns = kChange - 1;
  static uint64_t bit(int place) { return uint64_t{1} << place; }

  static void* main(void* argument);
  void serve(Worker& worker);
  template <class HasNews>
  bool sleep(Worker& worker, HasNews has_news);
  void start(int workers);
  void move_caller_to_its_core() const;
  template <class Fn>
  void for_each_assignment(uint64_t active, Fn fn) const;
  void wake(const Team& team, int workers);
  bool claim(RunState& state, uint32_t owner, uint32_t worker, int64_t& chunk);
  int64_t help(RunState& state, int index, int workers, uint64_t active);

  std::vector<int> cores_;  // where worker i belongs, with pin
  cpu_set_t mask_;          // of the thread that made the group; all its threads get this mask
  bool has_mask_;
  int spin_;
  pid_t process_ = getpid();
  std::vector<Worker> workers_;  // [0] is any caller and has no thread
  std::deque<RunState> states_;  // by place
  std::mutex starting_;
  std::atomic<int> started_{1};
  std::atomic<bool> leaving_{false};
  std::atomic<uint64_t> taken_{0};  // places

  alignas(kApart) std::atomic<uint64_t> active_{0};
  alignas(kApart) std::atomic<int> sleepers_{0};
};

// The group whose job this thread runs, or null.
static thread_local const WorkerGroup* current_group = nullptr;

// The team whose job this thread runs, while no step of it goes on here; else null.
static thread_local Team* idle_team = nullptr;
// This thread does work that the host's pool has handed out.
static thread_local bool is_in_host_work = false;

// Sets a variable of this thread, for the life of this object.
template <class T>
class ScopedValue {
 public:
  ScopedValue(T& variable, T value) : variable_(variable), before_(std::exchange(variable, value)) {}
  ~ScopedValue() { variable_ = before_; }
  ScopedValue(const ScopedValue&) = delete;
  ScopedValue& operator=(const ScopedValue&) = delete;

 private:
  T& variable_;
  T before_;
};

WorkerGroup::WorkerGroup(std::vector<int> cores, int size, const PoolOptions& options)
    : cores_(options.pin ? std::move(cores) : std::vector<int>()), workers_(static_cast<size_t>(size)) {
  has_mask_ = sched_getaffinity(0, sizeof mask_, &mask_) == 0;
  spin_ = has_mask_ && size > CPU_COUNT(&mask_) ? kShortSpinMicroseconds : kSpinMicroseconds;
  if (options.spin != PoolOptions::kDefaultSpin) spin_ = options.spin;
  if (size == 1) return;
  for (int i = 0; i < kMaxRuns; i++) states_.emplace_back(static_cast<size_t>(size));
}

// Never runs on a thread of the group: a run keeps the group alive until its caller has seen all chunks finished.
WorkerGroup::~WorkerGroup() {
  if (getpid() != process_) return;  // a forked child has none of these threads
  leaving_.store(true);
  active_.fetch_add(kChange);
  for (int i = 1; i < started_; i++) workers_[static_cast<size_t>(i)].wake.raise();
  for (int i = 1; i < started_; i++) pthread_join(workers_[static_cast<size_t>(i)].thread, nullptr);
}

void* WorkerGroup::main(void* argument) {
  Worker& worker = *static_cast<Worker*>(argument);
  WorkerGroup& group = *worker.group;
  fesetenv(FE_DFL_ENV);  // not the mode of whoever happened to start this thread
  pthread_setname_np(pthread_self(), format("rlx-{}", worker.index).c_str());
  cpu_set_t mask = group.mask_;
  if (!group.cores_.empty()) {
    CPU_ZERO(&mask);
    CPU_SET(static_cast<size_t>(group.cores_[static_cast<size_t>(worker.index) % group.cores_.size()]), &mask);
  }
  if (group.has_mask_) sched_setaffinity(0, sizeof mask, &mask);
  current_group = &group;
  group.serve(worker);
  return nullptr;
}

void WorkerGroup::serve(Worker& worker) {
  uint64_t active = ~active_.load();  // any word but the current one
  SpinClock::time_point awake_until;
  bool has_helped = true;  // since awake_until was set; the clock is read only by a thread without work
  for (Assignment assignment; !leaving_.load();) {
    if (uint64_t now = active_.load(); now != active) {
      active = now;
      assignment = {};
      for_each_assignment(
          active, [&](int to_worker, Assignment to) { assignment = to_worker == worker.index ? to : assignment; });
    }
    RunState* state = assignment.place == Assignment::kNone ? nullptr : &states_[static_cast<size_t>(assignment.place)];
    uint32_t step = state ? state->step.load() : 0;
    if (state) has_helped |= help(*state, assignment.index, static_cast<int>(step & RunState::kWorkers), active) > 0;

    auto has_news = [&] { return active_.load() != active || (state && state->step.load() != step); };
    if (spin_ > 0 && spin_briefly(has_news)) continue;
    if (has_helped) awake_until = SpinClock::now() + std::chrono::microseconds(spin_);
    has_helped = false;
    if (spin_until(awake_until, has_news)) continue;
    has_helped = sleep(worker, has_news);
  }
}

// Returns true if the thread slept and was woken. No wake-up is lost: a waker posts the news before it looks which
// threads sleep, and this thread marks itself as asleep before it looks for news.
template <class HasNews>
bool WorkerGroup::sleep(Worker& worker, HasNews has_news) {
  uint32_t seen = worker.wake.now();
  worker.is_asleep.store(true);
  sleepers_.fetch_add(1);
  bool sleeps = !has_news();
  if (sleeps) worker.wake.wait(seen, 0);
  sleepers_.fetch_sub(1);
  worker.is_asleep.store(false);
  return sleeps;
}

// Starts the threads that are missing. If the system refuses one, runs have fewer workers.
void WorkerGroup::start(int workers) {
  std::lock_guard lock(starting_);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited: the host's handlers never run on our threads
  for (int i = started_; i < workers; i++) {
    Worker& worker = workers_[static_cast<size_t>(i)];
    worker.group = this;
    worker.index = i;
    if (pthread_create(&worker.thread, nullptr, main, &worker) != 0) break;
    started_ = i + 1;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// With pin: moves a caller that runs on the core of another worker to its own core. The host owns the affinity mask of
// this thread; we restore it at once, so the caller may move away again.
void WorkerGroup::move_caller_to_its_core() const {
  if (cores_.empty() || sched_getcpu() == cores_[0]) return;
  cpu_set_t before, home;
  CPU_ZERO(&home);
  CPU_SET(static_cast<size_t>(cores_[0]), &home);
  if (sched_getaffinity(0, sizeof before, &before) != 0 || !CPU_ISSET(static_cast<size_t>(cores_[0]), &before)) return;
  if (sched_setaffinity(0, sizeof home, &home) == 0) sched_setaffinity(0, sizeof before, &before);
}

bool WorkerGroup::begin_run(int most, Team& team) {
  if (current_group == this) return false;
  uint64_t taken = taken_.load(std::memory_order_relaxed);
  do {
    team.place_ = std::countr_one(taken);
    if (team.place_ >= static_cast<int>(states_.size())) return false;
  } while (!taken_.compare_exchange_weak(taken, taken | bit(team.place_), std::memory_order_acquire));
  bool is_only_run = taken == 0;
  most = std::min(most, size());
  if (int wanted = is_only_run ? most : size(); started_ < wanted) start(wanted);
  if (is_only_run && most > 1) move_caller_to_its_core();
  states_[static_cast<size_t>(team.place_)].most.store(most, std::memory_order_relaxed);
  active_.fetch_add(kChange + bit(team.place_));
  team.group_ = this;
  return true;
}

void WorkerGroup::end_run(const Team& team) {
  active_.fetch_add(kChange - bit(team.place_));
  taken_.fetch_and(~bit(team.place_), std::memory_order_release);
}

// Shares the threads out, one to each run in turn, until no thread is left or no run can use more. Calls fn(worker,
// assignment) for each. The caller of a run occupies a core, so for each run one thread stays idle.
template <class Fn>
void WorkerGroup::for_each_assignment(uint64_t active, Fn fn) const {
  uint64_t runs = active & kRuns;
  int end = std::min(started_.load(), size() - std::popcount(runs) + 1);
  int worker = 1;
  for (int index = 1; worker < end; index++) {
    int before = worker;
    for (uint64_t rest = runs; rest && worker < end; rest &= rest - 1) {
      int place = std::countr_zero(rest);
      if (index < states_[static_cast<size_t>(place)].most.load(std::memory_order_relaxed))
        fn(worker++, Assignment{place, index});
    }
    if (worker == before) return;
  }
}

int WorkerGroup::count_workers(Team& team) const {
  uint64_t active = active_.load(std::memory_order_relaxed);
  if (active == team.seen_) return team.workers_;
  team.seen_ = active;
  team.workers_ = 1;
  for_each_assignment(active, [&](int, Assignment assignment) { team.workers_ += assignment.place == team.place_; });
  return team.workers_;
}

// Wakes those of the first `workers` of a team that sleep.
void WorkerGroup::wake(const Team& team, int workers) {
  for_each_assignment(team.seen_, [&](int worker, Assignment assignment) {
    Worker& it = workers_[static_cast<size_t>(worker)];
    if (assignment.place == team.place_ && assignment.index < workers && it.is_asleep.load()) it.wake.raise();
  });
}

bool WorkerGroup::claim(RunState& state, uint32_t owner, uint32_t worker, int64_t& chunk) {
  std::atomic<uint64_t>& shared = state.shares[owner].word;
  uint64_t word = shared.load(std::memory_order_acquire);
  for (Share share = Share::of(word); share.next < share.end && worker < share.workers; share = Share::of(word)) {
    chunk = share.next++;
    if (shared.compare_exchange_weak(word, share.word(), std::memory_order_acq_rel)) return true;
  }
  return false;
}

// Takes chunks until there are none: first those of its own share, then those of others. A thread leaves when runs come
// or go; the caller (index 0) stays. Returns how many it took. A helper counts them as finished, and does not touch
// them after that.
int64_t WorkerGroup::help(RunState& state, int index, int workers, uint64_t active) {
  int64_t taken = 0;
  __builtin_prefetch(&state.fn);  // while the claim is under way
  for (int turn = 0; turn < workers && index < workers; turn++) {
    auto owner = static_cast<uint32_t>((index + turn) % workers);
    int64_t finished = 0;
    bool stays = true;
    for (int64_t chunk; stays && claim(state, owner, static_cast<uint32_t>(index), chunk); finished++) {
      if (!state.exception.is_set()) try {
          (*state.fn)(chunk * state.grain, std::min(state.n, (chunk + 1) * state.grain));
        } catch (...) {
          state.exception.keep_current();
        }
      stays = index == 0 || active_.load(std::memory_order_relaxed) == active;
    }
    taken += finished;
    if (finished > 0 && index > 0) state.finished.raise(static_cast<uint32_t>(finished));
    if (!stays) break;
  }
  return taken;
}

void WorkerGroup::chunks(Team& team, int workers, int64_t n, int64_t grain, ChunkFn fn) {
  RunState& state = states_[static_cast<size_t>(team.place_)];
  int64_t count = chunk_count(n, grain);
  state.fn = fn;
  state.n = n;
  state.grain = grain;
  for (int64_t i = 0; i < workers; i++) {
    Share share{static_cast<uint32_t>(count * i / workers), static_cast<uint32_t>(count * (i + 1) / workers),
                static_cast<uint32_t>(workers)};
    state.shares[static_cast<size_t>(i)].word.store(share.word(), std::memory_order_release);
  }
  uint32_t number = (state.step.load(std::memory_order_relaxed) | RunState::kWorkers) + 1;
  state.step.store(number | static_cast<uint32_t>(workers));
  if (sleepers_.load() > 0) wake(team, workers);
  state.of_helpers += static_cast<uint32_t>(count - help(state, 0, workers, 0));
  for (uint32_t now = state.finished.now(); now != state.of_helpers; now = state.finished.now())
    state.finished.wait(now, spin_);
  state.exception.rethrow();
}

}  // namespace detail

int Team::workers() {
  return group_ ? group_->count_workers(*this) : 1;
}

void Team::chunks(int64_t n, int64_t grain, ChunkFn fn, int most) {
  grain *= n / grain / kMaxChunks + 1;
  if (group_ && n > grain && most > 1) {
    int64_t count = chunk_count(n, grain);
    auto now = static_cast<int>(std::min<int64_t>({most, workers(), count}));
    if (now > 1) {
      detail::ScopedValue busy(detail::idle_team, static_cast<Team*>(nullptr));
      return group_->chunks(*this, now, n, grain, fn);
    }
  }
  for (int64_t begin = 0; begin < n; begin += grain) fn(begin, std::min(n, begin + grain));
}

struct ThreadPool::Lazy {
  Once once;
  std::shared_ptr<detail::WorkerGroup> group;
};

ThreadPool::ThreadPool(std::shared_ptr<Host> host, PoolOptions options)
    : host_(std::move(host)), options_(options), lazy_(std::make_unique<Lazy>()) {}

ThreadPool::~ThreadPool() = default;

std::shared_ptr<detail::WorkerGroup> ThreadPool::group() const {
  lazy_->once.call([this] {
    bool count_cores = options_.threads == PoolOptions::kAllCores;
    std::vector<int> cores = count_cores || options_.pin ? usable_cores() : std::vector<int>();
    int size = count_cores ? static_cast<int>(cores.size()) : options_.threads;
    if (int quota = count_cores ? cpu_quota() : 0; quota > 0) size = std::min(size, quota);
    lazy_->group =
        std::make_shared<detail::WorkerGroup>(std::move(cores), std::clamp(size, 1, detail::kMaxThreads), options_);
  });
  return lazy_->group;
}

int ThreadPool::workers() const {
  if (has_teams()) return group()->size();
  uint32_t count = host_->services().thread_count(host_->services().user);
  uint32_t most = options_.threads == PoolOptions::kAllCores ? detail::kMaxThreads : std::max(options_.threads, 1);
  return static_cast<int>(std::clamp<uint32_t>(count, 1, std::min<uint32_t>(most, detail::kMaxThreads)));
}

int ThreadPool::spin() const {
  return group()->spin();
}

void ThreadPool::run_team(int most, FunctionRef<void(Team&)> job) {
  Team team;
  std::shared_ptr<detail::WorkerGroup> held = most > 1 && has_teams() ? group() : nullptr;  // the job may end the pool
  if (!held || !held->begin_run(most, team)) return job(team);
  struct RunScope {
    detail::WorkerGroup& group;
    Team& team;
    detail::ScopedValue<const detail::WorkerGroup*> here{detail::current_group, &group};
    detail::ScopedValue<Team*> between_steps{detail::idle_team, &team};
    ~RunScope() { group.end_run(team); }
  } run{*held, team};
  job(team);
}

void ThreadPool::parallel_for(int64_t n, int64_t grain, ChunkFn fn, int most) {
  int64_t count = chunk_count(n, grain);
  most = static_cast<int>(std::min<int64_t>(most, count));
  bool asks_host = most > 1 && !has_teams() && !is_on_host_thread();
  if (int calls = asks_host ? std::min(most, workers()) : 1; calls > 1) return host_parallel_for(n, grain, fn, calls);
  Team* own = detail::idle_team;
  if (own && has_teams() && own->group_ == group().get()) return own->chunks(n, grain, fn, most);
  run_team(most, [&](Team& team) { team.chunks(n, grain, fn); });
}

// Work that runs on a thread of the host's pool must not call that pool again: a pool that waits for itself might wait
// for ever.
bool ThreadPool::is_on_host_thread() const {
  const HostServices& services = host_->services();
  if (detail::is_in_host_work) return true;
  return services.thread_index && services.thread_index(services.user) != UINT32_MAX;
}

// The host may call `work` in any order and number; each call takes chunks until none is left, so no call waits for
// another. Exceptions do not pass through the host's code.
void ThreadPool::host_parallel_for(int64_t n, int64_t grain, ChunkFn fn, int calls) {
  struct Work {
    int64_t n, grain;
    ChunkFn fn;
    std::atomic<int64_t> next{0};
    FirstException exception{};
    void take() noexcept try {
      detail::ScopedValue here(detail::is_in_host_work, true);
      for (int64_t begin; !exception.is_set() && (begin = next.fetch_add(1, std::memory_order_relaxed) * grain) < n;)
        fn(begin, std::min(n, begin + grain));
    } catch (...) {
      exception.keep_current();
    }
  } work{n, grain, fn};
  auto take = [](void* argument, size_t) { static_cast<Work*>(argument)->take(); };
  const HostServices& services = host_->services();
  call_host("parallel_for", [&] { services.parallel_for(services.user, static_cast<size_t>(calls), take, &work); });
  work.take();  // the rest, if the host left out calls
  work.exception.rethrow();
}

}  // namespace rlx
