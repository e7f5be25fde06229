// SPDX-License-Identifier: Apache-2.0
// The state that the copies of a fence share, and threads that wait for several fences at once.
#include "device/fence.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <vector>

#include "base/contains.h"
#include "base/os/event_count.h"

namespace rlx {

struct FenceWaiter::Events {
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<uint64_t> count{0};  // changed under the lock
};

FenceWaiter::FenceWaiter() : events_(std::make_unique<Events>()) {}
FenceWaiter::~FenceWaiter() = default;

void FenceWaiter::notify() {
  std::lock_guard lock(events_->mutex);
  events_->count++;
  events_->changed.notify_all();
}

struct Fence::State {
  std::mutex mutex;
  bool done = false;
  Status result;
  std::shared_ptr<Helper> helper;  // null: a waiter cannot help
  std::vector<std::shared_ptr<FenceWaiter>> waiters;
  std::vector<std::function<void(const Status&)>> next;
  std::vector<int> descriptors;  // whose copies the callers have; closed once they are readable
  ~State() {
    for (int fd : descriptors) close(fd);
  }
};

Fence::Fence(std::shared_ptr<Helper> helper) : state_(std::make_shared<State>()) {
  state_->helper = std::move(helper);
}

Fence Fence::finished(Status result) {
  Fence fence;
  fence.state_->done = true;
  fence.state_->result = std::move(result);
  return fence;
}

bool Fence::signal(Status result) const {
  std::shared_ptr<State> state = state_;  // `next` may destroy this fence
  std::vector<std::shared_ptr<FenceWaiter>> waiters;
  std::vector<std::function<void(const Status&)>> next;
  {
    std::lock_guard lock(state->mutex);
    if (state->done) return false;
    state->done = true;
    state->result = std::move(result);
    waiters.swap(state->waiters);
    next.swap(state->next);
    for (int fd : state->descriptors) eventfd_write(fd, 1), close(fd);
    state->descriptors.clear();
  }
  for (const auto& waiter : waiters) waiter->notify();
  for (const auto& call : next) call(state->result);  // read without the lock: it no longer changes
  return true;
}

bool Fence::is_done() const {
  std::lock_guard lock(state_->mutex);
  return state_->done;
}

Status Fence::result() const {
  std::lock_guard lock(state_->mutex);
  return state_->result;
}

void Fence::then(std::function<void(const Status&)> next) const {
  {
    std::lock_guard lock(state_->mutex);
    if (!state_->done) {
      state_->next.push_back(std::move(next));
      return;
    }
  }
  next(state_->result);
}

namespace {

// Whether a wait is over. A wait for all fences asks in order, and asks no fence again that it has found done: it may
// wake up often.
class WaitCondition {
 public:
  WaitCondition(std::span<const Fence> fences, Fence::Until until) : fences_(fences), until_(until) {}
  // The index of the first fence that is done, if the wait is over. Of no fences it is 0.
  std::optional<size_t> done_index() {
    if (fences_.empty()) return 0;
    if (until_ == Fence::Until::kAll) {
      while (seen_ < fences_.size() && fences_[seen_].is_done()) seen_++;
      return seen_ == fences_.size() ? std::optional<size_t>(0) : std::nullopt;
    }
    auto first = std::ranges::find_if(fences_, &Fence::is_done);
    return first == fences_.end() ? std::nullopt : std::optional(static_cast<size_t>(first - fences_.begin()));
  }

 private:
  std::span<const Fence> fences_;
  Fence::Until until_;
  size_t seen_ = 0;  // of kAll: those before it are done
};

}  // namespace

// A thread that waits for some fences. The destructor takes it from the lists of these fences and of their helpers,
// which may outlive many waits.
class Fence::Waiting {
 public:
  explicit Waiting(std::span<const Fence> fences) : fences_(fences) {}
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    for (const Fence& fence : fences_) {
      std::lock_guard lock(fence.state_->mutex);
      std::erase(fence.state_->waiters, waiter_);
    }
    for (const auto& helper : helpers_) helper->leave(waiter_);
  }

  void join() {
    for (const Fence& fence : fences_) {
      std::lock_guard lock(fence.state_->mutex);
      if (fence.state_->done) continue;
      fence.state_->waiters.push_back(waiter_);
      const auto& helper = fence.state_->helper;
      if (helper && !contains(helpers_, helper)) helpers_.push_back(helper);
    }
    for (const auto& helper : helpers_) {
      helper->join(waiter_);
      spin_ = std::max(spin_, std::chrono::microseconds(helper->spin()));
    }
  }

  FenceWaiter::Events& events() { return *waiter_->events_; }
  std::chrono::microseconds spin() const { return spin_; }
  bool help(Helper::Time time) {
    return std::any_of(helpers_.begin(), helpers_.end(), [&](const auto& helper) { return helper->help(time); });
  }

 private:
  std::span<const Fence> fences_;
  std::shared_ptr<FenceWaiter> waiter_ = std::make_shared<FenceWaiter>();
  std::vector<std::shared_ptr<Helper>> helpers_;
  std::chrono::microseconds spin_{0};  // how long to stay awake before sleeping
};

Status Fence::wait(Until until, std::span<const Fence> fences, uint64_t timeout_ns, size_t* which) {
  WaitCondition condition(fences, until);
  auto finish = [&](size_t index) -> Status {
    if (which) *which = index;
    return {};
  };
  if (auto index = condition.done_index()) return finish(*index);
  using Clock = SpinClock;
  auto now = Clock::now();
  bool bounded = timeout_ns < static_cast<uint64_t>((Clock::time_point::max() - now).count());
  auto end = bounded ? now + std::chrono::nanoseconds(timeout_ns) : Clock::time_point::max();

  Waiting waiting(fences);
  waiting.join();
  FenceWaiter::Events& events = waiting.events();
  for (;;) {
    uint64_t seen = events.count;
    auto has_news = [&] { return events.count != seen; };
    if (auto index = condition.done_index()) return finish(*index);
    if (bounded && Clock::now() >= end) return Status(Code::kTimeout, "the fences were not done in time");
    if (waiting.help(bounded ? Helper::Time::kLimited : Helper::Time::kUnlimited)) continue;
    if (spin_until(std::min(end, Clock::now() + waiting.spin()), has_news)) continue;
    std::unique_lock lock(events.mutex);
    if (bounded)
      events.changed.wait_until(lock, end, has_news);
    else
      events.changed.wait(lock, has_news);
  }
}

Result<int> Fence::export_fd() const {
  std::lock_guard lock(state_->mutex);
  if (!state_->done) state_->descriptors.reserve(state_->descriptors.size() + 1);  // nothing fails once it is open
  int theirs = eventfd(state_->done ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (theirs < 0) return Status(Code::kIo, std::string("eventfd: ") + std::strerror(errno));
  if (state_->done) return theirs;
  int mine = fcntl(theirs, F_DUPFD_CLOEXEC, 0);
  if (mine < 0) {
    Status status(Code::kIo, std::string("fcntl: ") + std::strerror(errno));
    close(theirs);
    return status;
  }
  state_->descriptors.push_back(mine);
  return theirs;
}

}  // namespace rlx
