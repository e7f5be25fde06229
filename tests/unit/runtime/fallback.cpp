// SPDX-License-Identifier: Apache-2.0
// fallback=host: what a device has no kernel for runs on the host, between copies.
#include <algorithm>
#include <cstring>

#include "base/contains.h"
#include "runtime/model.h"
#include "tests/support/samples.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

static std::shared_ptr<Env> env_of(std::vector<Op> lacking, std::shared_ptr<far::Faults> faults = nullptr) {
  auto lacks = [lacking](Op op) { return contains(lacking, op); };
  return *Env::create({.threads = 2, .backends = {far::backend(std::move(faults), lacks)}});
}

static const NamedAttrs kFallsBack = {{"fallback", "host"}};

static Result<std::shared_ptr<Program>> on_far(const std::shared_ptr<Env>& env, const Graph& graph,
                                               const NamedAttrs& options,
                                               const std::shared_ptr<Weights>& weights = nullptr) {
  return Program::compile(env, graph, weights, *env->find_device("far"), options);
}

// y = exp(x @ w) + x @ w, past = what came before and x
static Graph network() {
  Graph graph;
  Dim n = Dim::symbol("n");
  EXPECT_TRUE(graph.declare_symbol("n", {0, 8}).ok());
  Builder b(graph);
  Expr x = input(b, "x", {n, 4});
  Expr product = matmul(x, b.wrap(*graph.add_param("w", DType::kF32, {4, 4})));
  output(b, "y", exp(product) + product);
  return graph;
}

static std::shared_ptr<Weights> weights_of_network(uint32_t seed) {
  auto weights = std::make_shared<Weights>();
  EXPECT_TRUE(weights->put("w", noise({4, 4}, seed)).ok());
  return weights;
}

TEST(fallback, is_an_error_that_names_op_and_device_unless_it_is_asked_for) {
  auto env = env_of({Op::kExp});
  auto program = on_far(env, network(), {}, weights_of_network(1));
  ASSERT_EQ(program.status().code(), Code::kUnsupported);
  EXPECT_NE(program.status().message().find("1 node without a kernel on far:\n  exp"), std::string::npos)
      << program.status().message();
  EXPECT_EQ(on_far(env, network(), {{"fallback", "error"}}).status().code(), Code::kUnsupported);
  EXPECT_EQ(on_far(env, network(), {{"fallback", "cpu"}}).status().code(), Code::kOption);
}

TEST(fallback, the_report_says_what_ran_where) {
  auto env = env_of({Op::kExp});
  auto program = on_far(env, network(), kFallsBack, weights_of_network(1)).value();
  CompileOptions options = parse_compile_options(kFallsBack).value();
  Device &far = **env->find_device("far"), &cpu = **env->find_device("cpu");
  EXPECT_NE(dispatch_report(network(), far, options, &cpu).find("\"host\""), std::string::npos);
  EXPECT_NE(dispatch_report(network(), far, options).find("\"unsupported\""), std::string::npos);
  EXPECT_NE(dispatch_report(network(), cpu, options).find("\"region\""), std::string::npos);
  std::string report = *program->report("dispatch");
  size_t at = report.find("\"host\"");
  ASSERT_NE(at, std::string::npos) << report;
  EXPECT_EQ(report.find("\"host\"", at + 1), std::string::npos) << report;
  EXPECT_NE(report.find("far has no kernel for it"), std::string::npos) << report;
  EXPECT_NE(program->report("text")->find(" on host"), std::string::npos);
  // The host itself has nothing to fall back to.
  auto here = Program::compile(env, network(), nullptr, *env->find_device("cpu"), kFallsBack).value();
  EXPECT_EQ(here->report("dispatch")->find("\"host\""), std::string::npos);
}

TEST(fallback, is_an_option_of_models) {
  auto env = env_of({Op::kExp});
  Tensor x = noise({3, 4});
  auto strict = Model::create(env, network(), weights_of_network(1), {}).value();
  EXPECT_EQ(strict->run("far", {}, std::array{x}, {}, 1).status().code(), Code::kUnsupported);
  auto model = Model::create(env, network(), weights_of_network(1), kFallsBack).value();
  auto got = model->run("far", {}, std::array{x}, {}, 1), want = model->run("cpu", {}, std::array{x}, {}, 1);
  ASSERT_TRUE(got.ok()) << got.status().message();
  expect_near(got->outputs[0], want->outputs[0]);
}

TEST(fallback, takes_params_and_sizes_of_now) {
  for (auto lacking : {std::vector<Op>{Op::kExp}, {Op::kMatmul}, {Op::kAdd, Op::kMatmul}, {Op::kExp, Op::kAdd}}) {
    auto env = env_of(lacking);
    auto far = on_far(env, network(), kFallsBack, weights_of_network(1)).value();
    auto near = Program::compile(env, network(), weights_of_network(1), *env->find_device("cpu"), {}).value();
    auto exec = Exec::create(far).value();
    for (int64_t n : {3, 8, 0, 1}) {
      Tensor x = noise({n, 4}, static_cast<uint32_t>(n));
      for (const auto& program : {far, near}) {
        if (n == 1) {
          ASSERT_TRUE(program->set_param("w", noise({4, 4}, 9)).ok());
        }
      }
      Tensor want = (*near->run({}, std::array{x}, {}, 1))[0];
      expect_near((*far->run({}, std::array{x}, {}, 1))[0], want);
      ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, x).ok());
      for (int i = 0; i < 2; i++) ASSERT_TRUE(exec->run().ok());
      expect_near(shown(*exec, SlotKind::kOutput, 0), want);
      Fence fence = exec->submit({}).value();
      ASSERT_TRUE(fence.wait().ok());
      expect_near(shown(*exec, SlotKind::kOutput, 0), want);
    }
  }
}

TEST(fallback, an_encoder_on_poor_devices_is_what_it_is_on_the_host) {
  Encoder encoder;
  auto env = *Env::create({.threads = 2, .backends = {far::poor_backend()}});
  auto near = Program::compile(env, encoder.graph, encoder.weights, *env->find_device("cpu"), {}).value();
  for (int i = 0; i < far::kPoorDevices; i++) {
    Device* device = *env->find_device(format("poor:{}", i));
    auto program = Program::compile(env, encoder.graph, encoder.weights, device, kFallsBack);
    ASSERT_TRUE(program.ok()) << program.status().message();
    for (auto [batch, seq] : {std::pair{2, 16}, {8, 64}, {1, 1}, {0, 3}, {3, 33}}) {
      std::vector<Tensor> in = Encoder::inputs(batch, seq);
      auto got = (*program)->run({}, in, {}, 2), want = near->run({}, in, {}, 2);
      ASSERT_TRUE(got.ok()) << got.status().message();
      for (size_t k = 0; k < 2; k++) expect_near((*got)[k], (*want)[k], 1e-4f);
    }
  }
}

static std::vector<Tensor> run_on(const std::shared_ptr<Env>& env, const char* device, const Graph& graph,
                                  const std::vector<Tensor>& in, size_t outputs) {
  auto program = Program::compile(env, graph, nullptr, *env->find_device(device), kFallsBack);
  EXPECT_TRUE(program.ok()) << program.status().message();
  auto got = (*program)->run({}, in, {}, outputs);
  EXPECT_TRUE(got.ok()) << got.status().message();
  return *got;
}

// A count that the data decides, read by the device and by the host.
TEST(fallback, a_size_found_on_one_side_is_known_on_the_other) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {20});
  Expr places = b.op(Op::kNonzero, {less(scalar_like(x, 0), x)});
  output(b, "places", places * places);
  Expr values = gather(x, reshape(places, {-1}), 0);
  output(b, "values", exp(values) + values);
  std::vector<std::vector<Op>> lists = {
      {Op::kNonzero}, {Op::kMul}, {Op::kExp, Op::kNonzero}, {Op::kNonzero, Op::kGather}, {Op::kGather, Op::kAdd}};
  for (const auto& lacking : lists)
    for (uint32_t seed : {1u, 2u, 3u}) {
      auto env = env_of(lacking);
      std::vector<Tensor> in = {noise({20}, seed)};
      auto got = run_on(env, "far", graph, in, 2), want = run_on(env, "cpu", graph, in, 2);
      ASSERT_TRUE(std::ranges::equal(got[0].dims(), want[0].dims()));
      EXPECT_EQ(std::memcmp(got[0].data(), want[0].data(), got[0].bytes()), 0);
      expect_near(got[1], want[1]);
    }
}

TEST(fallback, runs_in_bodies) {
  auto body = std::make_shared<Graph>();
  {
    Builder b(*body);
    Expr sum = input(b, "sum", {4}), x = input(b, "x", {4});
    Expr next = exp(sum * 0.1) + x;
    output(b, "next", next);
    output(b, "row", next - x);
  }
  Graph graph;
  Builder b(graph);
  Expr start = input(b, "start", {4}), xs = input(b, "xs", {5, 4});
  auto out = b.ops(Op::kScan, std::array{start, xs},
                   {{"body", std::shared_ptr<const Graph>(body)}, {"n_carry", int64_t{1}}, {"n_xs", int64_t{1}}});
  output(b, "last", out[0]);
  output(b, "rows", exp(out[1]));
  for (auto lacking : {std::vector<Op>{Op::kExp}, {Op::kMul}, {Op::kAdd, Op::kSub}, {Op::kExp, Op::kMul, Op::kSub}}) {
    auto env = env_of(lacking);
    std::vector<Tensor> in = {noise({4}, 1), noise({5, 4}, 2)};
    auto got = run_on(env, "far", graph, in, 2), want = run_on(env, "cpu", graph, in, 2);
    for (size_t i = 0; i < 2; i++) expect_near(got[i], want[i]);
  }
}

TEST(fallback, an_alias_holds_where_the_host_writes) {
  Graph graph;
  Builder b(graph);
  Expr state = input(b, "state", {6}), x = input(b, "x", {6});
  output(b, "next", exp(state * 0.5) + x);
  for (auto lacking : {std::vector<Op>{Op::kExp}, {Op::kAdd}, {Op::kMul, Op::kAdd}, {Op::kMul, Op::kExp, Op::kAdd}}) {
    auto program =
        on_far(env_of(lacking), graph, {{"fallback", "host"}, {"io.alias", std::vector<std::string>{"next=state"}}});
    ASSERT_TRUE(program.ok()) << program.status().message();
    auto exec = Exec::create(*program).value();
    write(*exec, 0, {0, 1, 2, 3, 1, 0});
    write(*exec, 1, {-1, -1, -1, -1, -1, -1});
    std::vector<float> want = {0, 1, 2, 3, 1, 0};
    for (int run = 0; run < 3; run++) {
      ASSERT_TRUE(exec->run().ok());
      Tensor got = shown(*exec, SlotKind::kInput, 0);
      for (size_t i = 0; i < 6; i++) {
        want[i] = std::exp(want[i] * 0.5f) - 1;
        EXPECT_NEAR(got.as<float>()[i], want[i], 1e-5f * (1 + want[i]));
      }
    }
  }
}

TEST(fallback, every_fault_is_a_status) {
  auto planted = std::make_shared<far::Faults>();
  auto env = env_of({Op::kExp}, planted);
  auto program = on_far(env, network(), kFallsBack, weights_of_network(1)).value();
  Tensor x = noise({3, 4});
  Tensor want = (*program->run({}, std::array{x}, {}, 1))[0];
  for (far::Act act : {far::Act::kTransfer, far::Act::kSubmit, far::Act::kAllocate}) {
    int64_t nth = 0;
    for (bool was_met = true; was_met; nth++) {
      planted->plan(act, nth);
      auto got = program->run({}, std::array{x}, {}, 1);
      was_met = planted->count(act) > nth;
      planted->clear();
      EXPECT_EQ(got.ok(), !was_met);
      expect_near((*program->run({}, std::array{x}, {}, 1))[0], want);
    }
    if (act == far::Act::kTransfer) {
      EXPECT_GE(nth, 5) << "x, there and back around exp, y";
    }
  }
}

// No pass widens what is formed after the pass `widen`, so nothing may count on it.
TEST(fallback, a_composite_that_is_formed_late_is_not_widened) {
  Graph graph;
  Builder b(graph);
  Expr x = b.wrap(*graph.add_input("x", DType::kF16, {3, 4}));
  Expr e = exp(x - reduce(x, "max", {1}));
  output(b, "y", e / reduce(e, "sum", {1}));
  Tensor given = Tensor::create(DType::kF16, Dims{3, 4}).value();
  for (int i = 0; i < 12; i++) given.as<f16>()[i] = f16(static_cast<float>(i * i % 7) - 3);
  NamedAttrs options = kFallsBack;
  options.emplace_back("passes.skip", std::vector<std::string>{"canonicalize"});
  auto env = env_of({Op::kReduce});
  auto near = Program::compile(env, graph, nullptr, *env->find_device("cpu"), {}).value();
  auto far = on_far(env, graph, options);
  ASSERT_TRUE(far.ok()) << far.status().message();
  auto want = near->run({}, std::array{given}, {}, 1), got = (*far)->run({}, std::array{given}, {}, 1);
  ASSERT_TRUE(want.ok() && got.ok()) << got.status().message();
  for (int i = 0; i < 12; i++) EXPECT_NEAR(float((*got)[0].as<f16>()[i]), float((*want)[0].as<f16>()[i]), 1e-3) << i;
}

// The samples of every op, on devices without half of the ops: the bits of typed evaluation.
TEST(fallback, samples_of_all_ops) {
  auto env = *Env::create({.threads = 1, .backends = {far::poor_backend()}});
  static constexpr std::array<const char*, 3> kBounds = {"error", "clamp", "drop"};
  size_t count = 0, on_host = 0;
  for (const test::Sample& sample : test::all_samples()) {
    auto graph = test::graph_of(sample);
    if (!graph.ok() || !sample.error.empty()) continue;
    auto want = test::run(sample, *graph, sample.in, EvalMode::kTyped);
    if (!want.ok()) continue;
    auto weights = std::make_shared<Weights>();
    std::vector<Tensor> inputs;
    for (const auto& [name, tensor] : sample.params) ASSERT_TRUE(weights->put(name, tensor).ok());
    for (size_t i = 0; i < sample.in.size(); i++) {
      if (sample.in[i] && is_block(sample.in[i].dtype()))
        ASSERT_TRUE(weights->put("in" + std::to_string(i), sample.in[i]).ok());
      else if (sample.in[i])
        inputs.push_back(sample.in[i]);
    }
    NamedAttrs options = {{"fallback", "host"}, {"math", "strict"}, {"dispatch", "reference"}};
    options.emplace_back("bounds", std::string(kBounds[static_cast<size_t>(sample.bounds)]));
    SCOPED_TRACE(sample.where + ": " + sample.op + sample.attrs);
    Device* device = *env->find_device(format("poor:{}", count % far::kPoorDevices));
    auto program = Program::compile(env, *graph, weights, device, options);
    if (program.status().code() == Code::kShape) continue;  // a size without a bound is a model's
    ASSERT_TRUE(program.ok()) << program.status().message();
    on_host += (*program)->report("dispatch")->find("\"host\"") != std::string::npos;
    auto got = (*program)->run({}, inputs, {}, want->size());
    ASSERT_TRUE(got.ok()) << got.status().message();
    for (size_t i = 0; i < want->size(); i++) {
      ASSERT_EQ((*got)[i].bytes(), (*want)[i].bytes());
      EXPECT_EQ(std::memcmp((*got)[i].data(), (*want)[i].data(), (*want)[i].bytes()), 0) << "output " << i;
    }
    count++;
  }
  EXPECT_GE(count, size_t{3000});
  EXPECT_GE(on_host, count / 3);
}

}  // namespace rlx
