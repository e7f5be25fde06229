// SPDX-License-Identifier: Apache-2.0
// The few functions of ONNX Runtime's C API that a benchmark needs, called by their index in its table. The table only
// grows, and its first 102 places are frozen since API version 1, so the numbers below hold for every release.
#include "ort.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace bench {
namespace {

// Places in struct OrtApi of onnxruntime_c_api.h, counted from 0.
enum Place : size_t {
  kGetErrorMessage = 2,
  kCreateEnv = 3,
  kCreateSession = 7,
  kCreateSessionFromArray = 8,
  kRun = 9,
  kCreateSessionOptions = 10,
  kSetSessionGraphOptimizationLevel = 23,
  kSetIntraOpNumThreads = 24,
  kSetInterOpNumThreads = 25,
  kSessionGetInputCount = 30,
  kSessionGetOutputCount = 31,
  kSessionGetInputName = 36,
  kSessionGetOutputName = 37,
  kCreateTensorWithDataAsOrtValue = 49,
  kGetTensorMutableData = 51,
  kGetTensorElementType = 60,
  kGetDimensionsCount = 61,
  kGetDimensions = 62,
  kGetTensorTypeAndShape = 65,
  kCreateCpuMemoryInfo = 69,
  kAllocatorFree = 76,
  kGetAllocatorWithDefaultOptions = 78,
  kReleaseSession = 95,
  kReleaseValue = 96,
  kReleaseTensorTypeAndShapeInfo = 99,
  kReleaseSessionOptions = 100,
};

struct ApiBase {
  const void* (*get_api)(uint32_t version);
  const char* (*get_version)();
};

constexpr uint32_t kApiVersion = 1;
constexpr int kOptimizeNothing = 0, kOptimizeAll = 99, kError = 3, kArenaAllocator = 1, kDefaultMemory = 0;

struct Runtime {
  const ApiBase* base = nullptr;
  void* const* table = nullptr;
  void* env = nullptr;
  void* memory = nullptr;
  void* allocator = nullptr;
};
Runtime runtime;

// Exits without cleaning up: threads of the peer may still run.
[[noreturn]] void die(const std::string& message) {
  std::fflush(stdout);
  std::fprintf(stderr, "onnxruntime: %s\n", message.c_str());
  std::_Exit(1);
}

// The argument types are not converted: pass exactly the types of the C declaration.
template <class... Args>
void call(Place place, Args... args) {
  using Function = void* (*)(Args...);
  if (void* status = reinterpret_cast<Function>(runtime.table[place])(args...)) {
    using Message = const char* (*)(const void*);
    die(reinterpret_cast<Message>(runtime.table[kGetErrorMessage])(status));
  }
}

void release(Place place, void* handle) {
  if (handle != nullptr) reinterpret_cast<void (*)(void*)>(runtime.table[place])(handle);
}

void* session_options(int threads, bool optimised) {
  void* options = nullptr;
  call(kCreateSessionOptions, &options);
  call(kSetSessionGraphOptimizationLevel, options, optimised ? kOptimizeAll : kOptimizeNothing);
  call(kSetIntraOpNumThreads, options, threads);
  call(kSetInterOpNumThreads, options, 1);
  return options;
}

std::vector<std::string> names(void* session, Place count_place, Place name_place) {
  size_t count = 0;
  call(count_place, session, &count);
  std::vector<std::string> result;
  for (size_t i = 0; i < count; ++i) {
    char* name = nullptr;
    call(name_place, session, i, runtime.allocator, &name);
    result.emplace_back(name);
    call(kAllocatorFree, runtime.allocator, name);
  }
  return result;
}

size_t bytes_of(Ort::Type type, const std::vector<int64_t>& dims) {
  size_t bytes = type == Ort::Type::kI64 ? 8 : type == Ort::Type::kF32 ? 4 : 1;
  for (int64_t dim : dims) bytes *= static_cast<size_t>(dim);
  return bytes;
}

}  // namespace

void Ort::load(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) die(dlerror());
  auto get_base = reinterpret_cast<const ApiBase* (*)()>(dlsym(handle, "OrtGetApiBase"));
  if (get_base == nullptr) die(library + " has no OrtGetApiBase");
  runtime.base = get_base();
  runtime.table = static_cast<void* const*>(runtime.base->get_api(kApiVersion));
  if (runtime.table == nullptr) die("this library no longer offers version 1 of its API");
  call(kCreateEnv, kError, "bench", &runtime.env);
  call(kCreateCpuMemoryInfo, kArenaAllocator, kDefaultMemory, &runtime.memory);
  call(kGetAllocatorWithDefaultOptions, &runtime.allocator);
}

std::string Ort::version() {
  return runtime.base->get_version();
}

Ort::Ort(const std::string& path, int threads, bool optimised) {
  void* options = session_options(threads, optimised);
  call(kCreateSession, runtime.env, path.c_str(), options, &session_);
  release(kReleaseSessionOptions, options);
  find_names();
}

Ort::Ort(std::span<const uint8_t> model, int threads) {
  void* options = session_options(threads, true);
  call(kCreateSessionFromArray, runtime.env, model.data(), model.size(), options, &session_);
  release(kReleaseSessionOptions, options);
  find_names();
}

Ort::Ort(const Ort& other) : session_(other.session_), owns_session_(false) {
  find_names();
}

void Ort::find_names() {
  for (std::string& name : names(session_, kSessionGetInputCount, kSessionGetInputName)) {
    inputs_.push_back({std::move(name), nullptr});
  }
  output_names_ = names(session_, kSessionGetOutputCount, kSessionGetOutputName);
  for (const Input& input : inputs_) input_c_names_.push_back(input.name.c_str());
  for (const std::string& name : output_names_) output_c_names_.push_back(name.c_str());
  output_values_.resize(output_names_.size());
}

Ort::~Ort() {
  drop_outputs();
  for (Input& input : inputs_) release(kReleaseValue, input.value);
  if (owns_session_) release(kReleaseSession, session_);
}

void Ort::drop_outputs() {
  for (void*& value : output_values_) {
    release(kReleaseValue, value);
    value = nullptr;
  }
}

void Ort::bind(const std::string& name, Type type, const std::vector<int64_t>& dims, const void* data) {
  for (Input& input : inputs_) {
    if (input.name != name) continue;
    release(kReleaseValue, input.value);
    input.value = nullptr;
    call(kCreateTensorWithDataAsOrtValue, runtime.memory, const_cast<void*>(data), bytes_of(type, dims), dims.data(),
         dims.size(), static_cast<int>(type), &input.value);
    drop_outputs();
    return;
  }
  die("the model has no input " + name);
}

void Ort::run() {
  constexpr size_t kMaxInputs = 64;
  const void* values[kMaxInputs];
  if (inputs_.size() > kMaxInputs) die("more inputs than this expects");
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].value == nullptr) die("nothing is bound to input " + inputs_[i].name);
    values[i] = inputs_[i].value;
  }
  const void* default_options = nullptr;
  call(kRun, session_, default_options, input_c_names_.data(), &values[0], inputs_.size(), output_c_names_.data(),
       output_names_.size(), output_values_.data());
}

std::vector<int64_t> Ort::output_dims(size_t output) const {
  void* info = nullptr;
  call(kGetTensorTypeAndShape, output_values_[output], &info);
  int type = 0;
  call(kGetTensorElementType, info, &type);
  if (type != static_cast<int>(Type::kF32)) die("output " + output_names_[output] + " is not f32");
  size_t rank = 0;
  call(kGetDimensionsCount, info, &rank);
  std::vector<int64_t> dims(rank);
  call(kGetDimensions, info, dims.data(), rank);
  release(kReleaseTensorTypeAndShapeInfo, info);
  return dims;
}

std::span<const float> Ort::output(size_t output) const {
  size_t count = bytes_of(Type::kF32, output_dims(output)) / sizeof(float);
  void* data = nullptr;
  call(kGetTensorMutableData, output_values_[output], &data);
  return {static_cast<const float*>(data), count};
}

}  // namespace bench
