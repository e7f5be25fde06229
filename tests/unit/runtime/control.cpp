// SPDX-License-Identifier: Apache-2.0
// Control flow in programs: branches, loops, sizes that a branch decides, and params that only a sub-graph reads.
#include "ir/text.h"
#include "runtime/model.h"
#include "tests/unit/programs.h"
#include "tests/unit/tensors.h"

namespace rlx {

using namespace testing_programs;

TEST(control, branches_read_params_of_their_own_and_decide_sizes) {
  auto branch = [](bool takes_all) {
    auto graph = std::make_shared<Graph>();
    Builder b(*graph);
    Expr x = input(b, "x", {6, 2});
    Expr scaled = x * b.wrap(*graph->add_param("scale", DType::kF32, {2}));
    output(b, "y", takes_all ? scaled : slice(x, 0, 0, 3));
    return std::shared_ptr<const Graph>(graph);
  };
  Graph graph;
  Builder b(graph);
  Expr pred = b.wrap(*graph.add_input("pred", DType::kBool, {}));
  Expr x = input(b, "x", {6, 2});
  Expr y = b.ops(Op::kIf, std::array{pred, x}, {{"then", branch(true)}, {"else", branch(false)}})[0];
  output(b, "y", y + 1.0);
  auto env = env_with(1);
  auto weights = std::make_shared<Weights>();
  NamedAttrs options;
  for (const auto& [name, range] : graph.symbols()) options.emplace_back("dims." + name, int64_t{6});
  auto program = Program::compile(env, graph, weights, nullptr, options);
  ASSERT_TRUE(program.ok()) << program.status().message();
  Tensor values = noise({6, 2});
  auto run = [&](bool which) { return (*program)->run({}, std::array{truth(which), values}, {}, 1); };
  EXPECT_TRUE(run(true).status().message().starts_with("the param 'scale' is not set: "));
  ASSERT_TRUE((*program)->set_param("scale", noise({2}, 4)).ok());
  for (bool which : {true, false, true}) {
    auto got = run(which);
    ASSERT_TRUE(got.ok()) << got.status().message();
    ASSERT_EQ((*got)[0].dims()[0], which ? 6 : 3);
    float factor = which ? noise({2}, 4).as<float>()[1] : 1;
    EXPECT_EQ((*got)[0].as<float>()[3], values.as<float>()[3] * factor + 1);
  }
  auto model = *Model::create(env, graph, weights, {});
  EXPECT_EQ(model->set_param("scale", noise({3})).code(), Code::kShape);
  ASSERT_TRUE(model->set_param("scale", noise({2}, 4)).ok());
  auto got = model->run("", {}, std::array{truth(true), values}, {}, 1);
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(got->outputs[0].as<float>()[3], values.as<float>()[3] * noise({2}, 4).as<float>()[1] + 1);
}

TEST(control, a_name_means_one_input_or_param_in_the_whole_program) {
  auto env = env_with(1);
  auto refused = [&](const std::string& outer, const std::string& inner) {
    auto loop = [&](const std::string& w) {
      return "scan(x) n_carry=1 n_xs=0 length=3 body=graph {\na = input f32[3]\nw = param " + w +
             "\nr = reduce(w) fn=sum\nb = add(a, r)\noutput b\n}\n";
    };
    auto graph = parse("graph {\nx = input f32[3]\n" + outer + "\ny = " + loop("f32[3]") + "z = " + loop(inner) +
                       "output y\noutput z\n}");
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    Status compiled = Program::compile(env, *graph, std::make_shared<Weights>(), nullptr, {}).status();
    EXPECT_EQ(Model::create(env, *graph, std::make_shared<Weights>(), {}).status().message(), compiled.message());
    return compiled;
  };
  EXPECT_TRUE(refused("", "f32[3]").ok());
  EXPECT_TRUE(refused("w = param f32[3]", "f32[3]").ok());
  EXPECT_EQ(refused("w = input f32[3]", "f32[3]").message(), "a param of a sub-graph has the name of the input 'w'");
  EXPECT_EQ(refused("", "f32[4]").message(), "the param 'w' is f32[3], but in a sub-graph f32[4]");
  EXPECT_EQ(refused("w = param f32[3,1]", "f32[3]").code(), Code::kShape);
}

// Passes move params out of bodies, whose inputs may have any names.
TEST(control, an_input_of_a_body_may_have_the_name_of_a_param) {
  std::string loop =
      "scan(a, w) n_carry=1 n_xs=0 length=2 body=graph {\nc = input f32[3]\ni = input f32[3]\nw = param f32[3]\n"
      "m = mul(i, w)\ne = exp(m)\nd = add(c, e)\noutput d\n}\n";
  std::string branch =
      "if(t, a) then=graph {\nc = input f32[3]\nw = param f32[3]\nd = add(c, w)\noutput d\n} else=graph {\n"
      "c = input f32[3]\noutput c\n}\n";
  for (const std::string& inner : {loop, branch}) {
    auto graph = parse(
        "graph {\nx = input f32[3]\nv = input f32[3]\ny = scan(x, v) n_carry=1 n_xs=0 length=3 body=graph {\n"
        "a = input f32[3]\nw = input f32[3]\nt = constant bool[] {true}\ns = " +
        inner + "output s\n}\noutput y\n}");
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    std::vector<float> results;
    for (const std::vector<std::string>& skip : {std::vector<std::string>(), {"hoist", "branches", "sink"}}) {
      auto weights = std::make_shared<Weights>();
      ASSERT_TRUE(weights->put("w", noise({3}, 2)).ok());
      auto program = Program::compile(env_with(1), *graph, weights, nullptr, {{"passes.skip", skip}});
      ASSERT_TRUE(program.ok()) << program.status().message();
      auto got = (*program)->run({}, std::array{noise({3}), noise({3}, 3)}, {}, 1);
      ASSERT_TRUE(got.ok()) << got.status().message();
      results.push_back((*got)[0].as<float>()[1]);
    }
    EXPECT_NEAR(results[0], results[1], 1e-5);
  }
}

// Of the two sizes that a loop finds, the first stands beside the second of the run before for a moment.
TEST(control, sizes_of_the_run_before_break_no_guard) {
  auto exec = exec_of(R"(graph {
    a = input f32[p]
    b = input f32[q]
    k = input i64[]
    r, s, t = while(a, b, k) cond=graph {
      a = input f32[u]
      b = input f32[v]
      k = input i64[]
      z = constant i64[] {0}
      y = lt(z, k)
      output y
    } body=graph {
      a = input f32[u]
      b = input f32[v]
      k = input i64[]
      one = constant i64[] {1}
      f = constant f32[1] {1}
      a2 = concat(a, f) axis=0
      b2 = concat(b, f) axis=0
      k2 = sub(k, one)
      output a2
      output b2
      output k2
    } n_carry=3
    y = add(r, s)
    output y
  })",
                      {{"dims.p", int64_t{16}}, {"dims.q", int64_t{16}}});
  Tensor two = noise({2});
  for (int64_t trips : {2, 3, 1, 0}) {
    ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, two).ok() && exec->bind(SlotKind::kInput, 1, two).ok());
    ASSERT_TRUE(exec->bind(SlotKind::kInput, 2, scalar_i64(trips)).ok());
    Status status = exec->run();
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(exec->tensor(SlotKind::kOutput, 0)->dims()[0], 2 + trips);
  }
}

// The body knows a range of the size, so it asks for more memory than the graph around it; and after a large run it
// gives memory back.
TEST(control, a_result_is_read_where_the_body_has_put_it) {
  for (const char* range : {"", " (m in [0, 100000])"})
    for (const char* node : {"if(p, x) then=", "scan(x) n_carry=1 n_xs=0 length=1 body="}) {
      bool is_if = node[0] == 'i';
      std::string body = std::string("graph") + range + " {\nx = input f32[m]\nz = neg(x)\noutput z\n}";
      auto exec = exec_of(
          "graph {\nc = input i64[]\np = input bool[]\ni = dynamic_iota(c) symbol=\"m\" -> i64[m]\n"
          "x = cast(i) to=f32\ny = " +
          std::string(node) + body + (is_if ? " else=" + body : "") + "\no = cumulative(y) fn=min axis=0\noutput o\n}");
      ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, truth(true)).ok());
      for (int run = 0; run < 2 * Room::kPatience + 8; run++) {
        int64_t count = run == 4 ? int64_t{1} << 19 : 3 + run;
        ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, scalar_i64(range[0] ? run % 9 + 3 : count)).ok());
        Status status = exec->run();
        ASSERT_TRUE(status.ok()) << status.message();
        Tensor got = shown(*exec, SlotKind::kOutput, 0);
        ASSERT_EQ(got.as<float>()[2], -2) << node << range << " run " << run;
        ASSERT_EQ(got.as<float>()[got.count() - 1], static_cast<float>(1 - got.count()));
      }
    }
}

TEST(control, a_loop_runs_until_its_condition_fails) {
  auto cond = std::make_shared<Graph>(), body = std::make_shared<Graph>();
  {
    Builder b(*cond);
    output(b, "more", less(reduce(input(b, "x", {3}), "sum", {0}, KeepDims::kNo), b.scalar(DType::kF32, 20)));
  }
  {
    Builder b(*body);
    output(b, "next", input(b, "x", {3}) * 2.0);
  }
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {3});
  std::shared_ptr<const Graph> test = cond, step = body;
  output(b, "y", b.ops(Op::kWhile, std::array{x}, {{"cond", test}, {"body", step}, {"n_carry", int64_t{1}}})[0]);
  auto env = env_with(1);
  auto program = Program::compile(env, graph, nullptr, nullptr, {});
  ASSERT_TRUE(program.ok()) << program.status().message();
  Tensor one = *Tensor::create(DType::kF32, std::array<int64_t, 1>{3});
  for (int i = 0; i < 3; i++) one.as<float>()[i] = 1;
  auto got = (*program)->run({}, std::array{one}, {}, 1);
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ((*got)[0].as<float>()[0], 8.0f);
}

// What a branch makes of params alone is computed when they are set; an error in it is one of the runs that take it.
// Before the first step, where kernels would write before their buffers. In a body, when it is entered.
TEST(control, a_negative_size_fails_the_run_that_needs_it) {
  auto env = env_with(1);
  auto straight = parse(R"(graph (n) {
    y = input f32[n]
    a = iota() shape=[n - 3] axis=0 dtype=f32
    s = sin(a)
    r = reduce(s) fn=sum
    output r
  })");
  auto loop = parse(R"(graph (n) {
    k = input f32[]
    x = input f32[1]
    y = input f32[n]
    z = while(k, x, y) cond=graph (n) {
      k = input f32[]
      x = input f32[1]
      y = input f32[n]
      nine = constant f32[] {9}
      more = lt(k, nine)
      output more
    } body=graph (n) {
      k = input f32[]
      x = input f32[1]
      y = input f32[n]
      wide = broadcast_to(x) shape=[n - 3]
      c = cos(wide)
      r = reduce(c) fn=sum
      next = add(k, r)
      output next
    } n_carry=1 max_trips=5
    output z
  })");
  ASSERT_TRUE(straight.ok() && loop.ok()) << straight.status().message() << loop.status().message();
  auto number = [](double value) { return *scalar_tensor(DType::kF32, value); };
  for (const char* device : {"cpu", "reference"}) {
    auto a = Program::compile(env, *straight, nullptr, *env->find_device(device), {{"dims.n", int64_t{8}}});
    auto b = Program::compile(env, *loop, nullptr, *env->find_device(device), {{"dims.n", int64_t{8}}});
    ASSERT_TRUE(a.ok() && b.ok()) << a.status().message() << b.status().message();
    EXPECT_TRUE((*a)->run({}, std::array{noise({3})}, {}, 1).ok());
    EXPECT_EQ((*a)->run({}, std::array{noise({2})}, {}, 1).status().code(), Code::kShape) << device;
    EXPECT_TRUE((*b)->run({}, std::array{number(1), noise({1}), noise({4})}, {}, 1).ok());
    EXPECT_TRUE((*b)->run({}, std::array{number(9), noise({1}), noise({2})}, {}, 1).ok()) << "no trip";
    EXPECT_EQ((*b)->run({}, std::array{number(1), noise({1}), noise({2})}, {}, 1).status().code(), Code::kShape);
  }
}

// Where a pad may be positive or not, an axis of 0 has nothing to pad with only where it would grow.
TEST(control, an_empty_axis_is_padded_by_nothing) {
  auto env = env_with(1);
  for (const char* mode : {"reflect", "wrap", "edge"}) {
    std::string text = R"(graph (m, n) {
      x = input f32[m]
      k = input f32[n]
      y = pad(x) lo=[n - 2] hi=[0] mode=)";
    auto graph = parse(text + mode + R"(
      z = reduce(k) fn=sum
      output y
      output z
    })");
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    for (const char* device : {"cpu", "reference"}) {
      auto program = Program::compile(env, *graph, nullptr, *env->find_device(device),
                                      {{"dims.m", int64_t{4}}, {"dims.n", int64_t{4}}});
      ASSERT_TRUE(program.ok()) << program.status().message();
      EXPECT_TRUE((*program)->run({}, std::array{noise({2}), noise({3})}, {}, 2).ok()) << mode;
      EXPECT_TRUE((*program)->run({}, std::array{noise({0}), noise({1})}, {}, 2).ok()) << mode;
      EXPECT_EQ((*program)->run({}, std::array{noise({0}), noise({3})}, {}, 2).status().code(), Code::kShape) << mode;
    }
  }
}

// A branch that is known at compile asks of a size what it asks as a branch: the size of a run must be in the range of
// the body, the upper size of a plan need not.
TEST(control, a_known_branch_leaves_the_range_of_a_size_to_the_run) {
  for (bool is_known : {false, true}) {
    std::string body = "graph (s in [0, 4]) {\na = input f32[s]\nb = exp(a)\noutput b\n}",
                text = "graph {\nx = input f32[s]\n";
    text += is_known ? "p = constant bool[] {true}\n" : "p = input bool[]\n";
    auto graph = parse(text + "y = if(p, x) then=" + body + " else=" + body + "\noutput y\n}");
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    auto program = Program::compile(env_with(1), *graph, nullptr, nullptr, {{"dims.s", int64_t{9}}});
    ASSERT_TRUE(program.ok()) << program.status().message();
    for (int64_t size : {4, 5}) {
      std::vector<Tensor> in{noise({size}), truth(true)};
      if (is_known) in.pop_back();
      EXPECT_EQ((*program)->run({}, in, {}, 1).ok(), size == 4) << is_known;
    }
  }
}

// Programs and models take them alike.
TEST(control, an_upper_size_may_be_that_of_a_body) {
  const std::string body = "graph (s) {\ni = input i64[]\na = input f32[s]\n";
  auto graph = parse(
      "graph (n in [1, 8]) {\nx = input f32[n]\ni = constant i64[] {0}\n_, y = while(i, x) n_carry=2 cond=" + body +
      "k = constant i64[] {3}\nc = lt(i, k)\noutput c\n} body=" + body +
      "one = constant i64[] {1}\nj = add(i, one)\nb = concat(a, a) axis=0\noutput j\noutput b\n}\n"
      "output y\n}");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  for (int64_t most : {48, 47}) {
    const NamedAttrs options{{"dims.s", most}};
    auto program = Program::compile(env_with(1), *graph, nullptr, nullptr, options);
    ASSERT_TRUE(program.ok()) << program.status().message();
    auto model = Model::create(env_with(1), *graph, nullptr, options);
    ASSERT_TRUE(model.ok()) << model.status().message();
    std::array in{noise({6})};
    EXPECT_EQ((*program)->run({}, in, {}, 1).ok(), most == 48);
    EXPECT_EQ((*model)->run("", {}, in, {}, 1).ok(), most == 48);
  }
  EXPECT_EQ(Model::create(env_with(1), *graph, nullptr, {{"dims.r", int64_t{9}}}).status().code(), Code::kOption);
}

// A step may rely on it long before the size that both equal is found: it would read beyond the end of z.
TEST(control, sizes_that_equal_one_which_is_found_are_compared_before_the_run) {
  struct Case {
    const char *guards, *size;  // where k = j = 2
    int64_t n;
  };
  const Case cases[] = {{"=", "2*k", 4}, {"=", "k + j", 4},          {"<=", "2*k", 4},
                        {"=", "k*k", 4}, {"=", "5000*k + j", 10002}, {"=", "max(k, j)", 2},
                        {"=", "k*j", 4}, {"=", "k/2 + j*k", 5}};
  for (const auto& [relation, size, n] : cases) {
    std::string text = "graph (n, m, k in [0, 4], j in [0, 4]) {\n";
    for (const char* other : {"n", "m"}) {
      text += format("guard {} {} {}\n", size, relation, other);
      if (relation == std::string_view("<=")) text += format("guard {} <= {}\n", other, size);
    }
    text += R"(
      x = input f32[n]
      z = input f32[m]
      p = input bool[4]
      y = add(x, z)
      a = nonzero(p) symbol="k"
      b = nonzero(p) symbol="j"
      output y
      output a
      output b
    })";
    auto graph = parse(text);
    ASSERT_TRUE(graph.ok()) << size << ": " << graph.status().message();
    auto program = Program::compile(env_with(1), *graph, nullptr, nullptr, {{"dims.n", 2 * n}, {"dims.m", 2 * n}});
    ASSERT_TRUE(program.ok()) << program.status().message();
    for (int64_t other : {n, n - 1}) {
      std::vector<Tensor> in{noise({n}), noise({other}), *Tensor::create(DType::kBool, std::array<int64_t, 1>{4})};
      for (int i = 0; i < 4; i++) in[2].as<uint8_t>()[i] = i < 2;
      Status status = (*program)->run({}, in, {}, 3).status();
      EXPECT_EQ(status.ok(), other == n) << size << ": " << status.message();
      EXPECT_EQ(status.message().find("n = m") != std::string_view::npos, other != n) << status.message();
    }
  }
}

// x is read by what decides j.
TEST(control, a_found_size_is_compared_before_a_later_one_that_equals_both) {
  auto graph = parse(R"(graph (n, k in [0, 4], j in [0, 4]) {
    guard k = j
    guard j = n
    x = input f32[n]
    p = input bool[4]
    a = nonzero(p) symbol="k"
    row = reshape(a) shape=[k]
    places = cast(row) to=f32
    sum = add(places, x)
    least = constant f32[] {-9}
    is_any = ge(sum, least)
    b = nonzero(is_any) symbol="j"
    output b
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  auto program = Program::compile(env_with(1), *graph, nullptr, nullptr, {{"dims.n", int64_t{9}}});
  ASSERT_TRUE(program.ok()) << program.status().message();
  for (int64_t size : {2, 1, 3}) {
    std::vector<Tensor> in{noise({size}), *Tensor::create(DType::kBool, std::array<int64_t, 1>{4})};
    for (int i = 0; i < 4; i++) in[1].as<uint8_t>()[i] = i < 2;
    Status status = (*program)->run({}, in, {}, 1).status();
    EXPECT_EQ(status.ok(), size == 2) << status.message();
    EXPECT_NE(status.message().find(size == 2 ? "" : "k = n"), std::string_view::npos) << status.message();
  }
}

// Memory that nothing bounds is set aside when the sizes are known; their product may not fit into 64 bits.
TEST(control, more_bytes_than_there_are_fail_the_run) {
  auto graph = parse(R"(graph (a, b) {
    x = input f32[a]
    y = input f32[b]
    wide = broadcast_to(x) shape=[b*b*b*b*b*b,a]
    r = reduce(wide) fn=max axes=[0]
    output r
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  auto env = env_with(1);
  auto program =
      Program::compile(env, *graph, nullptr, nullptr, {{"dims.a", int64_t{99999}}, {"dims.b", int64_t{99999}}});
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_TRUE((*program)->run({}, std::array{noise({2}), noise({3})}, {}, 1).ok());
  for (int64_t size : {700, 3000, 65536, 99999})
    EXPECT_FALSE((*program)->run({}, std::array{noise({size}), noise({size})}, {}, 1).ok()) << size;
}

// y = x + table[index] where both of `outer` and `inner` hold, else x.
static constexpr const char* kNestedBranches = R"(graph {
  inner = input bool[]
  x = input f32[2]
  outer = input bool[]
  y = if(outer, inner, x) then=graph {
    inner = input bool[]
    x = input f32[2]
    y = if(inner, x) then=graph {
      x = input f32[2]
      table = param f32[2]
      index = param i64[2]
      picked = gather(table, index) axis=0
      y = add(x, picked)
      output y
    } else=graph {
      x = input f32[2]
      output x
    }
    output y
  } else=graph {
    inner = input bool[]
    x = input f32[2]
    output x
  }
  output y
})";

static Tensor first_and_zero(int64_t first) {
  Tensor tensor = *Tensor::create(DType::kI64, std::array<int64_t, 1>{2});
  tensor.as<int64_t>()[0] = first, tensor.as<int64_t>()[1] = 0;
  return tensor;
}

TEST(control, an_index_out_of_range_in_a_branch_is_an_error_where_it_is_taken) {
  auto graph = parse(kNestedBranches);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  Tensor values = noise({2});
  for (const char* device : {"cpu", "reference"}) {
    auto env = env_with(1);
    auto weights = std::make_shared<Weights>();
    ASSERT_TRUE(weights->put("table", noise({2}, 4)).ok());
    ASSERT_TRUE(weights->put("index", first_and_zero(2)).ok());
    auto program = Program::compile(env, *graph, weights, *env->find_device(device), {});
    ASSERT_TRUE(program.ok()) << program.status().message();
    auto run = [&](bool enters, bool takes) {
      return (*program)->run({}, std::array{truth(takes), values, truth(enters)}, {}, 1);
    };
    for (int64_t first : {2, 3}) {
      ASSERT_TRUE((*program)->set_param("index", first_and_zero(first)).ok());
      for (bool enters : {false, true}) EXPECT_TRUE(run(enters, false).ok()) << device;
      EXPECT_TRUE(run(false, true).ok()) << device;
      Status status = run(true, true).status();
      EXPECT_EQ(status.code(), Code::kRange) << device;
      EXPECT_NE(status.message().find("index " + std::to_string(first)), std::string::npos) << status.message();
    }
    ASSERT_TRUE((*program)->set_param("index", first_and_zero(1)).ok());
    auto got = run(true, true);
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_EQ((*got)[0].as<float>()[0], values.as<float>()[0] + noise({2}, 4).as<float>()[1]);
    ASSERT_TRUE((*program)->set_param("index", first_and_zero(2)).ok());
    EXPECT_FALSE(run(true, true).ok()) << device;
  }
}

}  // namespace rlx
