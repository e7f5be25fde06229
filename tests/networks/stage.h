// SPDX-License-Identifier: Apache-2.0
// A network on both sides: librlx through its C API, and ONNX Runtime with its optimisations off, which says what is
// right.
#pragma once

#include <rlx.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/ort.h"

namespace networks {

struct Value {
  rlx_dtype_t dtype = RLX_F32;
  std::vector<int64_t> dims;
  std::vector<char> bytes;

  template <class T>
  static Value of(rlx_dtype_t dtype, std::vector<int64_t> dims, std::span<const T> data) {
    auto from = reinterpret_cast<const char*>(data.data());
    return {dtype, std::move(dims), {from, from + data.size_bytes()}};
  }
  static Value f32(std::vector<int64_t> dims, const std::vector<float>& data) {
    return of(RLX_F32, std::move(dims), std::span(data));
  }
  static Value i64(std::vector<int64_t> dims, const std::vector<int64_t>& data) {
    return of(RLX_I64, std::move(dims), std::span(data));
  }
  static Value truth(bool it) { return {RLX_BOOL, {1}, {static_cast<char>(it)}}; }
  std::span<const float> floats() const {
    return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
  }
};
using Values = std::map<std::string, Value>;

// How the two are compared. kClose: by their largest difference. kQuantised, where a run rounds activations to 8 bits
// and a last bit decides the direction: by the angle between the results, and by the class that they choose.
enum class Bar : uint8_t { kClose, kQuantised };

class Stage {
 public:
  Stage(std::string path, Bar bar, bool times);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // Runs both and compares all outputs. ONNX Runtime's outputs.
  Values run(const std::string& label, const Values& in);
  // Those of another network, for a network that continues it.
  static Values peer_run(const std::string& path, const Values& in);

  int runs() const { return runs_; }
  int failed() const { return failed_; }
  double ratio() const;  // the geometric mean of ONNX Runtime's time over ours; 0: not measured

 private:
  Values ours(const Values& in);
  bool compare(const Values& got, const Values& want, const Values& in);
  double peer_cosine(const Values& want, const Values& in);
  void time(const Values& in);
  bench::Ort& fast_peer();

  std::string path_;
  Bar bar_;
  bool times_;
  rlx_env_t* env_ = nullptr;
  rlx_model_t* model_ = nullptr;
  std::unique_ptr<bench::Ort> peer_, fast_peer_;  // without and with optimisations
  std::vector<std::string> output_names_;
  std::vector<double> ratios_;
  int runs_ = 0, failed_ = 0;
};

}  // namespace networks
