// SPDX-License-Identifier: Apache-2.0
// A thread of the library. It has a name, no signal handler of the host runs on it, and it starts with the default
// floating-point mode.
#pragma once

#include <pthread.h>

#include <functional>
#include <string>

namespace rlx {

class Thread {
 public:
  Thread() = default;
  // Returns false if the system refuses the thread. `body` must not throw. `name` has at most 15 characters.
  bool start(const std::string& name, std::function<void()> body);
  bool is_current() const { return is_started_ && pthread_equal(pthread_self(), thread_); }
  void join();    // after start, once
  void detach();  // instead
 private:
  pthread_t thread_{};
  bool is_started_ = false;
};

}  // namespace rlx
