// SPDX-License-Identifier: Apache-2.0
// Mistakes in compiling, in setting params, and in running: by one call and by a context.
#include "errors.h"

namespace rlx::errors {

TEST(errors, environments_and_devices) {
  expect_told({
      {"asks for a device that is not there",
       RLX_E_UNAVAILABLE,
       {"'gpu'", "cpu", "reference"},
       [](User& u) {
         const rlx_device_t* device;
         return rlx_env_find_device(u.env, "gpu", &device);
       }},
      {"misspells an option of the environment",
       RLX_E_OPTION,
       {"'thread'", "did you mean 'threads'"},
       [](User& u) {
         rlx_env_t* env;
         return rlx_env_create(u.attrs("thread=2"), nullptr, &env);
       }},
      {"asks for fewer threads than none",
       RLX_E_OPTION,
       {"'threads'", "from 0", "not -1"},
       [](User& u) {
         rlx_env_t* env;
         return rlx_env_create(u.attrs("threads=-1"), nullptr, &env);
       }},
      {"asks for threads that spin for less than no time",
       RLX_E_OPTION,
       {"'threads.spin'", "from 0", "not -1"},
       [](User& u) {
         rlx_env_t* env;
         return rlx_env_create(u.attrs("threads.spin=-1"), nullptr, &env);
       }},
      {"asks for an unknown report",
       RLX_E_NOT_FOUND,
       {"'gpus'", "devices"},
       [](User& u) {
         rlx_blob_t* json;
         return rlx_env_report(u.env, "gpus", &json);
       }},
  });
}

TEST(errors, graphs_and_compile_options_that_cannot_be_compiled) {
  expect_told({
      {"compiles a graph that failed",
       RLX_E_NOT_FOUND,
       {"'nothing'"},
       [](User& u) {
         u.op("nothing", {u.input("x", {1})});
         return u.compile(nullptr);
       }},
      {"misspells a compile option",
       RLX_E_OPTION,
       {"'mathh'", "did you mean 'math'"},
       [](User& u) { return u.compile_small("mathh=fast"); }},
      {"gives an option an unknown value",
       RLX_E_OPTION,
       {"'math'", "strict|close|fast", "'loose'"},
       [](User& u) { return u.compile_small("math=loose"); }},
      {"asks for no threads",
       RLX_E_OPTION,
       {"'threads'", "from 1", "not 0"},
       [](User& u) { return u.compile_small("threads=0"); }},
      {"dispatches an unknown op",
       RLX_E_OPTION,
       {"'dispatch.exq'", "no op"},
       [](User& u) { return u.compile_small("dispatch.exq=native"); }},
      {"allows too little memory",
       RLX_E_NO_MEMORY,
       {"bytes", "memory.limit", "10"},
       [](User& u) { return u.compile_small("memory.limit=10 dispatch=reference"); }},
      {"expects a rule that does not fire",
       RLX_E_NOT_FOUND,
       {"passes.expect", "'attention'"},
       [](User& u) { return u.compile_small("passes.expect=attention"); }},
      {"dumps into a folder that is not there",
       RLX_E_NOT_FOUND,
       {"/no/such"},
       [](User& u) { return u.compile_small("dump=/no/such"); }},
      {"asks for an unknown report",
       RLX_E_NOT_FOUND,
       {"'speed'", "dispatch"},
       [](User& u) {
         rlx_blob_t* json;
         return rlx_compiled_report(u.program(), "speed", &json);
       }},
  });
}

TEST(errors, sizes_that_cannot_be_planned) {
  expect_told({
      {"plans for a size that is not there",
       RLX_E_OPTION,
       {"'dims.m'", "no size 'm'", "only n"},
       [](User& u) { return u.compile_small("dims.n=4 dims.m=4"); }},
      {"leaves a size open",
       RLX_E_SHAPE,
       {"'n'", "dims.n", "maximum"},
       [](User& u) {
         u.small_graph(false);
         return u.compile(nullptr);
       }},
      {"plans above the declared maximum",
       RLX_E_RANGE,
       {"'n' = 9", "[1, 4]"},
       [](User& u) { return u.compile_small("dims.n=9"); }},
      {"plans below the declared minimum",
       RLX_E_RANGE,
       {"'n' = 0", "[1, 4]"},
       [](User& u) { return u.compile_small("dims.n=0"); }},
  });
}

TEST(errors, weights_that_do_not_fit_the_graph) {
  expect_told({
      {"gives weights of another shape",
       RLX_E_SHAPE,
       {"param 'w'", "f32[3]", "f32[4]"},
       [](User& u) {
         u.small_graph();
         rlx_compiled_t* made;
         return rlx_compile(u.graph, u.weights({{"w", u.tensor({4})}}), nullptr, nullptr, &made);
       }},
      {"gives weights of another dtype",
       RLX_E_DTYPE,
       {"param 'w'", "f32[3]", "f64[3]"},
       [](User& u) {
         u.small_graph();
         rlx_compiled_t* made;
         return rlx_compile(u.graph, u.weights({{"w", u.tensor({3}, RLX_F64)}}), nullptr, nullptr, &made);
       }},
      {"asks for weights that are not there",
       RLX_E_NOT_FOUND,
       {"'v'"},
       [](User& u) {
         rlx_tensor_t* tensor;
         return rlx_weights_get(u.weights({}), "v", &tensor);
       }},
  });
}

TEST(errors, handles_of_another_environment) {
  expect_told({
      {"brings the weights of another environment",
       RLX_E_INVALID_ARGUMENT,
       {"weights", "another environment"},
       [](User& u) {
         User other;
         u.small_graph();
         rlx_compiled_t* made;
         return rlx_compile(u.graph, other.weights({}), nullptr, nullptr, &made);
       }},
      {"brings the device of another environment",
       RLX_E_INVALID_ARGUMENT,
       {"device", "another environment"},
       [](User& u) {
         User other;
         u.small_graph();
         rlx_compiled_t* made;
         return rlx_compile(u.graph, nullptr, rlx_env_device(other.env, 0), nullptr, &made);
       }},
      {"copies from a tensor of another environment",
       RLX_E_INVALID_ARGUMENT,
       {"'from'", "another environment"},
       [](User& u) {
         User other;
         return rlx_tensor_copy(u.tensor({2}), 0, other.tensor({2}), 0, 8);
       }},
  });
}

TEST(errors, params_that_do_not_fit_or_are_not_set) {
  expect_told({
      {"sets a param that is not there",
       RLX_E_NOT_FOUND,
       {"param 'v'"},
       [](User& u) { return rlx_compiled_set_param(u.program(), "v", u.tensor({3})); }},
      {"sets a param of another shape",
       RLX_E_SHAPE,
       {"param 'w'", "f32[3]", "f32[2,3]"},
       [](User& u) {
         return rlx_compiled_set_param(u.program(), "w", u.tensor({2, 3}));
       }},
      {"sets a param of another dtype",
       RLX_E_DTYPE,
       {"param 'w'", "f32[3]", "i32[3]"},
       [](User& u) { return rlx_compiled_set_param(u.program(), "w", u.tensor({3}, RLX_I32)); }},
      {"writes into a param",
       RLX_E_STATE,
       {"f32[3]", "frozen"},
       [](User& u) {
         rlx_tensor_t* w = u.tensor({3});
         rlx_status_release(rlx_compiled_set_param(u.program(), "w", w));
         float one = 1;
         return rlx_tensor_write(w, 0, &one, 4);
       }},
      {"runs with a param that is not set",
       RLX_E_STATE,
       {"param 'w'", "not set"},
       [](User& u) {
         u.small_graph();
         rlx_compiled_t* bare;
         rlx_status_t* status = rlx_compile(u.graph, nullptr, nullptr, nullptr, &bare);
         if (status) return status;
         rlx_tensor_t *x = u.tensor({2, 3}), *y;
         status = rlx_compiled_run(bare, nullptr, &x, 1, nullptr, &y, 1);
         rlx_compiled_release(bare);
         return status;
       }},
  });
}

TEST(errors, names_and_numbers_of_slots_of_a_run) {
  expect_told({
      {"leaves an input out", RLX_E_INVALID_ARGUMENT, {"input 'x'", "missing"}, [](User& u) { return u.run({}); }},
      {"gives an input too much",
       RLX_E_INVALID_ARGUMENT,
       {"2 inputs given", "there is 1"},
       [](User& u) {
         return u.run({u.tensor({1, 3}), u.tensor({1, 3})});
       }},
      {"gives an input twice",
       RLX_E_INVALID_ARGUMENT,
       {"input 'x'", "twice"},
       [](User& u) {
         return u.run({u.tensor({1, 3}), u.tensor({1, 3})}, {"x", "x"});
       }},
      {"misspells an input",
       RLX_E_NOT_FOUND,
       {"input 'X'", "only x"},
       [](User& u) {
         return u.run({u.tensor({1, 3})}, {"X"});
       }},
      {"names an output that is not there",
       RLX_E_NOT_FOUND,
       {"output 'z'", "only y"},
       [](User& u) {
         return u.run({u.tensor({1, 3})}, {}, 1, "z");
       }},
      {"asks for too many outputs",
       RLX_E_INVALID_ARGUMENT,
       {"2 outputs given", "there is 1"},
       [](User& u) {
         return u.run({u.tensor({1, 3})}, {}, 2);
       }},
      {"passes NULL for an input", RLX_E_INVALID_ARGUMENT, {"in[0] is NULL"}, [](User& u) { return u.run({nullptr}); }},
  });
}

TEST(errors, types_and_sizes_of_inputs_of_a_run) {
  expect_told({
      {"gives an input of another dtype",
       RLX_E_DTYPE,
       {"input 'x'", "is f32", "not f64"},
       [](User& u) {
         return u.run({u.tensor({1, 3}, RLX_F64)});
       }},
      {"gives an input of another rank",
       RLX_E_SHAPE,
       {"input 'x'", "f32[n,3]", "f32[3]"},
       [](User& u) { return u.run({u.tensor({3})}); }},
      {"gives an input of another size",
       RLX_E_SHAPE,
       {"'x'", "axis 1", "3", "not 5"},
       [](User& u) {
         return u.run({u.tensor({1, 5})});
       }},
      {"runs above the plan",
       RLX_E_RANGE,
       {"'n' = 5", "largest 4"},
       [](User& u) {
         return u.run({u.tensor({5, 3})});
       }},
      {"runs below the minimum",
       RLX_E_RANGE,
       {"'n' = 0", "smallest 1"},
       [](User& u) {
         return u.run({u.tensor({0, 3})});
       }},
      {"gives an input of another environment",
       RLX_E_INVALID_ARGUMENT,
       {"'in[0]'", "another environment"},
       [](User& u) {
         User other;
         return u.run({other.tensor({1, 3})});
       }},
      {"waits for a fence of another environment",
       RLX_E_INVALID_ARGUMENT,
       {"'wait[1]'", "another environment"},
       [](User& u) {
         User other;
         rlx_fence_t *ours, *theirs, *done;
         rlx_status_release(rlx_fence_create(u.env, &ours));
         rlx_status_release(rlx_fence_create(other.env, &theirs));
         rlx_fence_t* wait[] = {ours, theirs};
         rlx_status_t* status = rlx_exec_submit(u.exec(), wait, 2, &done);
         rlx_fence_release(ours), rlx_fence_release(theirs);
         return status;
       }},
  });
}

// A graph from text, run at these inputs.
static rlx_status_t* ran(User& u, const char* text, std::vector<rlx_tensor_t*> in) {
  rlx_graph_t* graph = nullptr;
  if (rlx_status_t* status =
          rlx_import_memory(u.env, "rlx", text, std::string(text).size(), nullptr, nullptr, nullptr, &graph, nullptr))
    return status;
  rlx_compiled_t* program = nullptr;
  rlx_status_t* status = rlx_compile(graph, nullptr, nullptr, nullptr, &program);
  rlx_tensor_t* out = nullptr;
  if (!status) status = rlx_compiled_run(program, nullptr, in.data(), in.size(), nullptr, &out, 1);
  rlx_tensor_release(out);
  rlx_compiled_release(program);
  rlx_graph_release(graph);
  return status;
}

TEST(errors, what_inputs_say_about_sizes_and_values) {
  expect_told({
      {"gives inputs that disagree about a size",
       RLX_E_SHAPE,
       {"'b'", "axis 0", "n is 2", "not 3"},
       [](User& u) {
         return ran(u, "graph (n in [0, 4]) { a = input f32[n]\n b = input f32[n]\n y = add(a, b)\n output y }",
                    {u.tensor({2}), u.tensor({3})});
       }},
      {"breaks what an op asked of two sizes",
       RLX_E_SHAPE,
       {"add", "n = m", "2 and 3"},
       [](User& u) {
         return ran(
             u, "graph (n in [2, 4], m in [2, 4]) { a = input f32[n]\n b = input f32[m]\n y = add(a, b)\n output y }",
             {u.tensor({2}), u.tensor({3})});
       }},
      {"gives a size that an expression cannot have",
       RLX_E_SHAPE,
       {"'a'", "axis 0", "2*n"},
       [](User& u) {
         return ran(u, "graph (n in [0, 4]) { a = input f32[2*n]\n b = input f32[n]\n y = exp(a)\n output y }",
                    {u.tensor({3}), u.tensor({1})});
       }},
      {"gives an index out of range",
       RLX_E_RANGE,
       {"gather 'y'", "index 7", "size of 4"},
       [](User& u) {
         rlx_tensor_t* index = u.tensor({1}, RLX_I64);
         int64_t seven = 7;
         rlx_status_release(rlx_tensor_write(index, 0, &seven, 8));
         return ran(u, "graph { a = input f32[4]\n i = input i64[1]\n y = gather(a, i)\n output y }",
                    {u.tensor({4}), index});
       }},
  });
}

TEST(errors, tensors_that_a_context_cannot_bind) {
  expect_told({
      {"binds a slot that is not there",
       RLX_E_RANGE,
       {"input slot 3", "has 1"},
       [](User& u) {
         return rlx_exec_bind(u.exec(), RLX_INPUT, 3, u.tensor({1, 3}));
       }},
      {"binds a param as a slot",
       RLX_E_INVALID_ARGUMENT,
       {"kind 3", "RLX_INPUT"},
       [](User& u) { return rlx_exec_bind(u.exec(), RLX_PARAM, 0, u.tensor({3})); }},
      {"binds a tensor of another dtype",
       RLX_E_DTYPE,
       {"input 'x'", "is f32", "not i64"},
       [](User& u) {
         return rlx_exec_bind(u.exec(), RLX_INPUT, 0, u.tensor({1, 3}, RLX_I64));
       }},
      {"binds a tensor of another rank",
       RLX_E_SHAPE,
       {"input 'x'", "f32[n,3]", "f32[3]"},
       [](User& u) { return rlx_exec_bind(u.exec(), RLX_INPUT, 0, u.tensor({3})); }},
      {"binds a frozen tensor as an output",
       RLX_E_STATE,
       {"output", "frozen"},
       [](User& u) {
         rlx_tensor_t* w = u.tensor({4, 3});
         rlx_graph_tensor(u.graph, w);
         return rlx_exec_bind(u.exec(), RLX_OUTPUT, 0, w);
       }},
      {"binds too few bytes for an input",
       RLX_E_INVALID_ARGUMENT,
       {"input 'x'", "48 bytes", "24"},
       [](User& u) {
         static float data[12];
         rlx_exec_t* exec = u.exec();
         if (rlx_status_t* status = rlx_exec_bind_ptr(exec, RLX_INPUT, 0, data, 24)) return status;
         return rlx_exec_run(exec);
       }},
      {"binds too small an output",
       RLX_E_SHAPE,
       {"output 'y'", "f32[4,3]", "f32[2,3]"},
       [](User& u) {
         rlx_exec_t* exec = u.exec();
         if (rlx_status_t* status = rlx_exec_bind(exec, RLX_OUTPUT, 0, u.tensor({2, 3}))) return status;
         return rlx_exec_run(exec);
       }},
  });
}

TEST(errors, options_sizes_and_links_that_a_context_refuses) {
  expect_told({
      {"gives an unknown option",
       RLX_E_OPTION,
       {"'profile'"},
       [](User& u) {
         rlx_exec_t* exec;
         return rlx_exec_create(u.program(), u.attrs("profile=1"), &exec);
       }},
      {"sets a size that is not there",
       RLX_E_NOT_FOUND,
       {"size 'm'", "only n"},
       [](User& u) { return rlx_exec_set_dim(u.exec(), "m", 1); }},
      {"sets a size above the plan",
       RLX_E_RANGE,
       {"'n' = 5", "largest 4"},
       [](User& u) { return rlx_exec_set_dim(u.exec(), "n", 5); }},
      {"links what does not match",
       RLX_E_RANGE,
       {"output slot 1", "has 1"},
       [](User& u) { return rlx_exec_link(u.exec(), 1, 0); }},
      {"links a slot twice",
       RLX_E_EXISTS,
       {"output 'y'", "already"},
       [](User& u) {
         rlx_exec_t* exec = u.exec();
         if (rlx_status_t* status = rlx_exec_link(exec, 0, 0)) return status;
         return rlx_exec_link(exec, 0, 0);
       }},
      {"wants an output that is not there",
       RLX_E_RANGE,
       {"output slot 2", "has 1"},
       [](User& u) {
         size_t slot = 2;
         return rlx_exec_want(u.exec(), &slot, 1);
       }},
  });
}

}  // namespace rlx::errors
