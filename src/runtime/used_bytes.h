// SPDX-License-Identifier: Apache-2.0
// UsedBytes: which memory the slots of an exec read and write, in the order of its addresses, so that an overlap is
// found without a look at every slot.
#pragma once

#include <map>
#include <utility>

#include "base/storage.h"

namespace rlx {

// Memory that the host can address has no buffer here: two buffers may wrap the same bytes of the caller.
using Address = std::pair<const Buffer*, uintptr_t>;
Address begin_of(const Storage& storage);
Address end_of(const Storage& storage);

class UsedBytes {
 public:
  enum Use { kRead, kWritten };
  void add(const Storage& storage, Use use);
  void remove(const Storage& storage, Use use);  // that was added so
  void change(const Storage& storage, Use from, Use to);
  // Whether nobody writes these bytes and, if they are to be written, nobody reads them either. What `own` stands for,
  // null or added with the same use, does not count.
  bool is_free(const Storage& storage, Use use, const Storage* own) const;

 private:
  struct Part {
    size_t readers = 0, writers = 0;
    size_t bounds = 0;  // how many pieces of memory begin or end here
    size_t& count(Use use) { return use == kWritten ? writers : readers; }
  };
  using Parts = std::map<Address, Part>;
  Parts::iterator cut(const Address& at);

  Parts parts_;  // by their first byte; each goes to the next
};

}  // namespace rlx
