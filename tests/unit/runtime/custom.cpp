// SPDX-License-Identifier: Apache-2.0
// Calls of the host in programs of a device with memory of its own: they run on the host, whatever `fallback` says.
#include "ir/text.h"
#include "tests/support/host_ops.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

static Graph read(const char* text) {
  auto graph = parse(text, op_table(), test::host_ops());
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *std::move(graph);
}

static std::vector<Tensor> run_on(const std::shared_ptr<Env>& env, const char* device, const Graph& graph,
                                  const Tensor& x) {
  auto program = Program::compile(env, graph, nullptr, *env->find_device(device), {{"dims.n", int64_t{8}}});
  EXPECT_TRUE(program.ok()) << program.status().message();
  if (!program.ok()) return {};
  auto exec = Exec::create(*program).value();
  EXPECT_TRUE(exec->bind(SlotKind::kInput, 0, x).ok());
  Status status = exec->run();
  EXPECT_TRUE(status.ok()) << status.message();
  return {shown(*exec, SlotKind::kOutput, 0)};
}

static constexpr const char* kChain = R"(graph (n) {
  x = input f32[n]
  e = exp(x)
  s = custom(e) name="test.scale" by=3.0
  y = neg(s)
  output y
})";

static constexpr const char* kLoop = R"(graph (n) {
  x = input f32[n]
  pass = iota() shape=[3] axis=0 dtype=f32
  y = scan(x, pass) n_carry=1 n_xs=1 body=graph {
    h = input f32[n]
    i = input f32[]
    s = custom(h) name="test.scale" by=2.0
    q = custom(s) name="test.square"
    t = sqrt(q)
    u = add(t, i)
    output u
  }
  output y
})";

TEST(custom, calls_run_on_the_host_beside_any_device) {
  auto env =
      *Env::create({.threads = 2, .backends = {far::backend(nullptr, [](Op op) { return op == Op::kHostCall; })}});
  for (const char* text : {kChain, kLoop}) {
    Graph graph = read(text);
    for (int64_t n : {1, 5, 8}) {
      Tensor x = noise({n}, 3);
      std::vector<Tensor> here = run_on(env, "cpu", graph, x), there = run_on(env, "far", graph, x),
                          slow = run_on(env, "reference", graph, x);
      ASSERT_EQ(here.size() + there.size() + slow.size(), 3u);
      EXPECT_TRUE(here[0].same_bytes(there[0])) << text;
      for (int64_t i = 0; i < n; i++) EXPECT_NEAR(here[0].as<float>()[i], slow[0].as<float>()[i], 1e-5);
    }
  }
}

TEST(custom, other_ops_do_not_fall_back_for_it) {
  auto lacks = [](Op op) { return op == Op::kHostCall || op == Op::kExp; };
  auto env = *Env::create({.threads = 2, .backends = {far::backend(nullptr, lacks)}});
  auto program = Program::compile(env, read(kChain), nullptr, *env->find_device("far"), {{"dims.n", int64_t{8}}});
  EXPECT_EQ(program.status().code(), Code::kUnsupported);
}

TEST(custom, a_failure_of_a_call_names_the_op_that_was_written) {
  Graph graph;
  Status status = graph.with_subject(graph.info(Op::kHostCall), "t", Status(Code::kShape, "no"));
  EXPECT_EQ(status.message(), "custom 't': no");
  EXPECT_EQ(*status.detail("op"), "custom");
}

TEST(custom, a_call_keeps_the_precision_that_it_was_made_for) {
  auto env = env_with(2);
  auto program = Program::compile(env, read(kChain), nullptr, nullptr,
                                  {{"dims.n", int64_t{8}}, {"precision", std::string("bf16")}});
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_NE((*program)->report("text")->find("host_call(%"), std::string::npos) << *(*program)->report("text");
}

// The sizes that bodies inside the body of an op find or carry are its own, even if the caller has a size of that name.
static constexpr const char* kOwnNames = R"(graph (m) {
  a = input f32[m]
  limit = constant f32[] {100}
  first = reduce(a) fn="max" axes=[0] keep_dims=false
  q = lt(first, limit)
  z = if(q, a) then=graph {
    b = input f32[m]
    at = nonzero(b) symbol="k"
    one = cast(at) to=f32
    index = reduce(one) fn="sum" axes=[0,1] keep_dims=false
    c = add(b, index)
    more = concat(c, c) axis=0
    trips = constant i64[] {2}
    left, d = while(trips, more) n_carry=2 cond=graph {
      i = input i64[]
      s = input f32[n]
      zero = constant i64[] {0}
      goes = gt(i, zero)
      output goes
    } body=graph {
      i = input i64[]
      s = input f32[n]
      one = constant i64[] {1}
      j = sub(i, one)
      t = concat(s, s) axis=0
      output j
      output t
    }
    sum = reduce(d) fn="sum" axes=[0] keep_dims=false
    e = add(c, sum)
    output e
  } else=graph {
    b = input f32[m]
    output b
  }
  output z
})";

TEST(custom, sizes_inside_a_body_have_names_of_their_own) {
  auto body = parse(kOwnNames);
  ASSERT_TRUE(body.ok()) << body.status().message();
  auto ops = std::make_shared<CustomOps>();
  CustomOp op{.name = "test.own", .body = std::make_shared<const Graph>(*std::move(body))};
  ASSERT_TRUE(ops->add(std::make_shared<const CustomOp>(std::move(op))).ok());
  for (const char* name : {"n", "k", "m"}) {
    auto graph = parse("graph (" + std::string(name) + ") {\n" + format("x = input f32[{}]\n", name) +
                           "y = custom(x) name=\"test.own\"\noutput y\n}",
                       op_table(), ops);
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    auto program = Program::compile(env_with(1), *graph, nullptr, nullptr, {{format("dims.{}", name), int64_t{4}}});
    ASSERT_TRUE(program.ok()) << program.status().message();
    Tensor x = *Tensor::create(DType::kF32, std::array<int64_t, 1>{3});
    for (int i = 0; i < 3; i++) x.as<float>()[i] = static_cast<float>(i);  // nonzero at 1 and 2: 3 is added
    auto got = (*program)->run({}, std::array{x}, {}, 1);
    ASSERT_TRUE(got.ok()) << got.status().message();
    for (int i = 0; i < 3; i++) EXPECT_EQ(on_host((*got)[0]).as<float>()[i], static_cast<float>(i + 3 + 8 * 12));
  }
}

}  // namespace rlx
