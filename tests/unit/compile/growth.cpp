// SPDX-License-Identifier: Apache-2.0
// What compiling a graph costs grows as the graph does. Work is counted, not time: visits of nodes and attempts of
// rules a node must not grow with the number of nodes.
#include "compile/compile.h"

#include <ctime>

#include "compile/options.h"
#include "ir/text.h"
#include "passes/pass.h"
#include "plan/early_guards.h"
#include "tests/support/transforms.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

namespace {

struct Work {
  double visits, attempts;  // a node
  bool rests = true;        // no set of rules ran out of its budget
};

Work work_of(const Graph& graph) {
  auto env = env_with(1);
  auto compiled = compile(graph, **env->find_device("cpu"), {});
  EXPECT_TRUE(compiled.ok()) << compiled.status().message();
  if (!compiled.ok()) return {};
  const RewriteReport& report = (*compiled)->report;
  auto nodes = static_cast<double>(graph.nodes().size());
  Work work{static_cast<double>(report.visits) / nodes, static_cast<double>(report.attempts) / nodes};
  for (const RewriteReport::Line& line : report.lines) work.rests &= line.reason != kOutOfBudget;
  return work;
}

using Make = void (*)(Builder& b, int n);

// Scalars that join, one product of a thousand factors, no composite.
void chain_of_scalars(Builder& b, int n) {
  Expr x = input(b, "x", {Dim::symbol("s"), 8});
  for (int i = 0; i < n; i++) x = i % 3 ? x * 1.5 : tanh(x + 0.25);
  output(b, "y", x);
}

// Every value is read twice: 2^n paths, n nodes.
void shared_sums(Builder& b, int n) {
  Expr x = input(b, "x", {8});
  for (int i = 0; i < n; i++) x = unary(Op::kSin, x) + unary(Op::kCos, x);
  output(b, "y", x);
}

// Norms as exporters write them, each over what the last one gave.
void chain_of_norms(Builder& b, int n) {
  Expr x = input(b, "x", {Dim::symbol("s"), 8});
  for (int i = 0; i < n; i++) {
    Expr c = x - mean(x, {1});
    x = x + c / sqrt(mean(c * c, {1}) + 1e-5);
  }
  output(b, "y", x);
}

// One value that all others read.
void wide_use(Builder& b, int n) {
  Expr x = input(b, "x", {8}), sum = x;
  for (int i = 0; i < n; i++) sum = sum + unary(Op::kRelu, x * (1.0 + i));
  output(b, "y", sum);
}

void views(Builder& b, int n) {
  Expr x = input(b, "x", {4, 2});
  for (int i = 0; i < n; i++) x = transpose(reshape(x, {2, 4}), {1, 0});
  output(b, "y", x);
}

// Each scalar can move past all views above it.
void scaled_views(Builder& b, int n) {
  Expr x = input(b, "x", {4, 2, 3});
  for (int i = 0; i < n; i++) x = transpose(x * (1.5 + i), {1, 2, 0});
  output(b, "y", x);
}

// Parts of one value, each a gather that becomes a slice.
void picks(Builder& b, int n) {
  Expr x = input(b, "x", {n, 8}), sum = b.scalar(DType::kF32, 0);
  for (int i = 0; i < n; i++) sum = sum + tanh(gather(x, b.scalar(DType::kI64, i), 0));
  output(b, "y", sum);
}

// Branches that all read the end of one long chain of weights, which can be copied into few of them.
void branches_on_weights(Builder& b, int n) {
  Expr w = b.wrap(*b.graph().add_param("w", DType::kF32, {8}));
  for (int i = 0; i < n; i++) w = unary(Op::kSin, w);
  Expr condition = b.wrap(*b.graph().add_input("p", DType::kBool, {})), y = input(b, "x", {8});
  NamedAttrs attrs;
  for (auto [name, op] : {std::pair{"then", Op::kAdd}, {"else", Op::kMul}}) {
    auto body = std::make_shared<Graph>();
    Builder inside(*body);
    output(inside, "y", binary(op, input(inside, "a", {8}), input(inside, "b", {8})));
    attrs.emplace_back(name, std::shared_ptr<const Graph>(std::move(body)));
  }
  for (int i = 0; i < n; i++) y = b.ops(Op::kIf, std::array{condition, y, i % 2 ? w : unary(Op::kCos, w)}, attrs)[0];
  output(b, "y", y);
}

// Each condition is known once the branch before it is a part of the graph, and a rule has met what the branch made of
// its own condition.
void branches_one_after_another(Builder& b, int n) {
  Expr run = b.wrap(*b.graph().add_input("r", DType::kBool, {})), known = b.scalar(DType::kBool, 0);
  Expr y = input(b, "x", {8});
  NamedAttrs attrs;
  for (const char* name : {"then", "else"}) {
    auto body = std::make_shared<Graph>();
    Builder inside(*body);
    Expr a = input(inside, "a", {8}), r = inside.wrap(*body->add_input("r", DType::kBool, {})),
         c = inside.wrap(*body->add_input("c", DType::kBool, {}));
    output(inside, "y", unary(Op::kSin, a));
    output(inside, "d", binary(Op::kBitAnd, r, c));
    attrs.emplace_back(name, std::shared_ptr<const Graph>(std::move(body)));
  }
  for (int i = 0; i < n; i++) {
    Outputs made = b.ops(Op::kIf, std::array{known, y, run, known}, attrs);
    y = made[0], known = made[1];
  }
  output(b, "y", y);
}

constexpr std::pair<const char*, Make> kGraphs[] = {{"chain_of_scalars", chain_of_scalars},
                                                    {"shared_sums", shared_sums},
                                                    {"chain_of_norms", chain_of_norms},
                                                    {"wide_use", wide_use},
                                                    {"views", views},
                                                    {"scaled_views", scaled_views},
                                                    {"picks", picks},
                                                    {"branches_on_weights", branches_on_weights},
                                                    {"branches_one_after_another", branches_one_after_another}};

}  // namespace

TEST(growth, work_a_node_stays_the_same) {
  for (auto [name, make] : kGraphs) {
    Work work[2];
    for (size_t i = 0; i < 2; i++) {
      Graph graph;
      EXPECT_TRUE(graph.declare_symbol("s", {0, 16}).ok());
      Builder b(graph);
      make(b, i == 0 ? 60 : 600);
      work[i] = work_of(graph);
    }
    EXPECT_TRUE(work[0].rests && work[1].rests) << name;
    EXPECT_LT(work[1].visits, 1.3 * work[0].visits + 1) << name;
    EXPECT_LT(work[1].attempts, 1.3 * work[0].attempts + 1) << name;
  }
}

// Copies of a graph cost more than all rules that find nothing in it.
TEST(growth, a_pass_with_nothing_to_do_leaves_nodes_where_they_are) {
  for (const test::Transform& transform : test::transforms()) {
    bool is_wrapped = transform.name == "decompose" || transform.name.starts_with("fuse");
    if (is_wrapped || transform.name == "check-supported") continue;  // which fails, as there is no device
    Graph graph;
    Builder b(graph);
    output(b, "y", unary(Op::kSin, input(b, "x", {8})));
    const Node* first = &graph.node(0u);
    PassContext context;
    auto result = transform.pass(std::move(graph), context);
    ASSERT_TRUE(result.ok()) << transform.name;
    EXPECT_EQ(&result->node(0u), first) << transform.name;
  }
}

TEST(growth, a_graph_without_dead_nodes_is_not_copied) {
  Graph graph;
  Builder b(graph);
  output(b, "y", unary(Op::kSin, input(b, "x", {8})));
  const Node* first = &graph.node(0u);
  Graph live = drop_dead(std::move(graph));
  EXPECT_EQ(&live.node(0u), first);
}

TEST(growth, rules_that_cannot_fire_are_not_tried) {
  RuleSet rules;
  Pattern x = patterns::any();
  rules.add(exact, "of_tanh", patterns::op(Op::kAdd, {x, patterns::op(Op::kTanh, {x})}), x);
  rules.add(exact, "of_exp", std::vector{Op::kAdd}, [](const Match&) { return Expr(); },
            {.depth = 2, .needs = {Op::kExp, Op::kExpm1}});
  for (Op op : {Op::kSin, Op::kTanh, Op::kExp}) {
    Graph graph;
    Builder b(graph);
    Expr a = input(b, "x", {8});
    output(b, "y", a + unary(op, a));
    RewriteReport report;
    RewriteOptions options;
    options.report = &report;
    ASSERT_TRUE(rewrite(std::move(graph), rules, options).ok());
    EXPECT_EQ(report.visits > 0, op != Op::kSin);
    EXPECT_EQ(report.attempts, op == Op::kSin ? 0u : 1u) << "only the rule whose needs are met";
  }
}

// Where every other transpose undoes the one before it, thousands of equal nodes come and go.
static double seconds_to_undo_transposes(int count) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {4, 8});
  for (int i = 0; i < count; i++) x = transpose(x, {1, 0});
  output(b, "y", x);
  PassContext context;
  std::clock_t begin = std::clock();
  EXPECT_TRUE(canonicalize(std::move(graph), context).ok());
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(growth, equal_nodes_that_come_and_go_leave_nothing_to_search) {
  double few = seconds_to_undo_transposes(5000), many = seconds_to_undo_transposes(100000);
  std::printf("canonicalize: %.1f ms for 5,000 transposes, %.1f ms for 100,000\n", few * 1e3, many * 1e3);
  EXPECT_LT(many, 20 * 4 * few + 0.1);
}

// Of an open size: each may begin at the end of the one before it.
static double seconds_to_plan_slices(int count) {
  Graph graph;
  EXPECT_TRUE(graph.declare_symbol("s", {0, 9999}).ok());
  Builder b(graph);
  Expr x = input(b, "x", {Dim::symbol("s")});
  for (int i = 0; i < count; i++) x = slice(x, 0, 1, INT64_MAX);
  output(b, "y", x);
  auto env = env_with(1);
  auto compiled = compile(graph, **env->find_device("cpu"), {});
  EXPECT_TRUE(compiled.ok()) << compiled.status().message();
  std::clock_t begin = std::clock();
  EXPECT_TRUE(plan_for(**compiled, {}).ok());
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(growth, slices_of_slices_are_planned_in_linear_time) {
  double few = seconds_to_plan_slices(150), many = seconds_to_plan_slices(1500);
  std::printf("plans: %.2f ms for 150 slices of slices, %.2f ms for 1,500\n", few * 1e3, many * 1e3);
  EXPECT_LT(many, 10 * 4 * few + 0.05);
}

// An option for each of many sizes.
static double seconds_to_read_options(int count) {
  std::string text;
  for (int i = 0; i < count; i++) text += format("dims.s{}=4 ", i);
  std::clock_t begin = std::clock();
  auto attrs = parse_attrs(text);
  EXPECT_TRUE(attrs.ok() && parse_compile_options(*attrs, {}).ok());
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(growth, options_are_read_in_linear_time) {
  double few = seconds_to_read_options(2000), many = seconds_to_read_options(40000);
  std::printf("options: %.1f ms for 2,000 sizes, %.1f ms for 40,000\n", few * 1e3, many * 1e3);
  EXPECT_LT(many, 20 * 4 * few + 0.1);
}

// ---- branches ----

static std::shared_ptr<const Graph> branch_of(const std::vector<Dim>& dims, Op op, int64_t rows) {
  auto graph = std::make_shared<Graph>();
  Builder b(*graph);
  Expr y = unary(op, input(b, "x", dims));
  output(b, "y", rows ? slice(y, 0, 0, rows) : y);
  return graph;
}

// One after another: by data, or by a size, in which case the branches may give other sizes.
static double seconds_of_branches(int n, bool by_size, int64_t rows) {
  Graph graph;
  Builder b(graph);
  std::vector<Dim> dims{by_size ? Dim::symbol("s") : Dim(8)};
  NamedAttrs attrs{{"then", branch_of(dims, Op::kSin, rows)}, {"else", branch_of(dims, Op::kCos, 0)}};
  Expr x = input(b, "x", dims), y = x;
  Expr is_small = by_size ? less(b.size(x.dim(0), DType::kI64), b.scalar(DType::kI64, 5))
                          : less(reduce(x, "sum", {0}, KeepDims::kNo), 1);
  std::clock_t begin = std::clock();
  for (int i = 0; i < n; i++) {
    Expr made = b.ops(Op::kIf, std::array{is_small, rows ? x : y}, attrs)[0];
    y = rows ? y : made;
  }
  EXPECT_TRUE(b.status().ok()) << b.status().message();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(growth, a_branch_costs_the_same_in_a_large_graph) {
  for (bool by_size : {false, true})
    for (int64_t rows : {0, 3}) {
      double few = seconds_of_branches(2000, by_size, rows), many = seconds_of_branches(20000, by_size, rows);
      std::printf("%s, %s: %.1f us each of 2,000, %.1f of 20,000\n", by_size ? "by a size" : "by data",
                  rows ? "other sizes" : "same sizes", few / 2000 * 1e6, many / 20000 * 1e6);
      EXPECT_LT(many, 10 * 3 * few + 0.05);
    }
}

// A chain of branches: each condition follows from what the branch before it gives.
static double seconds_to_inline(int count) {
  std::string body = "a = input f32[4]\nc = input bool[]\n", nodes;
  std::string then = "graph {\n" + body + "b = exp(a)\nd = bit_not(c)\ne = bit_not(d)\noutput b\noutput e\n}";
  std::string other = "graph {\n" + body + "output a\noutput c\n}";
  for (int i = 0; i < count; i++)
    nodes += format("x{}, p{} = if(p{}, x{}, p{}) then={} else={}\n", i + 1, i + 1, i, i, i, then, other);
  nodes += format("output x{}", count);
  auto graph = parse("graph {\np0 = constant bool[] {true}\nx0 = input f32[4]\n" + nodes + "\n}");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  PassContext context;
  std::clock_t begin = std::clock();
  auto made = inline_branches(std::move(*graph), context);
  double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_TRUE(made.ok()) << made.status().message();
  for (const Node& node : made->nodes()) EXPECT_NE(node.op, Op::kIf);
  return seconds;
}

TEST(growth, branches_that_decide_one_another_are_inlined_in_linear_time) {
  double few = seconds_to_inline(100), many = seconds_to_inline(1000);
  std::printf("known branches: %.2f ms for 100, %.2f ms for 1,000\n", few * 1e3, many * 1e3);
  EXPECT_LT(many, 10 * 4 * few + 0.05);
}

// An `if` with results of `count` sizes, in which its branches differ.
static Graph graph_of_joined_sizes(int count) {
  std::string symbols, results, slices[2], outputs;
  for (int i = 0; i < count; i++) {
    symbols += format("{}\"s{}\"", i ? "," : "", i);
    results += format("{}y{}", i ? ", " : "", i);
    for (int side = 0; side < 2; side++)
      slices[side] +=
          format("y{} = slice({}) starts=[{}] ends=[{}] axes=[0]\n", i, side ? "b" : "a", i, side ? 2000 : 1500);
    outputs += format("output y{}\n", i);
  }
  std::string inputs = "a = input f32[1500]\nb = input f32[2000]\n";
  std::string then = "graph {\n" + inputs + slices[0] + outputs + "}",
              other = "graph {\n" + inputs + slices[1] + outputs + "}";
  auto graph = parse("graph {\n" + inputs + "p = input bool[]\n" + results + " = if(p, a, b) symbols=[" + symbols +
                     "] then=" + then + " else=" + other + "\n" + outputs + "}");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return std::move(*graph);
}

TEST(growth, sizes_in_which_branches_differ_are_planned_in_linear_time) {
  auto env = env_with(1);
  double seconds[2];
  for (int i = 0; i < 2; i++) {
    auto compiled = compile(graph_of_joined_sizes(i == 0 ? 100 : 1000), **env->find_device("cpu"), {});
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    std::clock_t begin = std::clock();
    ASSERT_TRUE(plan_for(**compiled, {}).ok());
    seconds[i] = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  }
  std::printf("plans: %.2f ms for 100 sizes, %.2f ms for 1,000\n", seconds[0] * 1e3, seconds[1] * 1e3);
  EXPECT_LT(seconds[1], 10 * 4 * seconds[0] + 0.05);
}

// One run of a graph that finds so many sizes, each by a node of its own: the fastest of five.
static double seconds_to_find_sizes(int count) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {8}), sum = x;
  for (int i = 0; i < count; i++) {
    Expr found = b.op(Op::kNonzero, {less(x * (1.0 + i), b.scalar(DType::kF32, 0.25))});
    sum = sum + cast(reduce(found, "sum", {0, 1}, KeepDims::kNo), DType::kF32);
  }
  output(b, "y", sum);
  auto program = Program::compile(env_with(1), graph, std::make_shared<Weights>(), nullptr, {});
  EXPECT_TRUE(program.ok()) << program.status().message();
  std::array in{noise({8})};
  EXPECT_TRUE((*program)->run({}, in, {}, 1).ok());
  double least = INFINITY;
  for (int run = 0; run < 5; run++) {
    std::clock_t begin = std::clock();
    EXPECT_TRUE((*program)->run({}, in, {}, 1).ok());
    least = std::min(least, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return least;
}

TEST(growth, sizes_are_found_in_linear_time) {
  double few = seconds_to_find_sizes(400), many = seconds_to_find_sizes(8000);
  std::printf("a run: %.2f ms with 400 sizes to find, %.2f ms with 8,000\n", few * 1e3, many * 1e3);
  EXPECT_LT(many, 20 * 5 * few + 0.05);
}

// Rows of x that are not 0, as often as `count` says: as many sizes that the run finds, all of which must be equal.
static Graph graph_of_equal_found_sizes(int count) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {8}), sum;
  for (int i = 0; i < count; i++) {
    Expr places = b.ops(Op::kNonzero, {x * (1.0 + i)})[0];
    sum = sum ? sum + places : places;
  }
  output(b, "y", sum);
  return graph;
}

TEST(growth, guards_that_a_run_needs_early_are_found_in_few_visits) {
  double visits_each[2];
  for (int i : {0, 1}) {
    Graph graph = graph_of_equal_found_sizes(i == 0 ? 30 : 300);
    auto program = Program::compile(env_with(1), graph, nullptr, nullptr, {});
    ASSERT_TRUE(program.ok()) << program.status().message();
    const Plan& plan = (*program)->plan();
    ASSERT_GE(plan.symbols.size(), i == 0 ? 30u : 300u) << "each is known at its own time";
    uint64_t visits = 0;
    early_guards(plan, &visits);
    ASSERT_GT(visits, plan.graph().nodes().size());
    visits_each[i] = static_cast<double>(visits) / static_cast<double>(plan.graph().nodes().size());
  }
  EXPECT_LT(visits_each[1], 1.1 * visits_each[0]);
}

// The interpreter computes a product in plain loops, whose time grows faster than the constants.
TEST(growth, products_of_large_constants_wait_for_the_prologue) {
  for (int64_t size : {100, 300}) {
    Graph graph;
    Builder b(graph);
    Expr weight = matmul(b.constant(noise({size, size})), b.constant(noise({size, size}, 2)));
    output(b, "y", input(b, "x", {size}) * tanh(weight));
    auto folded = test::find_transform("fold")->run(graph);
    ASSERT_TRUE(folded.ok()) << folded.status().message();
    EXPECT_EQ(test::has_op(*folded, Op::kMatmul), size == 300);
  }
}

// A chain of `op` over inputs. Every product in it may be the root of a formula.
static double seconds_to_fuse(Op op, int count) {
  Graph graph;
  Builder b(graph);
  Expr y = tanh(input(b, "x", {8})) + erf(input(b, "z", {8})) + unary(Op::kSigmoid, input(b, "s", {8}));
  for (int i = 0; i < count; i++) y = binary(op, y, input(b, ("x" + std::to_string(i)).c_str(), {8}));
  output(b, "y", y);
  PassContext context;
  std::clock_t begin = std::clock();
  EXPECT_TRUE(fuse_composites(std::move(graph), context).ok());
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(growth, long_products_are_matched_in_little_time) {
  double sums = seconds_to_fuse(Op::kAdd, 1000), products = seconds_to_fuse(Op::kMul, 1000);
  std::printf("fuse: %.1f ms for 1,000 sums, %.1f ms for 1,000 products\n", sums * 1e3, products * 1e3);
  EXPECT_LT(products, 0.25);
}

// Products of one value that differ in how they end, so that none can be merged.
static double seconds_to_merge(int count) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {4, 8}), w = b.wrap(*b.graph().add_param("w", DType::kF32, {8, 2}));
  for (int i = 0; i < count; i++)
    output(b, ("y" + std::to_string(i)).c_str(), b.op(Op::kLinear, {x, w}, {{"hi", 1.0 + i}}));
  PassContext context;
  std::clock_t begin = std::clock();
  EXPECT_TRUE(merge_siblings(std::move(graph), context).ok());
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(growth, products_that_differ_are_told_apart_in_linear_time) {
  double few = seconds_to_merge(1500), many = seconds_to_merge(6000);
  std::printf("merge-siblings: %.1f ms for 1,500 products, %.1f ms for 6,000\n", few * 1e3, many * 1e3);
  EXPECT_LT(many, 10 * few + 0.05);
}

// As read from a text: every body declares all symbols of the graph around it.
static Graph graph_of_branches(int count) {
  std::string text = "graph {\na = input f32[15]\np = input bool[]\n";
  auto branch = [](int begin) {
    return format("a = input f32[15]\ny = slice(a) starts=[{}] ends=[9] axes=[0]\noutput y\n", begin);
  };
  for (int i = 0; i < count; i++)
    text += format("y{} = if(p, a) symbols=[\"s{}\"] then=graph ", i, i) + "{\n" + branch(1) + "} else=graph {\n" +
            branch(2) + "}" + format("\noutput y{}\n", i);
  auto graph = parse(text + "}");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return std::move(*graph);
}

TEST(growth, bodies_cost_the_same_whatever_symbols_they_declare) {
  auto env = env_with(1);
  double seconds[2];
  for (int i = 0; i < 2; i++) {
    Graph graph = graph_of_branches(i == 0 ? 100 : 800);
    std::clock_t begin = std::clock();
    auto compiled = compile(graph, **env->find_device("cpu"), {});
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    seconds[i] = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  }
  std::printf("compiled: %.1f ms with 100 branches, %.1f ms with 800\n", seconds[0] * 1e3, seconds[1] * 1e3);
  EXPECT_LT(seconds[1], 8 * 4 * seconds[0] + 0.05);
}

// One after another: the size of each result is that of the operand of the next.
static std::string text_of_chained_branches(int count) {
  std::string size = "15", text = "graph {\nx0 = input f32[15]\np = input bool[]\n";
  for (int i = 0; i < count; i++) {
    auto branch = [&](int begin) {
      return "graph {\na = input f32[" + size +
             format("]\ny = slice(a) starts=[{}] ends=[99] axes=[0]\noutput y\n", begin) + "}";
    };
    text += format("x{} = if(p, x{}) symbols=[\"s{}\"] then={} else={}\n", i + 1, i, i, branch(0), branch(1));
    size = format("s{}", i);
  }
  return text + format("output x{}\n", count) + "}";
}

TEST(growth, a_body_has_the_symbols_that_it_uses) {
  auto graph = parse(text_of_chained_branches(100));
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  size_t symbols = 0;
  for (const Node& node : graph->nodes())
    if (node.op == Op::kIf)
      for (const char* branch : {"then", "else"}) symbols += node.attrs.graph(branch)->symbols().size();
  EXPECT_EQ(symbols, 2 * 99u);
}

TEST(growth, branches_one_after_another_are_read_and_compiled_in_linear_time) {
  auto env = env_with(1);
  double read[2], compiled[2];
  for (int i = 0; i < 2; i++) {
    std::string text = text_of_chained_branches(i == 0 ? 100 : 1000);
    std::clock_t begin = std::clock();
    auto graph = parse(text);
    read[i] = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    begin = std::clock();
    ASSERT_TRUE(compile(*graph, **env->find_device("cpu"), {}).ok());
    compiled[i] = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  }
  std::printf("chains: %.1f ms to read 100 branches, %.1f ms for 1,000; %.1f and %.1f ms to compile\n", read[0] * 1e3,
              read[1] * 1e3, compiled[0] * 1e3, compiled[1] * 1e3);
  EXPECT_LT(read[1], 10 * 3 * read[0] + 0.05);
  EXPECT_LT(compiled[1], 10 * 3 * compiled[0] + 0.05);
}

// A loop over values of which half move out: each leaves the body for an operand.
static Graph graph_to_hoist(int count) {
  std::string operands, nodes, result = "h", given;
  for (int i = 0; i < count; i++) {
    operands += format("w{} = input f32[4]\n", i);
    given += format(", w{}", i);
    nodes += format("e{} = exp(w{})\nm{} = mul({}, e{})\n", i, i, i, result, i);
    result = format("m{}", i);
  }
  std::string text = "graph {\nx = input f32[4]\npass = input f32[3]\n" + operands + "y = scan(x, pass" + given +
                     ") n_carry=1 n_xs=1 body=graph {\nh = input f32[4]\ni = input f32[]\n" + operands + nodes +
                     "output " + result + "\n}\noutput y\n}";
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return std::move(*graph);
}

// What moves is copied once, and so is what stays: none of it again for each value that moves.
TEST(growth, hoisting_copies_each_node_once) {
  double seconds[2];
  for (int i = 0; i < 2; i++) {
    int count = i == 0 ? 300 : 3000;
    Graph graph = graph_to_hoist(count);
    PassContext context;
    std::clock_t begin = std::clock();
    auto made = hoist_invariants(std::move(graph), context);
    seconds[i] = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_EQ(made->nodes().size(), 2 * size_t(count) + 3) << "leaves, what moved, and the loop";
    const Graph& body = *made->nodes()[made->nodes().size() - 1].attrs.graph("body");
    EXPECT_EQ(body.nodes().size(), 3 * size_t(count) + 2) << "leaves, old and new, and what stays";
  }
  std::printf("hoist: %.2f ms for 300 values, %.2f ms for 3,000\n", seconds[0] * 1e3, seconds[1] * 1e3);
  EXPECT_LT(seconds[1], 10 * 4 * seconds[0] + 0.05);
}

}  // namespace rlx
