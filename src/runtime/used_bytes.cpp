// SPDX-License-Identifier: Apache-2.0
#include "runtime/used_bytes.h"

#include <iterator>

namespace rlx {

Address begin_of(const Storage& storage) {
  if (storage.host()) return {nullptr, reinterpret_cast<uintptr_t>(storage.host())};
  return {&storage.buffer(), storage.offset()};
}

Address end_of(const Storage& storage) {
  Address at = begin_of(storage);
  at.second += storage.bytes();
  return at;
}

// The part that begins here.
UsedBytes::Parts::iterator UsedBytes::cut(const Address& at) {
  auto next = parts_.upper_bound(at);
  if (next == parts_.begin()) return parts_.emplace_hint(next, at, Part());
  auto before = std::prev(next);
  if (before->first == at) return before;
  return parts_.emplace_hint(next, at, Part{before->second.readers, before->second.writers});
}

void UsedBytes::add(const Storage& storage, Use use) {
  if (storage.bytes() == 0) return;
  auto first = cut(begin_of(storage)), last = cut(end_of(storage));
  first->second.bounds++;
  last->second.bounds++;
  for (auto it = first; it != last; ++it) it->second.count(use)++;
}

void UsedBytes::remove(const Storage& storage, Use use) {
  if (storage.bytes() == 0) return;
  auto first = parts_.find(begin_of(storage)), last = parts_.find(end_of(storage));
  for (auto it = first; it != last; ++it) it->second.count(use)--;
  for (auto it : {first, last})
    if (--it->second.bounds == 0) parts_.erase(it);
}

void UsedBytes::change(const Storage& storage, Use from, Use to) {
  if (storage.bytes() == 0) return;
  auto last = parts_.find(end_of(storage));
  for (auto it = parts_.find(begin_of(storage)); it != last; ++it) it->second.count(from)--, it->second.count(to)++;
}

bool UsedBytes::is_free(const Storage& storage, Use use, const Storage* own) const {
  if (storage.bytes() == 0) return true;
  Address end = end_of(storage);
  auto it = parts_.upper_bound(begin_of(storage));
  if (it != parts_.begin()) --it;
  for (; it != parts_.end() && it->first < end; ++it) {
    bool is_own = own && begin_of(*own) <= it->first && it->first < end_of(*own);
    size_t readers = it->second.readers - (is_own && use == kRead);
    size_t writers = it->second.writers - (is_own && use == kWritten);
    if (writers > 0 || (use == kWritten && readers > 0)) return false;
  }
  return true;
}

}  // namespace rlx
