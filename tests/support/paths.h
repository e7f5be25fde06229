// SPDX-License-Identifier: Apache-2.0
// Where the files are that tests read.
#pragma once

#include <filesystem>
#include <string_view>

namespace rlx::test {

// A file or folder under tests/, as "models/digits.onnx".
std::filesystem::path test_path(std::string_view name);

}  // namespace rlx::test
