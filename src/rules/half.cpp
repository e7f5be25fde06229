// SPDX-License-Identifier: Apache-2.0
// Half precision. Exporters cast to f32 before an op that needs precision, and back after it. By definition the op on
// halves does the same, so it takes the halves itself.
#include <algorithm>

#include "rules/numbers.h"
#include "rules/rules.h"

namespace rlx {

// The letter of operands of a wide composite that may have another dtype than x: gamma, beta, tables, biases of scores.
static constexpr std::string_view kBeside = "F'";

static const Port& port_of(const OpInfo& info, size_t i) {
  return info.signature.in[std::min(i, info.signature.in.size() - 1)];
}

// x before a cast between these dtypes; views may follow the cast. Absent if there is no such cast.
static Expr before_cast(const Match& m, Expr x, DType from, DType to) {
  if (x.dtype() != to) return Expr();
  Expr under = m.under_views(x);
  bool is_cast = m.is(under, Op::kCast) && m.input(under, 0).dtype() == from;
  return is_cast ? m.with_views(x, under, m.input(under, 0)) : Expr();
}

// A number of f32 as a half; absent if a half does not hold it.
static Expr as_half(const Match& m, Expr x, DType half) {
  auto number = x.dtype() == DType::kF32 ? m.splat(x) : std::nullopt;
  if (!number || rounded_to(half, *number) != *number) return Expr();
  return broadcast_to(m.builder().scalar(half, *number), x.dims());
}

// Whether the op on halves computes in f32 and rounds once (semantics.md N6, N7). Reductions and products do so too,
// but exporters do not put casts around these alone.
static bool rounds_once(const OpInfo& info) {
  return info.primitive() ? info.is(kElementwise) || info.is(kView) : info.is(kWide);
}

// cast(op(cast(x, f32), ...), half) -> op(x, ...)
static Expr narrow(const Match& m) {
  DType half = m.anchor().dtype();
  Expr wide = m.in(0);
  const Node& node = m.node(wide);
  const OpInfo& info = m.graph().info(node);
  if (!is_half(half) || wide.dtype() != DType::kF32 || wide.value().output != 0) return Expr();
  const std::string& letter = info.is(kLeaf) ? "" : info.signature.out[0].letter;
  if (!rounds_once(info) || letter.empty() || letter == kAnyDtype || !m.take(wide)) return Expr();
  std::vector<Expr> in;
  bool was_narrow = false;
  for (size_t i = 0; i < node.in.size(); i++) {
    Expr x = m.input(wide, i);
    if (x && port_of(info, i).letter == letter) {
      Expr narrow = before_cast(m, x, half, DType::kF32);
      was_narrow |= bool(narrow);
      x = narrow ? narrow : as_half(m, x, half);
      if (!x) return m.miss("an operand was never a half");
    }
    in.push_back(x);
  }
  if (!was_narrow) return Expr();
  return m.offer_all(wide, m.builder().add(info, in, node.attrs));
}

// Operands beside a half x may be f32, for example the tables of rope. For an f32 t: cast(t, half) -> t, which is more
// precise. For a half t: cast(t, f32) -> t, which is equal.
enum class Undone { kNarrowing, kWidening };
static Expr without_casts_beside(const Match& m, Undone what) {
  const Node& node = m.node(m.anchor());
  const OpInfo& info = m.graph().info(node);
  bool narrowed = what == Undone::kNarrowing;
  DType half = m.anchor().dtype(), from = narrowed ? DType::kF32 : half, to = narrowed ? half : DType::kF32;
  if (!is_half(half) || (narrowed && info.is(kShowsRounding))) return Expr();
  std::vector<Expr> in;
  bool changes = false;
  for (size_t i = 0; i < node.in.size(); i++) {
    Expr x = m.in(i);
    bool may_be_either = x && port_of(info, i).letter == kBeside && !(narrowed && m.is_resident(x));
    Expr source = may_be_either ? before_cast(m, x, from, to) : Expr();
    changes |= bool(source);
    in.push_back(source ? source : x);
  }
  if (!changes) return Expr();
  return m.offer_all(m.anchor(), m.builder().add(info, in, node.attrs));
}

static std::vector<Op> with_f32_beside_halves() {
  std::vector<Op> ops;
  for (const OpInfo& info : op_table().rows())
    if (!info.primitive() && info.is(kWide))
      if (std::any_of(info.signature.in.begin(), info.signature.in.end(),
                      [](const Port& port) { return port.letter == kBeside; }))
        ops.push_back(info.op());
  return ops;
}

void add_half_rules(RuleSet& rules) {
  rules.add(exact, "narrow", {Op::kCast}, narrow);
  rules.add(close, "beside_halves", with_f32_beside_halves(),
            [](const Match& m) { return without_casts_beside(m, Undone::kNarrowing); });
  rules.add(exact, "widened_beside_halves", with_f32_beside_halves(),
            [](const Match& m) { return without_casts_beside(m, Undone::kWidening); });
}

}  // namespace rlx
