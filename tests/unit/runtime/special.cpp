// SPDX-License-Identifier: Apache-2.0
// Models whose graph does not fit all sizes: it is made again for the sizes of the run.
#include "runtime/special.h"

#include <atomic>
#include <thread>

#include "ir/text.h"
#include "passes/at_sizes.h"
#include "tests/unit/import/onnx_maker.h"
#include "tests/unit/programs.h"
#include "tests/unit/tensors.h"

namespace rlx {

using namespace testing_programs;
using onnx::Maker;

// y = (a + b) * w, where a and b are said to be of one size.
static Graph sum_of_two() {
  Graph graph("sum");
  EXPECT_TRUE(graph.declare_symbol("n", {0, 8}).ok());
  Builder b(graph);
  Expr sum = input(b, "a", {Dim::symbol("n")}) + input(b, "b", {Dim::symbol("m")});
  output(b, "y", sum * b.wrap(*graph.add_param("w", DType::kF32, {Dim(1)})));
  return graph;
}

static Expr running_sum(Builder& b, const Expr& x) {
  return b.op(Op::kCumulative, {x}, {{"fn", std::string("sum")}, {"axis", int64_t{0}}});
}

static std::string shown(const Result<Model::Ran>& ran) {
  if (!ran.ok()) return std::string(ran.status().message());
  std::string text;
  const Tensor& y = ran->outputs[0];
  for (int64_t i = 0; i < y.count(); i++) text += format("{} ", static_cast<int64_t>(y.as<float>()[i]));
  return text;
}

static std::string run(Model& model, const Tensor& a, const Tensor& b) {
  return shown(model.run("", {}, std::array{a, b}, {}, 1));
}

TEST(special, a_size_that_is_one_in_the_run_broadcasts) {
  auto model = *Model::create(env_with(1), sum_of_two(), nullptr, {});
  ASSERT_TRUE(model->set_param("w", row({1})).ok());
  EXPECT_EQ(run(*model, row({1, 2}), row({10, 20})), "11 22 ");
  EXPECT_EQ(run(*model, row({1}), row({10, 20, 30})), "11 21 31 ");
  EXPECT_EQ(run(*model, row({1, 2, 3}), row({10})), "11 12 13 ");
  EXPECT_NE(run(*model, row({1, 2}), row({1, 2, 3})).find("n = m does not hold"), std::string::npos);
  EXPECT_EQ(run(*model, row({1, 2}), row({10, 20})), "11 22 ");
}

// No node asks for the guard, so no node would ask for it again.
TEST(special, a_guard_that_was_declared_holds_at_every_size) {
  Graph graph("sum");
  Builder b(graph);
  Expr x = input(b, "x", {Dim::symbol("n")}), y = input(b, "y", {Dim::symbol("m")});
  output(b, "sum", x + y);
  ASSERT_TRUE(graph.declare_guard({Guard::kLessEqual, Dim::symbol("m"), Dim(4), "the table"}).ok());
  for (const Graph& it : {graph, *parse(print(graph))}) {
    auto model = *Model::create(env_with(1), it, nullptr, {});
    EXPECT_EQ(run(*model, row({1}), row({10, 20, 30})), "11 21 31 ");
    EXPECT_FALSE(model->run("", {}, std::array{row({1}), row({1, 2, 3, 4, 5})}, {}, 1).ok());
    EXPECT_EQ(run(*model, row({1, 2, 3, 4, 5}), row({1})), "2 3 4 5 6 ");
  }
}

// What the inner branch decides rests on what the outer one has declared.
TEST(special, the_range_that_a_body_declares_holds_at_every_size) {
  auto graph = parse(R"(graph (n) {
    p = input bool[]
    x = input f32[n]
    y = if(p, x) then=graph (n in [0, 10]) {
      x = input f32[n]
      s = dim_size(x) axis=0
      c = constant i64[] {20}
      q = lt(s, c)
      y = if(q, x) then=graph {
        x = input f32[n]
        y = abs(x)
        output y
      } else=graph {
        x = input f32[n]
        y = neg(x)
        output y
      }
      output y
    } else=graph {
      x = input f32[n]
      output x
    }
    output y
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  auto model = *Model::create(env_with(1), *graph, nullptr, {});
  Tensor yes = *Tensor::create(DType::kBool, std::span<const int64_t>());
  *reinterpret_cast<uint8_t*>(yes.data()) = 1;
  EXPECT_EQ(shown(model->run("", {}, std::array{yes, row({-5})}, {}, 1)), "5 ");
  auto ran = model->run("", {}, std::array{yes, noise({50})}, {}, 1);
  EXPECT_EQ(ran.status().code(), Code::kShape) << ran.status().message();
  EXPECT_EQ(at_sizes(*graph, {{"n", 50}}).status().code(), Code::kShape);
}

// A text holds one graph, of which others are made as of one that was built.
TEST(special, a_model_of_a_text_does_what_one_of_its_graph_does) {
  std::string text = print(sum_of_two());
  Source source{std::as_bytes(std::span(text.data(), text.size())), nullptr, ""};
  auto model = *open_model(env_with(1), source, {}, {});
  ASSERT_TRUE(model->set_param("w", row({1})).ok());
  EXPECT_EQ(run(*model, row({1}), row({10, 20, 30})), "11 21 31 ");
  EXPECT_EQ(run(*model, row({1, 2}), row({10, 20})), "11 22 ");
}

TEST(special, a_size_outside_of_its_declared_range_stays_an_error) {
  auto model = *Model::create(env_with(1), sum_of_two(), nullptr, {});
  ASSERT_TRUE(model->set_param("w", row({1})).ok());
  Tensor nine = noise({9});
  auto ran = model->run("", {}, std::array{nine, nine}, {}, 1);
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.status().code(), Code::kRange) << ran.status().message();
}

TEST(special, params_that_were_set_reach_every_graph) {
  auto model = *Model::create(env_with(1), sum_of_two(), nullptr, {});
  ASSERT_TRUE(model->set_param("w", row({1})).ok());
  EXPECT_EQ(run(*model, row({1}), row({1, 2})), "2 3 ");
  ASSERT_TRUE(model->set_param("w", row({10})).ok());
  EXPECT_EQ(run(*model, row({1}), row({1, 2})), "20 30 ");
  EXPECT_EQ(run(*model, row({1, 1}), row({1, 2})), "20 30 ");
  EXPECT_EQ(model->set_param("v", row({10})).code(), Code::kNotFound);
}

TEST(special, options_that_name_a_size_do_not_hinder) {
  NamedAttrs policy{{"buckets.n", std::string("pow2")}, {"buckets.m", std::vector<int64_t>{4, 16}}};
  auto model = *Model::create(env_with(1), sum_of_two(), nullptr, policy);
  ASSERT_TRUE(model->set_param("w", row({1})).ok());
  EXPECT_EQ(run(*model, row({1}), row({1, 2})), "2 3 ");
}

// A run that began under the old policy may end after the new one is set.
TEST(special, no_graph_is_left_of_a_policy_that_was_replaced) {
  NamedAttrs strict{{"memory.limit", int64_t{1}}}, ample{{"memory.limit", int64_t{1} << 20}};
  Graph graph("sum");
  Builder b(graph);
  Expr first = input(b, "a", {Dim::symbol("n")}), second = input(b, "b", {Dim::symbol("m")});
  Expr sum = running_sum(b, first) + second;
  output(b, "y", running_sum(b, sum) - running_sum(b, sum * 2.0));
  auto model = *Model::create(env_with(1), graph, nullptr, ample);
  ASSERT_EQ(run(*model, row({1, 2}), row({1})), "-2 -6 ");
  ASSERT_TRUE(model->set_policy(&strict).ok());
  ASSERT_NE(run(*model, row({1, 2}), row({1})), "-2 -6 ") << "the limit does not refuse the graph";
  std::atomic<bool> stops{false};
  std::thread other([&] {
    while (!stops) (void)run(*model, row({1, 2}), row({1}));
  });
  int failures = 0;
  for (int i = 0; i < 2000 && failures == 0; i++) {
    ASSERT_TRUE(model->set_policy(&strict).ok() && model->set_policy(&ample).ok());
    failures += run(*model, row({1, 2}), row({1})) != "-2 -6 ";
  }
  stops = true;
  other.join();
  EXPECT_EQ(failures, 0);
}

TEST(special, at_most_capacity_models_are_kept) {
  NamedAttrs policy{{"cache.capacity", int64_t{2}}};
  auto model = *Model::create(env_with(1), sum_of_two(), nullptr, policy);
  ASSERT_TRUE(model->set_param("w", row({1})).ok());
  for (int64_t n : {2, 3, 4, 5, 2}) EXPECT_TRUE(model->run("", {}, std::array{row({1}), noise({n})}, {}, 1).ok());
  EXPECT_NE(model->report("special")->find(R"("models": 2)"), std::string::npos) << *model->report("special");
}

static Result<std::shared_ptr<Model>> open(const std::shared_ptr<Env>& env, const Maker& maker) {
  auto bytes = std::make_shared<const std::string>(maker.bytes());
  return open_model(env, {std::as_bytes(std::span(*bytes)), bytes, {}}, {.params_min = 1, .host = env->host().get()},
                    {});
}

// y = the sum of x * w over the axes that an input names.
static Maker sum_over_axes() {
  Maker maker(13);
  maker.input("x", 1, {"2", "2"}).input("axes", 7, {"1"}).f32("w", {1}, {1});
  return maker.node("Mul", {"x", "w"}, {"p"})
      .node("ReduceSum", {"p", "axes"}, {"y"}, {Maker::attr("keepdims", 0)})
      .output("y");
}

static Tensor axis(int64_t value) {
  return index_of(value);
}

static std::string summed(Model& model, int64_t over) {
  Tensor x = *Tensor::create(DType::kF32, std::array<int64_t, 2>{2, 2});
  for (int64_t i = 0; i < 4; i++) x.as<float>()[i] = static_cast<float>(i);
  return shown(model.run("", {}, std::array{x, axis(over)}, {}, 1));
}

TEST(special, sets_that_have_no_graph_take_no_place_of_a_model) {
  auto model = *open(env_with(1), sum_over_axes());
  NamedAttrs policy{{"cache.capacity", int64_t{2}}};
  ASSERT_TRUE(model->set_policy(&policy).ok());
  ASSERT_EQ(summed(*model, 0), "2 4 ");
  for (int64_t wrong : {7, 8, 9}) EXPECT_NE(summed(*model, wrong).find(format("axis {}", wrong)), std::string::npos);
  EXPECT_NE(model->report("special")->find(R"("models": 1)"), std::string::npos) << *model->report("special");
}

TEST(special, a_model_without_a_general_graph_knows_its_params) {
  auto model = *open(env_with(1), sum_over_axes());
  EXPECT_EQ(model->graph().params().size(), 1u);
  EXPECT_EQ(model->set_param("v", row({1})).code(), Code::kNotFound);
  EXPECT_EQ(model->set_param("w", row({1, 2})).code(), Code::kShape);
  EXPECT_EQ(summed(*model, 0), "2 4 ");
  ASSERT_TRUE(model->set_param("w", row({10})).ok());
  EXPECT_EQ(summed(*model, 0), "20 40 ");
  EXPECT_EQ(summed(*model, 1), "10 50 ");
  EXPECT_EQ(model->get("", {}).status().code(), Code::kUnsupported);
  EXPECT_NE(model->report("special")->find("\"axes\""), std::string::npos) << *model->report("special");
}

// y = a + b * w, where the file does not say the rank of a.
static Maker sum_of_any_rank() {
  Maker maker(13);
  maker.input_of_any_rank("a", 1).input("b", 1, {"n"}).f32("w", {1}, {1});
  return maker.node("Mul", {"b", "w"}, {"p"}).node("Add", {"a", "p"}, {"y"}).output("y");
}

static Tensor ones(const std::vector<int64_t>& dims) {
  return filled(dims, 1);
}

TEST(special, a_rank_that_the_file_does_not_say_is_that_of_the_run) {
  auto model = *open(env_with(1), sum_of_any_rank());
  EXPECT_EQ(run(*model, ones({}), row({1, 2})), "2 3 ");
  EXPECT_EQ(run(*model, ones({2}), row({1, 2})), "2 3 ");
  EXPECT_EQ(run(*model, ones({2, 2}), row({1, 2})), "2 3 2 3 ");
  EXPECT_EQ(run(*model, ones({3, 1}), row({1, 2})), "2 3 2 3 2 3 ");  // in a graph of this set of sizes
  ASSERT_TRUE(model->set_param("w", row({10})).ok());
  EXPECT_EQ(run(*model, ones({2, 2}), row({1, 2})), "11 21 11 21 ");
  EXPECT_NE(run(*model, ones({3}), row({1, 2})).find("3"), std::string::npos);
  EXPECT_EQ(shown(model->run("", std::array<std::string_view, 2>{"b", "a"}, std::array{row({1}), ones({})}, {}, 1)),
            "11 ");
}

TEST(special, one_graph_serves_all_sizes_of_a_rank) {
  auto model = *open(env_with(1), sum_of_any_rank());
  for (int64_t n : {2, 3, 4}) EXPECT_TRUE(model->run("", {}, std::array{ones({2, n}), noise({n})}, {}, 1).ok()) << n;
  EXPECT_TRUE(
      model->run("", std::array<std::string_view, 2>{"b", "a"}, std::array{noise({5}), ones({2, 5})}, {}, 1).ok());
  EXPECT_NE(model->report("special")->find(R"("models": 1)"), std::string::npos) << *model->report("special");
}

TEST(special, reports_say_which_ranks_are_open) {
  auto model = *open(env_with(1), sum_of_any_rank());
  EXPECT_NE(model->report("bindings")->find("f32[...]"), std::string::npos) << *model->report("bindings");
  EXPECT_NE(model->report("bindings")->find("f32[n]"), std::string::npos) << *model->report("bindings");
  EXPECT_NE(model->report("special")->find("rank.a"), std::string::npos) << *model->report("special");
  EXPECT_EQ(model->report("text").status().code(), Code::kUnsupported);
  EXPECT_EQ(model->report("devices").status().code(), Code::kUnsupported);
  EXPECT_EQ(model->get("", {}).status().code(), Code::kUnsupported);
}

// The axes decide the structure, and x has no rank in the file.
TEST(special, ranks_and_values_may_both_be_open) {
  Maker maker(13);
  maker.input_of_any_rank("x", 1).input_of_any_rank("axes", 7);
  maker.node("ReduceSum", {"x", "axes"}, {"y"}, {Maker::attr("keepdims", 0)}).output("y");
  auto model = *open(env_with(1), maker);
  for (int i = 0; i < 2; i++) {
    EXPECT_EQ(shown(model->run("", {}, std::array{ones({2, 3}), axis(0)}, {}, 1)), "2 2 2 ");
    EXPECT_EQ(shown(model->run("", {}, std::array{ones({2, 3}), axis(1)}, {}, 1)), "3 3 ");
    EXPECT_EQ(shown(model->run("", {}, std::array{ones({3}), axis(0)}, {}, 1)), "3 ");
  }
  EXPECT_NE(model->report("special")->find(R"("models": 3)"), std::string::npos) << *model->report("special");
}

TEST(special, a_node_that_is_wrong_at_any_rank_is_refused_at_once) {
  Maker maker(13);
  maker.input_of_any_rank("x", 1).node("Nonsense", {"x"}, {"y"}).output("y");
  auto model = open(env_with(1), maker);
  EXPECT_EQ(model.status().code(), Code::kUnsupported);
  EXPECT_NE(model.status().message().find("Nonsense"), std::string_view::npos) << model.status().message();
}

TEST(special, a_policy_may_name_sizes_of_an_open_rank) {
  auto model = *open(env_with(1), sum_of_any_rank());
  NamedAttrs buckets{{"buckets.a.0", std::string("pow2")}, {"dims.a.1", int64_t{16}}};
  ASSERT_TRUE(model->set_policy(&buckets).ok());
  EXPECT_EQ(run(*model, ones({2, 2}), row({1, 2})), "2 3 2 3 ");
  EXPECT_EQ(run(*model, ones({}), row({1, 2})), "2 3 ");
  NamedAttrs unknown{{"buckets.c.0", std::string("pow2")}};
  EXPECT_EQ(model->set_policy(&unknown).code(), Code::kOption);
}

TEST(special, a_size_of_an_open_rank_may_be_chosen) {
  auto bytes = std::make_shared<const std::string>(sum_of_any_rank().bytes());
  auto opened = [&](const ImportChoices& choices) {
    return open_model(env_with(1), {std::as_bytes(std::span(*bytes)), bytes, {}}, {.choices = choices}, {});
  };
  auto model = opened({.dims = {{"a.0", 2}}});
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(run(**model, ones({2, 2}), row({1, 2})), "2 3 2 3 ");
  EXPECT_FALSE((*model)->run("", {}, std::array{ones({3, 2}), row({1, 2})}, {}, 1).ok());
  EXPECT_EQ(opened({.dims = {{"c.0", 2}}}).status().code(), Code::kOption);
}

// Each slice ends three elements before the end, or counts from the end where that is below 0: an expression that grows
// with every slice.
TEST(special, sizes_too_large_to_write_down_are_known_in_the_run) {
  Maker maker(13);
  maker.input("x", 1, {"n"}).i64("zero", {1}, {0}).i64("three", {1}, {3});
  std::string last = "x";
  for (const char* step : {"1", "2", "3", "4", "5", "6"}) {
    std::string size = std::string("s") + step, end = std::string("e") + step, y = std::string("x") + step;
    maker.node("Shape", {last}, {size}).node("Sub", {size, "three"}, {end}).node("Slice", {last, "zero", end}, {y});
    last = y;
  }
  maker.output("x6");
  auto model = open(env_with(1), maker);
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto count = [&](int64_t n) {
    auto ran = (*model)->run("", {}, std::array{noise({n})}, {}, 1);
    return ran.ok() ? std::to_string(ran->outputs[0].count()) : std::string(ran.status().message());
  };
  EXPECT_EQ(count(30), "12");
  EXPECT_EQ(count(19), "1");
  EXPECT_EQ(count(5), "0");  // of 5, 2 and 1 there are left 2, 1 and 0
  EXPECT_EQ(count(0), "0");
}

// For all sizes up to these, (n - k)^3 elements would be n^3.
TEST(special, memory_is_taken_for_the_sizes_of_the_run) {
  Graph graph("cube");
  Builder b(graph);
  Dim d = Dim::symbol("n") - Dim::symbol("k");
  EXPECT_TRUE(graph.add_guard({Guard::kLessEqual, Dim::symbol("k"), Dim::symbol("n"), {}}).ok());
  Expr x = input(b, "x", {Dim::symbol("n")}), y = input(b, "y", {Dim::symbol("k")});
  output(b, "z", broadcast_to(sum(x, {0}) + sum(y, {0}), {d * d * d}));
  auto model = *Model::create(env_with(1), graph, nullptr, {});
  auto ran = model->run("", {}, std::array{noise({400000}), noise({399998})}, {}, 1);
  ASSERT_TRUE(ran.ok()) << ran.status().message();
  EXPECT_EQ(ran->outputs[0].count(), 8);
}

// The index would be out of range at these sizes too: no graph is made for each of them.
TEST(special, data_out_of_range_makes_no_graph) {
  Graph graph("pick");
  Builder b(graph);
  Expr index = b.wrap(*graph.add_input("index", DType::kI64, {Dim::symbol("m")}));
  output(b, "y", gather(input(b, "x", {Dim::symbol("n")}), index, 0));
  auto model = *Model::create(env_with(1), graph, nullptr, {});
  auto ran = model->run("", {}, std::array{axis(9), noise({3})}, {}, 1);
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.status().code(), Code::kRange) << ran.status().message();
  EXPECT_NE(model->report("special")->find(R"("models": 0)"), std::string::npos) << *model->report("special");
}

TEST(special, a_size_that_no_symbol_gives_names_the_axis) {
  Graph graph("sum");
  Builder b(graph);
  Expr x = input(b, "x", {Dim::symbol("n")});
  output(b, "y", x);
  output(b, "z", input(b, "w", {Dim::symbol("n") + Dim::symbol("p")}));
  auto model = *Model::create(env_with(1), graph, nullptr, {});
  EXPECT_TRUE(model->run("", {}, std::array{noise({3}), noise({4})}, {}, 2).ok());
  auto ran = model->run("", {}, std::array{noise({3}), noise({2})}, {}, 2);
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.status().message(), "'w', axis 0: no size is found that makes n + p equal to 2 where n is 3");
}

// The host is called without a lock: a callback that waits for another thread's run of the same model goes on.
TEST(special, callbacks_may_wait_for_other_runs_of_the_model) {
  struct Waiting {
    std::shared_ptr<Model> model;
    bool is_inside = false;
  } waiting;
  HostServices services;
  services.user = &waiting;
  services.progress = [](void* user, const char*, double) {
    auto& it = *static_cast<Waiting*>(user);
    if (!it.model || it.is_inside) return kCallbackOk;
    it.is_inside = true;
    std::thread([&] { EXPECT_EQ(summed(*it.model, 1), "1 5 "); }).join();
    std::thread([&] { EXPECT_EQ(summed(*it.model, 0), "2 4 "); }).join();  // of what is being made here
    return kCallbackOk;
  };
  auto env = *Env::create({.threads = 1}, services);
  waiting.model = *open(env, sum_over_axes());
  EXPECT_EQ(summed(*waiting.model, 0), "2 4 ");
  EXPECT_TRUE(waiting.is_inside);
  waiting.model = nullptr;
}

// What a callback has answered once says nothing about the next call.
TEST(special, a_failure_of_the_host_is_not_remembered) {
  int32_t answer = kCallbackOk;
  HostServices services;
  services.user = &answer;
  services.progress = [](void* user, const char*, double) { return *static_cast<int32_t*>(user); };
  auto env = *Env::create({.threads = 1}, services);
  auto model = *open(env, sum_over_axes());
  for (int32_t bad : {12345, kCallbackStop}) {
    answer = bad;
    EXPECT_NE(summed(*model, bad == kCallbackStop).find("the host"), std::string::npos);
    answer = kCallbackOk;
    EXPECT_EQ(summed(*model, bad == kCallbackStop), bad == kCallbackStop ? "1 5 " : "2 4 ");
  }
}

// A call that progress ends has changed nothing: the params that it had taken are taken anew.
TEST(model, a_run_that_is_stopped_has_taken_no_params) {
  bool stops = true;
  HostServices services;
  services.user = &stops;
  services.progress = [](void* user, const char* what, double) {
    return *static_cast<bool*>(user) && std::string_view(what) == "prepare params" ? kCallbackStop : kCallbackOk;
  };
  auto env = *Env::create({.threads = 1}, services);
  Graph graph;
  Builder b(graph);
  Expr x = testing_programs::input(b, "x", {2});
  testing_programs::output(b, "y", x + b.wrap(*graph.add_param("p", DType::kF32, {2})));
  auto weights = std::make_shared<Weights>();
  auto run = [&](Model& model, float p) {
    Tensor value = *Tensor::create(DType::kF32, std::array<int64_t, 1>{2});
    value.as<float>()[0] = value.as<float>()[1] = p;
    EXPECT_TRUE(weights->put("p", value).ok());
    Tensor zero = *Tensor::create(DType::kF32, std::array<int64_t, 1>{2});
    zero.as<float>()[0] = zero.as<float>()[1] = 0;
    auto ran = model.run("", {}, std::array{zero}, {}, 1);
    return ran.ok() ? ran->outputs[0].as<float>()[1] : -1.0f;
  };
  auto model = *Model::create(env, graph, weights, {});
  EXPECT_EQ(run(*model, 1), -1);
  stops = false;
  EXPECT_EQ(run(*model, 5), 5);
}

TEST(at_sizes, nodes_are_inferred_again_and_what_the_author_declared_stays) {
  Graph graph = sum_of_two();
  for (int64_t limit : {0, 8}) EXPECT_TRUE(at_sizes(graph, {{"n", limit}}).ok()) << limit;
  ASSERT_TRUE(graph.declare_guard({Guard::kLessEqual, Dim::symbol("m"), Dim(4), {}}).ok());
  auto made = at_sizes(graph, {{"n", 1}, {"m", 3}});
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(text_of(made->type(made->outputs()[0].value)), "f32[3]");
  EXPECT_TRUE(made->symbols().empty());
  EXPECT_EQ(at_sizes(graph, {{"n", 1}, {"m", 5}}).status().code(), Code::kShape);
  EXPECT_EQ(at_sizes(graph, {{"n", 2}, {"m", 3}}).status().code(), Code::kShape);
  EXPECT_EQ(at_sizes(graph, {{"n", 9}}).status().code(), Code::kRange);
  auto half = at_sizes(graph, {{"n", 2}});
  ASSERT_TRUE(half.ok()) << half.status().message();
  EXPECT_EQ(half->symbols().size(), 1u);
  EXPECT_EQ(at_sizes(graph, {{"n", 8}}).status().code(), Code::kShape);  // no m is both 8 and at most 4
}

// The guard of a later node decided a size of the first `if`, and is not known when the copy of that `if` is made: so
// the copy decides a size of its own, whose name no later node has.
TEST(at_sizes, a_size_that_only_the_copy_decides_has_a_name_of_its_own) {
  auto graph = parse(R"(graph (n, m in [0, 1]) {
    guard 0 <= m - 1 "slice"
    p = input bool[]
    x = input f32[m]
    z = input f32[n]
    a = if(p, x) then=graph {
      x = input f32[m]
      none = slice(x) starts=[m] ends=[(m/2)] steps=[-1]
      output none
    } else=graph {
      x = input f32[m]
      none = slice(x) starts=[0] ends=[0]
      output none
    }
    b = slice(x) starts=[m - 1] ends=[-2147483648] steps=[-1]
    c = if(p, z) then=graph {
      z = input f32[n]
      output z
    } else=graph {
      z = input f32[n]
      twice = concat(z, z) axis=0
      output twice
    }
    output a
    output b
    output c
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(text_of(graph->type(graph->outputs()[2].value)), "f32[if.0]") << print(*graph);
  auto made = at_sizes(*graph, {{"n", 3}});
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(text_of(made->type(made->outputs()[2].value)), "f32[if.0]") << print(*made);
  EXPECT_NE(text_of(made->type(made->outputs()[0].value)), "f32[if.0]") << print(*made);
}

// As a number, -1 among the sizes of a reshape stands for what the others leave.
TEST(at_sizes, a_size_that_becomes_negative_is_not_computed_from_the_others) {
  auto graph = parse(R"(
graph (n, m) {
  x = input f32[6]
  y = input f32[n]
  z = input f32[m]
  r = reshape(x) shape=[n - 3,m]
  output r
})",
                     op_table());
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(at_sizes(*graph, {{"n", 2}}).status().code(), Code::kShape);
  auto model = *Model::create(env_with(1), *graph, nullptr, {});
  auto code = [&](int64_t n, int64_t m) {
    return model->run("", {}, std::array{noise({6}), noise({n}), noise({m})}, {}, 1).status().code();
  };
  EXPECT_EQ(code(5, 3), Code::kOk);
  EXPECT_EQ(code(2, 3), Code::kShape);
}

// A graph for the sizes of one run has no guard left that says so.
TEST(at_sizes, a_number_that_a_size_becomes_is_legal) {
  auto graph = parse("graph (m) {\nx = input f32[m]\ny, z = top_k(x) k=m-2\noutput y\n}");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_TRUE(at_sizes(*graph, {{"m", 2}}).ok());
  Status few = at_sizes(*graph, {{"m", 1}}).status();
  EXPECT_EQ(few.code(), Code::kShape);
  EXPECT_EQ(few.message(), "top_k 'y': 'k' must be at least 0, not -1");
  auto model = *Model::create(env_with(1), *graph, nullptr, {});
  EXPECT_TRUE(model->run("", {}, std::array{noise({2})}, {}, 1).ok());
  EXPECT_EQ(model->run("", {}, std::array{noise({1})}, {}, 1).status().code(), Code::kShape);
}

TEST(at_sizes, bodies_get_the_sizes_that_they_share) {
  auto graph = parse(R"(
graph (n) {
  x = input f32[n]
  c = input bool[]
  y = if(c, x) then=graph {
    a = input f32[n]
    output y = a
  } else=graph {
    a = input f32[n]
    b = neg(a) -> f32[n]
    output y = b
  } -> f32[n]
  output y
})");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  auto made = at_sizes(*graph, {{"n", 3}});
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(text_of(made->type(made->outputs()[0].value)), "f32[3]");
}

// Where the sizes decide a condition, the branch that is taken gives the sizes that the node has named.
TEST(at_sizes, sizes_that_a_decided_condition_chooses_are_those_of_its_branch) {
  auto graph = parse(R"(
graph (n in [0, 9], k in [0, 18]) {
  guard k <= 8
  x = input f32[n]
  size = dim_size(x) axis=0
  limit = constant i64[] {3}
  is_small = lt(size, limit)
  y = if(is_small, x) then=graph {
    b = input f32[n]
    c = concat(b, b) axis=0
    output c
  } else=graph {
    b = input f32[n]
    c = neg(b)
    output c
  } chosen=["k"]
  z = iota() shape=[k] axis=0 dtype=f32
  w = add(z, y)
  output w
})");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  for (int64_t n : {2, 4}) {
    auto made = at_sizes(*graph, {{"n", n}});
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_TRUE(made->symbols().empty());
    auto program = Program::compile(env_with(1), *made, nullptr, nullptr, {});
    ASSERT_TRUE(program.ok()) << program.status().message();
    auto got = (*program)->run({}, std::array{noise({n}, 2)}, {}, 1);
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_EQ(type_text((*got)[0].dtype(), (*got)[0].dims()), "f32[4]");
  }
}

}  // namespace rlx
