// SPDX-License-Identifier: Apache-2.0
// The operands of `eval`, which defines the meaning of a primitive. In typed mode an operand is stored in its declared
// dtype. In oracle mode every value of a dtype in F is stored as f64 (in Z as c128), so one function serves both.
// Outputs are allocated at their actual sizes; an eval writes every element of them.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/bounds.h"
#include "base/dim.h"
#include "base/static_vector.h"
#include "base/tensor.h"
#include "base/visit.h"
#include "ir/infer.h"

namespace rlx {

struct Operand {
  DType dtype = DType::kNone;  // of the storage; kNone: an absent input
  Dims dims;
  std::byte* data = nullptr;

  explicit operator bool() const { return dtype != DType::kNone; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
  size_t rank() const { return dims.size(); }
  int64_t count() const;
  static Operand of(const Tensor& tensor) { return {tensor.dtype(), Dims(tensor.dims()), tensor.data()}; }
};

struct EvalArgs {
  const OpInfo& info;
  const Attrs& attrs;
  std::span<const Operand> in;  // one per port, then the other variadic inputs
  std::span<const Operand> out;
  std::span<const DType> declared_in;  // dtypes in the graph; the storage may be wider (oracle mode)
  std::span<const DType> declared_out;
  const SymbolLookup& sizes;  // of symbols in attributes
  Bounds bounds = Bounds::kError;
  std::string_view where = {};  // the node, for messages

  Result<int64_t> dim(std::string_view attr) const { return evaluate(attrs.dim(attr), sizes); }
  Result<Dims> dims(std::string_view attr) const;  // of at most kMaxRank entries
  Status fail(Code code, const std::string& message) const;
};

// Row-major strides in elements.
Dims dense_strides(std::span<const int64_t> dims);
// Strides that read `dims` broadcast to `target`: 0 along stretched axes, aligned right.
Dims broadcast_strides(std::span<const int64_t> dims, std::span<const int64_t> target);

// An index that runs over `dims` in row-major order, with an offset for each of several stride lists.
template <size_t kLists>
class Odometer {
 public:
  Odometer(std::span<const int64_t> dims, const std::array<Dims, kLists>& strides) : dims_(dims), strides_(strides) {
    index_.resize(dims_.size(), 0);
  }
  int64_t offset(size_t list) const { return offsets_[list]; }
  const Dims& index() const { return index_; }
  void next() {
    for (size_t axis = dims_.size(); axis-- > 0;) {
      for (size_t k = 0; k < kLists; k++) offsets_[k] += strides_[k][axis];
      if (++index_[axis] < dims_[axis]) return;
      for (size_t k = 0; k < kLists; k++) offsets_[k] -= strides_[k][axis] * dims_[axis];
      index_[axis] = 0;
    }
  }

 private:
  Dims dims_;
  std::array<Dims, kLists> strides_;
  Dims index_;
  std::array<int64_t, kLists> offsets_{};
};

// out[i] = fn(a[i], ...) over broadcast inputs; elements are read as their compute types.
template <class Out, class A, class Fn>
void map1(const Operand& out, const Operand& a, Fn fn) {
  int64_t count = out.count();
  for (int64_t i = 0; i < count; i++) out.as<Out>()[i] = Out(fn(static_cast<Compute<A>>(a.as<A>()[i])));
}

template <class Out, class A, class B, class Fn>
void map2(const Operand& out, const Operand& a, const Operand& b, Fn fn) {
  Odometer<2> at(out.dims, {broadcast_strides(a.dims, out.dims), broadcast_strides(b.dims, out.dims)});
  int64_t count = out.count();
  for (int64_t i = 0; i < count; i++, at.next())
    out.as<Out>()[i] =
        Out(fn(static_cast<Compute<A>>(a.as<A>()[at.offset(0)]), static_cast<Compute<B>>(b.as<B>()[at.offset(1)])));
}

}  // namespace rlx
