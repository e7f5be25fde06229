// SPDX-License-Identifier: Apache-2.0
// Decides how many threads a phase is worth, from the estimates of kernels and the measured cost of waking and
// feeding threads; then runs the phases in order.
#include "backends/cpu/walk.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <mutex>

#include "base/exception.h"

namespace rlx::cpu {

namespace {

// Limits in nanoseconds of work on one thread. A step is shared if that saves kWorthSharing: the hand-over, and
// fetching from another core what it wrote, take 1 to 3 us. A run whose shareable work is less than kWorthWaking runs
// on the caller, because waking a sleeping thread takes about as long: 23 to 72 us were measured.
constexpr double kWorthSharing = 2000, kWorthWaking = 50000;

// What one more worker costs a phase, and what waking it costs the caller, in nanoseconds: spread over too many
// workers, a phase ends later than on fewer. On 16 cores that spin, phases of 5 us end soonest on 6 to 12 workers,
// longer ones on 16.
constexpr double kCostOfWorker = 25, kCostOfWaking = 3000;

// FTZ and DAZ belong to a phase: set while a phase that allows them runs, and as found afterwards.
class DenormalMode {
 public:
#if defined(__x86_64__)
  DenormalMode() : found_(_mm_getcsr()), now_(found_) {}
  ~DenormalMode() {
    set(found_);
  }
  void keep(bool keeps) {
    set(keeps ? found_ & ~kFlush : found_ | kFlush);
  }

 private:
  static constexpr unsigned kFlush = 0x8040;  // FTZ is bit 15, DAZ bit 6 of MXCSR
  void set(unsigned wanted) {
    if (now_ != wanted) _mm_setcsr(now_ = wanted);
  }
  unsigned found_, now_;
#else
  void keep(bool) {}
#endif
};

// The first failure of a run that several threads share; a thread that sees one stops. All of them look often, so it
// shares its cache line with nothing that is written.
class alignas(64) FirstFailure {
 public:
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  void set(Status status) {
    std::lock_guard lock(mutex_);
    if (status_.ok()) status_ = std::move(status);
    failed_.store(true, std::memory_order_relaxed);
  }
  Status take() { return std::move(status_); }

 private:
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  Status status_;
};

void run_part(const EncodedPhase& phase, int64_t begin, int64_t end, FirstFailure& failure, CancelToken cancel) {
  if (failure.failed()) return;
  if (cancel.is_set()) return failure.set(cancelled());
  DenormalMode mode;
  mode.keep(phase.keeps_denormals);
  Status status = phase.launch.run(phase.args, begin, end);
  if (!status.ok()) failure.set(std::move(status));
}

}  // namespace

// t / n + n * c has its minimum at n = sqrt(t / c).
int useful_workers(double nanoseconds, double of_each) {
  constexpr double kMost = 1024;
  return static_cast<int>(std::clamp(std::sqrt(nanoseconds / of_each), 1.0, kMost));
}

// n workers save t - t / n.
static int least_workers(double nanoseconds) {
  double beyond = nanoseconds - kWorthSharing;
  return beyond > 1 ? static_cast<int>(std::ceil(1 + kWorthSharing / beyond)) : INT32_MAX;
}

int useful_workers(std::span<const PhaseGroup> groups) {
  double shared = 0;
  int most = 1;
  for (const PhaseGroup& group : groups) {
    shared += group.nanoseconds;
    most = std::max(most, group.workers);
  }
  return shared < kWorthWaking ? 1 : std::min(most, useful_workers(shared, kCostOfWaking));
}

void group_phases(std::span<const EncodedPhase> phases, std::vector<PhaseGroup>& groups) {
  groups.clear();
  for (uint32_t i = 0; i < phases.size(); i++) {
    const Launch::Phase& launch = phases[i].launch;
    int workers = useful_workers(launch.nanoseconds, kCostOfWorker), least = least_workers(launch.nanoseconds);
    if (launch.parts > 1 && least <= workers) {
      double part = launch.nanoseconds / static_cast<double>(launch.parts);
      groups.push_back({i, 1, std::max<int64_t>(1, static_cast<int64_t>(kWorthSharing / 2 / part)), launch.nanoseconds,
                        workers, least});
    } else if (groups.empty() || groups.back().grain) {
      groups.push_back({i, 1, 0});
    } else {
      groups.back().count++;
    }
  }
}

Status walk_alone(std::span<const EncodedPhase> phases, CancelToken cancel) try {
  DenormalMode mode;
  for (const EncodedPhase& phase : phases) {
    if (cancel.is_set()) return cancelled();
    mode.keep(phase.keeps_denormals);
    Status status = phase.launch.run(phase.args, 0, phase.launch.parts);
    if (!status.ok()) return status;
  }
  return {};
} catch (...) {
  return from_exception("a kernel");
}

// Serial groups run on the caller. The others are cut into chunks, which any thread of the team takes.
static void walk_with_team(Team& team, std::span<const EncodedPhase> phases, std::span<const PhaseGroup> groups,
                           FirstFailure& failure, CancelToken cancel) {
  for (const PhaseGroup& group : groups) {
    std::span<const EncodedPhase> own = phases.subspan(group.first, group.count);
    if (group.grain && team.workers() >= group.least) {
      // The captures fit into one cache line: the helpers fetch it from the caller at every step.
      auto part = [&phase = own[0], &failure, cancel](int64_t begin, int64_t end) {
        run_part(phase, begin, end, failure, cancel);
      };
      team.chunks(own[0].launch.parts, group.grain, part, group.workers);
    } else {
      for (const EncodedPhase& phase : own) run_part(phase, 0, phase.launch.parts, failure, cancel);
    }
    if (failure.failed()) return;
  }
}

static Status walk_with_host(ThreadPool& pool, int workers, std::span<const EncodedPhase> phases,
                             std::span<const PhaseGroup> groups, CancelToken cancel) {
  FirstFailure failure;
  for (const PhaseGroup& group : groups) {
    if (!group.grain || workers < group.least) {
      RLX_TRY(walk_alone(phases.subspan(group.first, group.count), cancel));
      continue;
    }
    const EncodedPhase& phase = phases[group.first];
    auto part = [&](int64_t begin, int64_t end) { run_part(phase, begin, end, failure, cancel); };
    pool.parallel_for(phase.launch.parts, group.grain, part, std::min(workers, group.workers));
    if (failure.failed()) break;
  }
  return failure.take();
}

static Status walk_in_parallel(std::span<const EncodedPhase> phases, std::span<const PhaseGroup> groups,
                               ThreadPool& pool, int workers, CancelToken cancel) {
  if (!pool.has_teams()) return walk_with_host(pool, workers, phases, groups, cancel);
  FirstFailure failure;
  pool.run_team(workers, [&](Team& team) { walk_with_team(team, phases, groups, failure, cancel); });
  return failure.take();
}

Status walk(std::span<const EncodedPhase> phases, std::span<const PhaseGroup> groups, ThreadPool& pool, int threads,
            CancelToken cancel) {
  int workers = threads <= 1 ? 1 : std::min(threads, useful_workers(groups));
  if (workers > 1) workers = std::min(workers, pool.workers());
  if (workers <= 1) return walk_alone(phases, cancel);
  try {
    return walk_in_parallel(phases, groups, pool, workers, cancel);
  } catch (...) {
    return from_exception("a kernel");
  }
}

}  // namespace rlx::cpu
