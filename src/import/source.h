// SPDX-License-Identifier: Apache-2.0
// The bytes that an importer reads: a mapped file or the caller's memory, kept alive by every tensor that views them.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/host.h"
#include "base/size_failure.h"
#include "base/status.h"
#include "base/tensor.h"
#include "ops/interpret.h"

namespace rlx {

class CustomOps;  // ops/custom.h
class ExternalFiles;

struct Source {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;                  // releases the bytes
  std::string path;                                   // empty: from memory
  std::shared_ptr<ExternalFiles> external = nullptr;  // null: from memory

  static Result<Source> open(const std::string& path);
};

// The files beside a model that hold data of it. They must lie in its folder, which is looked for once: the host may
// change its own folder, or move the model. Each file is mapped once, for all imports of the model: another may take
// its name. Thread-safe.
class ExternalFiles {
 public:
  explicit ExternalFiles(const std::string& model);

  // By the name in the model. A failure is not remembered.
  Result<Source> open(std::string_view location);

 private:
  const std::string folder_;  // absolute, without links; empty: it cannot be found
  std::mutex mutex_;          // guards what follows
  std::map<std::string, Source, std::less<>> files_;
};

// A tensor over a part of a source, without a copy: files need not align their elements (Tensor::aligned). RLX_E_DATA
// if the sizes disagree or a dim is negative.
Result<Tensor> tensor_over(const Source& source, std::span<const std::byte> bytes, DType dtype,
                           std::span<const int64_t> dims);

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// Choices for what the file leaves open. With them a general file becomes a special graph.
struct ImportChoices {
  std::vector<std::pair<std::string, int64_t>> dims;  // sizes by symbol
  NamedTensors values;  // inputs that become constants: they stay inputs, but are not read
  std::vector<std::pair<std::string, int64_t>> ranks;      // of inputs whose rank the file does not say
  std::vector<std::pair<std::string, int64_t>> sequences;  // the number of elements of an input that is a sequence
  std::vector<std::string> absent;                         // optional inputs that are absent
  std::vector<std::string> given;  // inputs with a default in the file that are given at every run
  bool separate_sizes = false;     // a size of an input is its own, "<input>.<axis>", whatever name the file gives it
  bool stretches = false;          // sizes that a run finds broadcast where they are 1
  bool interface_only = false;     // the graph holds only inputs and params

  bool empty() const {
    return dims.empty() && values.empty() && ranks.empty() && sequences.empty() && absent.empty() && given.empty();
  }

  const int64_t* find_dim(std::string_view symbol) const { return find(dims, symbol); }
  const int64_t* find_rank(std::string_view input) const { return find(ranks, input); }
  const int64_t* find_length(std::string_view input) const { return find(sequences, input); }
  bool is_absent(std::string_view input) const {
    return std::find(absent.begin(), absent.end(), input) != absent.end();
  }
  bool is_given(std::string_view input) const { return std::find(given.begin(), given.end(), input) != given.end(); }
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

// Detail of a failed import: the inputs, separated by line breaks, whose values it would need.
inline constexpr std::string_view kStaticInputs = "static";

// How a file is read.
struct ImportOptions {
  bool with_graph = true;      // false: only the weights are read
  bool with_weights = true;    // large initialisers become params; else all become constants
  int64_t params_min = 65;     // an initialiser with at least so many elements becomes a param
  bool decode = false;         // tensors whose type is not a dtype become f32; else they are refused
  const Host* host = nullptr;  // receives progress; may be null
  MakeTensor make = {};        // memory for weights that are decoded; null: Tensor::create
  ImportChoices choices = {};
  std::string first_choice = {};                  // the option that made the first of them, "dims.n"
  std::shared_ptr<const CustomOps> customs = {};  // the ops of the host, for text; may be null
};

}  // namespace rlx
