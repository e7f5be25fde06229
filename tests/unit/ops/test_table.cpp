// SPDX-License-Identifier: Apache-2.0
// Adding an op is adding a row. This table has two rows more than the library's, and everything that reads ops from
// their rows knows them. Nothing but the rows and their functions names them.
#include <gtest/gtest.h>

#include "capi/schema.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/attr_defs.h"
#include "ops/expr.h"
#include "ops/interpret.h"

namespace rlx {

// ---- the two rows ----

static Status infer_triple(InferArgs& args) {
  args.out[0].dims = args.dims();
  return {};
}

static Status eval_triple(EvalArgs& args) {
  visit<dtypes::F>(args.in[0].dtype, [&]<class T>() {
    auto times = static_cast<Compute<T>>(args.attrs.f64("times"));
    map1<T, T>(args.out[0], args.in[0], [=](auto x) { return times * x; });
  });
  return {};
}

static Outputs decompose_triple_and_sum(const Inputs& in, const Attrs& attrs) {
  Expr triple = in[0] * 3.0;
  return {in[1] ? triple + in[1] : triple, sum(triple, {attrs.i64("axis")})};
}

static const OpTable& test_table() {
  using namespace attr_defs;
  static const OpTable kTable = [] {
    std::vector<OpInfo> rows(op_table().rows().begin(), op_table().rows().end());
    rows.push_back({.id = 60000,
                    .name = "test_triple",
                    .summary = "three times x",
                    .sig = "x:F -> y:F",
                    .attrs = {within(f64("times", 3), 0, 9)},
                    .infer = infer_triple,
                    .eval = eval_triple});
    rows.push_back({.id = 60001,
                    .name = "test_triple_and_sum",
                    .summary = "three times x, and its sum",
                    .sig = "x:F, bias?:F -> y:F, total",
                    .attrs = {i64("axis", -1)},
                    .traits = kPure | kWide,
                    .infer = infer_composite,
                    .decompose = decompose_triple_and_sum});
    return OpTable(std::move(rows));
  }();
  return kTable;
}

static constexpr char kText[] = R"(graph "triples" (n) {
  x = input f32[n,2]
  a = test_triple(x) -> f32[n,2]
  b = test_triple(a) times=0.5 -> f32[n,2]
  c, c.total = test_triple_and_sum(b, x) axis=0 -> f32[n,2], f32[1,2]
  output c
  output c.total
}
)";

// ---- what knows them ----

TEST(test_table, rows_are_parsed_printed_and_verified) {
  auto graph = parse(kText, test_table());
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(print(*graph), kText);
  EXPECT_TRUE(verify(*graph).ok());
}

TEST(test_table, rows_are_evaluated) {
  auto graph = parse(kText, test_table());
  ASSERT_TRUE(graph.ok());
  Tensor x = *Tensor::create(DType::kF32, std::array<int64_t, 2>{2, 2});
  for (int i = 0; i < 4; i++) x.as<float>()[i] = static_cast<float>(i);
  auto results = interpret(*graph, std::array{x});
  ASSERT_TRUE(results.ok()) << results.status().message();
  EXPECT_EQ((*results)[0].as<float>()[3], 3 * 1.5f * 3 + 3);    // 3 b + x
  EXPECT_EQ((*results)[1].as<float>()[1], 3 * 1.5f * (1 + 3));  // 3 b, down the column of x = 1 and 3
}

TEST(test_table, rows_are_built_and_what_is_wrong_is_named) {
  Graph graph("", &test_table());
  Value x = *graph.add_input("x", DType::kF32, {Dim(4)}), i = *graph.add_input("i", DType::kI32, {Dim(4)});
  const OpInfo* row = test_table().find("test_triple");
  ASSERT_TRUE(row);
  auto message = [&](std::vector<Value> in, NamedAttrs attrs) {
    return std::string(graph.add(row->op(), in, std::move(attrs)).status().message());
  };
  EXPECT_EQ(message({x}, {}), "");
  EXPECT_EQ(message({i}, {}),
            "test_triple: input 'x' may not be i32 (takes f32, f16, bf16 or f64); x is input 'i' i32[4]");
  EXPECT_EQ(message({x, x}, {}),
            "test_triple: takes 1 input, not 2; x is input 'x' f32[4], input 1 is input 'x' f32[4]");
  EXPECT_EQ(message({}, {}), "test_triple: input 'x' is missing");
  EXPECT_EQ(message({x}, {{"times", 10.0}}), "test_triple: 'times' must be from 0 to 9, not 10");
  EXPECT_EQ(message({x}, {{"tims", 1.0}}), "test_triple: unknown attribute 'tims' (did you mean 'times'?)");
  EXPECT_EQ(parse("graph {\n  y = test_tripel()\n}", test_table()).status().message(),
            "2:7: unknown op 'test_tripel' (did you mean 'test_triple'?)");
}

TEST(test_table, signatures_name_inputs_and_outputs) {
  auto signature = parse_signature("x:F, i?:I -> y:F, n:I");
  ASSERT_TRUE(signature.ok()) << signature.status().message();
  std::string names;
  for (const auto* ports : {&signature->in, &signature->out})
    for (const Port& port : *ports) names += port.name + (port.optional ? "? " : " ");
  EXPECT_EQ(names, "x i? y n ");
}

TEST(test_table, rows_have_a_schema) {
  std::string schema = capi::schema_of_op(*test_table().find("test_triple"));
  for (const char* part : {"\"times\"", "\"default\": 3", "\"max\": 9", "three times x"})
    EXPECT_NE(schema.find(part), schema.npos) << schema;
}

}  // namespace rlx
