// SPDX-License-Identifier: Apache-2.0
// Mistakes with custom ops, and callbacks that fail, lie or throw.
#include "custom.h"

namespace rlx::custom_ops {
namespace {

// ---- definitions and graphs ----

TEST_F(CustomOpTest, mistakes_in_a_definition) {
  Behaviour does{shape_of_input, scale};
  auto refused = [&](void (*change)(rlx_op_def_t & def)) {
    rlx_op_def_t def = definition("it", does);
    change(def);
    std::string why = words(rlx_env_register_op(env, &def));
    EXPECT_EQ(*does.destroyed, 0);
    return why;
  };
  EXPECT_EQ(refused([](rlx_op_def_t& def) { def.name = nullptr; }), "RLX_E_INVALID_ARGUMENT: a custom op needs a name");
  EXPECT_EQ(refused([](rlx_op_def_t& def) { def.name = ""; }), "RLX_E_INVALID_ARGUMENT: a custom op needs a name");
  EXPECT_EQ(refused([](rlx_op_def_t& def) { def.run = nullptr; }),
            "RLX_E_INVALID_ARGUMENT: the custom op 'it' needs a body, or both infer and run");
  EXPECT_EQ(refused([](rlx_op_def_t& def) { def.flags = 1; }), "RLX_E_VERSION: rlx_op_def_t: flags is 1, not 0");
  EXPECT_EQ(refused([](rlx_op_def_t& def) { def.struct_size = 8; }).substr(0, 45),
            "RLX_E_VERSION: rlx_op_def_t: struct_size is 8");
  struct Future {
    rlx_op_def_t known;
    void* more[2];
  };
  Future future{definition("of the future", does), {nullptr, nullptr}};
  future.known.struct_size = sizeof future;
  OK(rlx_env_register_op(env, &future.known));
  future.known.name = "of the far future";
  future.more[1] = &future;
  EXPECT_NE(words(rlx_env_register_op(env, &future.known)).find("RLX_E_VERSION: rlx_op_def_t: it uses members that"),
            std::string::npos);
  EXPECT_EQ(refused([](rlx_op_def_t& def) { def.struct_size = sizeof def - 1; }).substr(0, 46),
            "RLX_E_VERSION: rlx_op_def_t: struct_size is 55");
  EXPECT_EQ(refused([](rlx_op_def_t& def) { def.struct_size = 4097; }).substr(0, 48),
            "RLX_E_VERSION: rlx_op_def_t: struct_size is 4097");
  rlx_env_t* other = nullptr;
  rlx_graph_t* theirs = nullptr;
  OK(rlx_env_create(nullptr, nullptr, &other));
  OK(rlx_graph_create(other, "theirs", &theirs));
  EXPECT_EQ(add("it", theirs), "RLX_E_INVALID_ARGUMENT: 'body' belongs to another environment");
  rlx_graph_release(theirs);
  rlx_env_release(other);
}

TEST_F(CustomOpTest, mistakes_in_a_graph) {
  Behaviour does{shape_of_input, scale};
  ASSERT_EQ(add("scale", does), "");
  struct Mistake {
    const char *op, *says;
  };
  for (auto [text, says] : {
           Mistake{"custom name=scales",
                   "RLX_E_NOT_FOUND: custom: no custom op 'scales' is registered (did you mean "
                   "'scale'?); input 0 is input 'x' f32[n]"},
           Mistake{"custom", "RLX_E_OPTION: custom: attribute 'name' (str) is missing"},
           Mistake{"custom name=scale by=f32[1]{1}",
                   "RLX_E_OPTION: custom: 'by' must be a number, a string or a list of them, not the tensor f32[1]"},
           Mistake{"host_call name=scale", "RLX_E_NOT_FOUND: no op 'host_call'"},
       }) {
    rlx_graph_t* fresh = nullptr;
    OK(rlx_graph_create(env, "fresh", &fresh));
    rlx_graph_release(std::exchange(graph, fresh));
    op(text, {vector_input()});
    EXPECT_EQ(failure().substr(0, std::string(says).size()), says) << text << ": " << failure();
  }
}

// ---- callbacks that fail, lie or throw ----

TEST_F(CustomOpTest, an_infer_that_fails_is_told_by_name) {
  struct Case {
    int32_t (*infer)(rlx_opcall_t* call);
    const char* says;
  };
  const Case cases[] = {
      {[](rlx_opcall_t*) -> int32_t { return 7; }, "RLX_E_CALLBACK: custom: 'it': infer returned 7, not RLX_CB_OK"},
      {[](rlx_opcall_t*) -> int32_t { return RLX_CB_STOP; },
       "RLX_E_CANCELLED: custom: 'it': infer: the host stopped it"},
      {[](rlx_opcall_t*) -> int32_t { return RLX_CB_OK; }, "RLX_E_CALLBACK: custom: 'it': it has 0 outputs"},
      {[](rlx_opcall_t* call) { return rlx_opcall_fail(call, RLX_E_SHAPE, "rank 2 only"); },
       "RLX_E_SHAPE: custom: 'it': infer: rank 2 only"},
      {[](rlx_opcall_t* call) -> int32_t {
         (void)rlx_opcall_fail(call, RLX_OK, nullptr);
         return RLX_CB_OK;
       },
       "RLX_E_CALLBACK: custom: 'it': infer: "},
      {[](rlx_opcall_t*) -> int32_t { throw std::runtime_error("no luck"); },
       "RLX_E_CALLBACK: custom: 'it': infer: unexpected exception: no luck"},
      {[](rlx_opcall_t*) -> int32_t { throw std::bad_alloc(); },
       "RLX_E_CALLBACK: custom: 'it': infer: unexpected exception: std::bad_alloc"},
      {[](rlx_opcall_t* call) -> int32_t {
         const int64_t one = 1;
         EXPECT_EQ(words(rlx_opcall_set_shape(call, 1, RLX_F32, &one, 1)), "");
         return RLX_CB_OK;
       },
       "RLX_E_CALLBACK: custom: 'it': infer gave no shape to output 0"},
      {[](rlx_opcall_t* call) -> int32_t {
         EXPECT_EQ(words(rlx_opcall_set_shape(call, 0, 64, nullptr, 0)), "");  // a block dtype
         return RLX_CB_OK;
       },
       "RLX_E_DTYPE: custom: 'it': output 0 may not be"},
      {[](rlx_opcall_t* call) -> int32_t {
         const int64_t bad[] = {-1, -(int64_t{1} << 50)}, many[64] = {};
         EXPECT_EQ(words(rlx_opcall_set_shape(call, 0, RLX_F32, bad, 1)).substr(0, 11), "RLX_E_SHAPE");
         EXPECT_EQ(words(rlx_opcall_set_shape(call, 0, RLX_F32, bad + 1, 1)).substr(0, 11), "RLX_E_RANGE");
         EXPECT_EQ(words(rlx_opcall_set_shape(call, 64, RLX_F32, many, 1)).substr(0, 11), "RLX_E_RANGE");
         EXPECT_EQ(words(rlx_opcall_set_shape(call, SIZE_MAX, RLX_F32, many, 1)).substr(0, 11), "RLX_E_RANGE");
         EXPECT_EQ(words(rlx_opcall_set_shape(call, 0, RLX_F32, many, 64)).substr(0, 11), "RLX_E_SHAPE");
         EXPECT_EQ(words(rlx_opcall_set_shape(call, 0, 12345, many, 1)).substr(0, 11), "RLX_E_DTYPE");
         EXPECT_EQ(rlx_opcall_tensor(call, RLX_INPUT, 1), nullptr);
         EXPECT_EQ(rlx_opcall_tensor(call, RLX_PARAM, 0), nullptr);
         EXPECT_EQ(rlx_opcall_tensor(call, RLX_OUTPUT, 0), nullptr);
         EXPECT_EQ(rlx_opcall_count(call, RLX_PARAM), 0u);
         return rlx_opcall_fail(call, 999, "enough");
       },
       "RLX_E_UNKNOWN: custom: 'it': infer: enough"},
  };
  Behaviour does{nullptr, scale};
  ASSERT_EQ(add("it", does), "");
  for (const Case& each : cases) {
    does.infer = each.infer;
    rlx_graph_t* fresh = nullptr;
    OK(rlx_graph_create(env, "fresh", &fresh));
    rlx_graph_release(std::exchange(graph, fresh));
    op("custom name=it", {vector_input()});
    EXPECT_EQ(failure().substr(0, std::string(each.says).size()), each.says) << failure();
    rlx_status_t* kept = rlx_graph_status(graph);
    EXPECT_STREQ(rlx_status_detail(kept, "op"), "custom");
    rlx_status_release(kept);
  }
}

// The size of another graph is a token too.
TEST_F(CustomOpTest, an_output_has_only_sizes_of_the_graph) {
  static int64_t foreign = 0;
  rlx_graph_t* other = nullptr;
  OK(rlx_graph_create(env, "other", &other));
  foreign = rlx_graph_dim(other, "elsewhere", 1, 5);
  rlx_graph_release(other);
  Behaviour does{[](rlx_opcall_t* call) -> int32_t {
                   EXPECT_EQ(words(rlx_opcall_set_shape(call, 0, RLX_F32, &foreign, 1)), "");
                   return RLX_CB_OK;
                 },
                 scale};
  ASSERT_EQ(add("it", does), "");
  op("custom name=it", {vector_input()});
  EXPECT_EQ(failure().substr(0, 84),
            "RLX_E_SHAPE: custom: 'it': output 0: elsewhere is not a size of this graph; input 0 ");
}

TEST_F(CustomOpTest, an_output_above_all_sizes_names_the_op) {
  Behaviour does{[](rlx_opcall_t* call) -> int32_t {
                   const int64_t huge = (int64_t{1} << 48) + 1;
                   EXPECT_EQ(words(rlx_opcall_set_shape(call, 0, RLX_F32, &huge, 1)), "");
                   return RLX_CB_OK;
                 },
                 scale};
  ASSERT_EQ(add("it", does), "");
  op("custom name=it", {vector_input()});
  std::string says = "RLX_E_RANGE: custom: 'it': the result: the size 281474976710657 is above 2^48";
  EXPECT_EQ(failure().substr(0, says.size()), says);
}

// An infer that answers otherwise from one of its calls on, as the global `fickle` says.
struct Fickle {
  int calls = 0, otherwise_from = 0;
  int32_t (*otherwise)(rlx_opcall_t* call) = nullptr;
};
Fickle fickle;

int32_t answer_fickly(rlx_opcall_t* call) {
  return ++fickle.calls >= fickle.otherwise_from ? fickle.otherwise(call) : shape_of_input(call);
}

// infer is called when the op is added, when it is compiled, and when the compiled graph is verified.
TEST_F(CustomOpTest, an_infer_that_changes_its_mind_is_blamed) {
  struct Case {
    int32_t (*otherwise)(rlx_opcall_t* call);
    rlx_code_t code;
    const char* says;
  };
  const Case cases[] = {
      {[](rlx_opcall_t* call) -> int32_t {
         int64_t n = 0;
         (void)rlx_tensor_shape(rlx_opcall_tensor(call, RLX_INPUT, 0), &n, 1);
         EXPECT_EQ(words(rlx_opcall_set_shape(call, 0, RLX_I32, &n, 1)), "");
         return RLX_CB_OK;
       },
       RLX_E_CALLBACK, "'it': infer gave f32[n] first and then, for the same inputs, i32[n]"},
      {[](rlx_opcall_t* call) -> int32_t {
         EXPECT_EQ(words(rlx_opcall_set_shape(call, 1, RLX_F32, nullptr, 0)), "");
         return shape_of_input(call);
       },
       RLX_E_CALLBACK, "'it': infer gave f32[n] first and then, for the same inputs, f32[n], f32[]"},
      {[](rlx_opcall_t*) -> int32_t { return RLX_CB_OK; }, RLX_E_CALLBACK,
       "'it': infer gave f32[n] first and then, for the same inputs, no outputs"},
      {[](rlx_opcall_t* call) { return rlx_opcall_fail(call, RLX_E_INTERNAL, "no more"); }, RLX_E_INTERNAL,
       "'it': infer: no more; for the same inputs it gave f32[n] before"},
      {[](rlx_opcall_t*) -> int32_t { return RLX_CB_STOP; }, RLX_E_CANCELLED, "'it': infer: the host stopped it"},
  };
  Behaviour does{answer_fickly, scale};
  ASSERT_EQ(add("it", does), "");
  for (const char* text : {"custom name=it", "custom name=it effects=true"}) {
    for (const Case& each : cases) {
      for (int otherwise_from : {2, 3}) {
        fickle = {0, otherwise_from, each.otherwise};
        rlx_graph_t* fresh = nullptr;
        OK(rlx_graph_create(env, "fresh", &fresh));
        rlx_graph_release(std::exchange(graph, fresh));
        rlx_graph_output(graph, "y", op(text, {vector_input()}));
        ASSERT_EQ(failure(), "");
        run(graph, {1, 2});
        EXPECT_EQ(failed.find(rlx_code_name(each.code)), 0u) << failed;
        EXPECT_NE(failed.find(each.says), failed.npos) << otherwise_from << ": " << failed;
        EXPECT_EQ(failed.find("not a valid graph"), failed.npos) << failed;
      }
    }
  }
}

// The blame is the callback's in a body too, which a verifier of its own checks.
TEST_F(CustomOpTest, an_infer_that_changes_its_mind_in_a_body_is_blamed) {
  Behaviour does{answer_fickly, scale};
  ASSERT_EQ(add("it", does), "");
  bool is_blamed_late = false;
  for (int otherwise_from = 2; otherwise_from < 8; otherwise_from++) {
    fickle = {0, otherwise_from, [](rlx_opcall_t* call) { return rlx_opcall_fail(call, RLX_E_SHAPE, "no more"); }};
    rlx_graph_t* whole = read(
        "graph (n in [0, 64]) { x = input f32[n]\n c = constant bool[] {true}\n"
        "y = if(c, x) then=graph { a = input f32[n]\n b = custom(a) name=it\n output b } "
        "else=graph { a = input f32[n]\n b = exp(a)\n output b }\n output y }");
    if (!whole) {
      EXPECT_EQ(failed.find("RLX_E_INTERNAL"), failed.npos) << failed;
      continue;
    }
    run(whole, {1, 2});
    EXPECT_EQ(failed.find("RLX_E_INTERNAL"), failed.npos) << otherwise_from << ": " << failed;
    is_blamed_late |= failed.find("for the same inputs it gave f32[n] before") != failed.npos;
    rlx_graph_release(whole);
  }
  EXPECT_TRUE(is_blamed_late);
}

TEST_F(CustomOpTest, a_run_that_fails_is_told_by_name) {
  struct Case {
    int32_t (*run)(rlx_opcall_t* call);
    const char* says;
  };
  const Case cases[] = {
      {[](rlx_opcall_t*) -> int32_t { return 0; }, "RLX_E_CALLBACK: 'it': run returned 0, not RLX_CB_OK"},
      {[](rlx_opcall_t* call) { return rlx_opcall_fail(call, RLX_E_IO, "the plug is out"); },
       "RLX_E_IO: 'it': run: the plug is out"},
      {[](rlx_opcall_t*) -> int32_t { return RLX_CB_STOP; }, "RLX_E_CANCELLED: 'it': run: the host stopped it"},
      {[](rlx_opcall_t*) -> int32_t { throw 7; }, "RLX_E_CALLBACK: 'it': run: unexpected exception of an unknown type"},
      {[](rlx_opcall_t* call) -> int32_t {
         const int64_t one = 1;
         EXPECT_EQ(words(rlx_opcall_set_shape(call, 0, RLX_F32, &one, 1)).substr(0, 11), "RLX_E_STATE");
         EXPECT_EQ(rlx_opcall_tensor(call, RLX_OUTPUT, 1), nullptr);
         EXPECT_EQ(rlx_opcall_tensor(call, RLX_SYMBOL, 0), nullptr);
         return 0;
       },
       "RLX_E_CALLBACK: 'it': run returned 0"},
  };
  Behaviour does{shape_of_input, nullptr};
  ASSERT_EQ(add("it", does), "");
  rlx_graph_output(graph, "y", op("custom name=it", {vector_input()}));
  for (const Case& each : cases) {
    does.run = each.run;
    for (const char* device : {"cpu", "reference"}) {
      run(graph, {1, 2}, device);
      EXPECT_NE(failed.find(each.says), failed.npos) << device << ": " << failed;
    }
  }
  does.run = scale;
  EXPECT_EQ(run(graph, {1}), Floats{10}) << "the next run is well again";
  does.run = cases[1].run;
  rlx_graph_t* named = nullptr;
  OK(rlx_graph_create(env, "named", &named));
  rlx_graph_push_name(named, "layer.3");
  int64_t two = 2;
  rlx_value_t x = rlx_graph_input(named, "x", RLX_F32, &two, 1);
  rlx_graph_output(named, "y", rlx_graph_op(named, "custom name=it", &x, 1, nullptr));
  for (const char* device : {"cpu", "reference"}) {
    run(named, {1, 2}, device);
    EXPECT_NE(failed.find("custom 'layer.3/custom': 'it': run: the plug is out"), failed.npos) << failed;
  }
  rlx_graph_release(named);
}

TEST_F(CustomOpTest, mistakes_with_bodies) {
  auto refused = [&](const char* text) {
    rlx_graph_t* body = read(text);
    EXPECT_EQ(failed, "");
    std::string why = add("it", body);
    rlx_graph_release(body);
    return why;
  };
  EXPECT_EQ(refused("graph { x = input f32[2]\n w = param f32[2]\n y = mul(x, w)\n output y }"),
            "RLX_E_UNSUPPORTED: the body of 'it': it has the param 'w': it can read only its inputs");
  EXPECT_EQ(refused("graph (n) { x = input f32[n]\n y = nonzero(x) symbol=\"k\"\n output y }"),
            "RLX_E_UNSUPPORTED: the body of 'it': it finds the size 'k' in the run");
  EXPECT_EQ(refused("graph (n) { x = input f32[2 * n]\n y = neg(x)\n output y }"),
            "RLX_E_SHAPE: the body of 'it': the size 'n' is not an axis of an input");
  EXPECT_EQ(refused("graph (n) { x = input f32[n]\n }"),
            "RLX_E_INVALID_ARGUMENT: the body of 'it': it needs an input and an output");
  ASSERT_EQ(refused("graph (n in [2, 4], m) { x = input f32[n,m]\n w = input f32[m]\n y = mul(x, w)\n output y }"), "");
  auto said = [&](const char* text) {
    rlx_graph_release(read(text));
    return failed;
  };
  EXPECT_EQ(said("graph { x = input f32[2,3]\n w = input f32[3]\n y = custom(x, w) name=it\n output y }"), "");
  EXPECT_NE(
      said("graph { x = input f32[2,3]\n w = input f32[4]\n y = custom(x, w) name=it\n output y }").find("RLX_E_SHAPE"),
      std::string::npos)
      << failed;
  EXPECT_NE(
      said("graph { x = input f32[5,3]\n w = input f32[3]\n y = custom(x, w) name=it\n output y }").find("RLX_E_SHAPE"),
      std::string::npos)
      << failed;
  EXPECT_NE(
      said("graph { x = input f32[2,3]\n y = custom(x) name=it\n output y }").find("the body takes 2 inputs, not 1"),
      std::string::npos)
      << failed;
  EXPECT_NE(
      said("graph { x = input f64[2,3]\n w = input f32[3]\n y = custom(x, w) name=it\n output y }").find("RLX_E_DTYPE"),
      std::string::npos)
      << failed;
  EXPECT_NE(said("graph { x = input f32[2,3]\n w = input f32[3]\n y = custom(x, w) name=it by=2\n output y }")
                .find("unknown attribute 'by': 'it' has a body, which takes none"),
            std::string::npos)
      << failed;
  EXPECT_NE(said("graph { x = input f32[2,3]\n w = input f32[3]\n y = custom(x, w) name=it effects=true\n output y }")
                .find("'effects' is not for 'it'"),
            std::string::npos)
      << failed;
  rlx_graph_t* pairs = read("graph (n) { x = input f32[2,n]\n y = neg(x)\n output y }");
  ASSERT_EQ(add("pairs", pairs), "");
  rlx_graph_release(pairs);
  EXPECT_EQ(said("graph { x = input f32[2,3]\n y = custom(x) name=pairs\n output y }"), "");
  EXPECT_NE(
      said("graph { x = input f32[5,3]\n y = custom(x) name=pairs\n output y }").find("the body's input 'x', axis 0"),
      std::string::npos)
      << failed;
}

TEST_F(CustomOpTest, names_of_attributes_are_words) {
  Behaviour does{shape_of_input, scale};
  ASSERT_EQ(add("it", does), "");
  const int64_t two = 2;
  for (std::string name : {"a b", "1a", "a-b"}) {
    rlx_graph_t* other = nullptr;
    OK(rlx_graph_create(env, "other", &other));
    rlx_attrs_t* attrs = nullptr;
    OK(rlx_attrs_create("name=it", &attrs));
    rlx_attrs_set_f64(attrs, name.c_str(), 3);
    rlx_value_t x = rlx_graph_input(other, "x", RLX_F32, &two, 1);
    rlx_graph_op(other, "custom", &x, 1, attrs);
    std::string why = words(rlx_graph_status(other));
    EXPECT_NE(why.find("'" + name + "' is not the name of an attribute"), std::string::npos) << why;
    rlx_attrs_release(attrs);
    rlx_graph_release(other);
  }
}

TEST_F(CustomOpTest, mistakes_with_functions) {
  auto said = [&](const std::string& fwd, const std::string& more = "") {
    std::string text =
        "graph (n) {\n x = input f32[n]\n i = input i64[n]\n y = custom_fn(x, i) fwd=" + fwd + " " + more;
    rlx_graph_release(read(text + "\n output y\n}"));
    return failed;
  };
  const std::string fine = "graph {\n a = input f32[n]\n b = input i64[n]\n c = neg(a)\n output c\n output b\n }";
  auto derivative = [](const std::string& inputs, const std::string& output) {
    return "graph {\n" + inputs + " output " + output + "\n }";
  };
  const std::string known = "a = input f32[n]\n b = input i64[n]\n c = input f32[n]\n d = input i64[n]\n";
  EXPECT_EQ(said(fine), "");
  EXPECT_EQ(said(fine, "vjp=" + derivative(known + "e = input f32[n]\n", "e")), "");
  EXPECT_EQ(said(fine, "jvp=" + derivative(known + "e = input f32[n]\n", "e")), "");
  auto expect = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), message.npos) << message;
  };
  expect(said("graph {\n a = input f32[n]\n output a\n }"), "'fwd' takes 1 input, not 2");
  expect(said("graph {\n a = input f32[n]\n b = input i32[n]\n output a\n }"),
         "'fwd', input 'b' is i32[n], not i64[n]");
  expect(said("graph {\n a = input f32[n]\n b = input i64[n]\n }"), "'fwd' has no output");
  expect(said("graph {\n a = input f32[n]\n b = input i64[n]\n w = param f32[2]\n output w\n }"),
         "'fwd': it has the param 'w'");
  expect(said(fine, "vjp=" + derivative(known, "a")), "'vjp' takes 4 inputs, not 5");
  expect(said(fine, "vjp=" + derivative(known + "e = input f32[n]\n", "b")), "'vjp', output 'b' is i64[n], not f32[n]");
  expect(said(fine, "jvp=" + derivative(known + "e = input f32[n]\n output e\n", "a")), "'jvp' has 2 outputs, not 1");
}

TEST_F(CustomOpTest, no_call_no_crash) {
  EXPECT_EQ(rlx_opcall_count(nullptr, RLX_INPUT), 0u);
  EXPECT_EQ(rlx_opcall_tensor(nullptr, RLX_INPUT, 0), nullptr);
  EXPECT_EQ(rlx_opcall_attrs(nullptr), nullptr);
  EXPECT_EQ(rlx_opcall_fail(nullptr, RLX_E_IO, "lost"), 0);
  rlx_opcall_parallel_for(
      nullptr, 3, [](void*, size_t) { FAIL(); }, nullptr);
  rlx_op_def_init(nullptr, sizeof(rlx_op_def_t));
}

}  // namespace
}  // namespace rlx::custom_ops
