// SPDX-License-Identifier: Apache-2.0
// The walk over phases: exceptions of kernels, and how many threads a phase is worth.
#include "backends/cpu/walk.h"

#include <gtest/gtest.h>

#include <chrono>
#include <new>
#include <stdexcept>

#include "tests/support/host_threads.h"

namespace rlx::cpu {
namespace {

struct Faulty {
  int64_t bad_part = -1;
  bool no_memory = false;
};

// A part takes 20 us, so that every worker of a team gets some.
Status run_faulty(const void* args, int64_t begin, int64_t end) {
  const auto& it = *static_cast<const Faulty*>(args);
  for (int64_t i = begin; i < end; i++) {
    auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
    while (std::chrono::steady_clock::now() < until) {}
    if (i != it.bad_part) continue;
    if (it.no_memory) throw std::bad_alloc();
    throw std::runtime_error("part " + std::to_string(i));
  }
  return {};
}

Status walk_one(const Faulty& args, ThreadPool& pool) {
  EncodedPhase phase{&args, {run_faulty, 100, 2e6}, true};
  std::vector<PhaseGroup> groups;
  group_phases({&phase, 1}, groups);
  return walk({&phase, 1}, groups, pool, 8, {});
}

void expect_statuses(ThreadPool& pool) {
  for (int64_t part : {0, 30, 60, 99}) {
    Faulty args{part};
    Status status = walk_one(args, pool);
    EXPECT_EQ(status.code(), Code::kInternal);
    EXPECT_EQ(status.message(), "a kernel: unexpected exception: part " + std::to_string(part));
    args.no_memory = true;
    EXPECT_EQ(walk_one(args, pool).code(), Code::kNoMemory);
    EXPECT_TRUE(walk_one({}, pool).ok());
  }
}

TEST(walk, exceptions_of_kernels_are_statuses_alone_and_in_a_team) {
  for (int threads : {1, 3}) {
    ThreadPool pool(Host::library(), {.threads = threads});
    expect_statuses(pool);
  }
}

TEST(walk, exceptions_of_kernels_are_statuses_on_the_threads_of_a_host) {
  ThreadPool pool(Host::make(test::three_threads()).value(), {});
  expect_statuses(pool);
}

std::vector<PhaseGroup> groups_of(std::vector<double> nanoseconds) {
  std::vector<EncodedPhase> phases;
  for (double each : nanoseconds) phases.push_back({nullptr, {nullptr, 1000, each}, true});
  std::vector<PhaseGroup> groups;
  group_phases(phases, groups);
  return groups;
}

TEST(walk, workers_follow_the_work) {
  EXPECT_EQ(useful_workers(groups_of({1000, 1900})), 1) << "too short to share";
  EXPECT_EQ(useful_workers(groups_of({20000, 20000})), 1) << "not worth a wake-up";
  EXPECT_EQ(groups_of({5000})[0].workers, 14);
  EXPECT_EQ(groups_of({2500})[0].workers, 10);
  EXPECT_EQ(groups_of({2500})[0].least, 5) << "two would save 1250 ns, four 1875";
  EXPECT_EQ(groups_of({4000})[0].least, 2);
  EXPECT_EQ(groups_of({2100})[0].grain, 0) << "as many as would save enough are not fed";
  EXPECT_GE(groups_of({1e6})[0].workers, 64);
  EXPECT_EQ(useful_workers(groups_of(std::vector<double>(100, 5000))), 12) << "the run is worth waking 12";
  EXPECT_EQ(useful_workers(groups_of(std::vector<double>(400, 2500))), 10) << "no step feeds more";
  EXPECT_EQ(useful_workers(groups_of({200000})), 8) << "waking more takes longer than they save";
}

// By the model that chooses them, more workers never take longer.
TEST(walk, more_threads_are_never_slower) {
  double of_each = 25;
  for (double work = 2000; work < 1e7; work *= 1.7) {
    int best = useful_workers(work, of_each);
    for (int n = 1; n < best; n++) {
      auto takes = [&](int workers) { return work / workers + workers * of_each; };
      EXPECT_GE(takes(n), takes(n + 1)) << work << " ns on " << n;
    }
  }
}

}  // namespace
}  // namespace rlx::cpu
