// SPDX-License-Identifier: Apache-2.0
// Products over chosen axes: dot_general as one matmul of merged axes, and einsum as dot_generals.
#include <algorithm>
#include <cctype>

#include "ops/expr.h"

namespace rlx {

// ---- dot_general ----

// The axes of one operand: batch, contracted, and free ones.
struct OperandAxes {
  Axes batch, contract, free;
};

static std::optional<OperandAxes> operand_axes(Expr x, const Axes& batch, const Axes& contract) {
  std::vector<size_t> named(x.rank(), 0);
  for (const Axes* axes : {&batch, &contract})
    for (int64_t axis : *axes) named[static_cast<size_t>(axis)]++;
  OperandAxes axes_of_x{batch, contract, {}};
  for (size_t axis = 0; axis < named.size(); axis++) {
    if (named[axis] == 0) axes_of_x.free.push_back(static_cast<int64_t>(axis));
    if (named[axis] < 2) continue;
    x.builder().fail(Status(Code::kInvalidArgument, format("axis {} is a batch axis and contracted, too", axis)));
    return std::nullopt;
  }
  return axes_of_x;
}

static std::vector<Dim> sizes_of(Expr x, const Axes& axes) {
  std::vector<Dim> dims;
  for (int64_t axis : axes) dims.push_back(x.dim(axis));
  return dims;
}

static bool pairs_agree(Expr a, const Axes& axes_a, Expr b, const Axes& axes_b, const char* what) {
  if (axes_a.size() != axes_b.size()) {
    a.builder().fail(Status(
        Code::kOption, format("{} of a, {} of b", plural(axes_a.size(), std::string(what) + " axis"), axes_b.size())));
    return false;
  }
  for (size_t i = 0; i < axes_a.size(); i++)
    if (!require(a, Guard::kEqual, a.dim(axes_a[i]), b.dim(axes_b[i]))) return false;
  return true;
}

// x as batch ++ [product of the first group, product of the second].
static Expr as_matrices(Expr x, const Axes& batch, const Axes& rows, const Axes& columns) {
  Axes perm = batch;
  perm.insert(perm.end(), rows.begin(), rows.end());
  perm.insert(perm.end(), columns.begin(), columns.end());
  std::vector<Dim> dims = sizes_of(x, batch);
  dims.push_back(element_count(sizes_of(x, rows)));
  dims.push_back(element_count(sizes_of(x, columns)));
  return reshape(transpose(x, perm), dims);
}

Outputs decompose_dot_general(const Inputs& in, const Attrs& attrs) {
  Expr a = in[0], b = in[1];
  auto left = operand_axes(a, attrs.i64s("batch_a"), attrs.i64s("contract_a"));
  auto right = operand_axes(b, attrs.i64s("batch_b"), attrs.i64s("contract_b"));
  if (!left || !right || !pairs_agree(a, left->batch, b, right->batch, "batch") ||
      !pairs_agree(a, left->contract, b, right->contract, "contracted"))
    return {};
  std::vector<Dim> dims = sizes_of(a, left->batch);
  for (const auto& part : {sizes_of(a, left->free), sizes_of(b, right->free)})
    dims.insert(dims.end(), part.begin(), part.end());
  Expr product = matmul(as_matrices(a, left->batch, left->free, left->contract),
                        as_matrices(b, right->batch, right->contract, right->free));
  return {reshape(product, dims)};
}

// ---- einsum ----

// A value and the label of each of its axes. Axes under "..." are labelled by digits, 0 being the last.
struct Labelled {
  Expr x;
  std::string labels;
  size_t find(char label) const { return labels.find(label); }
  bool has(char label) const { return find(label) != std::string::npos; }
};

class Einsum {
 public:
  Einsum(Builder& b, std::string equation) : b_(b) {
    std::erase(equation, ' ');
    size_t arrow = equation.find("->");
    explicit_ = arrow != std::string::npos;
    if (explicit_) output_ = equation.substr(arrow + 2);
    equation_ = equation.substr(0, arrow);
  }

  Expr run(std::span<const Expr> operands) {
    if (!read_terms(operands) || !read_output()) return b_.wrap(kInvalid);
    for (Labelled& term : terms_) {
      drop_stretched(term);
      take_diagonals(term);
    }
    for (size_t i = 0; i < terms_.size(); i++) sum_unused(i);
    for (size_t i = 1; i < terms_.size(); i++) terms_[i] = contract(terms_[i - 1], terms_[i], i);
    const Labelled& last = terms_.back();
    Axes perm;
    for (char label : output_) perm.push_back(static_cast<int64_t>(last.find(label)));
    return transpose(last.x, perm);
  }

 private:
  bool fail(std::string message) {
    b_.fail(Status(Code::kOption, "'equation': " + std::move(message)));
    return false;
  }

  // Copies letters, and expands "..." to digits for `rest` axes.
  bool expand(std::string text, size_t rest, std::string& labels) {
    if (size_t dots = text.find("..."); dots != std::string::npos) {
      std::string digits;
      for (size_t i = rest; i-- > 0;) digits += static_cast<char>('0' + i);
      labels = text.substr(0, dots) + digits + text.substr(dots + 3);
      text.erase(dots, 3);
    } else {
      labels = text;
    }
    bool letters = std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalpha(c); });
    return letters || fail("\"" + text + "\" is not a list of letters");
  }

  bool read_terms(std::span<const Expr> operands) {
    std::vector<std::string> parts(1);
    for (char c : equation_)
      if (c == ',')
        parts.emplace_back();
      else
        parts.back() += c;
    if (parts.size() != operands.size())
      return fail(format("{} for {}", plural(parts.size(), "term"), plural(operands.size(), "input")));
    for (size_t i = 0; i < parts.size(); i++) {
      Expr x = operands[i];
      bool dots = parts[i].find("...") != std::string::npos;
      size_t letters = parts[i].size() - (dots ? 3 : 0);
      if (!x.valid() || (dots ? letters > x.rank() : letters != x.rank()))
        return fail(format("term {} names {} of an input of rank {}", i, plural(letters, "axis"), x.rank()));
      rest_ = std::max(rest_, x.rank() - letters);
      terms_.push_back({x, {}});
      if (!expand(parts[i], x.rank() - letters, terms_.back().labels)) return false;
    }
    return true;
  }

  // Without "->": the axes of "...", then the letters that occur once, sorted.
  bool read_output() {
    std::string all;
    for (const Labelled& term : terms_) all += term.labels;
    std::string text = explicit_ ? output_ : "...";
    if (!explicit_)
      for (int c = 'A'; c <= 'z'; c++)
        if (std::isalpha(c) && std::count(all.begin(), all.end(), static_cast<char>(c)) == 1)
          text += static_cast<char>(c);
    if (rest_ > 0 && text.find("...") == std::string::npos) return fail("the output leaves out ...");
    if (!expand(text, rest_, output_)) return false;
    for (char label : output_) {
      std::string_view name(&label, 1);
      if (all.find(label) == std::string::npos) return fail(format("the output's {} is in no term", name));
      if (std::count(output_.begin(), output_.end(), label) > 1) return fail(format("the output names {} twice", name));
    }
    return true;
  }

  // Whether all axes with this label have the literal size 1.
  static bool is_single(const Labelled& term, char label) {
    for (size_t i = 0; i < term.labels.size(); i++)
      if (term.labels[i] == label && !term.x.dim(static_cast<int64_t>(i)).is(1)) return false;
    return true;
  }

  // Drops the label from axes of literal size 1 if another term has this label with another size. The axes of one label
  // within a term have one size.
  void drop_stretched(Labelled& term) {
    std::vector<Dim> dims;
    std::string labels;
    for (size_t i = 0; i < term.labels.size(); i++) {
      char label = term.labels[i];
      auto is_longer = [&](const Labelled& other) { return !is_single(other, label); };
      if (is_single(term, label) && std::ranges::any_of(terms_, is_longer)) continue;
      dims.push_back(term.x.dim(static_cast<int64_t>(i)));
      labels += label;
    }
    if (labels != term.labels) term = {reshape(term.x, dims), labels};
  }

  // x[.., i, .., i, ..] for a label that a term has twice: the two axes, side by side, are one of n * n elements, of
  // which every (n + 1)-th is on the diagonal.
  void take_diagonals(Labelled& term) {
    for (size_t i = 0; i < term.labels.size();) {
      size_t again = term.labels.find(term.labels[i], i + 1);
      if (again == std::string::npos) {
        i++;
        continue;
      }
      Dim n = term.x.dim(static_cast<int64_t>(i));
      if (!require(term.x, Guard::kEqual, n, term.x.dim(static_cast<int64_t>(again)))) return;
      Axes perm;
      std::vector<Dim> joined;
      for (size_t k = 0; k < term.labels.size(); k++) {
        if (k == again) continue;
        perm.push_back(static_cast<int64_t>(k));
        if (k == i) perm.push_back(static_cast<int64_t>(again));
        joined.push_back(k == i ? n * n : term.x.dim(static_cast<int64_t>(k)));
      }
      Expr places = iota(b_, {n}, 0, DType::kI64) * (b_.size(n, DType::kI64) + 1);
      term.x =
          b_.op(Op::kGather, {reshape(transpose(term.x, perm), joined), places}, {{"axis", static_cast<int64_t>(i)}});
      term.labels.erase(again, 1);
    }
  }

  // Whether the output, or a term from `from` on other than `except`, has the label.
  bool wanted(char label, size_t from, size_t except) const {
    if (output_.find(label) != std::string::npos) return true;
    for (size_t i = from; i < terms_.size(); i++)
      if (i != except && terms_[i].has(label)) return true;
    return false;
  }

  void sum_unused(size_t index) {
    Labelled& term = terms_[index];
    Axes axes;
    std::string kept;
    for (size_t i = 0; i < term.labels.size(); i++)
      if (wanted(term.labels[i], 0, index))
        kept += term.labels[i];
      else
        axes.push_back(static_cast<int64_t>(i));
    if (!axes.empty()) term = {reduce(term.x, "sum", axes, KeepDims::kNo), kept};
  }

  Labelled contract(const Labelled& a, const Labelled& b, size_t index) {
    Axes batch_a, batch_b, contract_a, contract_b;
    std::string batch, free;
    for (size_t i = 0; i < a.labels.size(); i++) {
      char label = a.labels[i];
      if (!b.has(label)) {
        free += label;
        continue;
      }
      bool kept = wanted(label, index + 1, index);
      (kept ? batch_a : contract_a).push_back(static_cast<int64_t>(i));
      (kept ? batch_b : contract_b).push_back(static_cast<int64_t>(b.find(label)));
      if (kept) batch += label;
    }
    for (char label : b.labels)
      if (!a.has(label)) free += label;
    return {b_.op(Op::kDotGeneral, {a.x, b.x},
                  {{"batch_a", batch_a}, {"batch_b", batch_b}, {"contract_a", contract_a}, {"contract_b", contract_b}}),
            batch + free};
  }

  Builder& b_;
  std::string equation_, output_;
  bool explicit_ = false;
  size_t rest_ = 0;  // axes under the longest "..."
  std::vector<Labelled> terms_;
};

Outputs decompose_einsum(const Inputs& in, const Attrs& attrs) {
  return {Einsum(in.builder(), attrs.str("equation")).run(in.all())};
}

}  // namespace rlx
