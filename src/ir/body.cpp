// SPDX-License-Identifier: Apache-2.0
#include "ir/body.h"

namespace rlx {

std::vector<std::string> own_symbols(const Graph& graph) {
  std::vector<std::string> own;
  for (DecidedSize& size : decided_sizes(graph)) own.push_back(std::move(size.symbol));
  return own;
}

const std::vector<std::string>& carried_symbols(const Attrs& attrs) {
  static const std::vector<std::string> kNone;
  const std::vector<AttrDef>& defs = attrs.info()->attrs;
  for (size_t i = 0; i < defs.size(); i++)
    if (defs[i].kind == AttrKind::kStrs && defs[i].name == "carried")
      if (auto* names = std::get_if<std::vector<std::string>>(&attrs.values()[i])) return *names;
  return kNone;
}

std::vector<std::string> own_symbols(const Attrs& attrs, const Graph& body) {
  std::vector<std::string> own = own_symbols(body);
  const std::vector<std::string>& carried = carried_symbols(attrs);
  own.insert(own.end(), carried.begin(), carried.end());
  return own;
}

}  // namespace rlx
