// SPDX-License-Identifier: Apache-2.0
// Cancelling from several threads, and runs that wait where the system has no thread for them.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "base/os/event_count.h"
#include "device/cancel.h"
#include "runtime/queue.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

TEST(cancellation, what_is_cancelled_stays_so_whoever_cancels_at_the_same_time) {
  Cancellation all;
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    while (!is_over) {
      all.cancel();
      spin_briefly([&] { return is_over.load(); });  // what it has done stands for a while
    }
  });
  int64_t revived = 0;
  for (int i = 0; i < 200000; i++) {
    CancelToken run(all, all.next());
    all.cancel();
    for (int look = 0; look < 40; look++) revived += !run.is_set();
  }
  is_over = true;
  other.join();
  EXPECT_EQ(revived, 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Of a thread that cannot be made: its stack does not fit below the limit.
static bool limit_memory(size_t beyond) {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  size_t pages = 0;
  bool is_read = file && std::fscanf(file, "%zu", &pages) == 1;
  if (file) std::fclose(file);
  rlimit limit;
  if (!is_read || getrlimit(RLIMIT_AS, &limit) != 0) return false;
  limit.rlim_cur = pages * static_cast<size_t>(getpagesize()) + beyond;
  return setrlimit(RLIMIT_AS, &limit) == 0;  // the hard limit may be one that only root can raise
}

TEST(run_queue, whoever_waits_does_the_work_where_there_is_no_thread) {
  pid_t child = fork();
  if (child == 0) {
    Graph graph;
    Builder b(graph);
    output(b, "y", input(b, "x", {4}) * 2.0);
    auto env = env_with(2);
    auto exec = Exec::create(*Program::compile(env, graph, nullptr, nullptr, {})).value();
    Tensor x = noise({4});
    bool is_ready = exec->bind(SlotKind::kInput, 0, x).ok() && exec->run().ok() && limit_memory(size_t{4} << 20);
    auto fence = exec->submit({});
    if (!is_ready || !fence.ok()) _exit(2);
    constexpr uint64_t kSecond = 1000000000;
    Status status = Fence::wait(Fence::Until::kAll, {&*fence, 1}, kSecond);
    _exit(status.ok() && fence->result().ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: the wait ended without the run";
}
#endif

}  // namespace rlx
