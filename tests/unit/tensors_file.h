// SPDX-License-Identifier: Apache-2.0
// Reads the named tensors of a .tensors file (tests/peer/tensors.py says how they stand there).
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "base/tensor.h"

namespace rlx {

inline std::map<std::string, Tensor> read_tensors_file(const std::string& path) {
  std::map<std::string, Tensor> tensors;
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  for (std::string line; std::getline(file, line);) {
    std::istringstream header(line);
    std::string name, dtype;
    header >> name >> dtype;
    Dims dims;
    for (int64_t dim; header >> dim;) dims.push_back(dim);
    auto tensor = Tensor::create(find_dtype(dtype).value_or(DType::kU8), dims);
    EXPECT_TRUE(tensor.ok()) << path << ": " << line;
    if (!tensor.ok()) return tensors;
    file.read(reinterpret_cast<char*>(tensor->data()), static_cast<std::streamsize>(tensor->bytes()));
    EXPECT_TRUE(file.good()) << path << ": '" << name << "' is cut short";
    tensors[name] = *tensor;
  }
  return tensors;
}

}  // namespace rlx
