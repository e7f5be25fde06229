// SPDX-License-Identifier: Apache-2.0
// Tensors as text. A few elements are written as numbers, if these read back to the same bits; all others as base64.
#include <charconv>
#include <cstring>
#include <new>

#include "base/base64.h"
#include "base/visit.h"
#include "ir/text/value.h"

namespace rlx::text {

static constexpr int64_t kMaxNumbers = 64;  // elements of a tensor that is written as numbers

// ---- one element ----

// `read_element` undoes it.
template <class T>
static std::string element_text(T element) {
  if constexpr (std::is_same_v<T, bool8>) {
    return element ? "true" : "false";
  } else if constexpr (is_complex_type<T>) {
    return "(" + element_text(element.real()) + ", " + element_text(element.imag()) + ")";
  } else {
    char digits[32];
    return {digits, std::to_chars(digits, digits + sizeof digits, static_cast<Compute<T>>(element)).ptr};
  }
}

// What a number is read as: one of less than f32 as f64, so that it is rounded once.
template <class T>
using Read = std::conditional_t<is_small_float<T>, double, Compute<T>>;

template <class T>
static bool read_number(std::string_view text, T& element) {
  Read<T> number{};
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  element = T(number);
  return failure == std::errc() && end == text.data() + text.size();
}

template <class T>
static Status read_element(Scanner& in, T& element) {
  if constexpr (is_complex_type<T>) {
    typename T::value_type real{}, imaginary{};
    if (!in.take('(')) return in.error("expected '(', the real part, ',' and the imaginary part");
    RLX_TRY(read_element(in, real));
    if (!in.take(',')) return in.error("expected ',' and the imaginary part");
    RLX_TRY(read_element(in, imaginary));
    if (!in.take(')')) return in.error("expected ')'");
    element = T(real, imaginary);
    return {};
  } else {
    in.skip_blanks();
    size_t start = in.at();
    std::string word(in.expression(" \t\r,(){}[]\""));
    bool good;
    if constexpr (std::is_same_v<T, bool8>) {
      good = word == "true" || word == "false" || word == "0" || word == "1";
      element = word == "true" || word == "1";
    } else {
      good = read_number(word, element);
    }
    if (!good)
      return in.error_at(start, word.empty() ? "expected an element" : "'" + word + "' does not fit the dtype");
    return {};
  }
}

// ---- all elements ----

// Reads "{1, 2}" into bytes; memory grows with the text alone.
static Result<std::vector<std::byte>> read_numbers(Scanner& in, DType dtype) {
  std::vector<std::byte> bytes;
  Status status;
  visit<dtypes::A>(dtype, [&]<class T>() {
    for (in.skip_lines(); status.ok() && !in.take('}'); in.skip_lines()) {
      T element{};
      if (!bytes.empty() && !in.take(',')) {
        status = in.error("expected ',' or '}'");
        return;
      }
      in.skip_lines();
      status = read_element(in, element);
      auto* first = reinterpret_cast<const std::byte*>(&element);
      bytes.insert(bytes.end(), first, first + sizeof element);
    }
  });
  RLX_TRY(status);
  return bytes;
}

static Result<std::vector<std::byte>> read_base64(Scanner& in) {
  if (in.word() != "base64") return in.error("expected '{' or base64 and a string");
  in.skip_blanks();
  size_t start = in.at();
  if (in.peek() != '"') return in.error("expected a string");
  auto bytes = from_base64(RLX_TRY(in.quoted()));
  if (!bytes) return in.error_at(start, "this is no base64");
  return std::move(*bytes);
}

Result<Tensor> scan_tensor(Scanner& in) {
  in.skip_blanks();
  size_t start = in.at();
  ValueType type = RLX_TRY(scan_type(in));
  StaticVector<int64_t, kMaxRank> dims;
  for (const Dim& dim : type.dims) {
    if (!dim.is_literal()) return in.error_at(start, "a tensor has sizes that are numbers, not " + dim.text());
    dims.push_back(dim.literal());
  }
  bool numbers = !is_block(type.dtype) && in.take('{');
  std::vector<std::byte> bytes = numbers ? RLX_TRY(read_numbers(in, type.dtype)) : RLX_TRY(read_base64(in));
  auto count = element_count(dims);
  auto expected = count ? byte_size(type.dtype, *count) : std::nullopt;
  if (!expected || static_cast<size_t>(*expected) != bytes.size()) {
    size_t unit = numbers ? static_cast<size_t>(element_bytes(type.dtype)) : 1;
    return in.error_at(start,
                       format("{} does not have {}", type, plural(bytes.size() / unit, numbers ? "element" : "byte")));
  }
  auto tensor = Tensor::create(type.dtype, dims);
  if (!tensor.ok()) return in.located(start, std::move(tensor).status());
  if (!bytes.empty()) std::memcpy(tensor->data(), bytes.data(), bytes.size());
  return tensor;
}

static std::string numbers_text(const Tensor& tensor) {
  std::string text = "{";
  visit<dtypes::A>(tensor.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < tensor.count(); i++) text += (i ? ", " : "") + element_text(tensor.as<T>()[i]);
  });
  return text + "}";
}

std::string tensor_text(const Tensor& tensor) {
  std::string type = type_text(tensor.dtype(), tensor.dims());
  if (!is_block(tensor.dtype()) && tensor.count() <= kMaxNumbers) {
    std::string text = type + " " + numbers_text(tensor);
    Scanner in(text, Scanner::kLine);
    // A number cannot express the payload of a NaN, or a bool byte that is neither 0 nor 1.
    auto again = scan_tensor(in);
    if (again.ok() && again->same_bytes(tensor)) return text;
    if (again.status().code() == Code::kNoMemory) throw std::bad_alloc();  // else the text would depend on it
  }
  return type + " base64 \"" + to_base64({tensor.data(), tensor.bytes()}) + "\"";
}

}  // namespace rlx::text
