// SPDX-License-Identifier: Apache-2.0
// What the threads of this process may run on: cores by hwloc, the affinity mask, the CPU quota of the cgroup.
// Each call asks the system again; nothing is kept and no thread is moved.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace rlx {

// One processor number of every physical core in the affinity mask of the calling thread, neighbours side by side; of
// the fast kind alone where the mask has cores of several kinds. Never empty: where the machine cannot be read,
// processor 0 stands for it.
std::vector<int> usable_cores();

// A core by one of its processors. Kinds are ranked from 0, the slowest.
struct Core {
  int cpu = 0, kind = 0;
};
std::vector<int> of_the_fastest_kind(std::span<const Core> cores);

// How many processors' time the cgroup grants, rounded down; 0: no limit. Reads /proc and /sys under `root`.
int cpu_quota(const std::string& root = "");

}  // namespace rlx
