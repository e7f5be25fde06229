// SPDX-License-Identifier: Apache-2.0
// Compares the reference meaning of every op with a second source. Nothing here names an op. A row fails if it has no
// samples, or none for one of its dtypes. So a new row must bring its samples.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>
#include <sstream>

#include "base/contains.h"
#include "base/visit.h"
#include "ir/verify.h"
#include "tests/support/samples.h"
#include "tests/support/tolerance.h"

namespace rlx::test {

// ---- what bounds refer to ----

// The inputs with every float replaced: by its magnitude, or by 1.
static std::vector<Tensor> with_floats(std::span<const Tensor> in, double (*replace)(double)) {
  std::vector<Tensor> changed(in.begin(), in.end());
  for (Tensor& tensor : changed) {
    if (!tensor || !(dtypes::F | dtypes::Z).has(tensor.dtype())) continue;
    Tensor copy = *Tensor::create(tensor.dtype(), tensor.dims());
    visit<dtypes::F | dtypes::Z>(tensor.dtype(), [&]<class T>() {
      for (int64_t i = 0; i < tensor.count(); i++) {
        if constexpr (is_complex_type<T>)
          copy.as<T>()[i] = T(static_cast<typename T::value_type>(replace(std::abs(tensor.as<T>()[i]))), 0);
        else
          copy.as<T>()[i] =
              T(static_cast<Compute<T>>(replace(static_cast<double>(static_cast<Compute<T>>(tensor.as<T>()[i])))));
      }
    });
    tensor = copy;
  }
  return changed;
}

static Tensor magnitudes(const Tensor& tensor) {
  Tensor result = *Tensor::create(DType::kF64, tensor.dims());
  visit<dtypes::N | dtypes::B | dtypes::Z>(tensor.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < tensor.count(); i++)
      result.as<double>()[i] = static_cast<double>(std::abs(
          static_cast<std::conditional_t<is_complex_type<T>, T, double>>(static_cast<Compute<T>>(tensor.as<T>()[i]))));
  });
  return result;
}

// A sum over products of |inputs| is the sum of |terms|; over ones it counts them.
static std::vector<Terms> terms_of(const Sample& sample, const Graph& graph, Tol tol) {
  std::vector<Terms> terms(sample.out.size());
  for (Terms& each : terms)
    if (!sample.in.empty() && sample.in[0] && is_float(sample.in[0].dtype()))
      each.input = magnitudes(*convert(sample.in[0], DType::kF64));
  if (!tolerance_of(tol).by_terms) return terms;
  auto sums = run(sample, graph, with_floats(sample.in, [](double x) { return std::fabs(x); }), EvalMode::kOracle);
  auto counts = run(sample, graph, with_floats(sample.in, [](double) { return 1.0; }), EvalMode::kOracle);
  for (size_t i = 0; i < terms.size() && sums.ok() && counts.ok(); i++) {
    if (!(dtypes::F | dtypes::Z).has(sample.out[i].dtype)) continue;
    terms[i].sums = magnitudes((*sums)[i]);
    terms[i].counts = magnitudes((*counts)[i]);
  }
  return terms;
}

// ---- one sample ----

// Equal up to the digits that a golden is stored with; of a complex number, measured against its magnitude.
static bool same_digits(double got, double expected, double size) {
  return std::fabs(got - expected) <= 4e-12 * size;
}

static bool same_digits(const Tensor& got, const Expected& expected) {
  bool is_pair = got.dtype() == DType::kC128;
  if ((got.dtype() != DType::kF64 && !is_pair) || got.count() != expected.value.count()) return false;
  const double *y = got.as<double>(), *g = expected.value.as<double>();
  for (int64_t i = 0; i < got.count() * (is_pair ? 2 : 1); i++) {
    bool equal =
        (std::isnan(y[i]) && std::isnan(g[i])) || round_to(expected.dtype, y[i]) == round_to(expected.dtype, g[i]);
    double size = is_pair ? std::hypot(g[i & ~1], g[i | 1]) : std::fabs(g[i]);
    if (!equal && !same_digits(y[i], g[i], size)) return false;
  }
  return true;
}

// The oracle computes floats in f64, whatever dtype is declared, so it is compared as an f64 kernel would be. But the
// literals of a composite have the dtype of its operands (semantics.md T1). So a composite is held to the bound of that
// dtype.
static std::string oracle_difference(const Tensor& got, const Expected& expected, const OpInfo& info,
                                     const Terms& terms) {
  DType wide = is_complex(expected.dtype) ? DType::kC128 : is_float(expected.dtype) ? DType::kF64 : expected.dtype;
  std::string wrong = difference(got, expected.value, info.primitive() ? wide : expected.dtype, info.tol, terms);
  if (wrong.empty() || difference(got, expected.value, expected.dtype, Tol::kE0).empty()) return "";
  return same_digits(got, expected) ? "" : wrong;
}

static void check_results(const Sample& sample, const Graph& graph, const OpInfo& info, EvalMode mode) {
  auto results = run(sample, graph, sample.in, mode);
  if (!sample.error.empty()) {
    ASSERT_FALSE(results.ok()) << "expected " << sample.error;
    EXPECT_EQ(code_name(results.status().code()), sample.error) << results.status().message();
    return;
  }
  ASSERT_TRUE(results.ok()) << results.status().message();
  ASSERT_EQ(results->size(), sample.out.size());
  std::vector<Terms> terms = terms_of(sample, graph, info.tol);
  for (size_t i = 0; i < results->size(); i++) {
    const Expected& expected = sample.out[i];
    ASSERT_EQ(graph.type(graph.outputs()[i].value).dtype, expected.dtype) << "output " << i;
    std::string wrong = mode == EvalMode::kOracle
                            ? oracle_difference((*results)[i], expected, info, terms[i])
                            : difference((*results)[i], expected.value, expected.dtype, info.tol, terms[i]);
    EXPECT_EQ(wrong, "") << "output " << i << (mode == EvalMode::kOracle ? ", oracle" : ", typed");
  }
}

static void check(const Sample& sample) {
  SCOPED_TRACE(sample.where + ": " + sample.op + sample.attrs);
  auto graph = graph_of(sample);
  if (!graph.ok()) {
    EXPECT_EQ(code_name(graph.status().code()), sample.error) << graph.status().message();
    return;
  }
  Status status = verify(*graph);
  ASSERT_TRUE(status.ok()) << status.message();
  const OpInfo& info = *op_table().find(sample.op);
  check_results(sample, *graph, info, EvalMode::kTyped);
  check_results(sample, *graph, info, EvalMode::kOracle);
}

// ---- sizes of 0 ----

// The inputs of the sample, with every axis of this size empty.
static std::vector<Tensor> emptied(const Sample& sample, int64_t size) {
  std::vector<Tensor> in = sample.in;
  for (Tensor& tensor : in) {
    if (!tensor) continue;
    std::vector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
    if (!contains(dims, size)) continue;
    std::replace(dims.begin(), dims.end(), size, int64_t{0});
    tensor = *Tensor::create(tensor.dtype(), dims);
  }
  return in;
}

static bool same_bytes(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Tensor& x, const Tensor& y) {
    bool is_same_type = x.dtype() == y.dtype() && std::ranges::equal(x.dims(), y.dims());
    return is_same_type && (x.bytes() == 0 || std::memcmp(x.data(), y.data(), x.bytes()) == 0);
  });
}

// What an op gives where a run sets a size to 0 it also gives where the size is 0 from the start (semantics.md N8).
// Every size of every sample becomes 0, in all inputs that have it. Returns how often the op ran.
static int check_sizes_of_zero(const Sample& sample) {
  int runs = 0;
  std::set<int64_t> sizes;
  for (const Tensor& tensor : sample.in)
    if (tensor && !is_block(tensor.dtype())) sizes.insert(tensor.dims().begin(), tensor.dims().end());
  sizes.erase(0);
  for (int64_t size : sizes) {
    auto open = graph_of(sample, size, Dim::symbol("s"));
    if (!open.ok()) continue;
    std::vector<Tensor> in = emptied(sample, size);
    auto expected = run(sample, *open, in, EvalMode::kTyped);
    if (!expected.ok()) continue;
    runs++;
    SCOPED_TRACE(format("{}: {}{} with 0 in the place of {}", sample.where, sample.op, sample.attrs, size));
    auto fixed = graph_of(sample, size, 0);
    EXPECT_TRUE(fixed.ok()) << fixed.status().message();
    if (!fixed.ok()) continue;
    auto got = run(sample, *fixed, in, EvalMode::kTyped);
    EXPECT_TRUE(got.ok()) << got.status().message();
    if (!got.ok()) continue;
    EXPECT_TRUE(same_bytes(*got, *expected));
  }
  return runs;
}

TEST(conformance, a_size_of_0_may_be_literal) {
  int runs = 0;
  for (const Sample& sample : all_samples())
    if (sample.program.empty() && sample.error.empty()) runs += check_sizes_of_zero(sample);
  EXPECT_GT(runs, 1000);
}

// ---- every row ----

static std::vector<std::string> row_names() {
  std::vector<std::string> names;
  for (const OpInfo& row : op_table().rows())
    if (!(row.is(kInternal) && row.primitive()))
      names.emplace_back(row.name);  // else each device has a meaning of its own
  return names;
}

// ---- every dtype ----

static constexpr DType kDTypes[] = {
#define RLX_DTYPE(id, Enum, name, block, bytes) DType::k##Enum,
#include "base/dtype.def"
#undef RLX_DTYPE
};

// Where a row's letters allow a choice of dtypes: at its inputs, or at the output of a row that has none.
struct Place {
  std::string name;
  DTypeSet legal;
  std::function<DType(const Sample&)> in_sample;  // kNone: the sample has nothing there
};

// Of an op without inputs: what its dtype attribute may name; a leaf may have any dtype.
static DTypeSet made_dtypes(const OpInfo& row) {
  for (const AttrDef& def : row.attrs)
    if (def.kind == AttrKind::kDtype && !def.choices.empty())
      return parse_signature("x:" + std::string(def.choices) + " -> y")->in[0].set;
  return dtypes::A;
}

static std::vector<Place> places_of(const OpInfo& row) {
  if (row.signature.in.empty())
    return {{"the output", made_dtypes(row),
             [](const Sample& sample) { return sample.out.empty() ? DType::kNone : sample.out[0].dtype; }}};
  std::vector<Place> places;
  for (size_t i = 0; i < row.signature.in.size(); i++) {
    const Port& port = row.signature.in[i];
    if (port.letter == kAnyDtype) continue;  // carried from one graph to another, never looked at
    places.push_back({port.name, port.set, [i](const Sample& sample) {
                        return i < sample.in.size() && sample.in[i] ? sample.in[i].dtype() : DType::kNone;
                      }});
  }
  return places;
}

// A dtype that the letters allow and the op refuses has a sample too: its error.
static std::string unsampled_dtypes(const OpInfo& row, std::span<const Sample* const> samples) {
  std::string missing;
  for (const Place& place : places_of(row)) {
    DTypeSet seen;
    for (const Sample* sample : samples) seen = seen | DTypeSet{place.in_sample(*sample)};
    for (DType dtype : kDTypes)
      if (place.legal.has(dtype) && !seen.has(dtype)) missing += " " + place.name + ":" + std::string(name(dtype));
  }
  return missing;
}

// ---- every choice ----

static std::string choice_text(const AttrDef& def, const Attrs& attrs) {
  return std::string(def.name) + "=" +
         (def.kind == AttrKind::kBool ? std::to_string(attrs.i64(def.name)) : attrs.str(def.name));
}

// Enums and flags whose every value stands in some sample, as the node holds it: defaults count.
static std::string unsampled_choices(const OpInfo& row, std::span<const Sample* const> samples) {
  auto has_choices = [](const AttrDef& def) { return def.kind == AttrKind::kEnum || def.kind == AttrKind::kBool; };
  std::set<std::string> seen;
  for (const Sample* sample : samples) {
    auto graph = graph_of(*sample);
    if (!graph.ok()) continue;
    for (const Node& node : graph->nodes())
      for (const AttrDef& def : row.attrs)
        if (node.op == row.op() && has_choices(def)) seen.insert(choice_text(def, node.attrs));
  }
  std::string missing;
  for (const AttrDef& def : row.attrs) {
    if (!has_choices(def)) continue;
    std::istringstream choices(def.kind == AttrKind::kBool ? "0|1" : std::string(def.choices));
    for (std::string choice; std::getline(choices, choice, '|');) {
      std::string text = std::string(def.name) + "=" + choice;
      if (!seen.contains(text)) missing += " " + text;
    }
  }
  return missing;
}

class reference : public testing::TestWithParam<std::string> {};

TEST_P(reference, meets_its_samples) {
  std::vector<const Sample*> samples = samples_of(GetParam());
  ASSERT_FALSE(samples.empty()) << "'" << GetParam() << "' has no samples in tests/samples";
  for (const Sample* sample : samples) check(*sample);
}

TEST_P(reference, has_samples_of_every_dtype) {
  EXPECT_EQ(unsampled_dtypes(*op_table().find(GetParam()), samples_of(GetParam())), "");
}

TEST_P(reference, has_samples_of_every_choice) {
  EXPECT_EQ(unsampled_choices(*op_table().find(GetParam()), samples_of(GetParam())), "");
}

INSTANTIATE_TEST_SUITE_P(, reference, testing::ValuesIn(row_names()), [](const auto& info) { return info.param; });

TEST(samples, name_rows_of_the_table) {
  std::set<std::string> unknown;
  for (const Sample& sample : all_samples())
    if (!op_table().find(sample.op)) unknown.insert(sample.op);
  std::string list;
  for (const std::string& op : unknown) list += " " + op;
  EXPECT_TRUE(unknown.empty()) << "samples of ops that have no row:" << list;
}

}  // namespace rlx::test
