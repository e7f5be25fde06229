// SPDX-License-Identifier: Apache-2.0
// Reads GGUF files (github.com/ggml-org/ggml), versions 2 and 3: metadata, a table of tensors,
// and their bytes, aligned. Tensors are views of the source. A damaged file is RLX_E_DATA that names the tensor, key or
// byte.
#pragma once

#include "import/source.h"

namespace rlx {

struct Gguf {
  NamedTensors tensors;  // in the order of the file
  // Strings unchanged, numbers and bools as text, arrays as JSON.
  std::vector<std::pair<std::string, std::string>> metadata;
};

// Of the options, `decode` and `make` count. Without `decode` a tensor whose type is not a dtype is RLX_E_UNSUPPORTED.
Result<Gguf> read_gguf(const Source& source, const ImportOptions& options);

// Whether the bytes look like such a file: for finding a format by the first bytes.
bool is_gguf(std::span<const std::byte> bytes);

}  // namespace rlx
