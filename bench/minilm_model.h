// SPDX-License-Identifier: Apache-2.0
// all-MiniLM-L6-v2 in librlx and in ONNX Runtime, for the benchmarks that run it.
#pragma once

#include <rlx.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "client.h"
#include "ort.h"

namespace bench {

inline constexpr int kVocabulary = 30522;
inline constexpr const char* kIds = "input_ids";
inline constexpr const char* kMask = "attention_mask";
inline constexpr const char* kTypes = "token_type_ids";

struct Batch {
  int64_t rows, length;
  std::vector<int64_t> ids, mask, types;
  std::string name() const { return std::to_string(rows) + " x " + std::to_string(length); }
};

// Random tokens; every row but the first is padded to half its length.
inline Batch make_batch(int64_t rows, int64_t length) {
  Batch batch{rows, length, {}, {}, {}};
  uint32_t state = 12345;
  for (int64_t i = 0; i < rows * length; ++i) {
    state = state * 1664525u + 1013904223u;
    bool real = i < length || i % length < (length + 1) / 2;
    batch.ids.push_back(real ? (state >> 8) % kVocabulary : 0);
    batch.mask.push_back(real);
    batch.types.push_back(0);
  }
  return batch;
}

// A program planned for sizes up to rows x length, and one exec of it.
class Executable {
 public:
  Executable(rlx_env_t* env, const char* path, int64_t rows, int64_t length) {
    const char* symbols[] = {"batch_size", "sequence_length"};
    const int64_t sizes[] = {rows, length};
    rlx_model_t* model = nullptr;
    check(rlx_model_open(env, path, nullptr, &model));
    check(rlx_model_get(model, "cpu", symbols, sizes, 2, &compiled_));
    rlx_model_release(model);
    check(rlx_exec_create(compiled_, nullptr, &exec_));
  }
  // One more exec of the same program.
  explicit Executable(const Executable& other) : compiled_(rlx_compiled_retain(other.compiled_)) {
    check(rlx_exec_create(compiled_, nullptr, &exec_));
  }
  ~Executable() {
    rlx_exec_release(exec_);
    rlx_compiled_release(compiled_);
  }
  Executable& operator=(const Executable&) = delete;

  void bind(Batch& batch) {
    check(rlx_exec_set_dim(exec_, "batch_size", batch.rows));
    check(rlx_exec_set_dim(exec_, "sequence_length", batch.length));
    bind(kIds, batch.ids);
    bind(kMask, batch.mask);
    bind(kTypes, batch.types);
  }
  void run() { check(rlx_exec_run(exec_)); }
  std::vector<float> output() { return bench::output(exec_); }

 private:
  void bind(const char* name, std::vector<int64_t>& values) {
    int64_t slot = rlx_compiled_find(compiled_, RLX_INPUT, name);
    if (slot < 0) {
      std::fprintf(stderr, "the model has no input %s\n", name);
      std::exit(1);
    }
    check(rlx_exec_bind_ptr(exec_, RLX_INPUT, slot, values.data(), values.size() * sizeof values[0]));
  }
  rlx_compiled_t* compiled_ = nullptr;
  rlx_exec_t* exec_ = nullptr;
};

inline void bind(Ort& ort, const Batch& batch) {
  const std::vector<int64_t> dims = {batch.rows, batch.length};
  ort.bind(kIds, Ort::Type::kI64, dims, batch.ids.data());
  ort.bind(kMask, Ort::Type::kI64, dims, batch.mask.data());
  ort.bind(kTypes, Ort::Type::kI64, dims, batch.types.data());
}

}  // namespace bench
