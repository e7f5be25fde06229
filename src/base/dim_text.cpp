// SPDX-License-Identifier: Apache-2.0
// Dims as text: printing, and the parser that reads it back.
#include <cctype>
#include <charconv>

#include "base/dim.h"
#include "base/escape.h"
#include "base/shortened.h"

namespace rlx {

static bool is_plain_symbol(std::string_view name) {
  if (name.empty() || !(std::isalpha(static_cast<unsigned char>(name[0])) || name[0] == '_')) return false;
  if (name == "min" || name == "max" || name == "inf" || name == "nan") return false;  // words of the text form
  for (unsigned char c : name)
    if (!std::isalnum(c) && c != '_' && c != '.') return false;
  return true;
}

static std::string text_of(const Atom& atom) {
  if (atom.kind == Atom::kSymbol) return is_plain_symbol(atom.name) ? atom.name : quoted(atom.name, '\'');
  if (atom.kind == Atom::kFloorDiv || atom.kind == Atom::kProduct) {
    auto operand = [](const Dim& dim) {
      bool simple = dim.is_literal() ? dim.literal() >= 0 : dim.symbol_name() != nullptr;
      return simple ? dim.text() : "(" + dim.text() + ")";
    };
    return "(" + operand(atom.a) + (atom.kind == Atom::kProduct ? "*" : "/") + operand(atom.b) + ")";
  }
  return (atom.kind == Atom::kMax ? "max(" : "min(") + atom.a.text() + "," + atom.b.text() + ")";
}

std::string Dim::text() const {
  if (is_literal()) return std::to_string(literal());
  std::string text;
  for (const Term& term : polynomial()->terms) {
    bool negative = term.coefficient < 0;
    if (!text.empty())
      text += negative ? " - " : " + ";
    else if (negative)
      text += "-";
    uint64_t magnitude = negative ? -static_cast<uint64_t>(term.coefficient) : static_cast<uint64_t>(term.coefficient);
    bool shown = magnitude != 1 || term.atoms.empty();
    if (shown) text += std::to_string(magnitude);
    for (const AtomPtr& atom : term.atoms) {
      if (shown) text += "*";
      text += text_of(*atom);
      shown = true;
    }
  }
  return text;
}

std::string text_of(const std::vector<Dim>& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); i++) text += (i ? "," : "") + dims[i].text();
  return text + "]";
}

namespace {

// Recursive descent with a depth limit: text may come from a damaged file.
class DimParser {
 public:
  explicit DimParser(std::string_view text) : text_(text) {}

  Result<Dim> parse() {
    Dim dim = RLX_TRY(sum());
    skip_space();
    if (at_ != text_.size()) return error("an operator or the end");
    return dim;
  }

 private:
  Status error(const char* expected) const {
    return Status(Code::kInvalidArgument, format("in the size \"{}\", column {}: expected {}",
                                                 shortened(std::string(text_)), at_ + 1, expected))
        .with("expected", expected);
  }

  void skip_space() {
    while (at_ < text_.size() && text_[at_] == ' ') at_++;
  }

  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    at_++;
    return true;
  }

  Result<Dim> sum() {
    if (++depth_ > kMaxDepth) return error("fewer nested parentheses");
    std::vector<Dim> summands{RLX_TRY(product())};
    for (;;) {
      if (take('+'))
        summands.push_back(RLX_TRY(product()));
      else if (take('-'))
        summands.push_back(Dim(-1) * RLX_TRY(product()));
      else
        break;
    }
    depth_--;
    if (summands.size() == 1) return summands[0];  // a large number is exact, as a sum is not
    return checked(rlx::sum(summands));
  }

  Result<Dim> product() {
    Dim result = RLX_TRY(factor());
    for (;;) {
      if (take('*'))
        result = RLX_TRY(checked(result * RLX_TRY(factor())));
      else if (take('/'))
        result = RLX_TRY(checked(floor_div(result, RLX_TRY(factor()))));
      else
        return result;
    }
  }

  Result<Dim> checked(Dim dim) const {
    if (dim.parts() > Dim::kMaxParts) return error("fewer terms");
    return dim;
  }

  Result<Dim> factor() {
    bool negative = false;
    while (take('-')) negative = !negative;
    Dim result = RLX_TRY(atom());
    if (negative && result.is_literal()) return Dim(-result.literal());  // exact, as a difference is not
    return negative ? Dim(0) - result : result;
  }

  Result<Dim> atom() {
    if (take('(')) {
      Dim inner = RLX_TRY(sum());
      if (!take(')')) return error("')'");
      return inner;
    }
    if (take('\'')) return quoted_name();
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) return number();
    return name_or_call();
  }

  Result<Dim> quoted_name() {
    std::string name;
    while (at_ < text_.size() && text_[at_] != '\'') {
      auto c = read_escaped(text_, at_);
      if (!c) return error("one of the escapes \\\\, \\n, \\x and 00 to 7f");
      name += *c;
    }
    if (name.empty() || !take('\'')) return error("a name and a closing quote");
    return Dim::symbol(name);
  }

  Result<Dim> number() {
    int64_t value = 0;
    auto [end, failure] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (failure != std::errc()) return error("a number below 2^63");
    auto past = static_cast<size_t>(end - text_.data());
    if (value > Interval::kUnbounded && !is_all(at_, past)) return error("a number of at most 2^62");
    at_ = past;
    return Dim(value);
  }

  // Whether the text is nothing but this number and its sign: beside others it would saturate.
  bool is_all(size_t begin, size_t end) const {
    return text_.substr(0, begin).find_first_not_of(" -") == text_.npos &&
           text_.substr(end).find_first_not_of(' ') == text_.npos;
  }

  Result<Dim> name_or_call() {
    size_t start = at_;
    auto is_part = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; };
    while (at_ < text_.size() && is_part(static_cast<unsigned char>(text_[at_]))) at_++;
    std::string_view word = text_.substr(start, at_ - start);
    if (word.empty()) return error("a number, a symbol, '-' or '('");
    if (word != "min" && word != "max") return Dim::symbol(word);
    if (!take('(')) return error("'(' after min or max");
    Dim a = RLX_TRY(sum());
    if (!take(',')) return error("','");
    Dim b = RLX_TRY(sum());
    if (!take(')')) return error("')'");
    return word == "min" ? min(a, b) : max(a, b);
  }

  static constexpr int kMaxDepth = 64;
  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<Dim> parse_dim(std::string_view text) {
  return DimParser(text).parse();
}

}  // namespace rlx
