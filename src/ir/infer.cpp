// SPDX-License-Identifier: Apache-2.0
// Inference of one node: the checks before and after the function of its row; and what these functions share: equal
// dims, exact quotients, broadcasting (semantics.md S2-S4).
#include "ir/infer.h"

#include <algorithm>

#include "base/check_size.h"
#include "base/shortened.h"
#include "ir/normal.h"

namespace rlx {

// ---- what inference functions share ----

Status InferArgs::fail(Code code, std::string message) const {
  return Status(code, std::move(message));
}

std::string InferArgs::where() const {
  return std::string(info.name) + (name.empty() ? "" : " '" + std::string(name) + "'");
}

Status InferArgs::require(Guard::Relation relation, const Dim& a, const Dim& b) {
  return graph.add_guard({.relation = relation, .a = a, .b = b, .where = where(), .is_derived = true});
}

Result<Dim> InferArgs::same(const Dim& a, const Dim& b, std::string_view what) {
  if (a == b) return a;
  Status status = require(Guard::kEqual, a, b);
  if (status.code() == Code::kUnsupported) return std::move(status).prefixed(format("{}: ", what));
  if (!status.ok())
    return Status(Code::kShape, format("{}: {} is not {}", what, shortened(b.text()), shortened(a.text())))
        .with("expected", shortened(a.text()))
        .with("got", shortened(b.text()));
  return b.is_literal() ? b : a;
}

Status InferArgs::require_le(const Dim& a, const Dim& b, std::string_view what) {
  Status status = require(Guard::kLessEqual, a, b);
  if (status.ok()) return status;
  if (status.code() == Code::kUnsupported) return std::move(status).prefixed(format("{}: ", what));
  return Status(Code::kShape, format("{}: {} is above {}", what, shortened(a.text()), shortened(b.text())))
      .with("expected", "at most " + shortened(b.text()))
      .with("got", shortened(a.text()));
}

Result<Dim> InferArgs::divided(const Dim& a, const Dim& b, std::string_view what) {
  if (auto exact = exact_quotient(a, b)) return *exact;
  if (b.is(0)) return Status(Code::kShape, std::string(what) + ": division by a size of 0");
  Dim quotient = floor_div(a, b);
  RLX_TRY(same(a, quotient * b, what));
  return quotient;
}

Result<std::vector<Dim>> InferArgs::broadcast(std::span<const Dim> a, std::span<const Dim> b) {
  auto dims = rlx::broadcast(a, b, [&](const Dim& x, const Dim& y) { return same(x, y, "do not broadcast"); });
  if (dims.ok()) return dims;
  std::vector<Dim> left(a.begin(), a.end()), right(b.begin(), b.end());
  return std::move(dims).status().prefixed(shortened(text_of(left)) + " and " + shortened(text_of(right)) + " ");
}

// ---- one node ----

static std::string ordinal_input(const OpInfo& info, size_t i) {
  const auto& ports = info.signature.in;
  const Port& port = ports[std::min(i, ports.size() - 1)];
  return "input '" + port.name + "'" + (port.variadic ? " " + std::to_string(i) : "");
}

static Status check_arity(const OpInfo& info, std::span<const Value> in) {
  const auto& ports = info.signature.in;
  bool variadic = !ports.empty() && ports.back().variadic;
  if (in.size() > ports.size() && !variadic)
    return Status(Code::kInvalidArgument, format("takes {}, not {}", plural(ports.size(), "input"), in.size()))
        .with("expected", std::to_string(ports.size()))
        .with("got", std::to_string(in.size()));
  for (size_t i = 0; i < std::max(in.size(), ports.size()); i++) {
    const Port& port = ports[std::min(i, ports.size() - 1)];
    bool is_given = i < in.size(), here = is_given && in[i] != kAbsent;
    bool may_miss = port.optional && !(port.variadic && is_given);  // a list of inputs has no gaps
    if (!here && !may_miss)
      return Status(Code::kInvalidArgument, ordinal_input(info, i) + " is missing")
          .with("input", port.name)
          .with("expected", text_of(port.set))
          .with("got", "nothing");
  }
  return {};
}

static Status check_dtypes(const OpInfo& info, std::span<const ValueType* const> in) {
  const auto& ports = info.signature.in;
  InlinedVector<std::pair<std::string_view, size_t>, 4> letters;  // and the input that bound the letter
  for (size_t i = 0; i < in.size(); i++) {
    if (!in[i]) continue;
    const Port& port = ports[std::min(i, ports.size() - 1)];
    DType dtype = in[i]->dtype;
    if (!port.set.has(dtype))
      return Status(Code::kDtype, format("{} may not be {} (takes {})", ordinal_input(info, i), name(dtype), port.set))
          .with("input", port.name)
          .with("expected", text_of(port.set))
          .with("got", name(dtype));
    if (port.letter == kAnyDtype || is_block(dtype)) continue;  // a block type stands for itself: "x:F, w:FQ"
    std::string_view letter = port.letter;
    if (letter.ends_with('Q')) letter.remove_suffix(1);
    auto bound = std::find_if(letters.begin(), letters.end(), [&](auto& pair) { return pair.first == letter; });
    if (bound == letters.end()) {
      if (in.size() > 1) letters.push_back({letter, i});
    } else if (DType first = in[bound->second]->dtype; first != dtype) {
      return Status(Code::kDtype,
                    format("{} is {}, but {} is {}: they must agree (a cast converts)", ordinal_input(info, i),
                           name(dtype), ordinal_input(info, bound->second), name(first)))
          .with("input", port.name)
          .with("expected", name(first))
          .with("got", name(dtype));
    }
  }
  return {};
}

// The dtype that the signature gives an output: that of the first input with its letter, or the one dtype it names.
static DType signature_dtype(const OpInfo& info, std::span<const ValueType* const> in, const Port& out) {
  if (out.letter.empty()) return DType::kNone;
  const auto& ports = info.signature.in;
  for (size_t i = 0; i < in.size(); i++)
    if (in[i] && ports[std::min(i, ports.size() - 1)].letter == out.letter) return in[i]->dtype;
  return find_dtype(out.letter).value_or(DType::kNone);
}

// A number above all sizes comes from a damaged file; it would saturate in the first sum, and be another number from
// then on. No size is negative in a run (semantics.md S1). Formulas that may go below 0 end in max(0, x); any other
// such size comes from an attribute, and gets a guard.
static Status check_size(InferArgs& args, const Dim& dim) {
  if (dim.symbol_name()) return {};
  RLX_TRY(check_literal(dim));
  Interval range = args.graph.range(dim);
  if (range.hi < 0)
    return args.fail(Code::kShape, "the size " + shortened(dim.text()) + " is negative")
        .with("expected", "0 or more")
        .with("got", shortened(dim.text()));
  return range.lo < 0 ? args.require_le(0, dim, "a size") : Status();
}

static Status check_result(InferArgs& args, const ValueType& type) {
  if (type.rank() > kMaxRank) return rank_above_limit(type.rank());
  RLX_TRY(check_parts(type.dims));
  for (const Dim& dim : type.dims) RLX_TRY(check_size(args, dim));
  return {};
}

Status check_results(InferArgs& args) {
  for (const ValueType& type : args.out)
    if (Status status = check_result(args, type); !status.ok())  // a leaf has no result: its type is given
      return args.info.is(kInterface) ? std::move(status) : std::move(status).prefixed("the result: ");
  return {};
}

Status infer_node(Graph& scope, const OpInfo& info, std::span<const ValueType* const> in, Node& node) {
  RLX_TRY(check_arity(info, node.in));
  RLX_TRY(check_dtypes(info, in));
  node.attrs = RLX_TRY(normal_attrs(info, in, std::move(node.attrs)));
  node.out.clear();
  node.out.reserve(info.signature.out.size());
  for (const Port& port : info.signature.out) node.out.push_back({signature_dtype(info, in, port), {}});
  InferArgs args{scope, info, in, node.in, node.attrs, node.out, node.name};
  RLX_TRY(info.infer(args));
  return check_results(args);
}

}  // namespace rlx
