// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime through its C API, loaded by dlopen: the peer of librlx in benchmarks and tests/networks. Any failure
// ends the program with the peer's own message, because a comparison needs the peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bench {

class Ort {
 public:
  enum class Type : int { kF32 = 1, kU8 = 2, kI64 = 7, kBool = 9 };  // as ONNX numbers them

  static void load(const std::string& library);  // the path of libonnxruntime.so.*; once, before anything else
  static std::string version();

  Ort(const std::string& path, int threads, bool optimised = true);
  Ort(std::span<const uint8_t> model, int threads);
  // Another caller of the same session, with bindings of its own; `other` must outlive it.
  explicit Ort(const Ort& other);
  ~Ort();
  Ort& operator=(const Ort&) = delete;

  // `data` is read by every run until the input is bound again. Outputs keep their memory while no input is bound.
  void bind(const std::string& input, Type type, const std::vector<int64_t>& dims, const void* data);
  void run();
  const std::vector<std::string>& outputs() const { return output_names_; }
  std::vector<int64_t> output_dims(size_t output) const;
  std::span<const float> output(size_t output) const;  // of the last run; f32 outputs only

 private:
  void find_names();
  void drop_outputs();

  struct Input {
    std::string name;
    void* value = nullptr;
  };
  void* session_ = nullptr;
  bool owns_session_ = true;
  std::vector<Input> inputs_;
  std::vector<std::string> output_names_;
  std::vector<void*> output_values_;
  std::vector<const char*> input_c_names_, output_c_names_;
};

}  // namespace bench
