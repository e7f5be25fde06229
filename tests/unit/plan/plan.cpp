// SPDX-License-Identifier: Apache-2.0
// The planner at the size of large models: its work grows with the number of nodes, and no faster.
#include <ctime>
#include <functional>

#include "ir/text.h"
#include "plan/offsets.h"
#include "plan/plan.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

// Of this process, so that other programs do not count.
static double seconds(const std::function<void()>& body) {
  std::clock_t begin = std::clock();
  body();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

static constexpr Kernel kAny{.op = Op::kNone, .name = "any"};

// A chain of adds, every one with a param of its own.
static std::shared_ptr<const LoweredGraph> chain(int nodes, int params) {
  Graph graph;
  EXPECT_TRUE(graph.declare_symbol("n", {0, 100}).ok());
  Builder b(graph);
  std::vector<Expr> weights;
  for (int i = 0; i < params; i++)
    weights.push_back(b.wrap(*graph.add_param("p" + std::to_string(i), DType::kF32, {4})));
  Expr x = input(b, "x", {Dim::symbol("n"), 4});
  for (int i = 0; i < nodes; i++) x = params ? x + weights[static_cast<size_t>(i % params)] : sqrt(x);
  output(b, "y", x);
  return lower(graph, {}, [](const Facts&, uint32_t) { return Found{&kAny, {}}; }).value();
}

TEST(plan, twenty_thousand_steps_are_planned_in_linear_time) {
  auto small = chain(2000, 0), large = chain(20000, 0);
  auto plan = [](const std::shared_ptr<const LoweredGraph>& it) {
    return seconds([&] { ASSERT_TRUE(make_plan(it, {}).ok()); });
  };
  plan(small);
  double base = plan(small), ten_times = plan(large);
  EXPECT_LT(ten_times, 30 * base + 0.05);
  auto made = *make_plan(large, {});
  EXPECT_EQ(made->steps.size(), 20000u);
  EXPECT_LE(made->arena_bytes, 2 * 1600) << "a chain needs two buffers";
  EXPECT_LT(seconds([&] { EXPECT_FALSE(memory_json(*made).empty()); }), 1);
}

TEST(plan, only_the_first_outputs_of_a_kernel_may_be_omitted) {
  Kernel kernel{.op = Op::kNone, .name = "any", .optional_outputs = 0b10};
  EXPECT_TRUE(kernel.may_omit(1));
  for (size_t output : {0, 2, 32, 33, 65}) EXPECT_FALSE(kernel.may_omit(output)) << output;
}

TEST(plan, residents_are_found_by_hash) {
  auto lowered = chain(10000, 10000);
  EXPECT_EQ(lowered->residents.size(), 10000u);
  EXPECT_LT(seconds([&] { ASSERT_TRUE(make_plan(lowered, {}).ok()); }), 1);
}

TEST(plan, a_hundred_thousand_buffers_get_offsets) {
  uint32_t state = 1;
  auto next = [&] { return state = state * 1664525u + 1013904223u, state >> 8; };
  for (bool long_lived : {false, true}) {
    std::vector<Lifetime> buffers(100000);
    for (uint32_t i = 0; i < buffers.size(); i++) {
      uint32_t length = long_lived ? next() % 50000 : next() % 5;
      buffers[i] = {static_cast<int64_t>(next() % 5000), i, i + length, 0};
    }
    int64_t total = 0;
    EXPECT_LT(seconds([&] { total = assign_offsets(buffers); }), 5);
    std::vector<size_t> sample;
    for (int i = 0; i < 1000; i++) sample.push_back(next() % buffers.size());
    for (size_t a : sample)
      for (size_t b : sample) {
        const Lifetime &x = buffers[a], &y = buffers[b];
        if (a == b || x.last < y.first || y.last < x.first || !x.bytes || !y.bytes) continue;
        ASSERT_TRUE(x.offset + x.bytes <= y.offset || y.offset + y.bytes <= x.offset);
        ASSERT_LE(x.offset + x.bytes, total);
      }
  }
}

static Result<std::shared_ptr<const Plan>> planned(const Graph& graph, const UpperSizes& upper = {}) {
  return make_plan(lower(graph, {}, [](const Facts&, uint32_t) { return Found{&kAny, {}}; }).value(), upper);
}

TEST(plan, says_where_every_operand_lies) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {4}), y = input(b, "y", {4}), w = b.wrap(*graph.add_param("w", DType::kF32, {4}));
  Expr sum = unary(Op::kSin, x) + unary(Op::kExp, w);
  output(b, "first", sum);
  output(b, "second", y * sum);
  std::string text = plan_text(**planned(graph));
  for (const char* what : {"arena:f32[4] <- input.0:f32[4]\n", "output.0:f32[4] <- arena:f32[4] resident.0:f32[4]\n",
                           "output.1:f32[4] <- input.1:f32[4] output.0:f32[4]\n"})
    EXPECT_NE(text.find(what), text.npos) << what << text;
}

// Of a param, a room for a value of open size, and the plans of all bodies.
TEST(plan, names_residents_rooms_and_bodies) {
  auto graph = parse(R"(graph {
    w = param f32[4]
    count = input i64[]
    on = input bool[]
    p = dynamic_iota(count)
    f = cast(p) to=f32
    s = sin(f)
    z = reduce(s) fn=sum axes=[0]
    v = sin(w)
    y = if(on, v) then=graph "then" {
      a = input f32[4]
      b = exp(a)
      output b
    } else=graph "else" {
      a = input f32[4]
      b = tanh(a)
      output b
    }
    output y
    output z
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  std::string text = plan_text(**planned(*graph));
  for (const char* what :
       {"resident.0:f32[4]", "room.0:", "; then:\n", "; else:\n", ";   0 any output.0:f32[4] <- input.0:f32[4]\n"})
    EXPECT_NE(text.find(what), text.npos) << what << "\n" << text;
  for (const char* what : {"resident.1", "room.4"}) EXPECT_EQ(text.find(what), text.npos) << what << "\n" << text;
}

// What a branch counts is bounded by its own sizes; a count that nothing bounds has a room, whatever its type can hold.
TEST(plan, sizes_that_a_branch_counts_set_no_gigabytes_aside) {
  auto graph = parse(R"(graph (n in [0, 9], count in [0, 2147483647]) {
    x = input f32[n]
    few = input bool[]
    many = input i64[]
    y, z = if(few, x, many) symbols=["one", "other"] then=graph "then" {
      a = input f32[n]
      m = input i64[]
      none = constant i64[0] {}
      none_too = constant i64[0] {}
      output none
      output none_too
    } else=graph "else" (kept in [0, 2147483647], free in [0, 2147483647]) {
      a = input f32[n]
      m = input i64[]
      size = reduce(a) fn=sum axes=[0]
      whole = cast(size) to=i64
      p = dynamic_iota(whole) symbol="kept" max=n
      q = dynamic_iota(m) symbol="free"
      output p
      output q
    }
    output y
    output z
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  auto plan = planned(*graph);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ((*plan)->outputs[0].bytes, 9 * 8) << plan_text(**plan);
  EXPECT_TRUE((*plan)->outputs[1].is_open) << plan_text(**plan);
  EXPECT_LT((*plan)->arena_bytes, 1 << 16);
  EXPECT_NE(plan_text(**plan).find("  size kept <= 9\n;   size free\n"), std::string::npos) << plan_text(**plan);
}

// Two found sizes multiply, or branches double one again and again: at their upper sizes the values would fill the
// memory of the machine, though a run may find little.
TEST(plan, found_sizes_that_make_large_values_set_no_memory_aside) {
  auto pairs = parse(R"(graph (k in [0, 100000]) {
    x = input f32[100000]
    count = input i64[]
    p = dynamic_iota(count) symbol="k" max=100000
    y = gather(x, p) axis=0
    column = reshape(y) shape=[k,1]
    table = sub(column, y)
    z = reduce(table) fn=max axes=[0]
    output z
    output table
  })");
  ASSERT_TRUE(pairs.ok()) << pairs.status().message();
  auto plan = planned(*pairs);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_LT((*plan)->arena_bytes, 1 << 20) << plan_text(**plan);
  EXPECT_TRUE((*plan)->outputs[1].is_open) << plan_text(**plan);

  constexpr int kBranches = 20;
  std::string text = "graph {\nx0 = input f32[1000]\np = input bool[]\n", size = "1000";
  for (int i = 1; i <= kBranches; i++) {
    std::string body = "graph {\na = input f32[" + size + "]\n";
    text += format("x{} = if(p, x{}) symbols=[\"s{}\"] then=", i, i - 1, i) + body +
            "b = concat(a, a) axis=0\noutput b\n}" + " else=" + body + "b = sin(a)\noutput b\n}\n";
    size = format("s{}", i);
  }
  auto chain = parse(text + format("output x{}\n", kBranches) + "}");
  ASSERT_TRUE(chain.ok()) << chain.status().message();
  plan = planned(*chain);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_LT((*plan)->arena_bytes, int64_t{1} << 29) << plan_text(**plan);
  EXPECT_TRUE((*plan)->outputs[0].is_open) << plan_text(**plan);
}

// The table [k,k] makes k open. The size of `if` has a bound from k all the same, not its declared maximum.
TEST(plan, what_rests_on_an_open_size_keeps_its_bound) {
  auto graph = parse(R"(graph "g" (n in [0, 500000000]) {
    x = input f32[n]
    p = input bool[]
    count = input i64[]
    k0 = dynamic_iota(count) symbol="k" max=n
    k1 = reshape(k0) shape=[k,1]
    table = add(k1, k0)
    sum = reduce(table) fn=sum
    given = cast(k0) to=f32
    y = if(p, given) symbols=["j"] then=graph {
      a = input f32[k]
      b = neg(a)
      output b
    } else=graph {
      a = input f32[k]
      b = constant f32[2] {1, 2}
      output b
    }
    z = sin(y)
    output z
    output sum
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  auto plan = planned(*graph, {{"n", 5000}});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_LT((*plan)->arena_bytes, 1 << 20) << plan_text(**plan);
}

// One after another, each with a size of its own.
static double seconds_to_plan_branches(int count) {
  std::string text = "graph {\nx0 = input f32[15]\np = input bool[]\n", size = "15";
  for (int i = 0; i < count; i++) {
    std::string begin = "graph {\na = input f32[" + size + "]\ny = slice(a) starts=[",
                end = "] ends=[99] axes=[0]\noutput y\n}";
    text += format("x{} = if(p, x{}) symbols=[\"s{}\"] then=", i + 1, i, i) + begin + "0" + end + " else=" + begin +
            "1" + end + "\n";
    size = format("s{}", i);
  }
  auto graph = parse(text + format("output x{}\n", count) + "}");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return seconds([&] { EXPECT_TRUE(planned(*graph).ok()); });
}

TEST(plan, sizes_that_branches_find_take_linear_time) {
  double few = seconds_to_plan_branches(500), many = seconds_to_plan_branches(4000);
  std::printf("plans: %.1f ms for 500 branches, %.1f ms for 4,000\n", few * 1e3, many * 1e3);
  EXPECT_LT(many, 8 * 3 * few + 0.05);
}

// A guard on two sizes waits for the one that becomes known later, also where the other is known before the run.
TEST(plan, a_guard_is_checked_once_its_sizes_are_known) {
  auto graph = parse(R"(graph "g" (n in [0, 100], m in [0, 100]) {
    x = input f32[n]
    other = input f32[m]
    count = input i64[]
    p = dynamic_iota(count) max=100
    first = cast(p) to=f32
    q = dynamic_iota(count) max=50
    second = cast(q) to=f32
    a = add(x, first)
    b = add(other, second)
    c = add(first, second)
    output a
    output b
    output c
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  auto made_plan = planned(*graph);
  ASSERT_TRUE(made_plan.ok()) << made_plan.status().message();
  const Plan* plan = made_plan->get();
  std::vector<const PlanSymbol*> made;
  for (const PlanSymbol& symbol : plan->symbols)
    if (symbol.is_fresh()) made.push_back(&symbol);
  ASSERT_EQ(made.size(), 2u);
  ASSERT_EQ(graph->guards().size(), 3u) << print(*graph);
  std::sort(made.begin(), made.end(), [](auto* a, auto* b) { return a->made_by < b->made_by; });
  EXPECT_EQ(made[0]->guards, (std::vector<uint32_t>{0})) << plan_text(*plan);
  EXPECT_EQ(made[1]->guards, (std::vector<uint32_t>{1, 2})) << plan_text(*plan);
  EXPECT_TRUE(plan->given_guards.empty());
}

// Also where nobody reads it: the kernel writes it.
TEST(plan, the_peak_counts_all_that_a_step_writes) {
  Graph graph;
  Builder b(graph);
  Outputs found = b.ops(Op::kTopK, {input(b, "x", {64})}, {{"k", int64_t{32}}});
  output(b, "y", unary(Op::kSin, found[0]));
  std::string memory = memory_json(**planned(graph));
  EXPECT_NE(memory.find("\"peak\": 384"), memory.npos) << "32 values of 4 bytes, 32 indices of 8: " << memory;
}

// Where a value is written over another, there is one of the two.
TEST(plan, the_peak_counts_what_is_written_in_place_once) {
  Graph graph;
  Builder b(graph);
  output(b, "y", unary(Op::kExp, unary(Op::kCos, unary(Op::kSin, input(b, "x", {64})))));
  constexpr Kernel kInPlace{.op = Op::kNone, .name = "in place", .in_place = {1, 0}};
  for (const auto& [kernel, peak] : {std::pair(&kAny, "\"peak\": 512"), std::pair(&kInPlace, "\"peak\": 256")}) {
    auto kernel_of = [&](const Facts&, uint32_t node) {
      return Found{graph.node(node).op == Op::kCos ? kernel : &kAny, {}};
    };
    std::string memory = memory_json(**make_plan(lower(graph, {}, kernel_of).value(), {}));
    EXPECT_NE(memory.find(peak), memory.npos) << kernel->name << memory;
  }
}

TEST(plan, the_report_of_memory_counts_the_steps) {
  Graph graph;
  Builder b(graph);
  Outputs found = b.ops(Op::kTopK, {input(b, "x", {64})}, {{"k", int64_t{32}}});
  output(b, "y", unary(Op::kSin, found[0]));
  auto plan = planned(graph);
  ASSERT_EQ((*plan)->steps.size(), 2u);
  EXPECT_NE(memory_json(**plan).find("\"steps\": 2"), std::string::npos) << memory_json(**plan);
}

TEST(plan, a_value_may_be_too_large_for_any_memory) {
  Graph graph;
  EXPECT_TRUE(graph.declare_symbol("n", {0, 1 << 30}).ok());
  EXPECT_TRUE(graph.declare_symbol("m", {0, 1 << 30}).ok());
  Builder b(graph);
  output(b, "y", unary(Op::kSin, unary(Op::kSin, input(b, "x", {Dim::symbol("n"), Dim::symbol("m")}))));
  auto plan = planned(graph);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), Code::kRange);
  EXPECT_NE(plan.status().message().find("too many elements: f32[n,m]"), std::string::npos) << plan.status().message();
  ASSERT_TRUE(plan.status().detail("value") && plan.status().detail("expected") && plan.status().detail("got"));
  EXPECT_EQ(*plan.status().detail("value"), "x");
  EXPECT_EQ(*plan.status().detail("expected"), "at most 140737488355328 bytes");
  EXPECT_EQ(*plan.status().detail("got"), "f32[1073741824,1073741824]");
}

// A size comes from one place only: kernels read an input at its own size.
TEST(plan, a_size_that_data_decide_is_that_of_no_input) {
  auto graph = parse(R"(graph (k) {
    x = input bool[4]
    z = input f32[k + 1]
    y = nonzero(x) symbol=k
    output y
    output z
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(planned(*graph).status().message(),
            "the size 'k', which nonzero 'y' (%2) finds in its data, is also that of the input 'z'");
}

// As many bytes as no int64_t can count.
TEST(plan, an_input_may_be_too_large_for_any_memory) {
  Graph graph;
  Builder b(graph);
  output(b, "y", input(b, "x", {int64_t{1} << 31, int64_t{1} << 31}));
  auto plan = planned(graph);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), Code::kRange);
}

// At most 2^47 bytes, as of what a run computes: with the other sizes they add up to what an int64_t counts.
TEST(plan, what_is_made_of_params_may_be_too_large_for_any_memory) {
  auto of_columns = [](int64_t columns) {
    std::string leaves = format("a = param f32[1073741824,1]\n c = param f32[1,{}]\n i = input i64[1]\n", columns);
    auto graph = parse("graph {" + leaves + "products = mul(a, c)\n y = gather(products, i) axis=0\n output y }");
    return planned(graph.value());
  };
  auto made = of_columns(1 << 15);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_NE(memory_json(**made).find("\"prepared\": 140737488355328"), std::string::npos) << memory_json(**made);
  for (int64_t columns : {(int64_t{1} << 15) + 1, int64_t{1} << 32, int64_t{1} << 40}) {
    auto plan = of_columns(columns);
    ASSERT_FALSE(plan.ok()) << columns;
    EXPECT_EQ(plan.status().code(), Code::kRange);
    EXPECT_EQ(*plan.status().detail("value"), "mul 'products' (%3)");
    EXPECT_EQ(*plan.status().detail("expected"), "at most 140737488355328 bytes");
  }
}

}  // namespace rlx
