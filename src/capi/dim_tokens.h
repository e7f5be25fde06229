// SPDX-License-Identifier: Apache-2.0
// Sizes cross the C API as int64_t: a number as itself, any other expression as a token below -2^48. There is one table
// of tokens per environment. The same expression is the same token in all graphs of the environment, as long as it
// lives.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/dim.h"
#include "base/status.h"

namespace rlx::capi {

class DimTokens {
 public:
  static bool is_token(int64_t number) { return number < kNoToken; }
  int64_t token(const Dim& dim);
  Result<Dim> dim(int64_t number) const;
  Result<std::vector<Dim>> dims(std::span<const int64_t> numbers) const;

 private:
  static constexpr int64_t kNoToken = -(int64_t{1} << 48);
  mutable std::mutex mutex_;
  std::vector<Dim> dims_;                            // the token of dims_[i] is kNoToken - 1 - i
  std::unordered_map<std::string, int64_t> tokens_;  // by the canonical text
};

}  // namespace rlx::capi
