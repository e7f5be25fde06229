// SPDX-License-Identifier: Apache-2.0
// What a user is told of options, policies, inputs, params and sizes that are not right.
#include "errors.h"

namespace rlx::errors {

TEST(messages, compile_options_that_are_near_another_or_none) {
  expect_told(std::vector<Told>{
      {"gives an option that is near no other",
       RLX_E_OPTION,
       {nullptr, "warp.speed", nullptr, nullptr},
       {"unknown compile option 'warp.speed'", "rlx_schema lists them: \"options.compile\""},
       {"did you mean"},
       [](User& u) { return u.compile_small("warp.speed=9"); }},
      {"misspells a pass to skip",
       RLX_E_OPTION,
       {nullptr, "fusse", nullptr, nullptr},
       {"passes.skip", "'fusse'", "did you mean 'fuse'"},
       {},
       [](User& u) { return u.compile_small("passes.skip=[fusse]"); }},
      {"skips an unknown pass",
       RLX_E_OPTION,
       {nullptr, "warp", nullptr, nullptr},
       {"passes.skip", "'warp'", "canonicalize"},
       {},
       [](User& u) { return u.compile_small("passes.skip=[warp]"); }},
      {"misspells an option of an import",
       RLX_E_OPTION,
       {nullptr, "param.min", nullptr, nullptr},
       {"'param.min'", "did you mean 'params.min'"},
       {},
       [](User& u) {
         rlx_graph_t* graph;
         return rlx_import_memory(u.env, "onnx", "", 0, nullptr, nullptr, u.attrs("param.min=1"), &graph, nullptr);
       }},
  });
}

TEST(messages, sizes_that_are_not_given_or_not_there) {
  expect_told(std::vector<Told>{
      {"gives all sizes at once",
       RLX_E_OPTION,
       {nullptr, "dims", nullptr, nullptr},
       {"sizes are options dims.<symbol>, as dims.batch=4"},
       {"did you mean"},
       [](User& u) { return u.compile_small("dims=4"); }},
      {"gives a size under its name",
       RLX_E_OPTION,
       {nullptr, "batch", nullptr, nullptr},
       {"'batch'", "sizes are options dims.<symbol>, as dims.batch=4"},
       {"math"},
       [](User& u) { return u.compile_small("batch=4"); }},
      {"leaves sizes open",
       RLX_E_SHAPE,
       {nullptr, "n", "dims.n=512", nullptr},
       {"'n'", "dims.n=512", "maximum", "a model needs neither"},
       {"<symbol>"},
       [](User& u) {
         u.small_graph(false);
         return u.compile(nullptr);
       }},
      {"gives a size that is above every limit",
       RLX_E_RANGE,
       {nullptr, "n", "at most 1073741823", "4611686018427387904"},
       {"'n' = 4611686018427387904", "above 1073741823"},
       {"no upper size"},
       [](User& u) {
         u.small_graph(false);
         return u.compile("dims.n=4611686018427387904");
       }},
      {"plans for a size that is not there",
       RLX_E_OPTION,
       {nullptr, "m", "n", nullptr},
       {"'dims.m': there is no size 'm', only n"},
       {},
       [](User& u) { return u.compile_small("dims.m=9"); }},
      {"runs a model whose inputs leave sizes open",
       RLX_E_SHAPE,
       {nullptr, "b", "b, c", nullptr},
       {"missing for b, c", "the inputs do not decide it", "dims.b in the policy"},
       {"a model needs neither"},
       [](User& u) {
         rlx_graph_dim(u.graph, "b", 0, 0);
         rlx_graph_dim(u.graph, "c", 0, 0);
         u.op("exp", {u.input("x", {rlx_graph_dim(u.graph, "b + c", 0, 0)})});
         rlx_graph_output(u.graph, "y", u.op("exp", {u.input("z", {2})}));
         rlx_model_t* model = nullptr;
         if (rlx_status_t* status = rlx_model_create(u.graph, nullptr, nullptr, &model)) return status;
         rlx_tensor_t* in[] = {u.tensor({3}), u.tensor({2})};
         rlx_tensor_t* y = nullptr;
         rlx_status_t* status = rlx_model_run(model, nullptr, nullptr, in, 2, nullptr, &y, 1, nullptr);
         rlx_model_release(model);
         return status;
       }},
  });
}

TEST(messages, a_graph_without_outputs) {
  expect_told(std::vector<Told>{
      {"compiles without an output",
       RLX_E_INVALID_ARGUMENT,
       {nullptr, "mistake", "1 output or more", "0"},
       {"no outputs", "rlx_graph_output"},
       {},
       [](User& u) {
         u.op("exp", {u.input("x", {2})});
         return u.compile(nullptr);
       }},
      {"makes a model without an output",
       RLX_E_INVALID_ARGUMENT,
       {nullptr, nullptr, nullptr, nullptr},
       {"no outputs", "rlx_graph_output"},
       {},
       [](User& u) {
         u.op("exp", {u.input("x", {2})});
         rlx_model_t* model;
         return rlx_model_create(u.graph, nullptr, nullptr, &model);
       }},
  });
}

// Two lines, of which the second names what is largest; no report in JSON.
TEST(messages, a_plan_above_the_memory_limit_says_what_is_largest) {
  User u;
  rlx_status_t* status = u.compile_small("memory.limit=10 dispatch=reference");
  std::string message = rlx_status_message(status);
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << message;
  for (const char* part : {"the plan needs ", "memory.limit is 10", "the largest: ", " bytes"})
    EXPECT_NE(message.find(part), message.npos) << part << " in: " << message;
  EXPECT_EQ(message.find('{'), message.npos) << message;
  EXPECT_STREQ(rlx_status_detail(status, "value"), "memory.limit");
  EXPECT_STREQ(rlx_status_detail(status, "expected"), "at most 10");
  rlx_status_release(status);
}

// ---- devices and policies ----

static rlx_status_t* model_of(User& u, const char* policy, rlx_model_t** model) {
  u.small_graph();
  rlx_weights_t* weights = u.weights({{"w", u.tensor({3})}});
  return rlx_model_create(u.graph, weights, u.attrs(policy), model);
}

static rlx_status_t* refused(User& u, const char* policy) {
  rlx_model_t* model = nullptr;
  rlx_status_t* status = model_of(u, policy, &model);
  rlx_model_release(model);
  return status;
}

static rlx_status_t* ran_on(User& u, const char* policy, const char* device, std::string* name = nullptr) {
  rlx_model_t* model = nullptr;
  if (rlx_status_t* status = model_of(u, policy, &model)) return status;
  rlx_tensor_t *x = u.tensor({1, 3}), *y = nullptr;
  const rlx_device_t* on = nullptr;
  rlx_status_t* status = rlx_model_run(model, device, nullptr, &x, 1, nullptr, &y, 1, &on);
  if (name && on) *name = rlx_device_name(on);
  rlx_tensor_release(y);
  rlx_model_release(model);
  return status;
}

TEST(messages, devices_that_are_not_there) {
  expect_told(std::vector<Told>{
      {"asks for a device without a name",
       RLX_E_UNAVAILABLE,
       {nullptr, nullptr, "cpu, reference, null", nullptr},
       {"no device ''", "cpu, reference, null", "NULL is the default"},
       {},
       [](User& u) {
         const rlx_device_t* device;
         return rlx_env_find_device(u.env, "", &device);
       }},
      {"runs on a device without a name",
       RLX_E_UNAVAILABLE,
       {nullptr, nullptr, nullptr, nullptr},
       {"no device ''"},
       {},
       [](User& u) { return ran_on(u, "", ""); }},
      {"runs on a list with a hole",
       RLX_E_UNAVAILABLE,
       {nullptr, nullptr, nullptr, nullptr},
       {"no device ''"},
       {},
       [](User& u) { return ran_on(u, "", ",gpu"); }},
      {"misspells a device of a chain",
       RLX_E_OPTION,
       {nullptr, "chain", nullptr, nullptr},
       {"'chain'", "no device 'cqu'", "cpu, reference, null"},
       {},
       [](User& u) { return refused(u, "chain=[cqu,cpu]"); }},
      {"misspells a device to deny",
       RLX_E_OPTION,
       {nullptr, "deny", nullptr, nullptr},
       {"'deny'", "'gpuu'"},
       {},
       [](User& u) { return refused(u, "deny=[gpuu]"); }},
      {"misspells a device to allow",
       RLX_E_OPTION,
       {nullptr, "allow", nullptr, nullptr},
       {"'allow'", "'gpuu'"},
       {},
       [](User& u) { return refused(u, "allow=[gpuu]"); }},
      {"denies all that a policy takes by itself",
       RLX_E_UNAVAILABLE,
       {nullptr, nullptr, nullptr, nullptr},
       {"the policy leaves no device", "reference, null must be named"},
       {"does not allow"},
       [](User& u) { return ran_on(u, "deny=[cpu]", nullptr); }},
      {"denies what a policy allows",
       RLX_E_UNAVAILABLE,
       {nullptr, nullptr, nullptr, nullptr},
       {"'allow' and 'deny' of the policy leave no device"},
       {"must be named"},
       [](User& u) { return ran_on(u, "allow=[reference] deny=[reference]", nullptr); }},
  });
}

TEST(messages, policies_that_do_not_fit_the_model) {
  expect_told(std::vector<Told>{
      {"gives no bucket",
       RLX_E_OPTION,
       {nullptr, "buckets.n", "sizes, or pow2", "[]"},
       {"'buckets.n' is an empty list"},
       {},
       [](User& u) { return refused(u, "buckets.n=[]"); }},
      {"gives a policy an option that is near no other",
       RLX_E_OPTION,
       {nullptr, "warp.speed", nullptr, nullptr},
       {"unknown option 'warp.speed'", "rlx_schema lists them: \"options.model\", \"options.compile\""},
       {"did you mean"},
       [](User& u) { return refused(u, "warp.speed=9"); }},
      {"lets slots share their memory that are not there",
       RLX_E_NOT_FOUND,
       {nullptr, "z", nullptr, nullptr},
       {"io.alias: the graph has no input 'z', only x"},
       {},
       [](User& u) { return refused(u, "io.alias=[\"y=z\"]"); }},
      {"lets slots share their memory that are written otherwise",
       RLX_E_OPTION,
       {nullptr, "y", nullptr, nullptr},
       {"io.alias: 'y' is not 'output=input'"},
       {},
       [](User& u) { return refused(u, "io.alias=[y]"); }},
      {"misspells the size of buckets",
       RLX_E_OPTION,
       {nullptr, "m", "n", nullptr},
       {"buckets.m", "no size 'm', only n"},
       {},
       [](User& u) { return refused(u, "buckets.m=[1,2]"); }},
      {"misspells a pass in a policy",
       RLX_E_OPTION,
       {nullptr, "fusse", nullptr, nullptr},
       {"passes.skip", "did you mean 'fuse'"},
       {},
       [](User& u) { return refused(u, "passes.skip=[fusse]"); }},
  });
}

TEST(messages, a_policy_picks_among_the_devices_that_it_leaves) {
  User u, v;
  std::string name;
  rlx_status_t* status = ran_on(u, "allow=[reference]", nullptr, &name);
  EXPECT_EQ(status, nullptr) << rlx_status_message(status);
  EXPECT_EQ(name, "reference");
  status = ran_on(v, "deny=[reference]", nullptr, &name);
  EXPECT_EQ(status, nullptr) << rlx_status_message(status);
  EXPECT_EQ(name, "cpu");
}

// ---- inputs: the same of a model, fresh or with plans, and of a program ----

struct Calls {
  rlx_model_t* model = nullptr;
  rlx_compiled_t* program = nullptr;
};

// a = exp(x[n]), b = -y[m]: two sizes that nothing else gives.
static Calls two_inputs(User& u) {
  rlx_value_t x = u.input("x", {rlx_graph_dim(u.graph, "n", 0, 0)}),
              y = u.input("y", {rlx_graph_dim(u.graph, "m", 0, 0)});
  rlx_graph_output(u.graph, "a", u.op("exp", {x}));
  rlx_graph_output(u.graph, "b", u.op("neg", {y}));
  Calls calls;
  rlx_status_release(rlx_model_create(u.graph, nullptr, nullptr, &calls.model));
  rlx_status_release(rlx_compile(u.graph, nullptr, nullptr, u.attrs("dims.n=4 dims.m=4"), &calls.program));
  return calls;
}

static std::string runs(const Calls& calls, bool by_model, std::vector<const char*> names,
                        std::vector<rlx_tensor_t*> in) {
  rlx_tensor_t* out[2] = {};
  const char* const* given = names.empty() ? nullptr : names.data();
  rlx_status_t* status =
      by_model ? rlx_model_run(calls.model, nullptr, given, in.data(), in.size(), nullptr, out, 2, nullptr)
               : rlx_compiled_run(calls.program, given, in.data(), in.size(), nullptr, out, 2);
  for (rlx_tensor_t* tensor : out) rlx_tensor_release(tensor);
  return told_by(status);
}

TEST(messages, inputs_of_models_and_programs) {
  User u;
  Calls calls = two_inputs(u);
  rlx_tensor_t *one = u.tensor({2}), *two = u.tensor({3}), *flat = u.tensor({2, 2});
  struct Wrong {
    std::vector<const char*> names;
    std::vector<rlx_tensor_t*> in;
    const char* says;
  };
  const Wrong kWrong[] = {
      {{"x"}, {one}, "RLX_E_INVALID_ARGUMENT: the input 'y' is missing"},
      {{}, {one}, "RLX_E_INVALID_ARGUMENT: the input 'y' is missing"},
      {{"y"}, {one}, "RLX_E_INVALID_ARGUMENT: the input 'x' is missing"},
      {{"x", "x"}, {one, two}, "RLX_E_INVALID_ARGUMENT: the input 'x' is given twice"},
      {{}, {one, two, one}, "RLX_E_INVALID_ARGUMENT: 3 inputs given, there are 2: x, y"},
      {{"x", "y", "z"}, {one, two, one}, "RLX_E_NOT_FOUND: there is no input 'z', only x, y"},
      {{}, {one, flat}, "RLX_E_SHAPE: the input 'y' is f32[m], not f32[2,2]"},
  };
  for (const char* when : {"fresh", "planned"}) {
    for (const Wrong& wrong : kWrong)
      for (bool by_model : {true, false})
        EXPECT_EQ(runs(calls, by_model, wrong.names, wrong.in), wrong.says)
            << when << (by_model ? " model" : " program");
    EXPECT_EQ(runs(calls, true, {}, {one, two}), "");
  }
  rlx_model_release(calls.model);
  rlx_compiled_release(calls.program);
}

TEST(messages, slots_that_cannot_be_bound_or_linked) {
  expect_told(std::vector<Told>{
      {"binds a slot that is not there",
       RLX_E_RANGE,
       {nullptr, nullptr, "below 1", "3"},
       {"no input slot 3", "has 1"},
       {},
       [](User& u) { return rlx_exec_bind(u.exec(), RLX_INPUT, 3, nullptr); }},
      {"binds a param",
       RLX_E_INVALID_ARGUMENT,
       {nullptr, nullptr, "RLX_INPUT or RLX_OUTPUT", "3"},
       {"kind 3"},
       {},
       [](User& u) { return rlx_exec_bind(u.exec(), RLX_PARAM, 0, nullptr); }},
      {"binds more bytes than there can be",
       RLX_E_INVALID_ARGUMENT,
       {nullptr, nullptr, nullptr, "18446744073709551615"},
       {"rlx_exec_bind_ptr: data"},
       {},
       [](User& u) { return rlx_exec_bind_ptr(u.exec(), RLX_INPUT, 0, nullptr, SIZE_MAX); }},
      {"links a slot twice",
       RLX_E_EXISTS,
       {nullptr, "y", nullptr, nullptr},
       {"the output 'y' is linked already"},
       {},
       [](User& u) -> rlx_status_t* {
         rlx_exec_t* exec = u.exec();
         if (rlx_status_t* status = rlx_exec_link(exec, 0, 0)) return status;
         return rlx_exec_link(exec, 0, 0);
       }},
      {"binds one of two linked slots",
       RLX_E_STATE,
       {nullptr, "x", "both bound, or neither", "only the input bound"},
       {"the output 'y' and the input 'x' are linked", "only the input is bound"},
       {},
       [](User& u) -> rlx_status_t* {
         rlx_exec_t* exec = u.exec();
         if (rlx_status_t* status = rlx_exec_link(exec, 0, 0)) return status;
         if (rlx_status_t* status = rlx_exec_bind(exec, RLX_INPUT, 0, u.tensor({4, 3}))) return status;
         if (rlx_status_t* status = rlx_exec_run(exec)) return status;
         return rlx_exec_run(exec);
       }},
  });
}

TEST(messages, reports_names_and_handles_that_are_not_there) {
  expect_told(std::vector<Told>{
      {"asks a context for another report",
       RLX_E_NOT_FOUND,
       {nullptr, "memory", nullptr, nullptr},
       {"no report 'memory', only sizes"},
       {},
       [](User& u) -> rlx_status_t* {
         rlx_blob_t* json = nullptr;
         return rlx_exec_report(u.exec(), "memory", &json);
       }},
      {"waits for a fence that is NULL",
       RLX_E_INVALID_ARGUMENT,
       {nullptr, nullptr, nullptr, "NULL"},
       {"fences[0] is NULL"},
       {},
       [](User&) -> rlx_status_t* {
         rlx_fence_t* fence = nullptr;
         return rlx_fence_wait(&fence, 1, 1, 0, nullptr);
       }},
      {"misspells an op in a schema",
       RLX_E_NOT_FOUND,
       {nullptr, "op.sofmax", nullptr, nullptr},
       {"no schema 'op.sofmax' (did you mean 'softmax'?)"},
       {},
       [](User& u) -> rlx_status_t* {
         rlx_blob_t* json = nullptr;
         return rlx_schema(u.env, "op.sofmax", &json);
       }},
      {"asks for a counter that is not there",
       RLX_E_NOT_FOUND,
       {nullptr, "memory.arenas.now", nullptr, nullptr},
       {"no counter 'memory.arenas.now' (did you mean 'memory.arena.now'?)"},
       {},
       [](User& u) -> rlx_status_t* {
         int64_t count = 0;
         return rlx_env_stat(u.env, "memory.arenas.now", &count);
       }},
      {"asks a device for what it has not",
       RLX_E_NOT_FOUND,
       {nullptr, "cores", nullptr, nullptr},
       {"has no 'cores', only name, kind, description"},
       {},
       [](User& u) -> rlx_status_t* {
         const char* text = nullptr;
         return rlx_device_get_str(rlx_env_device(u.env, 0), "cores", &text);
       }},
      {"misspells a weight",
       RLX_E_NOT_FOUND,
       {nullptr, "wieght", "weight", nullptr},
       {"no weight 'wieght' (did you mean 'weight'?)"},
       {},
       [](User& u) -> rlx_status_t* {
         rlx_tensor_t* found = nullptr;
         return rlx_weights_get(u.weights({{"weight", u.tensor({3})}}), "wieght", &found);
       }},
      {"sets a size where there is none",
       RLX_E_NOT_FOUND,
       {nullptr, "n", "none", nullptr},
       {"no size 'n': there are none"},
       {},
       [](User& u) -> rlx_status_t* {
         rlx_graph_output(u.graph, "y", u.op("exp", {u.input("x", {2})}));
         rlx_compiled_t* program = nullptr;
         if (rlx_status_t* status = rlx_compile(u.graph, nullptr, nullptr, nullptr, &program)) return status;
         rlx_exec_t* exec = nullptr;
         rlx_status_t* status = rlx_exec_create(program, nullptr, &exec);
         if (!status) status = rlx_exec_set_dim(exec, "n", 1);
         rlx_exec_release(exec);
         rlx_compiled_release(program);
         return status;
       }},
  });
}

TEST(messages, params_that_are_not_set_or_not_there) {
  expect_told(std::vector<Told>{
      {"runs without a param",
       RLX_E_STATE,
       {nullptr, "w", nullptr, nullptr},
       {"the param 'w' is not set", "rlx_compiled_set_param", "rlx_model_set_param", "weights"},
       {},
       [](User& u) -> rlx_status_t* {
         u.small_graph();
         rlx_compiled_t* program = nullptr;
         if (rlx_status_t* status = rlx_compile(u.graph, nullptr, nullptr, nullptr, &program)) return status;
         rlx_tensor_t *x = u.tensor({2, 3}), *y = nullptr;
         rlx_status_t* status = rlx_compiled_run(program, nullptr, &x, 1, nullptr, &y, 1);
         rlx_compiled_release(program);
         return status;
       }},
      {"misspells a param",
       RLX_E_NOT_FOUND,
       {nullptr, "v", "w", nullptr},
       {"there is no param 'v', only w"},
       {},
       [](User& u) { return rlx_compiled_set_param(u.program(), "v", u.tensor({3})); }},
      {"misspells the name of a table",
       RLX_E_NOT_FOUND,
       {nullptr, "position_embedding", nullptr, nullptr},
       {"there is no param 'position_embedding' (did you mean 'position_embeddings'?)"},
       {},
       [](User& u) -> rlx_status_t* {
         int64_t dims[] = {2};
         rlx_value_t w = rlx_graph_param(u.graph, "position_embeddings", RLX_F32, dims, 1);
         rlx_graph_output(u.graph, "y", u.op("exp", {w}));
         rlx_model_t* model = nullptr;
         if (rlx_status_t* status = rlx_model_create(u.graph, nullptr, nullptr, &model)) return status;
         rlx_status_t* status = rlx_model_set_param(model, "position_embedding", u.tensor({2}));
         rlx_model_release(model);
         return status;
       }},
      {"sets an unknown param",
       RLX_E_NOT_FOUND,
       {nullptr, "layer.0.bias", "w", nullptr},
       {"there is no param 'layer.0.bias', only w"},
       {},
       [](User& u) -> rlx_status_t* {
         rlx_model_t* model = nullptr;
         if (rlx_status_t* status = model_of(u, "", &model)) return status;
         rlx_status_t* status = rlx_model_set_param(model, "layer.0.bias", u.tensor({3}));
         rlx_model_release(model);
         return status;
       }},
  });
}

// ---- sizes above a table ----

// Embeddings of positions 0..s-1, from a table of 512.
static rlx_status_t* positions(User& u, int64_t tokens) {
  int64_t table[] = {512, 4};
  rlx_value_t x = u.input("x", {rlx_graph_dim(u.graph, "sequence_length", 1, 0), 4});
  rlx_value_t w = rlx_graph_param(u.graph, "position_embeddings", RLX_F32, table, 2);
  int64_t s = rlx_graph_dim(u.graph, "sequence_length", 0, 0), zero = 0;
  rlx_attrs_t* attrs = u.attrs("axes=[0]");
  rlx_attrs_set_i64s(attrs, "starts", &zero, 1);
  rlx_attrs_set_i64s(attrs, "ends", &s, 1);
  rlx_value_t rows = rlx_graph_op(u.graph, "slice", &w, 1, attrs);
  rlx_graph_push_name(u.graph, "embeddings");
  rlx_graph_output(u.graph, "y", u.op("add", {x, rows}));
  rlx_graph_pop_name(u.graph);
  rlx_model_t* model = nullptr;
  rlx_weights_t* weights = u.weights({{"position_embeddings", u.tensor({512, 4})}});
  if (rlx_status_t* status = rlx_model_create(u.graph, weights, nullptr, &model)) return status;
  rlx_tensor_t *in = u.tensor({tokens, 4}), *y = nullptr;
  rlx_status_t* status = rlx_model_run(model, nullptr, nullptr, &in, 1, nullptr, &y, 1, nullptr);
  rlx_tensor_release(y);
  rlx_model_release(model);
  return status;
}

TEST(messages, a_size_above_a_table) {
  expect_told(std::vector<Told>{
      {"runs 600 tokens through a table of 512",
       RLX_E_SHAPE,
       {"add", "sequence_length", "at most 512", "600"},
       {"'sequence_length' may be at most 512", "add 'embeddings/add'", "the param 'position_embeddings' is f32[512,4]",
        "got 600"},
       {"does not hold"},
       [](User& u) { return positions(u, 600); }},
  });
  User u;
  EXPECT_EQ(told_by(positions(u, 512)), "");
}

}  // namespace rlx::errors
