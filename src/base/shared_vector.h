// SPDX-License-Identifier: Apache-2.0
// A vector that never changes (a persistent vector). `with` returns a new version, which shares everything but the
// changed parts. So a version of a long list costs as much as its changes, and earlier versions stay. Items lie in the
// leaves of a tree.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace rlx {

template <class T>
class SharedVector {
 public:
  using Change = std::pair<size_t, T>;  // index, item

  SharedVector() = default;
  explicit SharedVector(std::vector<T> items) : size_(items.size()) {
    while (size_ > kWidth << shift_) shift_ += kBits;
    if (size_ > 0) root_ = made(std::span(items), shift_);
  }

  size_t size() const { return size_; }
  const T& operator[](size_t index) const {
    const Node* node = root_.get();
    for (int shift = shift_; shift > 0; shift -= kBits) node = node->children[(index >> shift) % kWidth].get();
    return node->items[index % kWidth];
  }

  // With other items at these indices. Of two changes of one index the later one counts.
  SharedVector with(std::vector<Change> changes) const {
    SharedVector other = *this;
    if (changes.empty()) return other;
    auto is_before = [](const Change& a, const Change& b) { return a.first < b.first; };
    // A stable sort allocates as much again, and most callers go through their list in order.
    if (!std::ranges::is_sorted(changes, is_before)) std::ranges::stable_sort(changes, is_before);
    other.root_ = changed(*root_, std::span(changes), shift_);
    return other;
  }

 private:
  static constexpr int kBits = 5;
  static constexpr size_t kWidth = size_t{1} << kBits;

  struct Node {
    std::vector<std::shared_ptr<const Node>> children;  // of an inner node
    std::vector<T> items;                               // of a leaf
  };

  static std::shared_ptr<const Node> made(std::span<T> items, int shift) {
    auto node = std::make_shared<Node>();
    if (shift == 0) node->items.assign(std::move_iterator(items.begin()), std::move_iterator(items.end()));
    for (size_t at = 0; shift > 0 && at < items.size(); at += size_t{1} << shift)
      node->children.push_back(made(items.subspan(at, std::min(items.size() - at, size_t{1} << shift)), shift - kBits));
    return node;
  }

  static std::shared_ptr<const Node> changed(const Node& from, std::span<Change> changes, int shift) {
    auto node = std::make_shared<Node>(from);
    while (!changes.empty()) {
      size_t place = changes[0].first >> shift, count = 1;
      while (count < changes.size() && changes[count].first >> shift == place) count++;
      if (shift == 0)
        node->items[place % kWidth] = std::move(changes[count - 1].second);
      else
        node->children[place % kWidth] = changed(*from.children[place % kWidth], changes.first(count), shift - kBits);
      changes = changes.subspan(count);
    }
    return node;
  }

  size_t size_ = 0;
  int shift_ = 0;  // the right shift that turns an index into the number of the root's child
  std::shared_ptr<const Node> root_;
};

}  // namespace rlx
