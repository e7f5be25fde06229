// SPDX-License-Identifier: Apache-2.0
// Tables that are made when they are first needed, and last as long as the library is loaded. A static object of a
// function would be destroyed at exit, before handlers of the host that still use the library, and under its threads.
//   static const RuleSet& kRules = lasting([] { return RuleSet{add_view_rules}; });
#pragma once

#include <type_traits>
#include <utility>

namespace rlx {

struct LastingItem {
  void (*destroy)(LastingItem* item) = nullptr;
  LastingItem* next = nullptr;
};
void keep_until_unload(LastingItem& item);

template <class Make>
const std::invoke_result_t<Make>& lasting(Make make) {
  struct Kept : LastingItem {
    explicit Kept(Make& from) : value(from()) {}
    const std::invoke_result_t<Make> value;
  };
  auto* kept = new Kept(make);
  kept->destroy = [](LastingItem* item) { delete static_cast<Kept*>(item); };
  keep_until_unload(*kept);
  return kept->value;
}

}  // namespace rlx
