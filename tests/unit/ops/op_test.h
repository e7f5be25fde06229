// SPDX-License-Identifier: Apache-2.0
// What the tests of ops share: tensors from numbers, one op run by the reference interpreter, and comparison.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/visit.h"
#include "ops/expr.h"
#include "ops/interpret.h"

namespace rlx::test {

using Sizes = std::vector<int64_t>;
inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

inline Tensor tensor(DType dtype, const Sizes& dims, const std::vector<double>& numbers) {
  Tensor result = *Tensor::create(dtype, dims);
  EXPECT_EQ(static_cast<size_t>(result.count()), numbers.size());
  visit<dtypes::N | dtypes::B | dtypes::E>(dtype, [&]<class T>() {
    for (size_t i = 0; i < numbers.size(); i++) result.as<T>()[i] = T(static_cast<Compute<T>>(numbers[i]));
  });
  return result;
}
inline Tensor f64s(const Sizes& dims, const std::vector<double>& numbers) {
  return tensor(DType::kF64, dims, numbers);
}
inline Tensor f32s(const Sizes& dims, const std::vector<double>& numbers) {
  return tensor(DType::kF32, dims, numbers);
}
inline Tensor i64s(const Sizes& dims, const std::vector<double>& numbers) {
  return tensor(DType::kI64, dims, numbers);
}
inline Tensor i32s(const Sizes& dims, const std::vector<double>& numbers) {
  return tensor(DType::kI32, dims, numbers);
}
inline Tensor bools(const Sizes& dims, const std::vector<double>& numbers) {
  return tensor(DType::kBool, dims, numbers);
}

inline std::vector<Dim> symbols_for(const Tensor& tensor, size_t input) {
  std::vector<Dim> dims;
  for (size_t i = 0; i < tensor.rank(); i++)
    dims.push_back(Dim::symbol("in" + std::to_string(input) + "_" + std::to_string(i)));
  return dims;
}

// One op on tensors (an empty Tensor is an absent input). With `symbolic`, every size of every input is a symbol, so
// that inference has no numbers to lean on; the results must be the same.
inline Result<std::vector<Tensor>> run(Op op, const std::vector<Tensor>& in, NamedAttrs attrs = {},
                                       EvalOptions options = {}, bool symbolic = false) {
  Graph graph;
  std::vector<Value> values;
  std::vector<Tensor> given;
  for (const Tensor& tensor : in) {
    if (!tensor) {
      values.push_back(kAbsent);
      continue;
    }
    std::vector<Dim> dims(tensor.dims().begin(), tensor.dims().end());
    if (symbolic) dims = symbols_for(tensor, values.size());
    values.push_back(RLX_TRY(graph.add_input("in" + std::to_string(values.size()), tensor.dtype(), dims)));
    given.push_back(tensor);
  }
  Value node = RLX_TRY(graph.add(op, values, std::move(attrs)));
  for (uint32_t i = 0; i < graph.node(node).out.size(); i++)
    RLX_TRY(graph.add_output("out" + std::to_string(i), Value{node.node, i}));
  return interpret(graph, given, {}, options);
}

inline std::vector<double> numbers(const Tensor& tensor) {
  std::vector<double> list;
  for (int64_t i = 0; i < tensor.count(); i++) list.push_back(element_as_f64(tensor, i));
  return list;
}

inline void expect_equal(const Tensor& got, const Tensor& expected, double tolerance = 0) {
  EXPECT_EQ(type_text(got.dtype(), got.dims()), type_text(expected.dtype(), expected.dims()));
  if (got.count() != expected.count()) return;
  for (int64_t i = 0; i < got.count(); i++) {
    double a = element_as_f64(got, i), b = element_as_f64(expected, i);
    bool same = (std::isnan(a) && std::isnan(b)) || a == b || std::fabs(a - b) <= tolerance * (1 + std::fabs(b));
    EXPECT_TRUE(same) << "element " << i << " is " << a << ", not " << b;
  }
}

// The op gives these outputs, with sizes as numbers and with sizes as symbols.
inline void expect_op(Op op, const std::vector<Tensor>& in, NamedAttrs attrs, const std::vector<Tensor>& expected,
                      EvalOptions options = {}, double tolerance = 0) {
  for (bool symbolic : {false, true}) {
    SCOPED_TRACE(std::string(op_table().info(op).name) + (symbolic ? ", symbolic sizes" : ""));
    auto got = run(op, in, attrs, options, symbolic);
    ASSERT_TRUE(got.ok()) << got.status().message();
    ASSERT_EQ(got->size(), expected.size());
    for (size_t i = 0; i < expected.size(); i++) expect_equal((*got)[i], expected[i], tolerance);
  }
}
inline void expect_op(Op op, const std::vector<Tensor>& in, NamedAttrs attrs, const Tensor& expected,
                      EvalOptions options = {}, double tolerance = 0) {
  expect_op(op, in, std::move(attrs), std::vector<Tensor>{expected}, options, tolerance);
}

// Fails at build or in the run, with this code.
inline void expect_failure(Op op, const std::vector<Tensor>& in, NamedAttrs attrs, Code code,
                           std::string_view message_part = {}) {
  auto got = run(op, in, std::move(attrs));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(code_name(got.status().code()), code_name(code)) << got.status().message();
  EXPECT_NE(got.status().message().find(message_part), std::string_view::npos) << got.status().message();
}

}  // namespace rlx::test
