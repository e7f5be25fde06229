// SPDX-License-Identifier: Apache-2.0
#include "base/lasting.h"

#include <atomic>

namespace rlx {

static constinit std::atomic<LastingItem*> newest{nullptr};

void keep_until_unload(LastingItem& item) {
  item.next = newest.load(std::memory_order_relaxed);
  while (!newest.compare_exchange_weak(item.next, &item, std::memory_order_release)) continue;
}

// Called by dlclose and, at exit, after all handlers of those who use the library.
[[gnu::destructor]] static void destroy_all() {
  LastingItem* item = newest.exchange(nullptr, std::memory_order_acquire);
  while (item) {
    LastingItem* next = item->next;
    item->destroy(item);
    item = next;
  }
}

}  // namespace rlx
