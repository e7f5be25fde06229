// SPDX-License-Identifier: Apache-2.0
// The bytes that an importer reads: a mapped file or the caller's memory, kept alive by every tensor that views them.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/allocator.h"
#include "base/status.h"
#include "base/tensor.h"

namespace rlx {

struct Source {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  // releases the bytes
  std::string path;                   // empty: from memory

  static Result<Source> open(const std::string& path);
};

// A tensor over part of a source, where it lies: files need not align their elements (Tensor::aligned). RLX_E_DATA if
// the sizes disagree or a dim is negative.
Result<Tensor> tensor_over(const Source& source, std::span<const std::byte> bytes, DType dtype,
                           std::span<const int64_t> dims);

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// What an import takes as known that its file leaves open: it makes a special graph of a general file.
struct ImportChoices {
  std::vector<std::pair<std::string, int64_t>> dims;   // sizes by symbol
  NamedTensors values;                                 // inputs that are constants: they stay inputs, and are not read
  std::vector<std::pair<std::string, int64_t>> ranks;  // of inputs whose file does not say it
  std::vector<std::pair<std::string, int64_t>> sequences;  // how many elements an input has that is a sequence
  std::vector<std::string> absent;                         // inputs that may be left out, and are
  bool interface_only = false;                             // the graph holds inputs and params and nothing else

  bool empty() const { return dims.empty() && values.empty() && ranks.empty() && sequences.empty() && absent.empty(); }

  const int64_t* find_dim(std::string_view symbol) const { return find(dims, symbol); }
  const int64_t* find_rank(std::string_view input) const { return find(ranks, input); }
  const int64_t* find_length(std::string_view input) const { return find(sequences, input); }
  bool is_absent(std::string_view input) const {
    return std::find(absent.begin(), absent.end(), input) != absent.end();
  }
  const Tensor* find_value(std::string_view input) const {
    for (const auto& [name, value] : values)
      if (name == input) return &value;
    return nullptr;
  }

 private:
  static const int64_t* find(const std::vector<std::pair<std::string, int64_t>>& numbers, std::string_view wanted) {
    for (const auto& [name, number] : numbers)
      if (name == wanted) return &number;
    return nullptr;
  }
};

// Of a failed import: the inputs, separated by line breaks, whose values would have let it go on.
inline constexpr std::string_view kStaticInputs = "static";

// Of a failed import or run: other sizes, or known ones, may pass.
inline constexpr std::string_view kDependsOnSizes = "sizes";

// How a file is read.
struct ImportOptions {
  bool with_weights = true;    // large initialisers become params; else everything is a constant
  int64_t params_min = 65;     // how many elements an initialiser has at least that becomes a param
  bool decode = false;         // tensors of a type that is no dtype become f32; else they are refused
  const Host* host = nullptr;  // is told of progress
  ImportChoices choices = {};
};

}  // namespace rlx
