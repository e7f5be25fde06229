// SPDX-License-Identifier: Apache-2.0
// Turns: lets one thread at a time make a thing, by its key (single-flight), without holding the object's lock, because
// making it takes long or calls the host. Other threads that need the thing wait. A thread that re-enters (a callback
// of the host called the object) makes it too, because waiting for itself would never end. So does one that finds the
// maker in a callback of the host for a while: the callback may wait for this thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/host_calls.h"

namespace rlx {

template <class Key>
class Turns {
  struct Making {
    Key key;
    std::thread::id by;
    const HostCalls* calls;  // of that thread
  };

 public:
  explicit Turns(std::mutex& mutex) : mutex_(mutex) {}  // the object's mutex, which guards this object too

  // Turn turn(turns, key);
  // std::unique_lock lock(mutex);
  // do {
  //   if (the thing is there) return it;
  // } while (!turn.begin(lock));
  // lock.unlock(); now make it
  class Turn {
   public:
    Turn(Turns& turns, Key key) : turns_(turns), key_(std::move(key)) {}
    ~Turn() {
      if (!is_registered_) return;
      {
        std::lock_guard lock(turns_.mutex_);
        std::erase_if(turns_.making_, [&](const Making& it) { return it.key == key_ && is_mine(it); });
      }
      turns_.made_.notify_all();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    // Returns false if another thread was making it: what it made may be there now.
    bool begin(std::unique_lock<std::mutex>& lock) {
      const Making* other = find();
      if (!other) {
        turns_.making_.push_back({key_, std::this_thread::get_id(), &HostCalls::of_this_thread()});
        is_registered_ = true;
        return true;
      }
      if (is_mine(*other)) return true;
      std::thread::id maker = other->by;
      uint64_t call = other->calls->number();
      turns_.made_.wait_for(lock, kPatience);
      other = find();
      return other && other->by == maker && other->calls->is_inside_since(call);
    }

   private:
    const Making* find() const {
      auto found =
          std::find_if(turns_.making_.begin(), turns_.making_.end(), [&](const Making& it) { return it.key == key_; });
      return found == turns_.making_.end() ? nullptr : &*found;
    }

    Turns& turns_;
    const Key key_;
    bool is_registered_ = false;
  };

 private:
  static bool is_mine(const Making& it) { return it.by == std::this_thread::get_id(); }

  // Far longer than a callback that only takes note: else every waiting thread would make the thing as well.
  static constexpr std::chrono::milliseconds kPatience{300};

  std::mutex& mutex_;
  std::condition_variable made_;
  std::vector<Making> making_;
};

}  // namespace rlx
