// SPDX-License-Identifier: Apache-2.0
// The processors that this process may use: cores as hwloc reports them, the affinity mask, the CPU quota of the
// cgroup. Each call asks the system again; nothing is kept and no thread is moved.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace rlx {

// One processor number for every physical core in the affinity mask of the calling thread, neighbours side by side. If
// the mask has cores of several kinds, only the fast ones. Never empty: if the machine cannot be read, the list is
// processor 0.
std::vector<int> usable_cores();

// A core, named by one of its processors. Kinds are ranked from 0, the slowest.
struct Core {
  int cpu = 0, kind = 0;
};
std::vector<int> of_the_fastest_kind(std::span<const Core> cores);

// The processor time that the cgroup grants, as a number of processors, rounded down; 0: no limit. Reads /proc and /sys
// under `root`.
int cpu_quota(const std::string& root = "");

}  // namespace rlx
