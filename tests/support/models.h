// SPDX-License-Identifier: Apache-2.0
// Models in files, and the tensors that another library computed for them (tests/peer/tensors.py describes the file).
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

// A file that `./dev demo` fetched. If it is absent, the path is empty; with RLX_REQUIRE_MODELS set, the test fails.
std::filesystem::path fetched(std::string_view name);

// The largest difference of f32 tensors of equal dims, relative to the largest expected value. Infinite if dims or
// dtypes differ, or if one element is finite and the other is not.
double relative_difference(const Tensor& got, const Tensor& want);

}  // namespace rlx::test
