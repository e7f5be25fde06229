// SPDX-License-Identifier: Apache-2.0
// Cores by hwloc, quotas by the files of cgroup v1 and v2 (kernel: Documentation/admin-guide/cgroup-v2.rst, cpu.max;
// scheduler/sched-bwc.rst, cpu.cfs_quota_us). The limits of our group and of all groups above it count.
#include "base/os/topology.h"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string_view>

#include "base/os/file.h"
#include "base/split.h"

namespace rlx {
namespace {

struct Free {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
  void operator()(hwloc_bitmap_s* set) const { hwloc_bitmap_free(set); }
};
using Topology = std::unique_ptr<hwloc_topology, Free>;
using CpuSet = std::unique_ptr<hwloc_bitmap_s, Free>;

// Whether /sys describes the cores; a container may hide it.
bool shows_cores() {
  return access("/sys/bus/cpu/devices/cpu0/topology", X_OK) == 0 ||
         access("/sys/devices/system/cpu/cpu0/topology", X_OK) == 0;
}

// Cores only: no devices, and not the x86 component, which would move this thread over all processors. Without /sys the
// linux component finds nothing and prints an error.
Topology load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  Topology topology(raw);
  hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  if (!shows_cores()) hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "linux");
  hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  return hwloc_topology_load(raw) == 0 ? std::move(topology) : nullptr;
}

// Kinds that differ in clock alone count as one: favoured cores of one kind are a few per cent apart.
bool differs_in_design(hwloc_topology_t topology, unsigned kind) {
  unsigned count = 0;
  hwloc_info_s* infos = nullptr;
  if (hwloc_cpukinds_get_info(topology, kind, nullptr, nullptr, &count, &infos, 0) != 0) return false;
  return std::any_of(infos, infos + count, [](const hwloc_info_s& info) {
    return std::string_view(info.name) == "CoreType" || std::string_view(info.name) == "LinuxCapacity";
  });
}

// The rank of a processor's kind, by what the kernel says of its design; 0 where it says nothing.
int kind_of(hwloc_topology_t topology, int cpu) {
  CpuSet one(hwloc_bitmap_alloc());
  if (!one || hwloc_bitmap_only(one.get(), static_cast<unsigned>(cpu)) != 0) return 0;
  int kind = hwloc_cpukinds_get_by_cpuset(topology, one.get(), 0), efficiency = 0;
  if (kind < 0 || !differs_in_design(topology, static_cast<unsigned>(kind))) return 0;
  hwloc_cpukinds_get_info(topology, static_cast<unsigned>(kind), nullptr, &efficiency, nullptr, nullptr, 0);
  return std::max(efficiency, 0);
}

// A positive number, or 0 (no limit) for "max", "-1" and anything that is not a number.
double positive(std::string_view text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number > 0 ? static_cast<double>(number) : 0;
}

std::string contents(const std::string& path) {
  Result<std::string> text = read_file(path, 1 << 20);
  return text.ok() ? std::move(text).value() : std::string();  // a file that is not there sets no limit
}

// The processors that one group's own files grant; 0: no limit.
double quota_v2(const std::string& folder) {
  std::string text = contents(folder + "/cpu.max");  // "150000 100000" or "max 100000"
  auto words = split(std::string_view(text).substr(0, text.find('\n')), ' ');
  return words.size() == 2 && positive(words[1]) > 0 ? positive(words[0]) / positive(words[1]) : 0;
}

double quota_v1(const std::string& folder) {
  double period = positive(contents(folder + "/cpu.cfs_period_us"));
  return period > 0 ? positive(contents(folder + "/cpu.cfs_quota_us")) / period : 0;
}

// The least limit of a group and of all above it. Inside a container a path may name groups that are not visible: they
// have no files, and the search goes on with their parents.
double least_quota(const std::string& mount, std::string group, double (*quota)(const std::string&)) {
  double least = 0;
  for (;;) {
    double here = quota(mount + group);
    if (here > 0) least = least > 0 ? std::min(least, here) : here;
    if (group.empty()) return least;
    size_t slash = group.rfind('/');
    group.resize(slash == std::string::npos ? 0 : slash);
  }
}

}  // namespace

std::vector<int> of_the_fastest_kind(std::span<const Core> cores) {
  int fastest = 0;
  for (const Core& core : cores) fastest = std::max(fastest, core.kind);
  std::vector<int> cpus;
  for (const Core& core : cores)
    if (core.kind == fastest) cpus.push_back(core.cpu);
  return cpus;
}

std::vector<int> usable_cores() {
  std::vector<Core> cores;
  Topology topology = load_topology();
  CpuSet allowed(hwloc_bitmap_alloc());
  if (topology && allowed && hwloc_get_cpubind(topology.get(), allowed.get(), HWLOC_CPUBIND_THREAD) == 0) {
    hwloc_obj_t core = nullptr;
    while ((core = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_CORE, core)) != nullptr) {
      CpuSet both(hwloc_bitmap_alloc());
      if (!both) break;
      hwloc_bitmap_and(both.get(), core->cpuset, allowed.get());
      if (int cpu = hwloc_bitmap_first(both.get()); cpu >= 0) cores.push_back({cpu, kind_of(topology.get(), cpu)});
    }
    // A machine that shows no cores, only processors.
    if (cores.empty()) {
      for (int cpu = hwloc_bitmap_first(allowed.get()); cpu >= 0; cpu = hwloc_bitmap_next(allowed.get(), cpu)) {
        cores.push_back({cpu, kind_of(topology.get(), cpu)});
      }
    }
  }
  if (cores.empty()) cores.push_back({});
  return of_the_fastest_kind(cores);
}

int cpu_quota(const std::string& root) {
  double least = 0;
  std::string groups = contents(root + "/proc/self/cgroup");  // "0::/a/b" (v2), "4:cpu,cpuacct:/a/b" (v1)
  for (std::string_view line : split(groups, '\n')) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    std::string_view controllers = line.substr(first + 1, second - first - 1);
    std::string group(line.substr(second + 1));
    if (group == "/") group.clear();
    double here = 0;
    if (controllers.empty()) {
      here = least_quota(root + "/sys/fs/cgroup", group, quota_v2);
    } else if (std::ranges::count(split(controllers, ','), "cpu")) {
      here = least_quota(root + "/sys/fs/cgroup/" + std::string(controllers), group, quota_v1);
    }
    if (here > 0) least = least > 0 ? std::min(least, here) : here;
  }
  return least > 0 ? std::max(1, static_cast<int>(std::min(least, 1e6))) : 0;
}

}  // namespace rlx
