// SPDX-License-Identifier: Apache-2.0
// Runs a graph on one device, to compare the kernels of the CPU with the oracle.
#pragma once

#include <cmath>
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

// Within 1e-5, with NaN and infinities at the same places.
inline void expect_alike(const Tensor& got, const Tensor& want) {
  for (int64_t i = 0; i < want.count(); i++) {
    float y = got.as<float>()[i], right = want.as<float>()[i];
    if (std::isfinite(right))
      ASSERT_NEAR(y, right, 1e-5) << i;
    else
      ASSERT_TRUE(std::isnan(right) ? std::isnan(y) : y == right) << i << ' ' << y << ' ' << right;
  }
}

}  // namespace rlx::testing_programs
