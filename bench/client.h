// SPDX-License-Identifier: Apache-2.0
// What the benchmarks share as clients of librlx: environments, results, and that the peer computes the same.
#pragma once

#include <rlx.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace bench {

inline constexpr double kTolerance = 1e-4;  // of the largest value

inline void check(rlx_status_t* status) {
  char text[1024];
  if (rlx_status_take(status, text, sizeof text) == RLX_OK) return;
  std::fprintf(stderr, "rlx: %s\n", text);
  std::exit(1);
}

struct EnvRelease {
  void operator()(rlx_env_t* env) const { rlx_env_release(env); }
};
using Env = std::unique_ptr<rlx_env_t, EnvRelease>;

enum class Pin : bool { kNo, kYes };  // whether each thread stays on a core of its own

inline Env make_env(int threads, Pin pin = Pin::kYes) {
  rlx_attrs_t* options = nullptr;
  rlx_env_t* env = nullptr;
  check(rlx_attrs_create(("threads=" + std::to_string(threads) + (pin == Pin::kYes ? " threads.pin=1" : "")).c_str(),
                         &options));
  check(rlx_env_create(options, nullptr, &env));
  rlx_attrs_release(options);
  return Env(env);
}

inline std::vector<float> output(rlx_exec_t* exec) {
  rlx_tensor_t* tensor = nullptr;
  check(rlx_exec_tensor(exec, RLX_OUTPUT, 0, &tensor));
  const float* data = static_cast<const float*>(rlx_tensor_data(tensor));
  std::vector<float> values(data, data + rlx_tensor_bytes(tensor) / sizeof(float));
  rlx_tensor_release(tensor);
  return values;
}

inline void assert_equal(const std::string& what, const std::vector<float>& ours, std::span<const float> peer) {
  double largest = 0, worst = 0;
  bool same = ours.size() == peer.size();
  for (size_t i = 0; same && i < peer.size(); ++i) {
    largest = std::max(largest, std::abs(double{peer[i]}));
    worst = std::max(worst, std::abs(double{ours[i]} - peer[i]));
    same = std::isfinite(ours[i]);
  }
  if (same && worst <= kTolerance * largest) return;
  std::fprintf(stderr, "%s: outputs differ: %zu and %zu values, %g away where the largest is %g\n", what.c_str(),
               ours.size(), peer.size(), worst, largest);
  std::exit(1);
}

}  // namespace bench
