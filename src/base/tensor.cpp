// SPDX-License-Identifier: Apache-2.0
#include "base/tensor.h"

#include <cstring>
#include <new>

#include "base/visit.h"

namespace rlx {

std::optional<int64_t> element_count(std::span<const int64_t> dims) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    if (dim == 0)
      empty = true;
    else if (__builtin_mul_overflow(count, dim, &count))
      return std::nullopt;
  }
  return empty ? 0 : count;
}

Result<size_t> Tensor::checked_bytes(DType dtype, std::span<const int64_t> dims) {
  if (dims.size() > kMaxRank) return rank_above_limit(dims.size());
  for (size_t i = 0; i < dims.size(); i++)
    if (dims[i] < 0)
      return Status(Code::kShape, format("{}: the size of axis {} is negative", type_text(dtype, dims), i))
          .with("expected", "0 or more")
          .with("got", std::to_string(dims[i]));
  int64_t block = info(dtype).block;
  if (is_block(dtype) && (dims.empty() || dims.back() % block))
    return Status(Code::kShape,
                  format("{}: the last axis of {} must be a multiple of {}", type_text(dtype, dims), dtype, block))
        .with("expected", format("a multiple of {}", block))
        .with("got", dims.empty() ? "a scalar" : std::to_string(dims.back()));
  auto count = element_count(dims);
  auto bytes = count ? byte_size(dtype, *count) : std::nullopt;
  if (!bytes)
    return Status(Code::kShape, type_text(dtype, dims) + " has more bytes than 63 bits hold")
        .with("expected", format("at most {} bytes", INT64_MAX))
        .with("got", type_text(dtype, dims));
  return static_cast<size_t>(*bytes);
}

static Result<std::shared_ptr<std::byte>> allocate(size_t bytes) {
  constexpr std::align_val_t kAlign{64};
  auto* memory = static_cast<std::byte*>(::operator new(bytes ? bytes : 1, kAlign, std::nothrow));
  if (!memory) return Status::no_memory();
  return std::shared_ptr<std::byte>(memory, [](std::byte* data) { ::operator delete(data, kAlign); });
}

Result<Tensor> Tensor::create(DType dtype, std::span<const int64_t> dims) {
  size_t bytes = RLX_TRY(checked_bytes(dtype, dims));
  std::shared_ptr<std::byte> memory = RLX_TRY(allocate(bytes));
  std::memset(memory.get(), 0, bytes);
  return adopt(dtype, dims, std::move(memory), bytes);
}

bool Tensor::is_aligned() const {
  if (!*this || is_block(dtype_)) return true;
  return reinterpret_cast<uintptr_t>(data()) % static_cast<uintptr_t>(element_bytes(dtype_)) == 0;
}

Result<Tensor> Tensor::aligned() const {
  if (is_aligned()) return *this;
  std::shared_ptr<std::byte> memory = RLX_TRY(allocate(bytes_));
  std::memcpy(memory.get(), data(), bytes_);
  return adopt(dtype_, dims_, std::move(memory), bytes_);
}

Result<Tensor> Tensor::adopt(DType dtype, std::span<const int64_t> dims, std::shared_ptr<std::byte> data, size_t bytes,
                             Writable writable) {
  size_t expected = RLX_TRY(checked_bytes(dtype, dims));
  if (bytes != expected)
    return Status(Code::kInvalidArgument,
                  format("{} has {}, not {}", type_text(dtype, dims), plural(expected, "byte"), bytes))
        .with("expected", std::to_string(expected))
        .with("got", std::to_string(bytes));
  return whole(dtype, dims, std::make_shared<Storage>(host_buffer(std::move(data), bytes), 0, bytes, writable));
}

Tensor Tensor::whole(DType dtype, std::span<const int64_t> dims, std::shared_ptr<Storage> storage) {
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.dims_ = Dims(dims);
  tensor.bytes_ = storage->bytes();
  tensor.storage_ = std::move(storage);
  return tensor;
}

Result<Tensor> Tensor::over(DType dtype, std::span<const int64_t> dims, std::shared_ptr<Storage> storage) {
  size_t bytes = RLX_TRY(checked_bytes(dtype, dims));
  if (bytes > storage->bytes())
    return Status(Code::kInvalidArgument,
                  format("{} has {}, there are {}", type_text(dtype, dims), plural(bytes, "byte"), storage->bytes()));
  Tensor tensor = whole(dtype, dims, std::move(storage));
  tensor.bytes_ = bytes;
  return tensor;
}

Result<Tensor> Tensor::reshaped(std::span<const int64_t> dims) const {
  Tensor tensor = RLX_TRY(over(dtype_, dims, storage_));
  if (tensor.bytes_ == bytes_) return tensor;
  return Status(Code::kInvalidArgument,
                format("{} has {} bytes, not {}", type_text(dtype_, dims), tensor.bytes_, bytes_));
}

Result<Tensor> Tensor::row(int64_t index) const {
  size_t bytes = bytes_ / static_cast<size_t>(dims_[0]);
  size_t offset = storage_->offset() + static_cast<size_t>(index) * bytes;
  return over(dtype_, dims().subspan(1), std::make_shared<Storage>(Storage::shared_buffer(storage_), offset, bytes));
}

Result<Tensor> Tensor::frozen() const {
  Tensor tensor = *this;
  tensor.storage_ = Storage::frozen(storage_);
  if (tensor.storage_) return tensor;
  return Status(Code::kState, "the tensor " + type_text(dtype_, dims_) +
                                  " is bound where a run writes it: it cannot be a param or constant");
}

bool Tensor::same_bytes(const Tensor& other) const {
  return dtype_ == other.dtype_ && dims_ == other.dims_ &&
         (data() == other.data() || bytes_ == 0 || std::memcmp(data(), other.data(), bytes_) == 0);
}

Status rank_above_limit(size_t rank) {
  return Status(Code::kShape, format("rank {} is above the limit of {}", rank, kMaxRank))
      .with("expected", format("rank {} or less", kMaxRank))
      .with("got", format("rank {}", rank));
}

std::string type_text(DType dtype, std::span<const int64_t> dims) {
  std::string text(name(dtype));
  text += '[';
  for (size_t i = 0; i < dims.size(); i++) text += (i ? "," : "") + std::to_string(dims[i]);
  return text + ']';
}

double element_as_f64(const Tensor& tensor, int64_t i) {
  return visit<dtypes::N | dtypes::B | dtypes::E>(
      tensor.dtype(), [&]<class T>() { return static_cast<double>(static_cast<Compute<T>>(tensor.as<T>()[i])); });
}

int64_t element_as_i64(const Tensor& tensor, int64_t i) {
  return visit<dtypes::I | dtypes::B>(tensor.dtype(),
                                      [&]<class T>() { return static_cast<int64_t>(tensor.as<T>()[i]); });
}

Result<Tensor> scalar_tensor(DType dtype, double value) {
  Tensor tensor = RLX_TRY(Tensor::create(dtype, {}));
  visit<dtypes::A>(dtype, [&]<class T>() {
    if constexpr (is_complex_type<T>)
      *tensor.as<T>() = T(static_cast<typename T::value_type>(value), 0);
    else
      *tensor.as<T>() = T(value);
  });
  return tensor;
}

}  // namespace rlx
