// SPDX-License-Identifier: Apache-2.0
// Elementwise ops between 8-bit numbers: a function of one such number is a table of 256 entries.
#include "rules/rules.h"

namespace rlx {

using namespace patterns;

constexpr int64_t kNumbersOfByte = 256;
constexpr int64_t kLeastNumbers = 1024;  // fewer cost less than the table

static bool are_few(Expr x) {
  Dim count = element_count(x.dims());
  return count.is_literal() && count.literal() < kLeastNumbers;
}

// The ops from one 8-bit value up to the anchor: elementwise ones, and dequantize_linear.
class ByteFunction {
 public:
  static constexpr int kDeepest = 8;  // ops below the anchor

  explicit ByteFunction(const Match& match) : m_(match) {}

  Expr numbers() const { return numbers_; }  // of 8 bits

  // Takes the operands of a node, if each is a number, or the 8-bit numbers, or a function of them.
  bool take_inputs(Expr x, int depth = 0) {
    const Node& node = m_.node(x);
    if (node.out.size() != 1 || !m_.has_shape(x) || depth > kDeepest) return false;
    for (size_t i = 0; i < node.in.size(); i++)
      if (present(node.in[i]) && !take_value(m_.input(x, i), depth)) return false;
    return true;
  }

  // The same function of all the numbers that there are, in their order as u8.
  Expr table_of(Expr x, Expr all) const {
    std::vector<Expr> in;
    for (size_t i = 0; i < m_.node(x).in.size(); i++) {
      Expr it = present(m_.node(x).in[i]) ? m_.input(x, i) : Expr();
      in.push_back(!it                              ? it
                   : is_one_number(it)              ? reshape(it, {})
                   : it.value() == numbers_.value() ? all
                                                    : table_of(it, all));
    }
    return m_.builder().ops(m_.node(x).op, in, m_.node(x).attrs.named())[0];
  }

 private:
  bool take_value(Expr x, int depth) {
    if (is_one_number(x)) return true;
    if (is_eight_bit(x.dtype())) {
      if (!numbers_) numbers_ = x;
      return numbers_.value() == x.value() && m_.has_shape(x);
    }
    bool is_by_element = m_.graph().info(m_.node(x)).is(kElementwise) || m_.is(x, Op::kDequantizeLinear);
    return is_by_element && is_function_of_inputs(x) && m_.take(x) && take_inputs(x, depth + 1);
  }
  bool is_function_of_inputs(Expr x) const {
    const OpInfo& info = m_.graph().info(m_.node(x));
    return info.is(kPure) && !info.is(kVaries);
  }

  const Match& m_;
  Expr numbers_;
};

// All 256 numbers of the dtype, in the order of their bytes. The shape has the rank of the values that they stand for.
static Expr all_numbers(const Match& m, Expr numbers) {
  std::vector<int64_t> dims(numbers.rank(), 1);
  dims[0] = kNumbersOfByte;
  Result<Tensor> made = Tensor::create(numbers.dtype(), dims);
  if (!made.ok()) return Expr();
  Tensor tensor = std::move(made).value();
  for (int64_t i = 0; i < kNumbersOfByte; i++) tensor.data()[i] = static_cast<std::byte>(i);
  return m.builder().constant(std::move(tensor));
}

// quantize_linear(f(dequantize_linear(x))), elementwise -> byte_table(x, quantize_linear(f(dequantize_linear(0..255))))
static Expr table_of_bytes(const Match& m) {
  Expr y = m.anchor();
  ByteFunction function(m);
  if (!is_eight_bit(y.dtype()) || m.attrs().i64("block_size") > 0 || is_eight_bit(m.in(0).dtype())) return Expr();
  if (!function.take_inputs(y) || !function.numbers() || y.rank() == 0) return Expr();
  if (m.is_resident(function.numbers())) return m.miss("the numbers are known before the run");
  if (are_few(y)) return m.miss("few numbers");
  Expr all = all_numbers(m, function.numbers());
  if (!all) return Expr();
  Expr table = reshape(function.table_of(y, all), {kNumbersOfByte});
  Expr made = m.builder().op(Op::kByteTable, {function.numbers(), table});
  return m.is_refused(made) ? m.miss("no kernel for the table") : made;
}

// quantize_linear(concat(dequantize_linear(a), ...)) -> concat(quantize_linear(dequantize_linear(a)), ...)
static Expr quantized_parts(const Match& m) {
  Expr joined = m.in(0), scale = m.in(1), zero = m.in(2);
  if (!m.is(joined, Op::kConcat) || !is_eight_bit(m.anchor().dtype()) || !is_one_number(scale)) return Expr();
  if (m.attrs().i64("block_size") > 0 || are_few(m.anchor()) || !m.take(joined)) return Expr();
  std::vector<Expr> parts;
  for (size_t i = 0; i < m.node(joined).in.size(); i++) {
    Expr part = m.input(joined, i);
    if (!m.is(part, Op::kDequantizeLinear) || !is_eight_bit(m.input(part, 0).dtype()))
      return m.miss("a part is not dequantised");
    parts.push_back(part);
  }
  std::array of_part{Expr(), reshape(scale, {}), zero ? reshape(zero, {}) : Expr()};
  for (Expr& part : parts) {
    of_part[0] = part;
    part = m.builder().ops(Op::kQuantizeLinear, of_part, m.attrs().named())[0];
  }
  return concat(parts, m.node(joined).attrs.i64("axis"));
}

void add_byte_rules(RuleSet& rules) {
  rules.add(exact, "byte_table", {Op::kQuantizeLinear}, table_of_bytes,
            {.depth = ByteFunction::kDeepest + 1, .needs = {Op::kDequantizeLinear}});
  rules.add(exact, "quantized_parts", {Op::kQuantizeLinear}, quantized_parts, {.depth = 2, .needs = {Op::kConcat}});
}

}  // namespace rlx
