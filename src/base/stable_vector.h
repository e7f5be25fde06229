// SPDX-License-Identifier: Apache-2.0
// A list that grows and shrinks at its end without moving its items. Its parts double in size, so a short list takes
// little memory and a long one few allocations.
#pragma once

#include <bit>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace rlx {

template <class T>
class StableVector {
 public:
  StableVector() = default;
  StableVector(const StableVector& other) : StableVector() {
    for (const T& item : other) emplace_back(item);
  }
  StableVector(StableVector&& other) noexcept { swap(other); }
  StableVector& operator=(StableVector other) noexcept {
    swap(other);
    return *this;
  }
  ~StableVector() {
    while (size_ > 0) pop_back();
    for (size_t part = 0; part < parts_.size(); part++) std::allocator<T>().deallocate(parts_[part], kFirst << part);
  }
  void swap(StableVector& other) noexcept {
    parts_.swap(other.parts_);
    std::swap(size_, other.size_);
  }

  void push_back(T item) { emplace_back(std::move(item)); }
  template <class... Parts>
  void emplace_back(Parts&&... parts) {
    if (place_of(size_).part == parts_.size()) {
      parts_.reserve(parts_.size() + 1);
      parts_.push_back(std::allocator<T>().allocate(kFirst << parts_.size()));
    }
    std::construct_at(address(size_), std::forward<Parts>(parts)...);
    size_++;
  }
  void pop_back() { std::destroy_at(address(--size_)); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return *address(i); }
  const T& operator[](size_t i) const { return *address(i); }
  T& back() { return *address(size_ - 1); }
  const T& back() const { return *address(size_ - 1); }

  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T*;
    using reference = const T&;
    Iterator() = default;
    Iterator(const StableVector* list, size_t at) : list_(list), at_(at) { enter_part(); }
    reference operator*() const { return *item_; }
    pointer operator->() const { return item_; }
    Iterator& operator++() {
      at_++;
      if (++item_ == end_) enter_part();
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    // Sets item_ and end_ for the part in which at_ lies. At the end of the list there is none.
    void enter_part() {
      if (at_ >= list_->size_) return;
      Place place = place_of(at_);
      item_ = list_->parts_[place.part] + place.offset;
      end_ = list_->parts_[place.part] + (kFirst << place.part);
    }

    const StableVector* list_ = nullptr;
    size_t at_ = 0;
    const T *item_ = nullptr, *end_ = nullptr;  // the item, and the end of its part
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size_}; }

 private:
  static constexpr size_t kFirst = 4;  // items of the first part
  struct Place {
    size_t part, offset;
  };
  static Place place_of(size_t i) {
    auto part = static_cast<size_t>(std::bit_width(i + kFirst) - std::bit_width(kFirst));
    return {part, i + kFirst - (kFirst << part)};
  }
  T* address(size_t i) const {
    Place place = place_of(i);
    return parts_[place.part] + place.offset;
  }

  std::vector<T*> parts_;
  size_t size_ = 0;
};

}  // namespace rlx
