// SPDX-License-Identifier: Apache-2.0
// rlx_tensor_*: tensors that the library allocates, wraps or maps, and copies from and to the caller's memory.
#include "capi/tensor.h"

#include <cstring>
#include <string>

#include "base/os/file.h"
#include "capi/blob.h"
#include "capi/guard.h"
#include "ops/interpret.h"

using namespace rlx;
using namespace rlx::capi;

namespace rlx::capi {

// The check of Tensor::adopt, before the bytes exist.
static Status check_bytes(DType dtype, std::span<const int64_t> dims, size_t bytes) {
  return Tensor::adopt(dtype, dims, nullptr, bytes).status();
}

// The rank comes first: a wrong one would make us read past the caller's dims.
static Result<std::span<const int64_t>> checked_dims(const rlx_env& env, const int64_t* dims, size_t rank) {
  if (rank > kMaxRank) return rank_above_limit(rank);
  for (size_t axis = 0; axis < rank; axis++) {
    if (!DimTokens::is_token(dims[axis])) continue;
    if (auto open = env.dims.dim(dims[axis]); open.ok())
      return Status(Code::kShape, format("axis {} is the size '{}': the dims of a tensor are numbers", axis, *open))
          .with("expected", "a number")
          .with("got", open->text());
  }
  return std::span(dims, rank);
}

// Evaluates the op `cast`, so that there is only one table of conversions.
Result<Tensor> cast(const Tensor& tensor, DType to, const MakeTensor* make) {
  if (is_block(tensor.dtype()))
    return Status(Code::kDtype, format("cast: {} is block-quantised: the op dequantize converts it", tensor.dtype()))
        .with("op", "cast")
        .with("got", name(tensor.dtype()));
  Graph graph("cast");
  Value x = RLX_TRY(graph.add_input("x", tensor.dtype(), {tensor.dims().begin(), tensor.dims().end()}));
  Value in[] = {x};
  RLX_TRY(graph.add_output("y", RLX_TRY(graph.add(Op::kCast, in, {{"to", to}}))));
  Tensor inputs[] = {tensor};
  return std::move(RLX_TRY(interpret(graph, inputs, {}, {.make = make}))[0]);
}

static std::string element_text(const Tensor& tensor, size_t i) {
  if (is_complex(tensor.dtype())) {
    bool wide = tensor.dtype() == DType::kC128;
    double re = wide ? tensor.as<double>()[2 * i] : tensor.as<float>()[2 * i];
    double im = wide ? tensor.as<double>()[2 * i + 1] : tensor.as<float>()[2 * i + 1];
    return format("{:.6}{}{:.6}i", re, std::signbit(im) ? "" : "+", im);
  }
  if (tensor.dtype() == DType::kU64) return std::to_string(tensor.as<uint64_t>()[i]);
  auto index = static_cast<int64_t>(i);
  if (is_integer(tensor.dtype()) || tensor.dtype() == DType::kBool)
    return std::to_string(element_as_i64(tensor, index));
  return format("{:.6}", element_as_f64(tensor, index));
}

// "f32[2,3]", then a line for each row of the last axis.
std::string to_text(const Tensor& tensor, size_t max_elements) {
  std::string text = type_text(tensor.dtype(), tensor.dims()) + "\n";
  if (is_block(tensor.dtype())) return text + format("{} bytes in blocks\n", tensor.bytes());
  auto count = static_cast<size_t>(tensor.count());
  size_t row = tensor.rank() ? static_cast<size_t>(tensor.dims().back()) : 1;
  for (size_t i = 0; i < std::min(count, max_elements); i++)
    text += element_text(tensor, i) + (i % row == row - 1 ? "\n" : " ");
  if (max_elements < count) text += format("... {} elements in all\n", count);
  return text;
}

Result<const Tensor*> contents_of(const rlx_tensor& tensor) {
  if (const Tensor* contents = tensor.contents()) return contents;
  return Status(Code::kState, "a tensor of a custom op has bytes only while its `run` is called");
}

Result<const Tensor*> contents_to_retain(const rlx_tensor& tensor, const rlx_env* by, const char* argument) {
  if (tensor.is_lent())
    return Status(Code::kState, format("'{}' is lent to a callback of a custom op: make a copy", argument));
  RLX_TRY(same_env(by, tensor.env, argument));
  return contents_of(tensor);
}

Result<Tensor> constant_of(const rlx_tensor& tensor, const rlx_env* by) {
  Tensor frozen = RLX_TRY(RLX_TRY(contents_to_retain(tensor, by, "tensor"))->frozen());
  if (frozen.is_aligned()) return frozen;
  Tensor copy = RLX_TRY(by->env->aligned(frozen));
  auto both = std::make_shared<std::pair<Tensor, Tensor>>(std::move(copy), std::move(frozen));
  const Tensor& read = both->first;
  return Tensor::over(read.dtype(), read.dims(), std::shared_ptr<Storage>(both, read.storage().get()));
}

static Status check_part(const char* what, uint64_t offset, uint64_t bytes, size_t size, const char* of = "tensor") {
  if (offset <= size && bytes <= size - offset) return {};
  return Status(Code::kRange, format("{}: {} at offset {} of a {} of {}", what, plural(bytes, "byte"), offset, of,
                                     plural(size, "byte")))
      .with("expected", std::to_string(size))
      .with("got", format("{} + {}", offset, bytes));
}

static Status check_writable(const rlx_tensor& handle, const Tensor& tensor) {
  const Storage& storage = *tensor.storage();
  if (storage.is_writable()) return {};
  const char* why = handle.is_lent()         ? "it is an input of a custom op"
                    : storage.is_read_only() ? "it is read-only: a view of a file"
                                             : "it is frozen: a param, a constant or a weight";
  return Status(Code::kState, "the tensor " + type_text(tensor.dtype(), tensor.dims()) + " cannot be written, " + why);
}

// The bytes of the caller as a place. Where the caller gave const bytes, nobody writes through the const_cast.
class CallerBytes {
 public:
  CallerBytes(const void* data, size_t bytes)
      : buffer_(host_buffer({std::shared_ptr<void>(), static_cast<std::byte*>(const_cast<void*>(data))}, bytes)) {}
  Place place() const { return {*buffer_, 0}; }

 private:
  std::shared_ptr<Buffer> buffer_;
};

static Place place_in(const Tensor& tensor, uint64_t offset) {
  return tensor.storage()->place() + static_cast<int64_t>(offset);
}

// The tensor itself, or a copy whose elements the host can read. What is lent needs no copy.
static Result<Tensor> on_host(const rlx_tensor& handle) {
  Tensor tensor = *RLX_TRY(contents_of(handle));
  if (tensor.bytes() == 0 || (tensor.data() && tensor.is_aligned())) return tensor;
  if (tensor.data()) return handle.env->env->aligned(tensor);
  Tensor copy = RLX_TRY(handle.env->env->make_unfilled(tensor.dtype(), tensor.dims()));
  RLX_TRY(copy_bytes(copy.storage()->place(), tensor.storage()->place(), copy.bytes()));
  return copy;
}

Result<Tensor> copied_tensor(const rlx_env& env, rlx_dtype_t dtype, const int64_t* dims, size_t rank, const void* data,
                             size_t bytes) {
  DType type = RLX_TRY(checked_dtype(dtype));
  auto shape = RLX_TRY(checked_dims(env, dims, rank));
  RLX_TRY(check_bytes(type, shape, bytes));
  Tensor tensor = RLX_TRY(env.env->make_tensor(type, shape));
  if (bytes) std::memcpy(tensor.data(), data, bytes);
  return tensor;
}

}  // namespace rlx::capi

rlx_status_t* rlx_tensor_create(rlx_env_t* env, const rlx_device_t* device, rlx_dtype_t dtype, const int64_t* dims,
                                size_t rank, rlx_tensor_t** out) {
  return guard({cleared(out, "out"), handle(env, "env"), array(dims, rank, "dims")}, [&]() -> Status {
    DType type = RLX_TRY(checked_dtype(dtype));
    auto shape = RLX_TRY(checked_dims(*env, dims, rank));
    Device* on = device ? RLX_TRY(device_of(*env, device)) : nullptr;
    Tensor tensor = RLX_TRY(env->env->make_tensor(type, shape, on));
    *out = new rlx_tensor(env, std::move(tensor), device);
    return {};
  });
}

rlx_status_t* rlx_tensor_copy_from(rlx_env_t* env, rlx_dtype_t dtype, const int64_t* dims, size_t rank,
                                   const void* data, size_t bytes, rlx_tensor_t** out) {
  auto arguments = {cleared(out, "out"), handle(env, "env"), array(dims, rank, "dims"), array(data, bytes, "data")};
  return guard(arguments, [&]() -> Status {
    Tensor tensor = RLX_TRY(copied_tensor(*env, dtype, dims, rank, data, bytes));
    *out = new rlx_tensor(env, std::move(tensor));
    return {};
  });
}

rlx_status_t* rlx_tensor_wrap(rlx_env_t* env, rlx_dtype_t dtype, const int64_t* dims, size_t rank, void* data,
                              size_t bytes, rlx_free_fn done, void* user, rlx_tensor_t** out) {
  auto arguments = {cleared(out, "out"), handle(env, "env"), array(dims, rank, "dims"), array(data, bytes, "data")};
  return guard(arguments, [&]() -> Status {
    DType type = RLX_TRY(checked_dtype(dtype));
    auto shape = RLX_TRY(checked_dims(*env, dims, rank));
    RLX_TRY(check_bytes(type, shape, bytes));
    // `done` is armed last: after a failure the bytes still belong to the caller.
    auto armed = std::make_shared<bool>(false);
    std::shared_ptr<std::byte> borrowed(static_cast<std::byte*>(data), [done, user, armed](std::byte* bytes_of_user) {
      if (done && *armed) done(user, bytes_of_user);
    });
    Tensor tensor = RLX_TRY(Tensor::adopt(type, shape, std::move(borrowed), bytes));
    *out = new rlx_tensor(env, std::move(tensor));
    *armed = true;
    return {};
  });
}

rlx_status_t* rlx_tensor_map_file(rlx_env_t* env, rlx_dtype_t dtype, const int64_t* dims, size_t rank, const char* path,
                                  uint64_t offset, rlx_tensor_t** out) {
  auto arguments = {cleared(out, "out"), handle(env, "env"), array(dims, rank, "dims"), path_argument(path, "path")};
  return guard(arguments, [&]() -> Status {
    DType type = RLX_TRY(checked_dtype(dtype));
    auto shape = RLX_TRY(checked_dims(*env, dims, rank));
    size_t bytes = RLX_TRY(Tensor::checked_bytes(type, shape));
    auto file = std::make_shared<MappedFile>(RLX_TRY(MappedFile::open(path)));
    RLX_TRY(check_part(path, offset, bytes, file->bytes().size(), "file"));
    // Nobody writes through the const_cast: the handle is read-only.
    auto* first = const_cast<std::byte*>(file->bytes().data()) + offset;
    Tensor tensor = RLX_TRY(Tensor::adopt(type, shape, std::shared_ptr<std::byte>(file, first), bytes, Writable::kNo));
    *out = new rlx_tensor(env, std::move(tensor));
    return {};
  });
}

rlx_tensor_t* rlx_tensor_retain(rlx_tensor_t* tensor) {
  return retain(tensor);
}

void rlx_tensor_release(rlx_tensor_t* tensor) {
  release(tensor);
}

rlx_dtype_t rlx_tensor_dtype(const rlx_tensor_t* tensor) {
  return tensor ? static_cast<rlx_dtype_t>(tensor->dtype) : 0;
}

size_t rlx_tensor_shape(const rlx_tensor_t* tensor, int64_t* dims, size_t capacity) {
  if (!tensor) return 0;
  const Dims& shape = tensor->dims;
  if (dims) std::copy_n(shape.begin(), std::min(capacity, shape.size()), dims);
  return shape.size();
}

size_t rlx_tensor_bytes(const rlx_tensor_t* tensor) {
  const Tensor* contents = tensor ? tensor->contents() : nullptr;
  return contents ? contents->bytes() : 0;
}

const rlx_device_t* rlx_tensor_device(const rlx_tensor_t* tensor) {
  return tensor ? tensor->device : nullptr;
}

void* rlx_tensor_data(const rlx_tensor_t* tensor) {
  const Tensor* contents = tensor ? tensor->contents() : nullptr;
  return contents && contents->bytes() ? contents->data() : nullptr;
}

rlx_status_t* rlx_tensor_write(rlx_tensor_t* tensor, uint64_t offset, const void* data, size_t bytes) {
  return guard({handle(tensor, "tensor"), array(data, bytes, "data")}, [&]() -> Status {
    Tensor contents = *RLX_TRY(contents_of(*tensor));
    RLX_TRY(check_part("write", offset, bytes, contents.bytes()));
    RLX_TRY(check_writable(*tensor, contents));
    return copy_bytes(place_in(contents, offset), CallerBytes(data, bytes).place(), bytes);
  });
}

rlx_status_t* rlx_tensor_read(const rlx_tensor_t* tensor, uint64_t offset, void* data, size_t bytes) {
  return guard({handle(tensor, "tensor"), array(data, bytes, "data")}, [&]() -> Status {
    Tensor contents = *RLX_TRY(contents_of(*tensor));
    RLX_TRY(check_part("read", offset, bytes, contents.bytes()));
    return copy_bytes(CallerBytes(data, bytes).place(), place_in(contents, offset), bytes);
  });
}

rlx_status_t* rlx_tensor_copy(rlx_tensor_t* to, uint64_t to_offset, const rlx_tensor_t* from, uint64_t from_offset,
                              uint64_t bytes) {
  return guard({handle(to, "to"), handle(from, "from")}, [&]() -> Status {
    RLX_TRY(same_env(to->env, from->env, "from"));
    Tensor target = *RLX_TRY(contents_of(*to)), source = *RLX_TRY(contents_of(*from));
    RLX_TRY(check_part("copy to", to_offset, bytes, target.bytes()));
    RLX_TRY(check_part("copy from", from_offset, bytes, source.bytes()));
    RLX_TRY(check_writable(*to, target));
    return copy_bytes(place_in(target, to_offset), place_in(source, from_offset), bytes);
  });
}

rlx_status_t* rlx_tensor_cast(const rlx_tensor_t* tensor, rlx_dtype_t dtype, rlx_tensor_t** out) {
  return guard({cleared(out, "out"), handle(tensor, "tensor")}, [&]() -> Status {
    DType type = RLX_TRY(checked_dtype(dtype));
    Tensor given = RLX_TRY(on_host(*tensor));  // first: a tensor that was lent may have outlived its environment
    Ref<rlx_env> keeper = tensor->living_env();
    if (!keeper) return Status(Code::kState, "the environment of the tensor is gone: no tensor can be made");
    const Env& env = *keeper->env;
    MakeTensor make = [&](DType made, std::span<const int64_t> dims) { return env.make_tensor(made, dims); };
    Tensor converted = RLX_TRY(cast(given, type, &make));
    *out = new rlx_tensor(keeper.get(), std::move(converted));
    return {};
  });
}

rlx_status_t* rlx_tensor_print(const rlx_tensor_t* tensor, size_t max_elements, rlx_blob_t** text) {
  return guard({cleared(text, "text"), handle(tensor, "tensor")}, [&]() -> Status {
    Tensor readable = RLX_TRY(on_host(*tensor));
    *text = new rlx_blob(to_text(readable, max_elements));
    return {};
  });
}
