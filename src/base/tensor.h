// SPDX-License-Identifier: Apache-2.0
// Tensor: dtype, literal dims and dense row-major bytes in some storage. Copying a Tensor shares its bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/static_vector.h"
#include "base/status.h"
#include "base/storage.h"

namespace rlx {

// Product of the dims; nullopt if it overflows 63 bits.
std::optional<int64_t> element_count(std::span<const int64_t> dims);

class Tensor {
 public:
  Tensor() = default;  // no tensor
  // Zero-filled memory of its own, aligned to 64 bytes.
  static Result<Tensor> create(DType dtype, std::span<const int64_t> dims);
  // Host bytes that are kept alive by `data`: mapped, wrapped, or from a host allocator.
  static Result<Tensor> adopt(DType dtype, std::span<const int64_t> dims, std::shared_ptr<std::byte> data, size_t bytes,
                              Writable writable = Writable::kYes);
  // The first bytes of a storage, which may hold more.
  static Result<Tensor> over(DType dtype, std::span<const int64_t> dims, std::shared_ptr<Storage> storage);
  // All bytes of a storage, as many as checked_bytes says.
  static Tensor whole(DType dtype, std::span<const int64_t> dims, std::shared_ptr<Storage> storage);
  static Result<size_t> checked_bytes(DType dtype, std::span<const int64_t> dims);  // RLX_E_SHAPE: no such tensor

  explicit operator bool() const { return dtype_ != DType::kNone; }
  DType dtype() const { return dtype_; }
  std::span<const int64_t> dims() const { return dims_; }
  size_t rank() const { return dims_.size(); }
  int64_t count() const { return *element_count(dims_); }
  size_t bytes() const { return bytes_; }
  std::byte* data() const { return storage_ ? storage_->host() : nullptr; }  // null where the host has no address
  const std::shared_ptr<Storage>& storage() const { return storage_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data());
  }
  Result<Tensor> reshaped(std::span<const int64_t> dims) const;  // shares the bytes
  Result<Tensor> row(int64_t index) const;                       // of the first axis; shares the bytes
  // The same bytes as Storage::frozen; RLX_E_STATE where they are being written.
  Result<Tensor> frozen() const;
  bool same_bytes(const Tensor& other) const;  // dtype, dims and contents
  // Whether the data is aligned for its elements. It always is, except for weights that importers leave in a mapped
  // file.
  bool is_aligned() const;
  Result<Tensor> aligned() const;  // the same, or a copy

 private:
  DType dtype_ = DType::kNone;
  Dims dims_;
  std::shared_ptr<Storage> storage_;
  size_t bytes_ = 0;
};

Status rank_above_limit(size_t rank);  // RLX_E_SHAPE, for more axes than kMaxRank
// "f32[2,3]", for messages.
std::string type_text(DType dtype, std::span<const int64_t> dims);

// Element i of a constant of a real or bool dtype, as a double; i64 and u64 beyond 2^53 are rounded.
double element_as_f64(const Tensor& tensor, int64_t i);
int64_t element_as_i64(const Tensor& tensor, int64_t i);  // of an integer or bool tensor
// A rank-0 constant of any real or bool dtype; complex gets an imaginary part of 0.
Result<Tensor> scalar_tensor(DType dtype, double value);

}  // namespace rlx
