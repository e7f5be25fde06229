// SPDX-License-Identifier: Apache-2.0
// Models of files, and the tensors that a second source stored for them (tests/peer/tensors.py describes the file).
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "ir/graph.h"
#include "runtime/weights.h"

namespace rlx::test {

struct FileModel {
  Graph graph;
  std::shared_ptr<Weights> weights;
};
Result<FileModel> open_onnx(const std::filesystem::path& path);

using TensorsByName = std::map<std::string, Tensor, std::less<>>;
Result<TensorsByName> read_tensors(const std::filesystem::path& path);

// A file that `./dev demo` fetched; empty where it did not, or a failure of the test if RLX_REQUIRE_MODELS is set.
std::filesystem::path fetched(std::string_view name);

// The largest difference of f32 tensors of equal dims, as a share of the largest value that is wanted. Infinite where
// dims, dtypes or what is finite differ.
double relative_difference(const Tensor& got, const Tensor& want);

}  // namespace rlx::test
