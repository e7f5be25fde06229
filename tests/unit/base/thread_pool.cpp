// SPDX-License-Identifier: Apache-2.0
// The thread pool: each chunk runs once, wherever its threads are, and whoever else uses them.
#include "base/os/thread_pool.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <new>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/os/file.h"

namespace rlx {
namespace {

std::multiset<std::string> threads_of_this_process() {
  std::multiset<std::string> names;
  DIR* folder = opendir("/proc/self/task");
  while (dirent* entry = readdir(folder)) {
    Result<std::string> name = read_file(std::string("/proc/self/task/") + entry->d_name + "/comm");
    if (entry->d_name[0] != '.' && name.ok()) names.insert(name->substr(0, name->find('\n')));
  }
  closedir(folder);
  return names;
}

int own_threads() {
  int count = 0;
  for (const std::string& name : threads_of_this_process()) count += name.starts_with("rlx-");
  return count;
}

// A joined thread stays listed until the kernel has cleared it away.
bool all_threads_are_gone() {
  for (int i = 0; i < 2000 && own_threads() > 0; i++) usleep(1000);
  return own_threads() == 0;
}

// Runs fn on that many workers at once, each with its number: no chunk ends before all have begun. 0 is the caller.
void on_all(Team& team, int workers, FunctionRef<void(int)> fn) {
  std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> begun{0}, number{1};
  team.chunks(workers, 1, [&](int64_t, int64_t) {
    begun++;
    while (begun < workers) std::this_thread::yield();
    fn(std::this_thread::get_id() == caller ? 0 : number++);
  });
}

TEST(thread_pool, every_chunk_runs_once_with_borders_that_threads_do_not_move) {
  for (int threads : {0, 1, 2, 3, 7}) {
    ThreadPool pool(Host::library(), {.threads = threads});
    for (auto [n, grain] :
         std::vector<std::pair<int64_t, int64_t>>{{0, 4}, {1, 4}, {4, 4}, {5, 4}, {1000, 7}, {64, 1}}) {
      std::vector<std::atomic<int>> touched(static_cast<size_t>(n));
      pool.parallel_for(n, grain, [&, n = n, grain = grain](int64_t begin, int64_t end) {  // by name for clang 14
        EXPECT_EQ(begin % grain, 0);
        EXPECT_EQ(end, std::min(n, begin + grain));
        for (int64_t i = begin; i < end; i++) touched[static_cast<size_t>(i)]++;
      });
      for (auto& count : touched) EXPECT_EQ(count, 1);
    }
  }
}

TEST(thread_pool, more_chunks_than_fit_are_longer) {
  ThreadPool pool(Host::library(), {.threads = 2});
  int64_t n = 2 * Team::kMaxChunks + 5;
  std::atomic<int64_t> sum{0}, calls{0};
  pool.parallel_for(n, 1, [&](int64_t begin, int64_t end) {
    sum.fetch_add(end - begin, std::memory_order_relaxed);
    calls.fetch_add(1, std::memory_order_relaxed);
  });
  EXPECT_EQ(sum, n);
  EXPECT_EQ(calls, n / 3 + 1);
}

// A thread that lost its core between two steps: a signal stops it.
TEST(thread_pool, nobody_waits_for_a_thread_that_has_taken_nothing) {
  ThreadPool pool(Host::library(), {.threads = 2});
  static std::atomic<bool> stopped, go_on;
  stopped = go_on = false;
  struct sigaction action = {}, before;
  action.sa_handler = [](int) {
    stopped = true;
    while (!go_on) usleep(100);
  };
  ASSERT_EQ(sigaction(SIGUSR2, &action, &before), 0);
  pthread_t helper{};
  pool.run_team(2, [&](Team& team) {
    on_all(team, 2, [&](int worker) {
      if (worker == 0) return;
      helper = pthread_self();
      sigset_t open;
      sigemptyset(&open);
      sigaddset(&open, SIGUSR2);
      pthread_sigmask(SIG_UNBLOCK, &open, nullptr);
    });
    pthread_kill(helper, SIGUSR2);
    while (!stopped) usleep(100);
    std::atomic<int64_t> done{0};
    for (int step = 0; step < 100; step++) team.chunks(16, 1, [&](int64_t, int64_t) { done++; });
    EXPECT_EQ(done, 1600);
    go_on = true;
    on_all(team, 2, [](int) {});  // it comes back
  });
  sigaction(SIGUSR2, &before, nullptr);
}

TEST(thread_pool, a_team_sees_at_each_step_what_all_wrote_before) {
  constexpr int kSteps = 2000, kParts = 24;
  ThreadPool pool(Host::library(), {.threads = 3});
  std::vector<int64_t> now(kParts, 1), next(kParts);  // plain memory: TSan watches the steps
  pool.run_team(3, [&](Team& team) {
    for (int step = 0; step < kSteps; step++) {
      team.chunks(kParts, 1, [&](int64_t i, int64_t) { next[i] = now[i] + now[(i + 1) % kParts] % 2; });
      std::swap(now, next);
    }
  });
  std::vector<int64_t> expected(kParts, 1), other(kParts);
  for (int step = 0; step < kSteps; step++) {
    for (int i = 0; i < kParts; i++) other[i] = expected[i] + expected[(i + 1) % kParts] % 2;
    std::swap(expected, other);
  }
  EXPECT_EQ(now, expected);
}

TEST(thread_pool, makes_no_thread_before_it_is_needed_and_joins_all) {
  ASSERT_TRUE(all_threads_are_gone());  // of the tests before
  {
    ThreadPool pool(Host::library(), {.threads = 3});
    EXPECT_EQ(pool.workers(), 3);
    pool.parallel_for(10, 10, [](int64_t, int64_t) {});  // one chunk
    EXPECT_EQ(own_threads(), 0);
    auto all_named = [](Team& team) { on_all(team, team.workers(), [](int) {}); };
    pool.run_team(2, all_named);
    EXPECT_EQ(own_threads(), 1);
    pool.run_team(9, all_named);
    auto names = threads_of_this_process();
    EXPECT_EQ(names.count("rlx-1") + names.count("rlx-2"), 2u);
  }
  EXPECT_TRUE(all_threads_are_gone());
}

TEST(thread_pool, zero_and_one_make_no_thread) {
  ASSERT_TRUE(all_threads_are_gone());
  for (int threads : {0, 1}) {
    ThreadPool pool(Host::library(), {.threads = threads});
    pool.run_team(4, [](Team& team) {
      EXPECT_EQ(team.workers(), 1);
      team.chunks(10, 1, [](int64_t, int64_t) { EXPECT_EQ(own_threads(), 0); });
    });
  }
}

TEST(thread_pool, without_options_there_is_a_worker_for_each_core) {
  ThreadPool pool(Host::library(), {});
  EXPECT_GE(pool.workers(), 1);
  EXPECT_LE(pool.workers(), static_cast<int>(std::thread::hardware_concurrency()));
}

TEST(thread_pool, threads_block_all_signals_and_round_to_nearest) {
  ThreadPool pool(Host::library(), {.threads = 2, .pin = true});
  int rounding = fegetround();
  fesetround(FE_UPWARD);
  pool.run_team(2, [](Team& team) {
    on_all(team, 2, [](int worker) {
      sigset_t blocked;
      pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
      EXPECT_EQ(sigismember(&blocked, SIGTERM), worker > 0);
      EXPECT_EQ(sigismember(&blocked, SIGPROF), worker > 0);
      EXPECT_EQ(fegetround(), worker > 0 ? FE_TONEAREST : FE_UPWARD);
    });
  });
  EXPECT_EQ(fegetround(), FE_UPWARD);
  fesetround(rounding);
}

TEST(thread_pool, pin_leaves_the_mask_of_the_caller) {
  cpu_set_t before, after;
  sched_getaffinity(0, sizeof before, &before);
  ThreadPool pool(Host::library(), {.pin = true});
  pool.run_team(64, [](Team& team) {
    on_all(team, team.workers(), [](int worker) {
      if (worker == 0) return;
      cpu_set_t mine;
      sched_getaffinity(0, sizeof mine, &mine);
      EXPECT_EQ(CPU_COUNT(&mine), 1);
    });
  });
  sched_getaffinity(0, sizeof after, &after);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(thread_pool, a_job_that_calls_its_own_pool_runs_alone) {
  ThreadPool pool(Host::library(), {.threads = 4});
  auto alone = [&] { pool.run_team(2, [](Team& team) { EXPECT_EQ(team.workers(), 1); }); };
  pool.run_team(2, [&](Team& team) {
    alone();
    on_all(team, 2, [&](int) { alone(); });
    EXPECT_EQ(team.workers(), 2);
  });
}

TEST(thread_pool, a_job_shares_out_work_between_its_steps) {
  ThreadPool pool(Host::library(), {.threads = 2});
  auto both_begin = [&](int workers) {
    std::atomic<int> begun{0};
    pool.parallel_for(2, 1, [&](int64_t, int64_t) {
      begun++;
      while (begun < workers) std::this_thread::yield();
    });
    EXPECT_EQ(begun, 2);
  };
  pool.run_team(2, [&](Team& team) {
    both_begin(2);
    on_all(team, 2, [&](int) { both_begin(1); });
    both_begin(2);
  });
  both_begin(2);
}

// Runs begin and end while others go on: each sees its share at its next step.
TEST(thread_pool, runs_share_the_threads) {
  ThreadPool pool(Host::library(), {.threads = 8});
  auto beside = [&](FunctionRef<void(Team&)> job) { std::thread([&] { pool.run_team(8, job); }).join(); };
  pool.run_team(8, [&](Team& first) {
    on_all(first, 8, [](int) {});
    beside([&](Team& second) {
      EXPECT_EQ(first.workers(), 4);
      EXPECT_EQ(second.workers(), 4);
      on_all(second, 4, [](int) {});  // threads come over while the first run goes on
      beside([&](Team& third) {
        EXPECT_EQ(first.workers() + second.workers() + third.workers(), 8);
        EXPECT_EQ(third.workers(), 2);
      });
      EXPECT_EQ(second.workers(), 4);
    });
    EXPECT_EQ(first.workers(), 8);
    on_all(first, 8, [](int) {});
  });
}

TEST(thread_pool, what_one_run_cannot_use_another_gets) {
  ThreadPool pool(Host::library(), {.threads = 8});
  pool.run_team(2, [&](Team& small) {
    std::thread([&] { pool.run_team(8, [&](Team& large) { EXPECT_EQ(large.workers(), 6); }); }).join();
    EXPECT_EQ(small.workers(), 2);
  });
}

TEST(thread_pool, callers_alone_where_there_are_as_many_as_workers) {
  ThreadPool pool(Host::library(), {.threads = 2});
  pool.run_team(2, [&](Team& first) {
    std::thread([&] {
      pool.run_team(2, [&](Team& second) {
        EXPECT_EQ(first.workers(), 1);
        EXPECT_EQ(second.workers(), 1);
        std::thread([&] { pool.run_team(2, [](Team& third) { EXPECT_EQ(third.workers(), 1); }); }).join();
      });
    }).join();
  });
}

TEST(thread_pool, a_step_may_use_fewer_than_the_team) {
  ThreadPool pool(Host::library(), {.threads = 4});
  pool.run_team(4, [&](Team& team) {
    on_all(team, 4, [](int) {});
    std::mutex mutex;
    std::set<std::thread::id> seen;
    auto note = [&](int64_t, int64_t) {
      usleep(100);
      std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    };
    team.chunks(50, 1, note, 2);
    EXPECT_LE(seen.size(), 2u);
    seen.clear();
    team.chunks(50, 1, note, 1);
    EXPECT_EQ(seen, std::set{std::this_thread::get_id()});
  });
}

struct Thrown {
  int worker;
};

TEST(thread_pool, what_any_worker_throws_ends_the_step_on_the_caller) {
  ThreadPool pool(Host::library(), {.threads = 3});
  for (int thrower : {0, 1, 2}) {
    auto job = [&](Team& team) {
      on_all(team, 3, [&](int worker) {
        if (worker == thrower) throw Thrown{worker};
      });
      ADD_FAILURE() << "the step has failed";
    };
    try {
      pool.run_team(3, job);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Thrown& thrown) {
      EXPECT_EQ(thrown.worker, thrower);
    }
    pool.run_team(3, [](Team& team) {
      EXPECT_EQ(team.workers(), 3) << "the team is back";
      on_all(team, 3, [](int) {});
    });
  }
}

TEST(thread_pool, all_workers_may_throw_and_the_job_may_go_on) {
  ThreadPool pool(Host::library(), {.threads = 3});
  pool.run_team(3, [](Team& team) {
    for (int i = 0; i < 50; i++) {
      EXPECT_THROW(on_all(team, 3, [](int) { throw std::bad_alloc(); }), std::bad_alloc);
      std::atomic<int> done{0};
      team.chunks(10, 1, [&](int64_t, int64_t) { done++; });
      EXPECT_EQ(done, 10);
    }
  });
}

TEST(thread_pool, after_an_exception_no_chunk_begins) {
  ThreadPool pool(Host::library(), {.threads = 2});
  std::atomic<int64_t> begun{0};
  auto throws = [&](int64_t, int64_t) {
    begun++;
    throw Thrown{0};
  };
  EXPECT_THROW(pool.parallel_for(100000, 1, throws), Thrown);
  EXPECT_LE(begun, 2);
}

TEST(thread_pool, a_job_that_throws_gives_its_team_back) {
  ThreadPool pool(Host::library(), {.threads = 2});
  EXPECT_THROW(pool.run_team(2, [](Team&) { throw Thrown{0}; }), Thrown);
  pool.run_team(2, [](Team& team) { EXPECT_EQ(team.workers(), 2); });
}

TEST(thread_pool, threads_that_never_spin_still_hear_of_work) {
  ThreadPool pool(Host::library(), {.threads = 3, .spin = 0});
  std::atomic<int64_t> sum{0};
  for (int run = 0; run < 100; run++)
    pool.run_team(3, [&](Team& team) {
      on_all(team, 3, [&](int) { sum++; });
      team.chunks(30, 1, [&](int64_t, int64_t) { sum++; });
    });
  EXPECT_EQ(sum, 100 * 33);
}

// Runs of all sizes, some of which throw, from eight callers. RLX_POOL_SECONDS says how long.
TEST(thread_pool, eight_callers_with_runs_of_random_size) {
  const char* given = std::getenv("RLX_POOL_SECONDS");
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(given ? 1000 * std::atoi(given) : 300);
  ThreadPool pool(Host::library(), {.threads = 4});
  auto call = [&](uint32_t seed) {
    std::minstd_rand random(seed + 1);
    auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
    while (std::chrono::steady_clock::now() < end) {
      std::vector<int64_t> counts(static_cast<size_t>(1 + below(300)));  // plain memory: TSan watches the steps
      int steps = below(20), throws_at = below(100), grain = 1 + below(9);
      auto size = static_cast<int64_t>(counts.size());
      auto run = [&](Team& team) {
        for (int step = 0; step < steps; step++)
          team.chunks(size, grain, [&](int64_t begin, int64_t to) {
            if (step == throws_at) throw Thrown{step};
            for (int64_t i = begin; i < to; i++) counts[static_cast<size_t>(i)]++;
          });
      };
      int64_t done = steps;
      try {
        pool.run_team(1 + below(5), run);
      } catch (const Thrown& thrown) {
        done = thrown.worker;
      }
      ASSERT_EQ(counts, std::vector<int64_t>(counts.size(), done));
      if (below(50) == 0) usleep(300);
    }
  };
  std::vector<std::thread> callers;
  for (uint32_t i = 0; i < 8; i++) callers.emplace_back(call, i);
  for (auto& caller : callers) caller.join();
}

TEST(thread_pool, many_callers_at_once) {
  ThreadPool pool(Host::library(), {.threads = 3});
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; i++) {
    callers.emplace_back([&] {
      for (int run = 0; run < 300; run++) {
        pool.parallel_for(100, 3, [&](int64_t begin, int64_t end) { sum += end - begin; });
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 300 * 100);
}

TEST(thread_pool, wakes_after_sleeping) {
  ThreadPool pool(Host::library(), {.threads = 2});
  for (int i = 0; i < 5; i++) {
    usleep(5000);  // far beyond the spinning: the worker sleeps in the kernel
    std::atomic<int> workers{0};
    pool.run_team(2, [&](Team& team) {
      on_all(team, 2, [&](int worker) {
        if (worker == 1) usleep(2000);  // and now the caller does
        workers++;
      });
    });
    EXPECT_EQ(workers, 2);
  }
}

TEST(thread_pool, may_end_inside_its_own_job_on_any_worker) {
  for (int ender : {0, 1}) {
    auto pool = std::make_unique<ThreadPool>(Host::library(), PoolOptions{.threads = 2});
    ThreadPool& running = *pool;
    running.run_team(2, [&](Team& team) {
      on_all(team, 2, [&](int worker) {
        if (worker == ender) pool.reset();
      });
    });
    EXPECT_TRUE(all_threads_are_gone());
  }
}

TEST(thread_pool, a_forked_child_may_end_it) {
  auto pool = std::make_unique<ThreadPool>(Host::library(), PoolOptions{.threads = 2});
  pool->run_team(2, [](Team&) {});
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    pool.reset();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// A host that has no second thread: it runs the calls one after another, in reverse, and leaves the first out.
TEST(thread_pool, a_host_pool_may_run_calls_in_any_order) {
  ASSERT_TRUE(all_threads_are_gone());
  int calls = 0;
  HostServices services = {.user = &calls};
  services.thread_count = [](void*) { return 4u; };
  services.parallel_for = [](void* user, size_t n, void (*fn)(void*, size_t), void* arg) {
    for (size_t i = n; i-- > 1;) {
      ++*static_cast<int*>(user);
      fn(arg, i);
    }
  };
  ThreadPool pool(Host::make(services).value(), {});
  EXPECT_EQ(pool.workers(), 4);
  EXPECT_FALSE(pool.has_teams());
  std::vector<int> touched(10);
  pool.parallel_for(10, 3, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) touched[i]++;
  });
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(touched, std::vector<int>(10, 1));
  pool.run_team(4, [](Team& team) { EXPECT_EQ(team.workers(), 1); });
  EXPECT_EQ(own_threads(), 0);
}

TEST(thread_pool, a_host_pool_has_no_more_workers_than_the_options_allow) {
  HostServices services;
  services.thread_count = [](void*) { return 4u; };
  services.parallel_for = [](void*, size_t n, void (*fn)(void*, size_t), void* arg) {
    EXPECT_EQ(n, 2u);
    for (size_t i = 0; i < n; i++) fn(arg, i);
  };
  auto pool_of = [&](int threads) {
    return std::make_unique<ThreadPool>(Host::make(services).value(), PoolOptions{threads});
  };
  for (int threads : {0, 1, 2, 4, 9}) EXPECT_EQ(pool_of(threads)->workers(), std::clamp(threads, 1, 4)) << threads;
  int64_t done = 0;
  pool_of(2)->parallel_for(100, 1, [&](int64_t begin, int64_t end) { done += end - begin; });
  pool_of(0)->parallel_for(100, 1, [&](int64_t begin, int64_t end) { done += end - begin; });
  EXPECT_EQ(done, 200);
}

// A host's pool that is called from its own work might wait for itself.
TEST(thread_pool, work_on_a_host_pool_goes_on_alone) {
  int calls = 0;
  HostServices services = {.user = &calls};
  services.thread_count = [](void*) { return 2u; };
  services.parallel_for = [](void* user, size_t n, void (*fn)(void*, size_t), void* arg) {
    ++*static_cast<int*>(user);
    for (size_t i = 0; i < n; i++) fn(arg, i);
  };
  ThreadPool pool(Host::make(services).value(), {});
  int done = 0;
  auto inner = [&](int64_t begin, int64_t end) { done += static_cast<int>(end - begin); };
  pool.parallel_for(5, 1, [&](int64_t, int64_t) { pool.parallel_for(10, 1, inner); });
  EXPECT_EQ(done, 50);
  EXPECT_EQ(calls, 1);
  pool.parallel_for(10, 1, inner);
  EXPECT_EQ(calls, 2) << "afterwards as before";
}

// Through a host that calls from threads of its own.
TEST(thread_pool, exceptions_do_not_pass_through_the_host) {
  HostServices services;
  services.thread_count = [](void*) { return 4u; };
  services.parallel_for = [](void*, size_t n, void (*fn)(void*, size_t), void* arg) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < n; i++) threads.emplace_back([=] { fn(arg, i); });
    for (auto& thread : threads) thread.join();
  };
  ThreadPool pool(Host::make(services).value(), {});
  for (int i = 0; i < 20; i++) {
    EXPECT_THROW(pool.parallel_for(100, 1, [](int64_t, int64_t) { throw std::bad_alloc(); }), std::bad_alloc);
    std::atomic<int> done{0};
    pool.parallel_for(100, 1, [&](int64_t, int64_t) { done++; });
    EXPECT_EQ(done, 100);
  }
}

}  // namespace
}  // namespace rlx
