// SPDX-License-Identifier: Apache-2.0
#include "rules/flow.h"

#include <algorithm>
#include <cmath>

#include "base/contains.h"

namespace rlx {

namespace {

constexpr size_t kMostFollowed = 64;  // values
constexpr size_t kMostReaders = 1024;

// Ops that pass errors on, but are followed only where the first of their operands, so many, are numbers or come from
// the value that is followed. Sums and products with other values are what the residual stream of a network consists
// of, from its first layer to its last.
struct WithNumbers {
  Op op;
  size_t operands;
};
constexpr WithNumbers kWithNumbers[] = {
    {Op::kAdd, 2},
    {Op::kSub, 2},
    {Op::kMul, 2},
    {Op::kDiv, 2},
    {Op::kPow, 2},
    {Op::kGatedResidual, 3},
    {Op::kGatedAct, 2},
    {Op::kBatchNorm, 5},
    {Op::kGatherSum, 3},
    {Op::kResidualRmsNorm, 3},
    {Op::kResidualLayerNorm, 3},
};

// Ops that pass errors on, but not in their first result: a mean, a sum, the state that the next call begins with.
constexpr Op kBesideFirst[] = {Op::kLayerNorm,         Op::kGroupNorm,       Op::kBatchNormTrain,
                               Op::kResidualLayerNorm, Op::kResidualRmsNorm, Op::kCausalConv1d,
                               Op::kLayerNormGrad,     Op::kRmsNormGrad,     Op::kGroupNormGrad};

// Functions that end or have a pole where an operand is 0 (a divisor, or the first one), and where it is 1 or -1.
constexpr Op kEdgeAtZero[] = {Op::kSqrt,   Op::kRsqrt,  Op::kLog, Op::kLog2,  Op::kLog10,
                              Op::kLogSum, Op::kLpNorm, Op::kPow, Op::kRecip, Op::kDiv};
constexpr Op kEdgeAtOne[] = {Op::kLog1p, Op::kAcosh, Op::kAsin, Op::kAcos, Op::kAtanh};

std::optional<double> zeros_and_ones(const Tensor& tensor) {
  bool found =
      std::all_of(tensor.data(), tensor.data() + tensor.bytes(), [](std::byte it) { return it <= std::byte{1}; });
  return found ? std::optional(1.0) : std::nullopt;
}

// Ops whose result is exactly 0 only where an operand is 0, and ops whose result is never negative.
constexpr Op kKeepZero[] = {Op::kMul, Op::kDiv, Op::kNeg,    Op::kAbs, Op::kMax,
                            Op::kMin, Op::kPow, Op::kSquare, Op::kCast};
constexpr Op kNeverNegative[] = {Op::kSquare, Op::kAbs, Op::kExp, Op::kSqrt, Op::kRelu};

// Whether the graph is part of a larger one, which decides what the inputs are, and what becomes of the outputs.
bool is_part(const Match& m) {
  return m.is_in_body() || m.graph().is_prologue();
}

// Whether the node also reads a value that counts: no number, and none of those followed. An input of a part may stand
// for a number. An einsum of one operand selects and sums; of more it is a product of matrices.
bool meets_others(const Match& m, const Node& node, const std::vector<Value>& followed) {
  if (node.op == Op::kEinsum) return node.in.size() > 1;
  auto row = std::find_if(std::begin(kWithNumbers), std::end(kWithNumbers),
                          [&](const WithNumbers& it) { return it.op == node.op; });
  if (row == std::end(kWithNumbers)) return false;
  auto is_other = [&](Value in) {
    if (!present(in) || contains(followed, in)) return false;
    Expr x = m.builder().wrap(in);
    bool may_be_number = is_part(m) && m.is(x, Op::kInput);
    return !may_be_number && !m.splat(x) && !m.is_static(x);
  };
  auto end = node.in.begin() + static_cast<std::ptrdiff_t>(std::min(row->operands, node.in.size()));
  return std::any_of(node.in.begin(), end, is_other);
}

// Whether the value is known to be 0 or above: a square, a number, or what is made of such by ops that keep it so.
bool is_never_negative(const Match& m, Value value) {
  constexpr Op kKeepSign[] = {Op::kAdd, Op::kMul, Op::kDiv, Op::kMax, Op::kMin, Op::kCast, Op::kReduce};
  std::vector<Value> seen{value};
  for (size_t i = 0; i < seen.size(); i++) {
    if (seen.size() > kMostFollowed) return false;
    Expr x = m.builder().wrap(seen[i]);
    const Node& node = m.graph().node(seen[i]);
    bool is_square = (node.op == Op::kMul && node.in[0] == node.in[1]) ||
                     (node.op == Op::kPow && std::fmod(m.splat(m.builder().wrap(node.in[1])).value_or(1), 2) == 0);
    if (is_square || contains(kNeverNegative, node.op) || m.splat(x).value_or(-1) >= 0) continue;
    if (!contains(kKeepSign, node.op) && !m.graph().info(node).moves()) return false;
    for (Value in : node.in)
      if (present(in) && !contains(seen, in)) seen.push_back(in);
  }
  return true;
}

// Whether the value may be 0 though no operand is, because numbers were added. Numbers that are never negative do not
// cancel each other.
bool is_shifted(const Match& m, Value value) {
  const Node& node = m.graph().node(value);
  return !contains(kKeepZero, node.op) && !m.graph().info(node).moves() && !is_never_negative(m, value);
}

// Whether an error of one rounding may step over the edge of a function, to NaN or off a pole. A quotient is 0 or
// negative where what it divides is: at 0 the error counts only if numbers were added on the way.
bool is_at_edge(const Match& m, const Node& node, const std::vector<Value>& followed) {
  if (contains(kEdgeAtOne, node.op)) return true;
  if (!contains(kEdgeAtZero, node.op) || !contains(followed, node.in[node.op == Op::kDiv ? 1 : 0])) return false;
  return std::any_of(followed.begin() + 1, followed.end(), [&](Value value) { return is_shifted(m, value); });
}

// error_effect of this node, as its results are used: integers and booleans that something reads come from a jump. A
// quantised number may be a neighbour of the right one (semantics.md C8), so quantising is none.
ErrorEffect effect_at(const Match& m, uint32_t index, const std::vector<Value>& followed) {
  const Node& node = m.graph().node(index);
  const OpInfo& info = m.graph().info(node);
  if (info.is(kOfSizes) || info.tol == Tol::kQNT) return ErrorEffect::kDrowns;
  for (uint32_t i = 0; i < node.out.size(); i++) {
    DType dtype = node.out[i].dtype;
    if ((is_integer(dtype) || dtype == DType::kBool) && m.is_used({index, i})) return ErrorEffect::kJumps;
  }
  if (is_at_edge(m, node, followed)) return ErrorEffect::kJumps;
  if (meets_others(m, node, followed)) return ErrorEffect::kDrowns;
  return contains(kBesideFirst, node.op) ? ErrorEffect::kPassesOn : error_effect(info);
}

}  // namespace

ErrorEffect error_effect(const OpInfo& info) {
  if (info.moves() || info.is(kPassesErrors)) return ErrorEffect::kPassesOn;
  bool is_unknown = info.has_bodies || info.has_free_attrs;
  bool is_nearly_exact = info.tol == Tol::kE0 || info.tol == Tol::kU1;
  return is_unknown || is_nearly_exact || info.is(kJumps) ? ErrorEffect::kJumps : ErrorEffect::kDrowns;
}

bool feeds_jump(const Match& m, Expr x) {
  std::vector<Value> followed{x.value()};
  auto follow = [&](uint32_t user) {
    const Node& node = m.graph().node(user);
    for (uint32_t output = contains(kBesideFirst, node.op) ? 1 : 0; output < node.out.size(); output++)
      if (!contains(followed, Value{user, output})) followed.push_back({user, output});
  };
  for (size_t i = 0; i < followed.size(); i++) {
    if (followed.size() > kMostFollowed) return true;
    if (is_part(m) && m.is_output(followed[i])) return true;  // the graph around reads it
    std::vector<uint32_t> users = m.users(m.builder().wrap(followed[i]), kMostReaders);
    if (users.size() == kMostReaders || !m.may_follow(users.size())) return true;
    for (uint32_t user : users) {
      ErrorEffect effect = effect_at(m, user, followed);
      if (effect == ErrorEffect::kJumps) return true;
      if (effect == ErrorEffect::kPassesOn) follow(user);
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
    if (node.op == Op::kConstant && !m.found_in(m.builder().wrap(seen[i]), zeros_and_ones)) return false;
    bool computes = info.is(kElementwise) || node.op == Op::kReduce || node.op == Op::kCumulative;
    if (!info.moves() && !computes && node.op != Op::kConstant) return false;
    if (!info.moves()) continue;
    for (Value in : node.in)
      if (present(in) && m.graph().type(in).dtype == DType::kBool && !contains(seen, in)) seen.push_back(in);
  }
  return true;
}

}  // namespace rlx
