// SPDX-License-Identifier: Apache-2.0
// A vector that stores up to N items in the object itself, and more on the heap. Most lists of a node are that short,
// and a graph has many nodes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace rlx {

template <class T, size_t N>
class InlinedVector {
 public:
  using value_type = T;

  InlinedVector() {}  // NOLINT: the storage begins without items
  InlinedVector(std::initializer_list<T> items) : InlinedVector(items.begin(), items.end()) {}
  InlinedVector(const std::vector<T>& items) : InlinedVector(items.begin(), items.end()) {}  // NOLINT: the same list
  template <std::forward_iterator Iterator>
  InlinedVector(Iterator first, Iterator last) : InlinedVector() {
    assign(first, last);
  }
  InlinedVector(const InlinedVector& other) : InlinedVector(other.begin(), other.end()) {}
  InlinedVector(InlinedVector&& other) noexcept : InlinedVector() { take(other); }
  InlinedVector& operator=(const InlinedVector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  InlinedVector& operator=(InlinedVector&& other) noexcept {
    if (this == &other) return *this;
    release();
    take(other);
    return *this;
  }
  ~InlinedVector() { release(); }

  template <std::forward_iterator Iterator>
  void assign(Iterator first, Iterator last) {
    clear();
    reserve(static_cast<size_t>(std::distance(first, last)));
    for (; first != last; ++first) push_back(*first);
  }
  void push_back(T item) {
    if (size_ == capacity_) reserve(size_t{2} * size_);
    std::construct_at(data() + size_, std::move(item));
    size_++;
  }
  void reserve(size_t capacity) {
    if (capacity <= capacity_) return;
    T* items = std::allocator<T>().allocate(capacity);
    std::uninitialized_move(begin(), end(), items);
    uint32_t size = size_;
    release();
    heap_ = items;
    size_ = size;
    capacity_ = static_cast<uint32_t>(capacity);
  }
  void resize(size_t size, const T& added) {
    if (size < size_) truncate(size);
    reserve(size);
    while (size_ < size) push_back(added);
  }
  void clear() { truncate(0); }
  void truncate(size_t size) {
    std::destroy(begin() + size, end());
    size_ = static_cast<uint32_t>(size);
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return is_inline() ? reinterpret_cast<T*>(bytes_) : heap_; }
  const T* data() const { return is_inline() ? reinterpret_cast<const T*>(bytes_) : heap_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }
  bool operator==(const InlinedVector& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  bool is_inline() const { return capacity_ == N; }

  // Leaves an empty list.
  void release() {
    clear();
    if (!is_inline()) std::allocator<T>().deallocate(heap_, capacity_);
    capacity_ = N;
  }
  // This list must be empty. The other one is empty afterwards.
  void take(InlinedVector& other) noexcept {
    if (other.is_inline()) {
      std::uninitialized_move(other.begin(), other.end(), data());
      size_ = other.size_;
      other.clear();
    } else {
      heap_ = other.heap_;
      size_ = std::exchange(other.size_, 0);
      capacity_ = std::exchange(other.capacity_, uint32_t{N});
    }
  }

  uint32_t size_ = 0, capacity_ = N;
  union {
    T* heap_;
    alignas(T) std::byte bytes_[N * sizeof(T)];
  };
};

}  // namespace rlx
