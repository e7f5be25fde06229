// SPDX-License-Identifier: Apache-2.0
// What the node kinds of ai.onnx.ml share.
#pragma once

#include "import/onnx/call.h"

namespace rlx::onnx {

inline constexpr std::string_view kMl = "ai.onnx.ml";
constexpr NodeKind machine_learning(std::string_view op_type, void (*build)(Call&)) {
  return {op_type, build, {}, nullptr, {}, kMl};
}

// A list as a constant.
Expr list_of(Call& call, DType dtype, std::span<const double> numbers);
Expr list_of(Call& call, std::span<const int64_t> numbers);

// Rows of features, in f32: a list is one row.
Expr features(Call& call, size_t i);
// The labels of a classifier, if they are integers.
std::vector<int64_t> labels_of(Call& call);

// Scores [N, K] as the attribute 'post_transform' wants them.
Expr transformed_scores(Call& call, Expr scores, std::string_view transform);
// The same of trees, support vectors and regressors, where the only score of a row stays as it is, PROBIT aside.
Expr transformed_rows(Call& call, Expr scores, std::string_view transform);

// Output 0 of a classifier by a score [N, 1]: above `least` it is the second label.
void give_label_of_two(Call& call, Expr score, double least);
// Both outputs: labels, and scores [N, 2]. The score of the first label is `total` minus that of the second.
void give_two_classes(Call& call, Expr score, double least, double total, std::string_view transform);
// Output 0 of a classifier with a score for each label.
void give_label_of_most(Call& call, Expr scores);

}  // namespace rlx::onnx
