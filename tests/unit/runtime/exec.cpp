// SPDX-License-Identifier: Apache-2.0
// What an exec promises beyond a plain run: pointers, links, staging, conversion, fences, models.
#include <cstring>

#include "base/os/file.h"
#include "ir/text.h"
#include "runtime/model.h"
#include "tests/unit/programs.h"
#include "tests/unit/tensors.h"

namespace rlx {

using namespace testing_programs;

static Graph counter() {  // next = state + x
  Graph graph;
  Dim n = Dim::symbol("n");
  EXPECT_TRUE(graph.declare_symbol("n", {0, 10}).ok());
  Builder b(graph);
  Expr state = input(b, "state", {n}), x = input(b, "x", {n});
  output(b, "next", state + x);
  return graph;
}

// The slot's own memory has room for the largest quotient. A size that no memory can hold is refused.
TEST(exec, an_input_of_a_quotient_has_memory_of_its_own) {
  auto exec = exec_of(
      "graph (n in [0, 40000], m in [0, 100]) {\nx = input f32[n]\nw = input f32[m]\nz = input f32[n/m,2]\n"
      "y = reduce(z) fn=sum\noutput y\n}");
  ASSERT_TRUE(exec);
  EXPECT_TRUE(exec->run().ok());
  ASSERT_TRUE(exec->set_dim("m", 1).ok());
  write(*exec, 2, std::vector<float>(80000, 1));
  ASSERT_TRUE(exec->run().ok());
  EXPECT_EQ(shown(*exec, SlotKind::kOutput, 0).as<float>()[0], 80000);
  auto huge = parse("graph (n in [0, 1099511627776]) {\nx = input f32[n]\nz = input f32[n*n]\noutput x\n}");
  ASSERT_TRUE(huge.ok()) << huge.status().message();
  Status refused = Program::compile(env_with(1), *huge, std::make_shared<Weights>(), nullptr, {}).status();
  EXPECT_EQ(refused.code(), Code::kRange) << refused.message();
}

TEST(exec, linked_slots_exchange_at_the_next_run) {
  auto env = env_with(1);
  auto program = *Program::compile(env, counter(), nullptr, nullptr, {});
  auto exec = Exec::create(program).value();
  ASSERT_TRUE(exec->set_dim("n", 3).ok());
  ASSERT_TRUE(exec->link(0, 0).ok());
  write(*exec, 1, {1, 2, 3});
  for (int run = 1; run <= 3; run++) {
    ASSERT_TRUE(exec->run().ok());
    Tensor next = shown(*exec, SlotKind::kOutput, 0);
    for (int i = 0; i < 3; i++) EXPECT_EQ(next.as<float>()[i], static_cast<float>(run * (i + 1)));
  }
  EXPECT_EQ(exec->set_dim("n", 11).code(), Code::kRange);
  EXPECT_EQ(exec->set_dim("m", 1).code(), Code::kNotFound);
}

// Between two runs the output holds what the last run wrote, even if another one was refused.
TEST(exec, a_link_stands_when_a_run_is_refused) {
  auto env = env_with(1);
  auto program = *Program::compile(env, counter(), nullptr, nullptr, {});
  auto exec = Exec::create(program).value();
  Tensor one = noise({2}), large = noise({11});
  one.as<float>()[0] = one.as<float>()[1] = 1;
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, one).ok());
  ASSERT_TRUE(exec->link(0, 0).ok());
  for (float sum = 1; sum < 4; sum++) {
    ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, one).ok());
    ASSERT_TRUE(exec->run().ok());
    ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, large).ok());
    EXPECT_FALSE(exec->run().ok());
    EXPECT_FALSE(exec->submit({}).ok());
    ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, one).ok());
    EXPECT_EQ(shown(*exec, SlotKind::kOutput, 0).as<float>()[1], sum);
  }
}

TEST(exec, a_link_stands_when_binding_one_of_its_slots_fails) {
  auto env = env_with(1);
  auto program = *Program::compile(env, counter(), nullptr, nullptr, {});
  auto exec = Exec::create(program).value();
  Tensor one = noise({2});
  one.as<float>()[0] = one.as<float>()[1] = 1;
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, one).ok());
  ASSERT_TRUE(exec->link(0, 0).ok());
  ASSERT_TRUE(exec->run().ok());
  Tensor frozen = noise({2}).frozen().value();
  for (float sum = 2; sum < 5; sum++) {
    ASSERT_TRUE(exec->run().ok());
    EXPECT_EQ(exec->bind(SlotKind::kInput, 0, one).code(), Code::kInvalidArgument);
    EXPECT_EQ(exec->bind(SlotKind::kInput, 0, frozen).code(), Code::kState);
    EXPECT_EQ(exec->bind_ptr(SlotKind::kInput, 0, one.data(), 8).code(), Code::kInvalidArgument);
    EXPECT_EQ(exec->bind(SlotKind::kOutput, 0, one).code(), Code::kInvalidArgument);
    EXPECT_EQ(exec->bind(SlotKind::kOutput, 0, frozen).code(), Code::kState);
    EXPECT_EQ(exec->bind_ptr(SlotKind::kOutput, 0, one.data(), 8).code(), Code::kInvalidArgument);
    EXPECT_EQ(shown(*exec, SlotKind::kOutput, 0).as<float>()[1], sum);
  }
}

// Where only one of two linked slots is bound, they cannot exchange their memory. Once the output is bound again, the
// state goes on in the memory of the input.
TEST(exec, the_missing_half_of_a_link_may_be_bound_between_runs) {
  auto program = *Program::compile(env_with(1), counter(), nullptr, nullptr, {});
  Tensor one = filled({2}, 1);
  enum class Half { kInput, kOutput };
  for (Half half : {Half::kInput, Half::kOutput}) {
    SCOPED_TRACE(half == Half::kInput);
    auto exec = Exec::create(program).value();
    Tensor state = filled({2}, 5), next = filled({2}, 0);
    ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, one).ok());
    ASSERT_TRUE(exec->link(0, 0).ok());
    ASSERT_TRUE(
        (half == Half::kInput ? exec->bind(SlotKind::kInput, 0, state) : exec->bind(SlotKind::kOutput, 0, next)).ok());
    float sum = half == Half::kInput ? 6 : 1;
    ASSERT_TRUE(exec->run().ok());
    EXPECT_EQ(exec->run().code(), Code::kState);
    Tensor bound = half == Half::kInput ? next : Tensor();
    Tensor frozen = noise({2}).frozen().value();
    EXPECT_EQ(exec->bind(SlotKind::kOutput, 0, one).code(), Code::kInvalidArgument);
    EXPECT_EQ(exec->bind(SlotKind::kOutput, 0, frozen).code(), Code::kState);
    EXPECT_EQ(shown(*exec, SlotKind::kOutput, 0).as<float>()[1], sum);
    ASSERT_TRUE(exec->bind(SlotKind::kOutput, 0, bound).ok());
    for (int i = 0; i < 3; i++) {
      ASSERT_TRUE(exec->run().ok());
      EXPECT_EQ(shown(*exec, SlotKind::kOutput, 0).as<float>()[1], ++sum);
    }
  }
}

// The copy waits for the run that writes what is copied, and needs room for it.
TEST(exec, a_submitted_run_hands_its_state_to_the_bound_input) {
  auto exec = Exec::create(*Program::compile(env_with(1), counter(), nullptr, nullptr, {})).value();
  Tensor one = filled({2}, 1), next = filled({2}, 0);
  float state[2] = {5, 5};
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, one).ok());
  ASSERT_TRUE(exec->link(0, 0).ok());
  ASSERT_TRUE(exec->bind_ptr(SlotKind::kInput, 0, state, sizeof state).ok());
  ASSERT_TRUE(exec->submit({}).ok());
  ASSERT_TRUE(exec->bind(SlotKind::kOutput, 0, next).ok());
  EXPECT_EQ(state[1], 6);
  ASSERT_TRUE(exec->run().ok());
  EXPECT_EQ(next.as<float>()[1], 7);
}

TEST(exec, pointers_are_used_in_place_and_misaligned_ones_staged) {
  auto env = env_with(1);
  auto program = *Program::compile(env, counter(), nullptr, nullptr, {});
  auto exec = Exec::create(program).value();
  ASSERT_TRUE(exec->set_dim("n", 2).ok());
  alignas(16) char bytes[64] = {};
  float a[2] = {1, 2}, b[2] = {10, 20}, got[2];
  std::memcpy(bytes + 1, a, sizeof a);
  ASSERT_TRUE(exec->bind_ptr(SlotKind::kInput, 0, bytes + 1, sizeof a).ok());
  ASSERT_TRUE(exec->bind_ptr(SlotKind::kInput, 1, b, sizeof b).ok());
  ASSERT_TRUE(exec->bind_ptr(SlotKind::kOutput, 0, bytes + 17, sizeof got).ok());
  ASSERT_TRUE(exec->run().ok());
  std::memcpy(got, bytes + 17, sizeof got);
  EXPECT_EQ(got[1], 22.0f);
  ASSERT_TRUE(exec->bind_ptr(SlotKind::kInput, 1, b, 4).ok());
  EXPECT_EQ(exec->run().code(), Code::kInvalidArgument);
}

TEST(exec, inputs_that_disagree_are_refused_and_the_exec_stays_usable) {
  auto env = env_with(1);
  auto program = *Program::compile(env, counter(), nullptr, nullptr, {});
  auto exec = Exec::create(program).value();
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, noise({4})).ok());
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, noise({5})).ok());
  Status failed = exec->run();
  EXPECT_EQ(failed.code(), Code::kShape);
  EXPECT_EQ(failed.message(), "'x', axis 0: n is 4, not 5");
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 1, noise({4})).ok());
  EXPECT_TRUE(exec->run().ok());
}

TEST(exec, io_convert_widens_inputs) {
  auto env = env_with(1);
  Tensor wide = *Tensor::create(DType::kF64, std::array<int64_t, 1>{3});
  for (int i = 0; i < 3; i++) wide.as<double>()[i] = i + 0.5;
  auto strict = *Program::compile(env, counter(), nullptr, nullptr, {});
  EXPECT_EQ(strict->run({}, std::array{wide, noise({3})}, {}, 1).status().code(), Code::kDtype);
  auto program = *Program::compile(env, counter(), nullptr, nullptr, {{"io.convert", int64_t{1}}});
  auto got = program->run({}, std::array{wide, wide}, {}, 1);
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ((*got)[0].as<float>()[2], 5.0f);
}

TEST(exec, dump_writes_the_graph_after_every_pass) {
  auto env = env_with(1);
  std::string folder = ::testing::TempDir();
  auto program = Program::compile(env, counter(), nullptr, nullptr, {{"dump", folder}});
  ASSERT_TRUE(program.ok()) << program.status().message();
  auto text = read_file(folder + "/00-given.rlx");
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_NE(text->find("add("), std::string::npos) << *text;
  EXPECT_EQ(Program::compile(env, counter(), nullptr, nullptr, {{"dump", "/nonexistent"}}).status().code(),
            Code::kNotFound);
}

TEST(exec, the_text_report_reads_back) {
  auto env = env_with(1);
  auto program = *Program::compile(env, counter(), nullptr, nullptr, {});
  std::string text = *program->report("text");
  EXPECT_NE(text.find("; arena "), std::string::npos) << text;
  auto graph = parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status().message() << '\n' << text;
  EXPECT_EQ(print(*graph), text.substr(0, text.find("; ")));
}

TEST(exec, a_memory_limit_refuses_the_plan) {
  Encoder encoder;
  auto env = env_with(1);
  auto refused = Program::compile(env, encoder.graph, encoder.weights, nullptr, {{"memory.limit", int64_t{1000}}});
  EXPECT_EQ(refused.status().code(), Code::kNoMemory);
}

// What is computed when params are set counts: here 40 times 40 times 1,000 numbers, of two params of 40.
TEST(exec, a_memory_limit_counts_what_is_made_of_params) {
  auto graph = parse(R"(graph {
    x = input f32[1000]
    a = param f32[40,1,1]
    b = param f32[40,1]
    c = iota() shape=[1000] axis=0 dtype=f32
    products = mul(a, b)
    table = mul(products, c)
    y = atan2(x, table)
    output y
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  constexpr int64_t kBytes = int64_t{40} * 40 * 1000 * 4;
  auto compiled = [&](int64_t limit) {
    return Program::compile(env_with(1), *graph, std::make_shared<Weights>(), nullptr, {{"memory.limit", limit}});
  };
  auto refused = compiled(kBytes - 1);
  EXPECT_EQ(refused.status().code(), Code::kNoMemory);
  EXPECT_NE(refused.status().message().find("the largest: mul 'table' (%5) 6400000 bytes"), std::string::npos)
      << refused.status().message();
  auto made = compiled(4 * kBytes);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_NE((*made)->report("memory")->find("\"prepared\": 6400000"), std::string::npos) << *(*made)->report("memory");
}

TEST(model, a_policy_chooses_among_devices) {
  auto env = env_with(1);
  auto ran_on = [&](const NamedAttrs& policy, const char* device = "") {
    auto ran =
        (*Model::create(env, counter(), nullptr, policy))->run(device, {}, std::array{noise({2}), noise({2})}, {}, 1);
    return ran.ok() ? ran->device->info().name : std::string(ran.status().message());
  };
  using List = std::vector<std::string>;
  EXPECT_EQ(ran_on({{"chain", List{"reference", "cpu"}}}), "reference");
  EXPECT_EQ(Model::create(env, counter(), nullptr, {{"chain", List{"nonesuch", "cpu"}}}).status().code(),
            Code::kOption);
  EXPECT_EQ(ran_on({{"chain", List{"reference", "cpu"}}, {"deny", List{"reference"}}}), "cpu");
  EXPECT_EQ(ran_on({{"allow", List{"reference"}}}, "reference"), "reference");
  EXPECT_EQ(ran_on({{"allow", List{"reference"}}}, "cpu"), "the policy does not allow the device 'cpu'");
}

// Whenever and for whatever device it compiles.
TEST(model, keeps_the_weights_that_it_began_with) {
  Graph graph;
  Builder b(graph);
  output(b, "y", input(b, "x", {2}) * b.wrap(*graph.add_param("w", DType::kF32, {2})));
  auto env = env_with(1);
  auto weights = std::make_shared<Weights>();
  Tensor first = noise({2}, 1), second = noise({2}, 2), x = noise({2}, 3);
  auto model = *Model::create(env, graph, weights, {});
  auto y = [&](Model& of, const char* device) {
    auto ran = of.run(device, {}, std::array{x}, {}, 1);
    EXPECT_TRUE(ran.ok()) << ran.status().message();
    return ran.ok() ? ran->outputs[0].as<float>()[0] / x.as<float>()[0] : 0;
  };
  ASSERT_TRUE(weights->put("w", first).ok());
  EXPECT_FLOAT_EQ(y(*model, ""), first.as<float>()[0]);
  ASSERT_TRUE(weights->put("w", second).ok());
  EXPECT_FLOAT_EQ(y(*model, "reference"), first.as<float>()[0]);
  NamedAttrs policy{{"threads", int64_t{1}}};
  ASSERT_TRUE(model->set_policy(&policy).ok());
  EXPECT_FLOAT_EQ(y(*model, ""), first.as<float>()[0]);
  EXPECT_FLOAT_EQ(y(**Model::create(env, graph, weights, {}), ""), second.as<float>()[0]);
  ASSERT_TRUE(model->set_param("w", second).ok());
  EXPECT_FLOAT_EQ(y(*model, ""), second.as<float>()[0]);
}

TEST(model, plans_grow_with_what_is_asked) {
  Encoder encoder;
  auto env = env_with(1);
  auto model = *Model::create(env, encoder.graph, encoder.weights, {{"buckets.batch", std::vector<int64_t>{4, 8}}});
  auto uppers = [&] { return *model->report("cache"); };
  for (int64_t seq : {10, 7, 33, 20}) {
    auto ran = model->run("", {}, Encoder::inputs(3, seq), {}, 2);
    ASSERT_TRUE(ran.ok()) << ran.status().message();
    EXPECT_EQ(ran->outputs[0].dims()[1], seq);
    EXPECT_EQ(ran->device->info().name, is_far() ? "far" : "cpu");
  }
  EXPECT_NE(uppers().find("\"seq\": 10"), std::string::npos) << uppers();
  EXPECT_NE(uppers().find("\"seq\": 64"), std::string::npos) << uppers();
  EXPECT_NE(uppers().find("\"batch\": 4"), std::string::npos) << uppers();
  auto plan = *model->get("", std::array<std::pair<std::string_view, int64_t>, 1>{{{"seq", 5}}});
  EXPECT_EQ(plan->set_param("wo", noise({32, 32})).code(), Code::kState);
  auto before = model->run("", {}, Encoder::inputs(1, 4), {}, 2);
  ASSERT_TRUE(model->set_param("wo", noise({32, 32}, 50)).ok());
  auto after = model->run("", {}, Encoder::inputs(1, 4), {}, 2);
  EXPECT_NE(before->outputs[0].as<float>()[0], after->outputs[0].as<float>()[0]);
  EXPECT_EQ(model->run("nonesuch", {}, Encoder::inputs(1, 4), {}, 2).status().code(), Code::kUnavailable);
  EXPECT_EQ(model->run("nonesuch,reference", {}, Encoder::inputs(1, 4), {}, 2)->device->info().name, "reference");
}

// The sizes of the plan are no one's word.
TEST(exec, dims_that_decide_too_little_are_named) {
  Graph graph;
  Builder b(graph);
  Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  output(b, "y", input(b, "sum", {n + m}) * 2.0);
  output(b, "z", input(b, "more", {n + Dim(5)}) * 2.0);
  auto program =
      *Program::compile(env_with(1), graph, nullptr, nullptr, {{"dims.n", int64_t{100}}, {"dims.m", int64_t{100}}});
  auto message = [&](int64_t sum, int64_t more) {
    return std::string(program->run({}, std::array{noise({sum}), noise({more})}, {}, 2).status().message());
  };
  EXPECT_EQ(message(10, 3), "'more', axis 0: no size is found that makes n + 5 equal to 3");
  EXPECT_EQ(message(10, 9), "");
}

// Arithmetic of sizes ends at 2^62. An axis of 0 elements makes such tensors possible.
TEST(exec, a_size_beyond_all_arithmetic_is_named_as_it_is) {
  auto graph = parse("graph {\nx = input f32[n,0]\ny = sin(x)\noutput y\n}");
  auto env = env_with(1);
  auto program = *Program::compile(env, *graph, nullptr, nullptr, {{"dims.n", int64_t{16}}});
  for (int64_t size : {INT64_MAX, INT64_MAX - 1, int64_t{1} << 62, int64_t{1} << 50, int64_t{17}}) {
    Tensor x = *Tensor::create(DType::kF32, std::array{size, int64_t{0}});
    Status status = program->run({}, std::array{x}, {}, 1).status();
    EXPECT_EQ(status.code(), Code::kRange) << size << ": " << status.message();
    EXPECT_NE(status.message().find(std::to_string(size)), std::string::npos) << status.message();
  }
}

TEST(exec, of_one_dim_two_sizes_stay_open) {
  Graph graph;
  Builder b(graph);
  output(b, "y", input(b, "sum", {Dim::symbol("n") + Dim::symbol("m")}) * 2.0);
  auto program =
      *Program::compile(env_with(1), graph, nullptr, nullptr, {{"dims.n", int64_t{100}}, {"dims.m", int64_t{100}}});
  EXPECT_EQ(program->run({}, std::array{noise({10})}, {}, 1).status().message(),
            "'sum', axis 0: m + n = 10 does not decide m and n: another input or call must");
}

// Of n / 2 = 3 the sizes 6 and 7 are left.
TEST(exec, a_size_is_set_where_inputs_leave_several) {
  auto exec = exec_of("graph (n in [0, 20]) {\nx = input f32[n/2]\nz = iota() shape=[n] axis=0 dtype=f32\noutput z\n}");
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, noise({3})).ok());
  auto count = [&] { return exec->run().ok() ? shown(*exec, SlotKind::kOutput, 0).count() : -1; };
  EXPECT_EQ(count(), 6);
  for (int64_t size : {7, 6}) {
    ASSERT_TRUE(exec->set_dim("n", size).ok());
    EXPECT_EQ(count(), size);
  }
  ASSERT_TRUE(exec->set_dim("n", 8).ok());
  Status status = exec->run();
  EXPECT_EQ(status.code(), Code::kShape) << status.message();
  ASSERT_TRUE(exec->bind(SlotKind::kInput, 0, noise({4})).ok());
  EXPECT_EQ(count(), 8);
}

}  // namespace rlx
