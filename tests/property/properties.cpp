// SPDX-License-Identifier: Apache-2.0
#include "properties.h"

#include <chrono>
#include <cmath>

#include "generate.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/interpret.h"
#include "tests/support/transforms.h"

namespace rlx::test {

namespace {

std::string failed(std::string_view what, const Status& status) {
  return std::string(what) + ": " + std::string(status.message());
}

// ---- text ----

std::string check_text(const Graph& graph) {
  std::string text = print(graph);
  auto again = parse(text, graph.table());
  if (!again.ok()) return failed("what is printed does not parse", again.status());
  if (print(*again) != text) return "printed again it is\n" + print(*again);
  bool same = equal(std::make_shared<const Graph>(graph), std::make_shared<const Graph>(*again));
  return same ? "" : "what is parsed is not what was printed";
}

// ---- meaning ----

using Results = std::vector<Tensor>;

// Equal bits, except that any NaN is any NaN.
bool same_element(const Tensor& a, const Tensor& b, int64_t i) {
  auto unit = static_cast<size_t>(element_bytes(a.dtype())), at = static_cast<size_t>(i) * unit;
  if (std::equal(a.data() + at, a.data() + at + unit, b.data() + at)) return true;
  auto is_nan = [&](const Tensor& tensor) {
    if (is_complex(tensor.dtype())) {
      auto value = tensor.dtype() == DType::kC64 ? c128(tensor.as<c64>()[i]) : tensor.as<c128>()[i];
      return std::isnan(value.real()) || std::isnan(value.imag());
    }
    return std::isnan(element_as_f64(tensor, i));
  };
  return is_nan(a) && is_nan(b);
}

// Of what was computed in f64: the same up to rounding that a long chain of ops may magnify.
bool near_element(const Tensor& a, const Tensor& b, int64_t i, double largest) {
  if (a.dtype() != DType::kF64) return is_complex(a.dtype()) || same_element(a, b, i);
  double x = a.as<double>()[i], y = b.as<double>()[i];
  if (!std::isfinite(x) || !std::isfinite(y)) return (std::isnan(x) && std::isnan(y)) || x == y;
  return std::fabs(x - y) <= 1e-6 * (1 + largest);
}

double largest_of(const Tensor& tensor) {
  double largest = 0;
  if (tensor.dtype() == DType::kF64)
    for (int64_t i = 0; i < tensor.count(); i++)
      if (std::isfinite(tensor.as<double>()[i])) largest = std::max(largest, std::fabs(tensor.as<double>()[i]));
  return largest;
}

std::string compare(const Results& before, const Results& after, bool exact) {
  if (before.size() != after.size()) return "another number of outputs";
  for (size_t k = 0; k < before.size(); k++) {
    const Tensor &a = before[k], &b = after[k];
    if (a.dtype() != b.dtype() || !std::equal(a.dims().begin(), a.dims().end(), b.dims().begin(), b.dims().end()))
      return "output " + std::to_string(k) + " is " + type_text(b.dtype(), b.dims()) + ", it was " +
             type_text(a.dtype(), a.dims());
    double largest = largest_of(a);
    for (int64_t i = 0; i < a.count(); i++)
      if (exact ? !same_element(a, b, i) : !near_element(a, b, i, largest))
        return "output " + std::to_string(k) + " differs at element " + std::to_string(i);
  }
  return "";
}

std::string check_transform(const Transform& transform, const RandomGraph& before, const Results& results,
                            EvalOptions options) {
  auto after = transform.run(before.graph);
  if (!after.ok()) return failed("it fails", after.status());
  if (Status status = verify(*after); !status.ok()) return failed("it gives no valid graph", status) + print(*after);
  auto again = interpret(*after, before.inputs, before.params, options);
  if (!again.ok()) return failed("its graph does not run", again.status()) + "\n" + print(*after);
  std::string wrong = compare(results, *again, transform.exact());
  return wrong.empty() ? "" : wrong + "\n" + print(*after);
}

// Folding rounds a half or 8-bit constant to its dtype, which the oracle never does: there only bits can be compared.
bool rounds_when_folded(const Graph& graph) {
  for (const Node& node : graph.nodes())
    for (const ValueType& type : node.out)
      if (is_half(type.dtype) || dtypes::E.has(type.dtype)) return true;
  return false;
}

std::string check_transforms(const RandomGraph& random, Tally& tally) {
  bool evaluated = false, narrow = rounds_when_folded(random.graph);
  for (const Transform& transform : transforms()) {
    if (narrow && !transform.exact()) continue;
    EvalOptions options{transform.exact() ? EvalMode::kTyped : EvalMode::kOracle, Bounds::kClamp};
    auto results = interpret(random.graph, random.inputs, random.params, options);
    if (!results.ok()) continue;  // a guard that these sizes break, or a value that an op refuses
    evaluated = true;
    std::string wrong = check_transform(transform, random, *results, options);
    if (!wrong.empty()) return std::string(transform.name) + ": " + wrong;
  }
  tally.evaluated += evaluated;
  return "";
}

}  // namespace

std::string check_random_graph(uint64_t seed, Tally& tally) {
  RandomGraph random = random_graph(seed, op_table());
  for (const Tensor& input : random.inputs)
    if (!input) return "";
  Status status = verify(random.graph);
  std::string wrong = status.ok() ? check_text(random.graph) : failed("verifier", status);
  if (wrong.empty()) wrong = check_transforms(random, tally);
  tally.graphs++;
  return wrong.empty() ? "" : "seed " + std::to_string(seed) + ": " + wrong + "\n" + print(random.graph);
}

std::string check_random_graphs(uint64_t seed, double seconds, Tally& tally) {
  using Clock = std::chrono::steady_clock;
  auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (std::string wrong; Clock::now() < end; seed++) {
    wrong = check_random_graph(seed, tally);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace rlx::test
