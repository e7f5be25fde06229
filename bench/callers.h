// SPDX-License-Identifier: Apache-2.0
// Several threads that run at once, each with its own work.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "measure.h"

namespace bench {

// Runs per second of all callers together.
template <class Run>
double rate(std::vector<std::unique_ptr<Run>>& runs, double seconds) {
  std::atomic<bool> stop{false};
  std::atomic<int64_t> count{0};
  std::vector<std::thread> callers;
  double begin = now_ms();
  for (auto& run : runs)
    callers.emplace_back([&] {
      while (!stop) run->run(), count++;
    });
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& caller : callers) caller.join();
  return 1000.0 * static_cast<double>(count) / (now_ms() - begin);
}

template <class Run, class Bind>
std::vector<std::unique_ptr<Run>> callers_of(const Run& first, int count, Bind bind) {
  std::vector<std::unique_ptr<Run>> runs;
  for (int i = 0; i < count; i++) {
    runs.push_back(std::make_unique<Run>(first));
    bind(*runs.back());
    runs.back()->run();
  }
  return runs;
}

}  // namespace bench
