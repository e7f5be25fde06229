// SPDX-License-Identifier: Apache-2.0
// Support vector machines of ai.onnx.ml. Scores come from the rows of a kernel: x against every support vector. A
// classifier has a score for every pair of classes; with 'prob_a' it couples the probabilities of the pairs (Wu, Lin
// and Weng, Probability Estimates for Multi-class Classification by Pairwise Coupling, 2004, algorithm 2).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "import/onnx/importer.h"
#include "import/onnx/ml.h"
#include "ir/symbols.h"

namespace rlx::onnx {

namespace {

constexpr int64_t kMaxRounds = 100;      // of the coupling
constexpr size_t kMaxCoupled = 64;       // classes: a round has nodes for each
constexpr double kMaxOfProduct = 256;    // the largest exponent of a kernel whose distances are products
constexpr double kLeastOfPair = 1.0e-7;  // and the most is 1 minus this

Expr rows_of(Call& call, const std::vector<double>& numbers, int64_t rows) {
  return reshape(list_of(call, DType::kF32, numbers), {Dim(rows), Dim(static_cast<int64_t>(numbers.size()) / rows)});
}

struct Kernel {
  explicit Kernel(Call& call) : kind(call.text("kernel_type", "LINEAR")), params(call.f64s("kernel_params")) {
    params.resize(std::max<size_t>(params.size(), 3), 0);
  }

  // x [N, F] against the rows of `vectors` [V, F].
  Expr of(Call& call, Expr x, const std::vector<double>& vectors, int64_t count) const {
    if (kind == "RBF") return exp(squared_distances(call, x, vectors, count) * -params[0]);
    Expr y = matmul(x, rows_of(call, vectors, count), {.b = true});
    if (kind == "LINEAR") return y;
    y = y * params[0] + params[1];
    if (kind == "SIGMOID") return tanh(y);
    if (kind != "POLY") call.fail(Code::kData, "'kernel_type' is " + std::string(kind));
    return call.op("pow", {y, scalar_like(y, params[2])});
  }

  // [N, V]. About the mean of the vectors a product and two lengths are as exact as differences, unless gamma is so
  // large that the kernel shows their rounding.
  Expr squared_distances(Call& call, Expr x, std::vector<double> vectors, int64_t count) const {
    size_t width = vectors.size() / static_cast<size_t>(count);
    std::vector<double> mean(width, 0), lengths(static_cast<size_t>(count), 0);
    for (size_t i = 0; i < vectors.size(); i++) mean[i % width] += vectors[i] / static_cast<double>(count);
    for (double& number : mean) number = static_cast<float>(number);
    for (size_t i = 0; i < vectors.size(); i++) {
      vectors[i] = static_cast<float>(vectors[i] - mean[i % width]);
      lengths[i / width] += vectors[i] * vectors[i];
    }
    x = x - list_of(call, DType::kF32, mean);
    Expr rows = rows_of(call, vectors, count);
    if (!(std::abs(params[0]) * std::ranges::max(lengths) < kMaxOfProduct)) {
      Expr apart = unsqueeze(x, 1) - unsqueeze(rows, 0);
      return reshape(sum(apart * apart, {2}), {x.dim(0), rows.dim(0)});
    }
    Expr both = sum(x * x, {1}) + list_of(call, DType::kF32, lengths);
    return maximum(both - matmul(x, rows, {.b = true}) * 2.0, 0);
  }

  std::string_view kind;
  std::vector<double> params;  // gamma, what is added, and the degree
};

bool suits(const std::vector<double>& numbers, int64_t rows) {
  return rows > 0 && !numbers.empty() && static_cast<int64_t>(numbers.size()) % rows == 0;
}

void build_regressor(Call& call) {
  std::vector<double> vectors = call.f64s("support_vectors"), coefficients = call.f64s("coefficients"),
                      rho = call.f64s("rho");
  int64_t count = call.i64("n_supports", 0);
  Kernel kernel(call);
  Expr x = features(call, 0);
  call.ignore("post_transform");  // no runtime applies it
  bool is_linear = count <= 0;
  if (rho.empty() || coefficients.empty() ||
      (!is_linear && (!suits(vectors, count) || static_cast<int64_t>(coefficients.size()) != count)))
    return call.fail(Code::kData, "'support_vectors', 'coefficients' or 'rho' do not suit 'n_supports'");
  if (!x.valid()) return;
  Expr y = x;
  if (!is_linear) y = kernel.of(call, x, vectors, count);
  y = matmul(y, rows_of(call, coefficients, 1), {.b = true}) + rho[0];
  if (call.i64("one_class", 0) != 0) y = where(greater(y, 0), scalar_like(y, 1), scalar_like(y, -1));
  call.out(0, y);
}

// ---- classifiers ----

struct Machine {
  std::vector<int64_t> labels, per_class;  // support vectors stand class by class
  std::vector<double> vectors, coefficients, rho, prob_a, prob_b;

  size_t classes() const { return labels.size(); }
  size_t pairs() const { return classes() * (classes() - 1) / 2; }
  int64_t count() const { return std::accumulate(per_class.begin(), per_class.end(), int64_t{0}); }
  bool is_linear() const { return count() == 0; }
  bool is_consistent() const {
    if (classes() == 0 || rho.empty()) return false;
    if (is_linear()) return suits(coefficients, static_cast<int64_t>(classes()));
    bool is_coupled = !prob_a.empty();
    return classes() > 1 && per_class.size() == classes() && std::ranges::min(per_class) >= 0 &&
           suits(vectors, count()) && coefficients.size() == (classes() - 1) * static_cast<size_t>(count()) &&
           rho.size() >= pairs() && prob_a.size() == prob_b.size() && (!is_coupled || prob_a.size() >= pairs());
  }
};

// Calls with the number of every pair and its two classes.
template <class Visit>
void each_pair(size_t classes, Visit visit) {
  for (size_t i = 0, pair = 0; i < classes; i++)
    for (size_t j = i + 1; j < classes; j++) visit(pair++, i, j);
}

// [V, pairs]: a pair weighs the vectors of its two classes. Of its coefficients a class has a row for each other class.
std::vector<double> weights_of_pairs(const Machine& machine) {
  auto count = static_cast<size_t>(machine.count());
  std::vector<size_t> first;
  for (size_t at = 0, i = 0; i < machine.classes(); i++) {
    first.push_back(at);
    at += static_cast<size_t>(machine.per_class[i]);
  }
  std::vector<double> weights(count * machine.pairs(), 0);
  each_pair(machine.classes(), [&](size_t pair, size_t i, size_t j) {
    auto fill = [&](size_t of, size_t row) {
      size_t end = first[of] + static_cast<size_t>(machine.per_class[of]);
      for (size_t v = first[of]; v < end; v++)
        weights[v * machine.pairs() + pair] = machine.coefficients[row * count + v];
    };
    fill(i, j - 1);
    fill(j, i);
  });
  return weights;
}

// How many pairs each class wins: a positive score is a vote for the first.
Expr votes_of(Call& call, const Machine& machine, Expr scores) {
  std::vector<double> moved(machine.pairs() * machine.classes(), 0), least(machine.classes(), 0);
  each_pair(machine.classes(), [&](size_t pair, size_t i, size_t j) {
    moved[pair * machine.classes() + i] = 1;
    moved[pair * machine.classes() + j] = -1;
    least[j]++;
  });
  Expr wins = cast(greater(scores, 0), DType::kF32);
  return matmul(wins, rows_of(call, moved, static_cast<int64_t>(machine.pairs()))) + list_of(call, DType::kF32, least);
}

// [N, K, K]: at [i, j] the probability of i where it is i or j.
Expr pair_probabilities(Call& call, const Machine& machine, Expr scores) {
  auto first = [&](std::vector<double> numbers) {
    numbers.resize(machine.pairs());
    return list_of(call, DType::kF32, numbers);
  };
  Expr p = call.op("sigmoid", {-(scores * first(machine.prob_a) + first(machine.prob_b))});
  p = minimum(maximum(p, kLeastOfPair), 1 - kLeastOfPair);
  auto classes = static_cast<int64_t>(machine.classes()), pairs = static_cast<int64_t>(machine.pairs());
  std::vector<int64_t> from(static_cast<size_t>(classes * classes), 2 * pairs);  // a column of zeros
  each_pair(machine.classes(), [&](size_t pair, size_t i, size_t j) {
    from[i * machine.classes() + j] = static_cast<int64_t>(pair);
    from[j * machine.classes() + i] = pairs + static_cast<int64_t>(pair);
  });
  Expr zero = slice(p, 1, 0, 1) * 0.0, both[] = {p, 1.0 - p, zero};
  return reshape(gather(concat(both, 1), list_of(call, from), 1), {scores.dim(0), Dim(classes), Dim(classes)});
}

// One round over the classes; `p` [N, K] sums to 1, `q` is [N, K, K].
Expr coupled_round(Expr p, Expr q, int64_t classes) {
  Expr slope = reshape(sum(q * unsqueeze(p, 1), {2}), p.dims()), total = sum(p * slope, {1}), before = p;
  Expr error = reduce(abs(slope - total), "max", {1});
  for (int64_t t = 0; t < classes; t++) {
    Expr row = reshape(slice(q, 1, t, t + 1), p.dims()), own = slice(row, 1, t, t + 1),
         here = slice(slope, 1, t, t + 1);
    Expr change = (total - here) / own, scale = change + 1.0;
    std::vector<Expr> columns;
    for (int64_t k = 0; k < classes; k++) columns.push_back(slice(p, 1, k, k + 1));
    columns[static_cast<size_t>(t)] = columns[static_cast<size_t>(t)] + change;
    p = concat(columns, 1) / scale;
    total = (total + change * (change * own + here * 2.0)) / (scale * scale);
    slope = (slope + change * row) / scale;
  }
  return where(less(error, 0.005 / static_cast<double>(classes)), before, p);  // a row that has settled stays
}

// A graph of a loop over `p` and whether it changed, with `q` besides: the condition of the loop or its body.
enum class Part { kCondition, kBody };
Result<std::shared_ptr<const Graph>> coupling(Part part, const Graph& around, const ValueType& p, const ValueType& q,
                                              int64_t classes) {
  BodyGraph body;
  for (const ValueType& type : {p, q}) RLX_TRY(share_symbols(around, type.dims, body.graph));
  Builder b(body.graph);
  Expr values = b.wrap(RLX_TRY(body.graph.add_input("p", p.dtype, p.dims)));
  Expr goes_on = b.wrap(RLX_TRY(body.graph.add_input("goes_on", DType::kBool, {})));
  Expr matrix = b.wrap(RLX_TRY(body.graph.add_input("q", q.dtype, q.dims)));
  if (part == Part::kCondition) {
    body.outputs = {goes_on.value()};
  } else {
    Expr next = coupled_round(values, matrix, classes);
    Expr moved = reduce(cast(not_equal(next, values), DType::kI32), "max", {0, 1}, KeepDims::kNo);
    body.outputs = {next.value(), greater(moved, 0).value()};
  }
  RLX_TRY(Status(b.status()));
  return body.finish();
}

// The probabilities of the classes that suit those of the pairs best.
Expr coupled(Call& call, const Machine& machine, Expr pairs) {
  auto classes = static_cast<int64_t>(machine.classes());
  Expr turned = transpose(pairs, {0, 2, 1}), rows = pairs.builder().size(pairs.dim(0), DType::kI64);
  // q[t, t] is the sum over j of r[j, t]^2, and q[t, j] is -r[j, t] * r[t, j].
  Expr own = reshape(sum(pairs * pairs, {1}), {pairs.dim(0), Dim(classes), Dim(1)});
  Expr is_own = equal(unsqueeze(iota(call.builder(), {Dim(classes)}, 0, DType::kI64), 1),
                      iota(call.builder(), {Dim(classes)}, 0, DType::kI64));
  Expr q = where(unsqueeze(is_own, 0), own, -(pairs * turned));
  Expr p = broadcast_to(call.builder().scalar(DType::kF32, 1.0 / static_cast<double>(classes)),
                        {pairs.dim(0), Dim(classes)});
  if (!q.valid() || !p.valid()) return p;
  const Graph& around = call.builder().graph();
  auto body = coupling(Part::kBody, around, p.type(), q.type(), classes),
       condition = coupling(Part::kCondition, around, p.type(), q.type(), classes);
  if (!body.ok() || !condition.ok()) return call.fail(body.ok() ? condition.status() : body.status()), p;
  Expr in[] = {p, greater(rows, 0), q};
  return call.ops("while", in,
                  {{"cond", *condition}, {"body", *body}, {"n_carry", int64_t{2}}, {"max_trips", kMaxRounds}})[0];
}

void give_label(Call& call, const Machine& machine, Expr place) {
  call.out(0, gather(list_of(call, machine.labels), place, 0));
}

Expr place_of_most(Call& call, Expr scores) {
  return call.op("arg_max", {scores}, {{"axis", int64_t{1}}, {"keep_dims", int64_t{0}}});
}

// A score a class. Of two classes the second is meant where any score is large.
void build_linear(Call& call, const Machine& machine, Expr x, std::string_view transform) {
  Expr rows = rows_of(call, machine.coefficients, static_cast<int64_t>(machine.classes()));
  Expr scores = matmul(x, rows, {.b = true}) + machine.rho[0], place = place_of_most(call, scores);
  if (machine.classes() == 2 && machine.prob_a.empty()) {
    bool is_positive = std::ranges::all_of(machine.coefficients, [](double number) { return number >= 0; });
    Expr top = reduce(scores, "max", {1}, KeepDims::kNo);
    Expr is_large = is_positive ? less_equal(scalar_like(top, 0.5), top) : greater(top, 0);
    place = where(is_large, scalar_like(place, 1), place);
  }
  give_label(call, machine, place);
  call.out(1, transformed_rows(call, scores, transform));
}

void build_classifier(Call& call) {
  Machine machine{labels_of(call),
                  call.i64s("vectors_per_class"),
                  call.f64s("support_vectors"),
                  call.f64s("coefficients"),
                  call.f64s("rho"),
                  call.f64s("prob_a"),
                  call.f64s("prob_b")};
  std::string_view transform = call.text("post_transform", "NONE");
  Kernel kernel(call);
  Expr x = features(call, 0);
  if (!call.status().ok() || !x.valid()) return;
  if (!machine.is_consistent()) return call.fail(Code::kData, "the lists of its attributes do not suit one another");
  if (machine.is_linear()) return build_linear(call, machine, x, transform);
  Expr rows = kernel.of(call, x, machine.vectors, machine.count());
  std::vector<double> rho(machine.rho.begin(), machine.rho.begin() + static_cast<int64_t>(machine.pairs()));
  Expr scores =
      matmul(rows, rows_of(call, weights_of_pairs(machine), machine.count())) + list_of(call, DType::kF32, rho);
  give_label(call, machine, place_of_most(call, votes_of(call, machine, scores)));
  if (!machine.prob_a.empty()) {
    if (machine.classes() > kMaxCoupled) return call.fail(Code::kUnsupported, "probabilities of so many classes");
    Expr p = coupled(call, machine, pair_probabilities(call, machine, scores));
    return call.out(1, transformed_scores(call, p, transform));
  }
  if (machine.classes() > 2) return call.out(1, transformed_scores(call, scores, transform));
  if (transform == "PROBIT") call.fail(Code::kUnsupported, "the transform PROBIT of one score");
  bool is_odd = transform == "NONE" || transform == "LOGISTIC";
  Expr both[] = {is_odd ? transformed_scores(call, -scores, transform) : 1.0 - scores,
                 is_odd ? transformed_scores(call, scores, transform) : scores};
  call.out(1, concat(both, 1));
}

constexpr NodeKind kKinds[] = {
    machine_learning("SVMRegressor", build_regressor),
    machine_learning("SVMClassifier", build_classifier),
};

}  // namespace

std::span<const NodeKind> svm_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
