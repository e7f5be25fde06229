// SPDX-License-Identifier: Apache-2.0
// Reads safetensors files (github.com/huggingface/safetensors): a JSON header, then the tensors' bytes without gaps.
// Tensors are views of the source. A damaged file is RLX_E_DATA that names the tensor or the byte.
#pragma once

#include "import/source.h"

namespace rlx {

struct SafeTensors {
  NamedTensors tensors;  // in the order of the header
  std::vector<std::pair<std::string, std::string>> metadata;
};

Result<SafeTensors> read_safetensors(const Source& source);

// Whether the bytes look like such a file: for finding a format by the first bytes.
bool is_safetensors(std::span<const std::byte> bytes);

}  // namespace rlx
