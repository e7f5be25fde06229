// SPDX-License-Identifier: Apache-2.0
// What is known of values without running anything, where no rule of the library asks for it often.
#include "ir/facts.h"
#include "ir/text.h"
#include "tests/unit/programs.h"

namespace rlx {

TEST(facts, a_number_is_rounded_by_a_cast) {
  Graph graph;
  Builder b(graph);
  Expr tenth = b.scalar(DType::kF32, 0.1), as_half = cast(tenth, DType::kF16), huge = b.scalar(DType::kF32, 1e30);
  Expr back = cast(as_half, DType::kF32), beyond = cast(huge, DType::kF16), truth = cast(tenth, DType::kBool);
  Facts facts(graph);
  EXPECT_EQ(facts.splat(tenth.value()), static_cast<double>(0.1f));
  EXPECT_EQ(facts.splat(as_half.value()), 0.0999755859375);
  EXPECT_EQ(facts.splat(back.value()), 0.0999755859375);
  EXPECT_EQ(facts.splat(beyond.value()), std::nullopt);
  EXPECT_EQ(facts.splat(truth.value()), 1);
}

TEST(facts, positions_move_with_their_axes) {
  Graph graph;
  Builder b(graph);
  Expr rows = b.op(Op::kIota, {}, {{"shape", std::vector<Dim>{2, 3, 4}}, {"axis", int64_t{1}}, {"dtype", DType::kI64}});
  Expr turned = transpose(rows, {1, 2, 0});
  Facts facts(graph);
  const Affine* form = facts.affine(turned.value());
  ASSERT_NE(form, nullptr);
  EXPECT_TRUE(form->offset.is(0));
  EXPECT_EQ(form->steps, (std::vector<Dim>{1, 0, 0}));
  Expr cube = b.op(Op::kIota, {}, {{"shape", std::vector<Dim>{5, 5, 5}}, {"axis", int64_t{1}}, {"dtype", DType::kI64}});
  for (int64_t axis : {0, 1, 2}) {
    Expr part = slice(cube, axis, 1, 5, 2);
    Facts with_part(graph);
    form = with_part.affine(part.value());
    ASSERT_NE(form, nullptr);
    EXPECT_EQ(form->offset, Dim(axis == 1 ? 1 : 0)) << axis;
    EXPECT_EQ(form->steps, (std::vector<Dim>{0, axis == 1 ? 2 : 1, 0})) << axis;
  }
}

TEST(facts, tables_that_progress_evenly_are_known) {
  auto form_of = [](const std::string& table) {
    auto graph = parse("graph {\n t = constant " + table + "\n y = cast(t) to=i32\n output y\n}");
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    Facts facts(*graph);
    const Affine* form = facts.affine({0, 0});
    return form ? std::optional(*form) : std::nullopt;
  };
  auto even = form_of("i64[2,3,2] {5, 6, 15, 16, 25, 26, 105, 106, 115, 116, 125, 126}");
  ASSERT_TRUE(even);
  EXPECT_TRUE(even->offset.is(5));
  EXPECT_EQ(even->steps, (std::vector<Dim>{100, 10, 1}));
  EXPECT_FALSE(form_of("i64[2,3] {0, 1, 2, 10, 11, 13}"));
  auto is_known = [&](int64_t first) {
    return form_of("i64[2] {" + std::to_string(first) + ", " + std::to_string(first) + "}").has_value();
  };
  constexpr int64_t kLargest = int64_t{1} << 40;  // sums of such numbers do not overflow
  EXPECT_TRUE(is_known(kLargest) && is_known(-kLargest));
  EXPECT_FALSE(is_known(kLargest + 1) || is_known(-kLargest - 1));
}

// f64 holds all integers up to 2^53, and 2^53 + 1 would be rounded.
TEST(facts, integers_are_known_as_far_as_doubles_count) {
  for (int64_t sign : {1, -1})
    for (int64_t beyond : {0, 1}) {
      int64_t value = sign * ((int64_t{1} << 53) + beyond);
      auto graph = parse("graph {\n t = constant i64[2] {" + std::to_string(value) + ", " + std::to_string(value) +
                         "}\n y = cast(t) to=i32\n output y\n}");
      ASSERT_TRUE(graph.ok()) << graph.status().message();
      Facts facts(*graph);
      EXPECT_EQ(facts.splat({0, 0}), beyond ? std::nullopt : std::optional(static_cast<double>(value)));
    }
}

// Sizes decide the comparison: `not` of it is known too, as a number or as what it is in a run.
TEST(facts, the_opposite_of_what_sizes_decide_is_decided) {
  for (const char* range : {"n in [5, 9]", "n in [0, 9]"}) {
    auto graph = parse("graph \"g\" (" + std::string(range) + R"() {
      x = input f32[n]
      n = dim_size(x) axis=0
      four = constant i64[] {4}
      small = le(n, four)
      large = bit_not(small)
      output large
    })");
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    Facts facts(*graph);
    const Affine *small = facts.affine({3, 0}), *large = facts.affine({4, 0});
    ASSERT_TRUE(small && large) << print(*graph);
    EXPECT_EQ(small->offset + large->offset, Dim(1));
  }
}

// Each `xor` names its operands twice, so a chain of them would be 2^40 numbers long. It has no fact then.
TEST(facts, of_a_chain_of_conditions_end_where_they_become_long) {
  std::string text = "graph (n in [0, 50]) {\n x = input f32[n]\n n = dim_size(x) axis=0\n p0 = ne(n, n)\n";
  for (int i = 1; i <= 40; i++) {
    std::string k = std::to_string(i);
    text += " c" + k + " = constant i64[] {" + k + "}\n q" + k + " = lt(n, c" + k + ")\n p" + k + " = bit_xor(p" +
            std::to_string(i - 1) + ", q" + k + ")\n";
  }
  auto graph = parse(text + " output p40\n}");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  Facts facts(*graph);
  EXPECT_FALSE(facts.affine(graph->outputs()[0].value));
  EXPECT_TRUE(facts.affine({5, 0})) << "of one condition";
}

// Coefficients of 2^62 and more are exact: such terms cancel only where the true numbers do.
TEST(facts, of_sizes_times_numbers_that_a_sum_makes_too_large_are_true) {
  for (const char* ranges : {"n in [1, 1], m in [1, 1]", "n in [0, 1], m in [0, 1]"}) {
    auto graph = parse("graph (" + std::string(ranges) + R"() {
      x = input f32[n]
      y = input f32[m]
      n = dim_size(x) axis=0
      m = dim_size(y) axis=0
      a = constant i64[] {1099511627776}
      b = constant i64[] {4194303}
      c = constant i64[] {2097152}
      an = mul(n, a)
      all_n = mul(an, b)
      am = mul(m, a)
      half_m = mul(am, c)
      all_m = mul(am, b)
      minus = neg(all_n)
      p = add(minus, half_m)
      q = sub(all_n, all_m)
      less = lt(p, q)
      output less
    })");
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    auto program = Program::compile(testing_programs::env_with(1), *graph, nullptr, nullptr, {});
    ASSERT_TRUE(program.ok()) << program.status().message();
    auto got = (*program)->run({}, std::array{testing_programs::noise({1}), testing_programs::noise({1})}, {}, 1);
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_TRUE(*(*got)[0].as<uint8_t>());
  }
}

// A loop over params is resident, so it runs when they are set. This does not hold if its body holds params of its own,
// whose names are those of the program.
TEST(facts, a_loop_has_the_phase_of_what_it_reads) {
  auto phase = [](const std::string& xs, const std::string& leaf) {
    auto graph = parse("graph {\n xs = " + xs + R"( f32[3,4]
      y = scan(xs) n_carry=0 n_xs=1 body=graph "body" {
        a = input f32[4]
        )" + leaf + R"(
        b = exp(a)
        output b
      }
      output y
    })");
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    Facts facts(*graph);
    return facts.phase(graph->outputs()[0].value.node);
  };
  EXPECT_EQ(phase("param", ""), Phase::kResident);
  EXPECT_EQ(phase("input", ""), Phase::kRun);
  EXPECT_EQ(phase("param", "c = param f32[4]\n d = add(a, c)"), Phase::kRun);
}

static std::string scan_of(const std::string& name, const std::string& from, const std::string& length,
                           const std::string& inner = "") {
  return name + " = scan(" + from + ") n_carry=1 n_xs=0 length=" + length + " body=graph {\na = input f32[4]\n" +
         inner + "b = exp(a)\noutput b\n}\n";
}

static std::string while_of(const std::string& attrs) {
  return "c = while(a) n_carry=1" + attrs +
         " cond=graph {\na = input f32[4]\nm = reduce(a) fn=max\nc = is_nan(m)\noutput c\n} body=graph {\n"
         "a = input f32[4]\nb = exp(a)\noutput b\n}\n";
}

// Only a run can be cancelled. The trips of loops in a body count too. A `while` that is not in one always belongs to
// it.
TEST(facts, a_loop_of_many_trips_belongs_to_the_run) {
  auto phase = [](const std::string& loop, const std::string& x = "f32[4]") {
    auto graph = parse("graph (n) {\nz = input f32[n]\nx = param " + x + "\n" + loop + "output y\noutput z\n}");
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return graph.ok() ? Facts(*graph).phase(graph->outputs()[0].value.node) : Phase::kRun;
  };
  EXPECT_EQ(phase(scan_of("y", "x", "65536")), Phase::kResident);
  EXPECT_EQ(phase(scan_of("y", "x", "65537")), Phase::kRun);
  EXPECT_EQ(phase(scan_of("y", "x", "n")), Phase::kSized);
  EXPECT_EQ(phase(scan_of("y", "x", "256", scan_of("c", "a", "255"))), Phase::kResident);
  EXPECT_EQ(phase(scan_of("y", "x", "256", scan_of("c", "a", "256"))), Phase::kRun);
  EXPECT_EQ(phase(scan_of("y", "x", "256", scan_of("c", "a", "128") + scan_of("d", "c", "128"))), Phase::kRun);
  EXPECT_EQ(phase(scan_of("y", "x", "0", scan_of("c", "a", "65537"))), Phase::kResident);
  EXPECT_EQ(phase(scan_of("y", "x", "256", while_of(" max_trips=255"))), Phase::kResident);
  EXPECT_EQ(phase(scan_of("y", "x", "256", while_of(" max_trips=256"))), Phase::kRun);
  EXPECT_EQ(phase(scan_of("y", "x", "2", while_of(""))), Phase::kRun);
  const std::string over_rows = "y = scan(x) n_carry=0 n_xs=1 body=graph {\na = input f32[1]\noutput a\n}\n";
  EXPECT_EQ(phase(over_rows, "f32[65536,1]"), Phase::kResident);
  EXPECT_EQ(phase(over_rows, "f32[65537,1]"), Phase::kRun);
}

}  // namespace rlx
