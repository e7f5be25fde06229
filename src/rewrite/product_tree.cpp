// SPDX-License-Identifier: Apache-2.0
#include "rewrite/product_tree.h"

namespace rlx {

static constexpr size_t kLargestProduct = 64;  // occurrences; what is left is not taken apart

ProductTree product_tree(const Graph& graph, Value root,
                         FunctionRef<bool(Value, std::span<const uint32_t> users)> is_used_only_by) {
  ProductTree tree{{root}};
  std::vector<uint32_t> products;
  for (size_t at = 0; at < tree.size() && tree.size() < kLargestProduct; at++) {
    const Node& node = graph.node(tree[at].value);
    if (node.op != Op::kMul) continue;
    if (at > 0 && !is_used_only_by(tree[at].value, products)) continue;
    products.push_back(tree[at].value.node);
    tree[at].left = tree.size(), tree[at].right = tree.size() + 1;
    tree.push_back({node.in[0]});
    tree.push_back({node.in[1]});
  }
  for (size_t at = tree.size(); at-- > 0;)
    if (tree[at].is_product()) tree[at].count = 1 + tree[tree[at].left].count + tree[tree[at].right].count;
  for (const Occurrence& it : tree) {
    if (!it.is_product()) continue;
    tree[it.left].first = it.first + 1;
    tree[it.right].first = it.first + 1 + tree[it.left].count;
  }
  return tree;
}

}  // namespace rlx
