// SPDX-License-Identifier: Apache-2.0
#include "rules/flow.h"

#include <algorithm>

#include "base/contains.h"

namespace rlx {

namespace {

constexpr size_t kMostFollowed = 16;  // values
constexpr size_t kMostReaders = 1024;

// Ops that pass errors on, but are followed only where one operand is a number. Sums and products of two computed values are what
// the residual stream of a network consists of, from its first layer to its last.
constexpr Op kWithNumber[] = {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv, Op::kPow};

bool holds_zeros_and_ones(const Tensor& tensor) {
  return std::all_of(tensor.data(), tensor.data() + tensor.bytes(), [](std::byte it) { return it <= std::byte{1}; });
}

// The same for a node: integers and booleans that something reads come from a step. A quantised number may be a
// neighbour of the right one (semantics.md C8), so quantising is none.
ErrorEffect effect_at(const Match& m, uint32_t index) {
  const Node& node = m.graph().node(index);
  const OpInfo& info = m.graph().info(node);
  if (info.is(kOfSizes) || info.tol == Tol::kQNT) return ErrorEffect::kDrowns;
  for (uint32_t i = 0; i < node.out.size(); i++) {
    DType dtype = node.out[i].dtype;
    if ((is_integer(dtype) || dtype == DType::kBool) && m.uses({index, i})) return ErrorEffect::kJumps;
  }
  auto is_number = [&](Value in) { return present(in) && m.splat(m.builder().wrap(in)); };
  if (contains(kWithNumber, node.op) && std::none_of(node.in.begin(), node.in.end(), is_number))
    return ErrorEffect::kDrowns;
  return error_effect(info);
}

}  // namespace

ErrorEffect error_effect(const OpInfo& info) {
  if (info.moves() || info.is(kPassesErrors)) return ErrorEffect::kPassesOn;
  bool is_unknown = info.has_bodies || info.has_free_attrs;
  bool is_exact = info.tol == Tol::kE0 || info.tol == Tol::kU1;
  return is_unknown || is_exact || info.is(kJumps) ? ErrorEffect::kJumps : ErrorEffect::kDrowns;
}

bool feeds_step(const Match& m, Expr x) {
  std::vector<uint32_t> seen{x.value().node};
  for (size_t i = 0; i < seen.size(); i++) {
    if (seen.size() > kMostFollowed) return true;
    auto outputs = static_cast<uint32_t>(m.graph().node(seen[i]).out.size());
    for (uint32_t output = 0; output < outputs; output++) {
      std::vector<uint32_t> users = m.users(m.builder().wrap({seen[i], output}), kMostReaders);
      if (users.size() == kMostReaders) return true;
      for (uint32_t user : users) {
        ErrorEffect effect = effect_at(m, user);
        if (effect == ErrorEffect::kJumps) return true;
        if (effect == ErrorEffect::kPassesOn && !contains(seen, user)) seen.push_back(user);
      }
    }
  }
  return false;
}

bool is_zero_or_one(const Match& m, Expr x) {
  std::vector<Value> seen{x.value()};
  for (size_t i = 0; i < seen.size(); i++) {
    if (seen.size() > kMostFollowed) return false;
    const Node& node = m.graph().node(seen[i]);
    const OpInfo& info = m.graph().info(node);
    if (const Tensor* tensor = m.graph().constant(seen[i]); tensor && !holds_zeros_and_ones(*tensor)) return false;
    bool computes = info.is(kElementwise) || node.op == Op::kReduce || node.op == Op::kCumulative;
    if (!info.moves() && !computes && node.op != Op::kConstant) return false;
    if (!info.moves()) continue;
    for (Value in : node.in)
      if (present(in) && m.graph().type(in).dtype == DType::kBool && !contains(seen, in)) seen.push_back(in);
  }
  return true;
}

}  // namespace rlx
