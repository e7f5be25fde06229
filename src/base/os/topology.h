// SPDX-License-Identifier: Apache-2.0
// What the threads of this process may run on: cores by hwloc, the affinity mask, the CPU quota of the cgroup.
// Each call asks the system again; nothing is kept and no thread is moved.
#pragma once

#include <string>
#include <vector>

namespace rlx {

// One processor number of every physical core in the affinity mask of the calling thread, neighbours side by side.
// Never empty: where the machine cannot be read, processor 0 stands for it.
std::vector<int> usable_cores();

// How many processors' time the cgroup grants, rounded down; 0: no limit. Reads /proc and /sys under `root`.
int cpu_quota(const std::string& root = "");

}  // namespace rlx
