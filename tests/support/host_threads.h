// SPDX-License-Identifier: Apache-2.0
// A host that brings its own threads: it makes one for each piece of work.
#pragma once

#include <thread>
#include <vector>

#include "base/host.h"

namespace rlx::test {

inline HostServices three_threads() {
  HostServices services;
  services.thread_count = [](void*) { return 3u; };
  services.parallel_for = [](void*, size_t n, void (*fn)(void*, size_t), void* arg) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < n; i++) threads.emplace_back([=] { fn(arg, i); });
    for (auto& thread : threads) thread.join();
  };
  return services;
}

}  // namespace rlx::test
