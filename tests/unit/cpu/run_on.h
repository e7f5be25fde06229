// SPDX-License-Identifier: Apache-2.0
// Runs a graph on one device, to compare the kernels of the CPU with the oracle.
#pragma once

#include <string_view>

#include "tests/unit/programs.h"

namespace rlx::testing_programs {

// All outputs. On the CPU these kernels, and none of the reference, must have computed them.
inline std::vector<Tensor> run_on(std::string_view device, const Graph& graph, const std::vector<Tensor>& in,
                                  std::initializer_list<const char*> kernels = {}) {
  auto env = env_with(2);
  auto program = Program::compile(env, graph, nullptr, *env->find_device(device), {});
  EXPECT_TRUE(program.ok()) << program.status().message();
  std::string report = *(*program)->report("dispatch");
  if (device == "cpu") {
    for (const char* kernel : kernels) EXPECT_NE(report.find(kernel), std::string::npos) << kernel << report;
    EXPECT_EQ(report.find("reference"), std::string::npos) << report;
  }
  return *(*program)->run({}, in, {}, graph.outputs().size());
}

}  // namespace rlx::testing_programs
