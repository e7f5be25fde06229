// SPDX-License-Identifier: Apache-2.0
// Node kinds of ai.onnx.ml on numbers: features, labels, linear models. Those that read strings or maps are refused,
// because there is no dtype for them.
#include "import/onnx/ml.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "import/onnx/importer.h"
#include "import/onnx/list.h"

namespace rlx::onnx {

Expr list_of(Call& call, DType dtype, std::span<const double> numbers) {
  auto tensor = list_tensor(DType::kF64, numbers);
  return tensor.ok() ? cast(call.builder().constant(*tensor), dtype) : call.builder().fail(tensor.status());
}

Expr list_of(Call& call, std::span<const int64_t> numbers) {
  auto tensor = list_tensor(DType::kI64, numbers);
  return tensor.ok() ? call.builder().constant(*tensor) : call.builder().fail(tensor.status());
}

namespace {

// ONNX Runtime's approximation of the inverse of the normal distribution.
Expr probit(Expr p) {
  Expr x = p * 2.0 - 1.0, logs = log((1.0 - x) * (x + 1.0));
  Expr v = logs * 0.5 + 2 / (3.14159 * 0.147);
  Expr root = sqrt(sqrt(v * v - logs * (1 / 0.147)) - v) * 1.41421356;
  return where(less(x, 0), -root, root);
}

// Scores of 0 stay, and count for nothing.
Expr softmax_of_others(Expr scores) {
  Expr top = reduce(scores, "max", {1}), is_zero = less_equal(abs(scores), scalar_like(scores, 1e-7));
  Expr powers = where(is_zero, 0, exp(scores - top));
  return where(is_zero, scores * exp(-top), powers) / sum(powers, {1});
}

Expr logistic(Call& call, Expr x) {
  return call.op("sigmoid", {x});
}

}  // namespace

Expr transformed_scores(Call& call, Expr scores, std::string_view transform) {
  if (transform == "NONE" || !scores.valid()) return scores;
  if (transform == "SOFTMAX") return call.op("softmax", {scores}, {{"axis", int64_t{1}}});
  if (transform == "LOGISTIC") return logistic(call, scores);
  if (transform == "SOFTMAX_ZERO") return softmax_of_others(scores);
  if (transform == "PROBIT") return probit(scores);
  return call.fail(Code::kData, "'post_transform' is " + std::string(transform)), scores;
}

Expr transformed_rows(Call& call, Expr scores, std::string_view transform) {
  bool is_alone = scores.valid() && scores.dim(1).is(1) && transform != "PROBIT";
  Expr transformed = transformed_scores(call, scores, transform);
  return is_alone ? scores : transformed;
}

std::vector<int64_t> labels_of(Call& call) {
  bool is_linear = call.has_attr("classlabels_ints");
  if (!call.texts("classlabels_strings").empty()) call.fail(Code::kUnsupported, "labels that are strings");
  return call.i64s(is_linear ? "classlabels_ints" : "classlabels_int64s");
}

void give_label_of_two(Call& call, Expr score, double least) {
  std::vector<int64_t> labels = labels_of(call);
  if (!score.valid() || labels.size() != 2) return call.fail(Code::kData, "there are not two labels");
  Expr is_second = reshape(greater(score, least), {score.dim(0)}), names = list_of(call, labels);
  call.out(0, gather(names, cast(is_second, DType::kI64), 0));
}

void give_two_classes(Call& call, Expr score, double least, double total, std::string_view transform) {
  if (transform == "PROBIT") return call.fail(Code::kUnsupported, "the transform PROBIT of one score");
  give_label_of_two(call, score, least);
  if (!score.valid()) return;
  bool is_logistic = transform == "LOGISTIC";
  Expr both[] = {is_logistic ? logistic(call, -score) : total - score, is_logistic ? logistic(call, score) : score};
  call.out(1, concat(both, 1));
}

void give_label_of_most(Call& call, Expr scores) {
  std::vector<int64_t> labels = labels_of(call);
  if (!scores.valid() || labels.empty()) return call.fail(Code::kData, "there are no labels");
  Expr best = call.op("arg_max", {scores}, {{"axis", int64_t{1}}, {"keep_dims", int64_t{0}}});
  call.out(0, gather(list_of(call, labels), best, 0));
}

Expr features(Call& call, size_t i) {
  Expr x = cast(call.in(i), DType::kF32);
  return x.valid() && x.rank() == 1 ? unsqueeze(x, 0) : x;
}

namespace {

// A list is one row.
void build_feature_extractor(Call& call) {
  Expr x = call.in(0), index = call.in(1);
  if (!x.valid() || !index.valid() || x.rank() == 0) return call.fail(Code::kShape, "its input has no axes");
  Expr y = gather(x, reshape(index, {element_count(index.dims())}), static_cast<int64_t>(x.rank()) - 1);
  call.out(0, x.rank() == 1 ? unsqueeze(y, 0) : y);
}

void build_binarizer(Call& call) {
  Expr x = call.in(0);
  if (!x.valid()) return;
  Expr real = is_float(x.dtype()) ? x : cast(x, DType::kF64);
  call.out(0, cast(greater(real, call.f64("threshold", 0)), x.dtype()));
}

void build_scaler(Call& call) {
  Expr x = cast(call.in(0), DType::kF32);
  std::vector<double> offset = call.f64s("offset"), scale = call.f64s("scale");
  if (!offset.empty()) x = x - list_of(call, DType::kF32, offset);
  call.out(0, scale.empty() ? x : x * list_of(call, DType::kF32, scale));
}

// A row of zeros stays zero.
void build_normalizer(Call& call) {
  Expr x = cast(call.in(0), DType::kF32);
  std::string_view norm = call.text("norm", "MAX");
  if (!x.valid() || x.rank() == 0) return call.fail(Code::kShape, "its input has no axes");
  Axes axis{static_cast<int64_t>(x.rank()) - 1};
  Expr size = norm == "L1" ? sum(abs(x), axis) : norm == "L2" ? sqrt(sum(x * x, axis)) : reduce(x, "max", axis);
  if (norm != "L1" && norm != "L2" && norm != "MAX") call.fail(Code::kData, "'norm' is " + std::string(norm));
  call.out(0, x / where(equal(size, 0), 1, size));
}

// Replaces NaN, or a certain number, by a number for its column.
void build_imputer(Call& call) {
  Expr x = call.in(0);
  if (!x.valid()) return;
  bool is_real = is_float(x.dtype());
  std::vector<double> values = call.f64s("imputed_value_floats");
  std::vector<int64_t> whole = call.i64s("imputed_value_int64s");
  double replaced = call.f64("replaced_value_float", 0);
  int64_t replaced_whole = call.i64("replaced_value_int64", 0);
  if (is_real ? values.empty() : whole.empty()) return call.fail(Code::kData, "there are no imputed values");
  Expr with = is_real ? list_of(call, x.dtype(), values) : cast(list_of(call, whole), x.dtype());
  Expr missing = !is_real               ? equal(x, cast(list_of(call, std::span(&replaced_whole, 1)), x.dtype()))
                 : std::isnan(replaced) ? call.op("is_nan", {x})
                                        : equal(x, replaced);
  call.out(0, where(missing, with, x));
}

// ---- LabelEncoder: a table, found by halving ----

struct Labels {
  Tensor keys, values;
  Tensor fallback;  // what other numbers become
};

// A list or a tensor among the attributes.
Tensor attribute_list(Call& call, const std::string& name) {
  if (call.has_attr(name + "_strings")) call.fail(Code::kUnsupported, "labels that are strings");
  auto read = [&]() -> Result<Tensor> {
    if (const TensorProto* proto = call.tensor(name + "_tensor")) return call.importer().read(*proto);
    if (call.has_attr(name + "_int64s"))
      return list_tensor(DType::kI64, std::span<const int64_t>(call.i64s(name + "_int64s")));
    std::vector<double> wide = call.f64s(name + "_floats");
    return list_tensor(DType::kF32, std::span<const float>(std::vector<float>(wide.begin(), wide.end())));
  };
  auto tensor = read();
  if (!tensor.ok()) return call.fail(tensor.status()), Tensor();
  return *tensor;
}

Tensor fallback_of(Call& call, DType dtype) {
  double number = call.f64("default_float", -0.0);
  int64_t whole = call.i64("default_int64", -1);
  for (const char* other : {"default_float", "default_int64", "default_string"}) call.ignore(other);
  const TensorProto* proto = call.tensor("default_tensor");
  auto made = proto                  ? call.importer().read(*proto)
              : dtype == DType::kI64 ? list_tensor(DType::kI64, std::span<const int64_t>(&whole, 1))
                                     : scalar_tensor(dtype, number);
  if (!made.ok()) return call.fail(made.status()), Tensor();
  if (made->count() != 1) return call.fail(Code::kData, "'default_tensor' is not one number"), Tensor();
  return *made->reshaped({});
}

// The places of the keys in order; NaN, which equals itself here, is the last.
std::vector<int64_t> order_of(const Tensor& keys) {
  std::vector<int64_t> order(static_cast<size_t>(keys.count()));
  std::iota(order.begin(), order.end(), 0);
  auto is_less = [&](int64_t a, int64_t b) {
    if (is_integer(keys.dtype())) return element_as_i64(keys, a) < element_as_i64(keys, b);
    double x = element_as_f64(keys, a), y = element_as_f64(keys, b);
    return x < y || (std::isnan(y) && !std::isnan(x));
  };
  std::stable_sort(order.begin(), order.end(), is_less);
  return order;
}

void build_label_encoder(Call& call) {
  Tensor keys = attribute_list(call, "keys"), values = attribute_list(call, "values");
  Expr x = call.in(0);
  if (!keys || !values || !x.valid()) return;
  Tensor fallback = fallback_of(call, values.dtype());
  if (!fallback) return;
  if (keys.count() != values.count() || keys.count() == 0 || is_complex(keys.dtype()))
    return call.fail(Code::kData, "there is not a value for every key");
  Builder& b = call.builder();
  Dim count = keys.count();
  Expr order = list_of(call, order_of(keys));
  Expr sorted = gather(reshape(b.constant(keys), {count}), order, 0), place = cast(x, DType::kI64) * 0.0;
  bool may_be_nan = is_float(keys.dtype()) && call.opset() >= 4;  // before, NaN is no key
  int64_t step = 1;
  while (step < keys.count()) step *= 2;
  for (; step > 0; step /= 2) {  // the last key that is not above x
    Expr next = minimum(place + static_cast<double>(step), static_cast<double>(keys.count() - 1));
    Expr key = gather(sorted, next, 0), fits = less_equal(key, x);
    if (may_be_nan) fits = logical_or(fits, call.op("is_nan", {x}));
    place = where(fits, next, place);
  }
  Expr key = gather(sorted, place, 0), is_key = equal(key, x);
  if (may_be_nan) is_key = logical_or(is_key, logical_and(call.op("is_nan", {key}), call.op("is_nan", {x})));
  Expr found = gather(reshape(b.constant(values), {count}), gather(order, place, 0), 0);
  call.out(0, where(is_key, found, b.constant(fallback)));
}

// A new last axis says which of the categories an element is; others are zeros, whether or not the model allows them.
void build_one_hot_encoder(Call& call) {
  call.ignore("zeros");
  if (!call.texts("cats_strings").empty()) call.fail(Code::kUnsupported, "categories that are strings");
  std::vector<int64_t> categories = call.i64s("cats_int64s");
  if (categories.empty()) return call.fail(Code::kData, "there are no categories");
  Expr x = call.in(0);
  if (!x.valid()) return;
  Expr is_it = equal(unsqueeze(cast(x, DType::kI64), static_cast<int64_t>(x.rank())), list_of(call, categories));
  call.out(0, cast(is_it, DType::kF32));
}

// The columns of all inputs side by side, so many of each.
void build_feature_vectorizer(Call& call) {
  std::vector<int64_t> counts = call.i64s("inputdimensions");
  std::vector<Expr> parts;
  for (size_t i = 0; i < call.inputs(); i++) {
    Expr x = features(call, i);
    if (!x.valid()) return;
    bool is_told = i < counts.size() && counts[i] >= 0;
    if (x.rank() != 2 || (is_told && x.dim(1).is_literal() && !x.dim(1).is(counts[i])))
      return call.fail(Code::kUnsupported, "an input of another number of columns than 'inputdimensions' says");
    if (is_told) x = reshape(x, {x.dim(0), Dim(counts[i])});
    parts.push_back(x);
  }
  if (parts.empty()) return call.fail(Code::kData, "there is nothing to join");
  call.out(0, concat(parts, 1));
}

// A map for every row, from the same keys to the numbers of the row. There is no dtype for maps: the result is the rows
// themselves, in the order of the keys.
void build_zip_map(Call& call) {
  call.ignore("classlabels_strings");
  call.ignore("classlabels_int64s");
  Expr x = call.in(0);
  if (x.valid()) call.out(0, x.rank() == 1 ? unsqueeze(x, 0) : x);
}

// ---- linear models ----

// x times the coefficients, a row of them for each of `count` targets, plus the intercepts.
Expr linear_scores(Call& call, int64_t count) {
  std::vector<double> coefficients = call.f64s("coefficients"), intercepts = call.f64s("intercepts");
  Expr x = features(call, 0);
  if (count < 1 || coefficients.empty() || static_cast<int64_t>(coefficients.size()) % count != 0 ||
      (!intercepts.empty() && static_cast<int64_t>(intercepts.size()) != count))
    return call.fail(Code::kData, "'coefficients' or 'intercepts' do not suit the targets"), x;
  Expr rows = reshape(list_of(call, DType::kF32, coefficients), {Dim(count), Dim(-1)});
  Expr y = matmul(x, rows, {.b = true});
  return intercepts.empty() ? y : y + list_of(call, DType::kF32, intercepts);
}

void build_linear_regressor(Call& call) {
  Expr y = linear_scores(call, call.i64("targets", 1));
  call.out(0, transformed_rows(call, y, call.text("post_transform", "NONE")));
}

void build_linear_classifier(Call& call) {
  call.ignore("multi_class");
  auto labels = static_cast<int64_t>(call.i64s("classlabels_ints").size());
  auto intercepts = static_cast<int64_t>(call.f64s("intercepts").size());
  int64_t count = intercepts > 0 ? intercepts : labels;
  Expr scores = linear_scores(call, count);
  std::string_view transform = call.text("post_transform", "NONE");
  if (count == 1 && labels == 2) return give_two_classes(call, scores, 0, 1, transform);
  if (count != labels) return call.fail(Code::kData, "there is not a label for every score");
  give_label_of_most(call, scores);
  call.out(1, transformed_scores(call, scores, transform));
}

constexpr NodeKind kKinds[] = {
    machine_learning("ArrayFeatureExtractor", build_feature_extractor),
    machine_learning("Binarizer", build_binarizer),
    machine_learning("Scaler", build_scaler),
    machine_learning("Normalizer", build_normalizer),
    machine_learning("Imputer", build_imputer),
    machine_learning("LabelEncoder", build_label_encoder),
    machine_learning("OneHotEncoder", build_one_hot_encoder),
    machine_learning("FeatureVectorizer", build_feature_vectorizer),
    machine_learning("ZipMap", build_zip_map),
    machine_learning("LinearRegressor", build_linear_regressor),
    machine_learning("LinearClassifier", build_linear_classifier),
};

}  // namespace

std::span<const NodeKind> ml_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
