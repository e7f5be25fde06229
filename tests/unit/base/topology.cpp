// SPDX-License-Identifier: Apache-2.0
// The processors that the process may use: cores, affinity, quotas of cgroups.
#include "base/os/topology.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace rlx {
namespace {

namespace fs = std::filesystem;

// A root folder whose /proc and /sys say what the test wants.
class quota : public testing::Test {
 protected:
  quota() {
    std::string name = (fs::temp_directory_path() / "rlx-quota-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~quota() override { fs::remove_all(root_); }
  void put(const std::string& path, const std::string& text) {
    fs::create_directories((root_ + path).substr(0, (root_ + path).rfind('/')));
    std::ofstream(root_ + path) << text;
  }
  std::string root_;
};

TEST_F(quota, no_file_is_no_limit) {
  EXPECT_EQ(cpu_quota(root_), 0);
}

TEST_F(quota, the_least_limit_on_the_way_up_counts) {
  put("/proc/self/cgroup", "0::/a/b\n");
  put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_quota(root_), 0);
  put("/sys/fs/cgroup/a/b/cpu.max", "850000 100000\n");
  EXPECT_EQ(cpu_quota(root_), 8);
  put("/sys/fs/cgroup/a/cpu.max", "350000 100000\n");
  EXPECT_EQ(cpu_quota(root_), 3);
  put("/sys/fs/cgroup/cpu.max", "20000 100000\n");
  EXPECT_EQ(cpu_quota(root_), 1);  // a fifth of a processor is still one thread
}

TEST_F(quota, a_group_that_the_container_hides_leaves_the_limits_above_it) {
  put("/proc/self/cgroup", "0::/not/visible\n");
  put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(cpu_quota(root_), 2);
}

TEST_F(quota, the_files_of_version_one_are_read) {
  put("/proc/self/cgroup", "9:name=systemd:/x\n4:cpu,cpuacct:/x\n0::/\n");
  put("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  put("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cpu_quota(root_), 0);
  put("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "400000\n");
  EXPECT_EQ(cpu_quota(root_), 4);
}

TEST(topology, slow_kinds_are_left_out) {
  EXPECT_EQ(of_the_fastest_kind(std::vector<Core>{{0, 1}, {2, 1}, {4, 0}, {5, 0}}), (std::vector<int>{0, 2}));
  EXPECT_EQ(of_the_fastest_kind(std::vector<Core>{{4, 0}, {5, 0}}), (std::vector<int>{4, 5})) << "nothing else allowed";
}

// The child sees an empty /sys, as in some containers, and its stderr is the pipe.
static void count_cores_without_sys(int pipe) {
  bool hidden = (unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
                mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                mount("none", "/sys", "tmpfs", 0, nullptr) == 0;
  if (!hidden) _exit(2);
  dup2(pipe, STDERR_FILENO);
  _exit(usable_cores().empty() ? 1 : 0);
}

TEST(topology, prints_nothing_where_sys_is_hidden) {
  int ends[2], status = 0;
  ASSERT_EQ(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) count_cores_without_sys(ends[1]);
  close(ends[1]);
  std::string printed;
  char part[256];
  for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;) printed.append(part, static_cast<size_t>(n));
  close(ends[0]);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 2) {
    EXPECT_FALSE(std::getenv("RLX_REQUIRE_NAMESPACES")) << "/sys cannot be hidden";
    GTEST_SKIP() << "/sys cannot be hidden here";
  }
  EXPECT_EQ(status, 0);
  EXPECT_EQ(printed, "");
}

TEST(topology, every_core_is_one_processor_of_the_affinity_mask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  std::vector<int> cores = usable_cores();
  std::set<int> distinct(cores.begin(), cores.end());
  EXPECT_EQ(distinct.size(), cores.size());
  EXPECT_LE(static_cast<int>(cores.size()), CPU_COUNT(&before));
  for (int cpu : cores) EXPECT_TRUE(CPU_ISSET(static_cast<size_t>(cpu), &before));

  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(cores.back()), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cores(), std::vector<int>{cores.back()});
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace rlx
