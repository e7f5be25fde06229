// SPDX-License-Identifier: Apache-2.0
// Custom ops of a host: calls, effects, bodies, functions.
#include "custom.h"

#include <chrono>
#include <thread>

namespace rlx::custom_ops {
namespace {

// ---- calls ----

TEST_F(CustomOpTest, a_call_runs_at_every_size_on_every_device) {
  Behaviour does{shape_of_input, scale};
  ASSERT_EQ(add("vendor.scale", does), "");
  rlx_value_t y = op("custom name=vendor.scale by=2.5", {op("abs", {vector_input()})});
  rlx_graph_output(graph, "y", op("neg", {y}));
  ASSERT_EQ(failure(), "");
  rlx_model_t* model = nullptr;
  OK(rlx_model_create(graph, nullptr, nullptr, &model));
  EXPECT_EQ(run(model, {1, -2, 3}), (Floats{-2.5f, -5, -7.5f}));
  EXPECT_EQ(run(model, {}), Floats());
  EXPECT_EQ(run(model, Floats(40, 2)), Floats(40, -5));
  EXPECT_EQ(run(model, {-4}, "reference"), Floats{-10}) << failed;
  rlx_model_release(model);
}

TEST_F(CustomOpTest, its_text_reads_back_with_attributes_of_the_same_kinds) {
  Behaviour does{shape_of_input, scale};
  ASSERT_EQ(add("vendor.scale", does), "");
  rlx_attrs_t* attrs = nullptr;
  OK(rlx_attrs_create("name=vendor.scale by=2 effects=true", &attrs));
  const double reals[] = {1, 2};
  rlx_attrs_set_f64(attrs, "by", 3);
  rlx_attrs_set_f64s(attrs, "reals", reals, 2);
  rlx_attrs_set_f64(attrs, "least", -HUGE_VAL);
  rlx_attrs_set_i64(attrs, "whole", 3);
  rlx_attrs_set_str(attrs, "digits", "12");
  rlx_attrs_set_i64s(attrs, "none", nullptr, 0);
  rlx_value_t x = vector_input();
  rlx_graph_output(graph, "y", rlx_graph_op(graph, "custom", &x, 1, attrs));
  rlx_attrs_release(attrs);
  ASSERT_EQ(failure(), "");
  std::string text = text_of(graph);
  EXPECT_NE(text.find("custom(x) name=\"vendor.scale\" effects=true by=3.0 digits=\"12\" least=-inf none=[] "
                      "reals=[1.0,2.0] whole=3 -> f32[n]"),
            text.npos)
      << text;
  rlx_graph_t* again = read(text);
  ASSERT_EQ(failed, "");
  EXPECT_EQ(text_of(again), text);
  EXPECT_EQ(run(again, {1, 2}), (Floats{3, 6}));
  rlx_graph_release(again);
}

TEST_F(CustomOpTest, several_outputs_of_other_types) {
  Behaviour does;
  does.infer = [](rlx_opcall_t* call) -> int32_t {
    EXPECT_EQ(rlx_opcall_count(call, RLX_INPUT), 2u);
    EXPECT_EQ(rlx_opcall_count(call, RLX_OUTPUT), 0u);
    EXPECT_EQ(data_of(call, RLX_INPUT), nullptr);
    const int64_t two = 2;
    EXPECT_EQ(words(rlx_opcall_set_shape(call, 1, RLX_I64, &two, 1)), "");
    return shape_of_input(call);
  };
  does.run = [](rlx_opcall_t* call) -> int32_t {
    EXPECT_EQ(rlx_opcall_count(call, RLX_OUTPUT), 2u);
    auto* counts = static_cast<int64_t*>(data_of(call, RLX_OUTPUT, 1));
    counts[0] = static_cast<int64_t>(elements(call));
    counts[1] = *static_cast<const int64_t*>(data_of(call, RLX_INPUT, 1));
    return scale(call);
  };
  ASSERT_EQ(add("count", does), "");
  rlx_value_t in[] = {vector_input(), rlx_graph_scalar(graph, RLX_I64, 7)}, out[2];
  rlx_graph_op_n(graph, "custom name=count", in, 2, nullptr, out, 2);
  rlx_graph_output(graph, "y", op("cast to=f32", {out[1]}));
  ASSERT_EQ(failure(), "");
  for (const char* device : {"cpu", "reference"}) EXPECT_EQ(run(graph, {1, 2, 3}, device), (Floats{3, 7})) << failed;
}

TEST_F(CustomOpTest, the_op_lives_as_long_as_a_graph_that_uses_it) {
  Behaviour does{shape_of_input, scale}, idle;
  ASSERT_EQ(add("scale", does), "");
  rlx_op_def_t def = definition("scale", idle);
  EXPECT_EQ(words(rlx_env_register_op(env, &def)), "RLX_E_EXISTS: there is already a custom op 'scale'");
  EXPECT_EQ(*idle.destroyed, 0) << "a failed call takes nothing";
  rlx_graph_output(graph, "y", op("custom name=scale by=2", {vector_input()}));
  rlx_compiled_t* program = nullptr;
  OK(rlx_compile(graph, nullptr, nullptr, nullptr, &program));
  rlx_env_release(std::exchange(env, nullptr));
  rlx_graph_release(std::exchange(graph, nullptr));
  EXPECT_EQ(*does.destroyed, 0);
  rlx_compiled_release(program);
  EXPECT_EQ(*does.destroyed, 1);
}

// The bodies that an environment has are graphs of this environment.
TEST_F(CustomOpTest, an_op_with_a_body_goes_with_the_environment) {
  Behaviour does{shape_of_input, scale}, around{};
  ASSERT_EQ(add("scale", does), "");
  for (const char* text : {"graph (k) { x = input f32[k]\n y = custom(x) name=scale\n output y }",
                           "graph (k) { x = input f32[k]\n c = constant bool[] {true}\n"
                           " y = if(c, x) then=graph { x = input f32[k]\n y = custom(x) name=scale\n output y }"
                           " else=graph { x = input f32[k]\n output x }\n output y }"}) {
    rlx_graph_t* body = read(text);
    ASSERT_EQ(failed, "");
    rlx_op_def_t def = definition(text, around);
    def.infer = def.run = nullptr;
    def.body = body;
    OK(rlx_env_register_op(env, &def));
    rlx_graph_release(body);
  }
  rlx_graph_release(std::exchange(graph, nullptr));
  rlx_env_release(std::exchange(env, nullptr));
  EXPECT_EQ(*does.destroyed, 1);
  EXPECT_EQ(*around.destroyed, 2);
}

TEST_F(CustomOpTest, a_submitted_run_can_be_stopped) {
  Behaviour does{shape_of_input, [](rlx_opcall_t*) -> int32_t { return RLX_CB_STOP; }};
  ASSERT_EQ(add("stop", does), "");
  rlx_graph_output(graph, "y", op("custom name=stop", {vector_input()}));
  rlx_compiled_t* program = nullptr;
  rlx_exec_t* exec = nullptr;
  rlx_fence_t* done = nullptr;
  OK(rlx_compile(graph, nullptr, nullptr, nullptr, &program));
  OK(rlx_exec_create(program, nullptr, &exec));
  OK(rlx_exec_submit(exec, nullptr, 0, &done));
  OK(rlx_fence_wait(&done, 1, 1, UINT64_MAX, nullptr));
  EXPECT_EQ(words(rlx_fence_result(done, nullptr)), "RLX_E_CANCELLED: 'stop': run: the host stopped it");
  EXPECT_EQ(does.runs, 1);
  rlx_fence_release(done);
  rlx_exec_release(exec);
  rlx_compiled_release(program);
}

// The only thread of the queue is in the callback, and nobody else waits.
TEST_F(CustomOpTest, a_call_may_wait_a_while_for_another_run) {
  static rlx_exec_t* inner;
  static std::string waited;
  rlx_env_t* host = env;
  rlx_attrs_t* options = nullptr;
  OK(rlx_attrs_create("threads=1", &options));
  OK(rlx_env_create(options, nullptr, &env));
  rlx_attrs_release(options);
  rlx_graph_release(std::exchange(graph, nullptr));
  rlx_env_release(host);
  OK(rlx_graph_create(env, "outer", &graph));
  Behaviour does{shape_of_input, [](rlx_opcall_t* call) -> int32_t {
                   constexpr uint64_t kSeconds = 1000000000;
                   rlx_fence_t* done = nullptr;
                   waited = words(rlx_exec_submit(inner, nullptr, 0, &done));
                   if (done) waited += words(rlx_fence_wait(&done, 1, 1, 2 * kSeconds, nullptr));
                   rlx_fence_release(done);
                   return scale(call);
                 }};
  ASSERT_EQ(add("waits", does), "");
  rlx_graph_t* other = read("graph \"inner\" {\n  x = input f32[2]\n  y = exp(x) -> f32[2]\n  output y\n}\n");
  rlx_graph_output(graph, "y", op("custom name=waits", {vector_input()}));
  rlx_compiled_t *program = nullptr, *second = nullptr;
  rlx_exec_t* exec = nullptr;
  rlx_fence_t* done = nullptr;
  OK(rlx_compile(graph, nullptr, nullptr, nullptr, &program));
  OK(rlx_compile(other, nullptr, nullptr, nullptr, &second));
  OK(rlx_exec_create(program, nullptr, &exec));
  OK(rlx_exec_create(second, nullptr, &inner));
  OK(rlx_exec_submit(exec, nullptr, 0, &done));
  for (int32_t is_done = 0; !is_done; std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    OK(rlx_fence_result(done, &is_done));
  EXPECT_EQ(waited, "");
  rlx_fence_release(done);
  for (rlx_exec_t* it : {exec, inner}) rlx_exec_release(it);
  for (rlx_compiled_t* it : {program, second}) rlx_compiled_release(it);
  rlx_graph_release(other);
}

// ---- effects ----

TEST_F(CustomOpTest, calls_without_effects_are_merged_or_left_out) {
  Behaviour does{shape_of_input, scale};
  ASSERT_EQ(add("scale", does), "");
  rlx_value_t x = vector_input();
  op("custom name=scale by=5", {x});  // nobody reads it
  rlx_graph_output(graph, "y", op("add", {op("custom name=scale by=2", {x}), op("custom name=scale by=2", {x})}));
  EXPECT_EQ(run(graph, {1}), Floats{4});
  EXPECT_EQ(does.runs, 1);
}

TEST_F(CustomOpTest, a_call_on_constants_runs_at_every_run) {
  Behaviour does{shape_of_input, scale};
  ASSERT_EQ(add("scale", does), "");
  rlx_value_t five = op("custom name=scale by=5", {rlx_graph_scalar(graph, RLX_F32, 1)});
  rlx_graph_output(graph, "y", op("add", {vector_input(), five}));
  rlx_model_t* model = nullptr;
  OK(rlx_model_create(graph, nullptr, nullptr, &model));
  for (int i = 0; i < 3; i++) EXPECT_EQ(run(model, {1}), Floats{6});
  EXPECT_EQ(does.runs, 3);
  rlx_model_release(model);
}

// A model tries other sizes, and other devices, only where nothing has happened yet.
TEST_F(CustomOpTest, a_run_with_effects_that_fails_is_not_tried_again) {
  Behaviour does{shape_of_input, [](rlx_opcall_t*) -> int32_t { return RLX_E_NO_MEMORY; }};
  ASSERT_EQ(add("log", does), "");
  rlx_graph_output(graph, "y", op("custom name=log effects=true", {vector_input()}));
  rlx_model_t* model = nullptr;
  rlx_attrs_t* policy = nullptr;
  OK(rlx_attrs_create("chain=[cpu,reference]", &policy));
  OK(rlx_model_create(graph, nullptr, policy, &model));
  run(model, {1});
  EXPECT_EQ(does.runs, 1);
  rlx_model_release(model);
  rlx_attrs_release(policy);
}

// y = x * x; all else serves for effects only, each with a number of its own.
static constexpr const char* kEffects = R"(graph (n) {
    x = input f32[n]
    late = exp(x)
    later = tanh(late)
    one = custom(later) name="log" effects=true by=1.0
    two = custom(x) name="log" effects=true by=2.0
    same = custom(x) name="log" effects=true by=2.0
    yes = constant bool[] {1}
    three = if(yes, x) then=graph {
      a = input f32[n]
      b = custom(a) name="log" effects=true by=3.0
      output a
    } else=graph {
      a = input f32[n]
      output a
    }
    rows = reshape(x) shape=[n,1]
    four = scan(rows) n_carry=0 n_xs=1 body=graph {
      a = input f32[1]
      b = custom(a) name="log" effects=true by=4.0
      output a
    }
    none = constant i64[] {0}
    turns, held = while(none, x) n_carry=2 cond=graph {
      i = input i64[]
      a = input f32[n]
      two = constant i64[] {2}
      go = lt(i, two)
      output go
    } body=graph {
      i = input i64[]
      a = input f32[n]
      b = custom(a) name="log" effects=true by=6.0
      step = constant i64[] {1}
      j = add(i, step)
      output j
      output a
    }
    five = custom(one) name="log" effects=true by=5.0
    zero = mul(x, x)
    output zero
  })";

TEST_F(CustomOpTest, effects_happen_once_each_and_in_order) {
  static std::vector<float> seen;
  seen.clear();
  Behaviour does{shape_of_input, [](rlx_opcall_t* call) -> int32_t {
                   double by = 0;
                   size_t n = 0;
                   EXPECT_EQ(words(rlx_attrs_get_f64s(rlx_opcall_attrs(call), "by", &by, 1, &n)), "");
                   seen.push_back(static_cast<float>(by));
                   return scale(call);
                 }};
  ASSERT_EQ(add("log", does), "");
  rlx_graph_t* made = read(kEffects);
  ASSERT_EQ(failed, "");
  const Floats in_order = {1, 2, 2, 3, 4, 4, 6, 6, 5};
  for (const char* device : {"cpu", "reference"}) {
    seen.clear();
    EXPECT_EQ(run(made, {1, 2}, device), (Floats{1, 4})) << failed;
    EXPECT_EQ(seen, in_order) << device;
  }
  seen.clear();
  EXPECT_EQ(run(made, {1, 2}, "null"), (Floats{0, 0})) << failed;
  EXPECT_EQ(seen, Floats()) << "the device that runs nothing";
  rlx_graph_release(made);
}

// ---- bodies ----

TEST_F(CustomOpTest, a_body_serves_at_many_sizes) {
  rlx_graph_t* square = read(
      "graph (k) { x = input f32[k]\n n = iota() shape=[k] axis=0 dtype=f32\n"
      " zero = sub(n, n)\n y = mul(x, x)\n z = add(y, zero)\n output z }");
  ASSERT_EQ(failed, "");
  ASSERT_EQ(add("square", square), "");
  rlx_graph_release(square);
  rlx_value_t x = vector_input(), y = op("custom name=square", {x});
  rlx_graph_output(graph, "y", op("custom name=square", {op("concat axis=0", {y, x})}));
  ASSERT_EQ(failure(), "");
  for (const char* device : {"cpu", "reference"})
    EXPECT_EQ(run(graph, {2, -3}, device), (Floats{16, 81, 4, 9})) << failed;
  rlx_graph_t* cube = read("graph (k) { x = input f32[k]\n y = custom(x) name=square\n z = mul(x, y)\n output z }");
  ASSERT_EQ(add("cube", cube), "");
  rlx_graph_release(cube);
  rlx_graph_t* fixed = read("graph { x = input f32[3]\n y = custom(x) name=cube\n output y }");
  ASSERT_EQ(failed, "");
  EXPECT_EQ(run(fixed, {1, 2, -3}), (Floats{1, 8, -27}));
  rlx_graph_release(fixed);
}

// The names of sizes inside are those of the body; the host sees those of the graph that uses it.
TEST_F(CustomOpTest, a_body_may_call_the_host) {
  Behaviour does{shape_of_input, scale};
  ASSERT_EQ(add("scale", does), "");
  rlx_graph_t* body = read(
      "graph (k, n) { x = input f32[k]\n z = input f32[n]\n y = custom(x) name=scale by=2\n"
      " b = concat(y, z) axis=0\n output b }");
  ASSERT_EQ(failed, "");
  ASSERT_EQ(add("tail", body), "");
  rlx_graph_release(body);
  rlx_graph_t* made = read(R"(graph (n in [0, 64]) {
    x = input f32[n]
    one = constant f32[1] {1}
    y = custom(x, one) name="tail"
    rows = reshape(y) shape=[n + 1,1]
    z = scan(rows) n_carry=0 n_xs=1 body=graph {
      a = input f32[1]
      b = custom(a, a) name="tail"
      output b
    }
    flat = reshape(z) shape=[2 * n + 2]
    output flat
  })");
  ASSERT_EQ(failed, "");
  for (const char* device : {"cpu", "reference"})
    EXPECT_EQ(run(made, {3, -4}, device), (Floats{12, 6, -16, -8, 2, 1})) << failed;
  rlx_graph_release(made);
}

TEST_F(CustomOpTest, bodies_may_use_ops_with_bodies_at_any_depth) {
  auto add_body = [&](const std::string& name, const std::string& body) {
    rlx_graph_t* made = read("graph (k in [0, 40]) { x = input f32[k]\n" + body + "\noutput y }");
    EXPECT_EQ(failed, "") << name;
    std::string why = add(name.c_str(), made);
    rlx_graph_release(made);
    return why;
  };
  ASSERT_EQ(add_body("op0", "one = constant f32[] {1}\ny = add(x, one)"), "");
  for (int i = 1; i <= 60; i++)  // through a call, a branch, a function
    ASSERT_EQ(add_body("op" + std::to_string(i), R"(no = constant bool[] {0}
      z = if(no, x) then=graph { a = input f32[k]
        b = abs(a)
        output b
      } else=graph { a = input f32[k]
        b = custom(a) name="op)" + std::to_string(i - 1) +
                                                     R"("
        output b
      }
      y = custom_fn(z) fwd=graph { a = input f32[k]
        b = neg(a)
        c = neg(b)
        output c
      })"),
              "");
  rlx_value_t y = op("custom name=op60", {vector_input()});
  EXPECT_EQ(failure(), "");
  rlx_graph_output(graph, "y", y);
  for (const char* device : {"cpu", "reference"}) {
    EXPECT_EQ(run(graph, {2, -3}, device), (Floats{3, -2})) << failed;
    EXPECT_EQ(run(graph, Floats(41, 2), device), Floats()) << "a size that a body at the bottom does not take";
  }
  std::string why;
  for (int i = 0; i < 30 && why.empty(); i++)
    why =
        add_body("two" + std::to_string(i + 1), "z = custom(x) name=" + (i ? "two" + std::to_string(i) : "op0") +
                                                    "\ny = custom(z) name=" + (i ? "two" + std::to_string(i) : "op0"));
  EXPECT_EQ(why, "RLX_E_UNSUPPORTED: the body of 'two19': with the bodies that it uses it has more than 1048576 nodes");
}

// ---- custom_fn ----

TEST_F(CustomOpTest, a_function_is_its_fwd) {
  const char* text = R"(graph (n) {
  x = input f32[n]
  y = custom_fn(x) fwd=graph {
    a = input f32[n]
    b = mul(a, a)
    output b
  } vjp=graph {
    a = input f32[n]
    b = input f32[n]
    d = input f32[n]
    two = add(a, a)
    g = mul(two, d)
    output g
  }
  total = reduce(y) fn=sum
  output total
})";
  rlx_graph_t* made = read(text);
  ASSERT_EQ(failed, "");
  for (const char* device : {"cpu", "reference"})
    EXPECT_EQ(run(made, {-2, -.5, 0, 1.5, 3}, device), Floats{15.5f}) << failed;
  rlx_graph_t* again = read(text_of(made));
  EXPECT_EQ(text_of(again), text_of(made));
  rlx_graph_release(made);
  rlx_graph_release(again);
}

}  // namespace
}  // namespace rlx::custom_ops
