// SPDX-License-Identifier: Apache-2.0
#include "device/fence.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <vector>

namespace rlx {

struct FenceWaiter {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t events = 0;
};

struct Fence::State {
  std::mutex mutex;
  bool done = false;
  Status result;
  std::vector<std::shared_ptr<FenceWaiter>> waiters;
  std::vector<int> descriptors;
  ~State() {
    for (int fd : descriptors) close(fd);
  }
};

Fence::Fence() : state_(std::make_shared<State>()) {}

Fence Fence::finished(Status result) {
  Fence fence;
  fence.state_->done = true;
  fence.state_->result = std::move(result);
  return fence;
}

void Fence::signal(Status result) const {
  std::vector<std::shared_ptr<FenceWaiter>> waiters;
  {
    std::lock_guard lock(state_->mutex);
    if (state_->done) return;
    state_->done = true;
    state_->result = std::move(result);
    waiters.swap(state_->waiters);
    for (int fd : state_->descriptors) eventfd_write(fd, 1);
  }
  for (const auto& waiter : waiters) {
    std::lock_guard lock(waiter->mutex);
    waiter->events++;
    waiter->changed.notify_all();
  }
}

bool Fence::is_done() const {
  std::lock_guard lock(state_->mutex);
  return state_->done;
}

Status Fence::result() const {
  std::lock_guard lock(state_->mutex);
  return state_->result;
}

Status Fence::wait(std::span<const Fence> fences, bool all, uint64_t timeout_ns, size_t* which) {
  auto first_done = [&]() -> size_t {
    size_t done = 0, first = fences.size();
    for (size_t i = fences.size(); i-- > 0;)
      if (fences[i].is_done()) done++, first = i;
    return all ? (done == fences.size() ? first : fences.size() + 1)
               : (done || fences.empty() ? first : fences.size() + 1);
  };
  auto waiter = std::make_shared<FenceWaiter>();
  for (const Fence& fence : fences) {
    std::lock_guard lock(fence.state_->mutex);
    if (!fence.state_->done) fence.state_->waiters.push_back(waiter);
  }
  auto leave = [&](void*) {  // fences may outlive many waits
    for (const Fence& fence : fences) {
      std::lock_guard lock(fence.state_->mutex);
      std::erase(fence.state_->waiters, waiter);
    }
  };
  std::unique_ptr<void, decltype(leave)> left(waiter.get(), leave);
  auto forever = std::chrono::steady_clock::time_point::max();
  auto now = std::chrono::steady_clock::now();
  bool bounded = timeout_ns < static_cast<uint64_t>((forever - now).count());
  auto until = bounded ? now + std::chrono::nanoseconds(timeout_ns) : forever;
  std::unique_lock lock(waiter->mutex);
  for (;;) {
    uint64_t seen = waiter->events;
    lock.unlock();
    size_t index = first_done();
    lock.lock();
    if (index <= fences.size()) {
      if (which) *which = index < fences.size() ? index : 0;
      return {};
    }
    auto news = [&] { return waiter->events != seen; };
    if (!bounded) {
      waiter->changed.wait(lock, news);
    } else if (!waiter->changed.wait_until(lock, until, news)) {
      return Status(Code::kTimeout, "the fences were not done in time");
    }
  }
}

Result<int> Fence::export_fd() const {
  int mine = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (mine < 0) return Status(Code::kIo, std::string("eventfd: ") + std::strerror(errno));
  int theirs = dup(mine);
  if (theirs < 0) {
    close(mine);
    return Status(Code::kIo, std::string("dup: ") + std::strerror(errno));
  }
  std::lock_guard lock(state_->mutex);
  state_->descriptors.push_back(mine);
  if (state_->done) eventfd_write(mine, 1);
  return theirs;
}

}  // namespace rlx
