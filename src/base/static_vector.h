// SPDX-License-Identifier: Apache-2.0
// A list of at most N items without allocation, for dims, strides and indices (a rank is at most 8). Pushing past N is
// our bug.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace rlx {

inline constexpr size_t kMaxRank = 8;

template <class T, size_t N>
class StaticVector {
 public:
  StaticVector() = default;
  explicit StaticVector(size_t size, T value = T()) : size_(size) {
    assert(size <= N);
    std::fill_n(items_, size, value);
  }
  StaticVector(std::initializer_list<T> items) : StaticVector(std::span<const T>(items.begin(), items.size())) {}
  explicit StaticVector(std::span<const T> items) : size_(items.size()) {
    assert(size_ <= N);
    std::copy(items.begin(), items.end(), items_);
  }
  void push_back(T item) {
    assert(size_ < N);
    items_[size_++] = item;
  }
  void resize(size_t size, T value = T()) {
    assert(size <= N);
    if (size > size_) std::fill(items_ + size_, items_ + size, value);
    size_ = size;
  }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return items_; }
  T* end() { return items_ + size_; }
  const T* begin() const { return items_; }
  const T* end() const { return items_ + size_; }
  T* data() { return items_; }
  const T* data() const { return items_; }
  T& operator[](size_t i) { return items_[i]; }
  const T& operator[](size_t i) const { return items_[i]; }
  T& back() { return items_[size_ - 1]; }
  const T& back() const { return items_[size_ - 1]; }
  operator std::span<const T>() const { return {items_, size_}; }
  bool operator==(const StaticVector& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  size_t size_ = 0;
  T items_[N] = {};
};

using Dims = StaticVector<int64_t, kMaxRank>;  // sizes, strides or an index

}  // namespace rlx
