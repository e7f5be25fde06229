// SPDX-License-Identifier: Apache-2.0
// Mistakes in building a graph, by calls and as text.
#include "errors.h"

namespace rlx::errors {

// A second user's tensor, graph or size, put where the first user's belong.
struct Other {
  User user;
  rlx_tensor_t* tensor = user.tensor({2});
};

enum class Else { kLeaf, kSame };

// 100 ifs, each the "then" of the next; the "else" is a graph with no ifs, or the same one.
static void nest_graphs(User& u, Else otherwise) {
  rlx_graph_t* body = nullptr;
  rlx_status_release(rlx_graph_create(u.env, "leaf", &body));
  int64_t none = 0;
  rlx_graph_input(body, "x", RLX_BOOL, &none, 0);
  rlx_graph_output(body, "y", rlx_graph_scalar(body, RLX_F32, 1));
  rlx_graph_t* leaf = rlx_graph_retain(body);
  for (int i = 0; i < 100; i++) {
    bool is_outermost = i == 99;
    rlx_attrs_t* attrs = u.attrs("");
    rlx_attrs_set_graph(attrs, "then", body);
    rlx_attrs_set_graph(attrs, "else", otherwise == Else::kSame ? body : leaf);
    rlx_graph_t* around = u.graph;
    if (!is_outermost) rlx_status_release(rlx_graph_create(u.env, "around", &around));
    rlx_value_t x = rlx_graph_input(around, "x", RLX_BOOL, &none, 0), in[] = {x, x};
    rlx_value_t y = rlx_graph_op(around, "if", in, 2, attrs);
    if (!is_outermost) rlx_graph_output(around, "y", y);
    rlx_graph_release(body);
    body = around;
  }
  rlx_graph_release(leaf);
}

TEST(errors, an_op_that_is_not_there_or_has_other_inputs) {
  expect_kept({
      {"misspells an op",
       RLX_E_NOT_FOUND,
       {"sofmax", "did you mean 'softmax'"},
       [](User& u) { u.op("sofmax", {u.input("x", {2})}); }},
      {"leaves an input out",
       RLX_E_INVALID_ARGUMENT,
       {"add: ", "'b'", "missing"},
       [](User& u) { u.op("add", {u.input("x", {2})}); }},
      {"passes RLX_ABSENT within a list of inputs",
       RLX_E_INVALID_ARGUMENT,
       {"concat: input 'x' 1 is missing"},
       [](User& u) {
         rlx_value_t x = u.input("x", {2});
         u.op("concat axis=0", {x, RLX_ABSENT, x});
       }},
      {"passes RLX_ABSENT for a needed input",
       RLX_E_INVALID_ARGUMENT,
       {"add: ", "'a'", "missing"},
       [](User& u) {
         u.op("add", {RLX_ABSENT, u.input("x", {2})});
       }},
      {"gives too many inputs",
       RLX_E_INVALID_ARGUMENT,
       {"exp: ", "1 input", "not 2"},
       [](User& u) {
         u.op("exp", {u.input("x", {2}), u.input("y", {2})});
       }},
      {"gives an input to an op without any",
       RLX_E_INVALID_ARGUMENT,
       {"eye: ", "0 inputs", "not 1", "input 0 is input 'x' f32[2]"},
       [](User& u) { u.op("eye n=2 dtype=f32", {u.input("x", {2})}); }},
  });
}

TEST(errors, dtypes_and_shapes_that_an_op_does_not_take) {
  expect_kept({
      {"adds floats to integers",
       RLX_E_DTYPE,
       {"add: ", "'b' is i32", "'a' is f32", "cast"},
       [](User& u) {
         u.op("add", {u.input("x", {2}), u.input("i", {2}, RLX_I32)});
       }},
      {"takes the sine of integers",
       RLX_E_DTYPE,
       {"sin: ", "'x'", "i64", "takes f32, f16, bf16 or f64"},
       [](User& u) { u.op("sin", {u.input("i", {2}, RLX_I64)}); }},
      {"multiplies a vector as a matrix",
       RLX_E_SHAPE,
       {"matmul: ", "a needs rank 2 or more", "not 1"},
       [](User& u) {
         u.op("matmul", {u.input("x", {3}), u.input("y", {3, 4})});
       }},
      {"multiplies a matrix and a vector as matrices",
       RLX_E_SHAPE,
       {"matmul: ", "b needs rank 2 or more", "not 1"},
       [](User& u) {
         u.op("matmul", {u.input("x", {3, 4}), u.input("y", {4})});
       }},
      {"multiplies matrices that do not fit",
       RLX_E_SHAPE,
       {"matmul: ", "5 is not 3"},
       [](User& u) {
         u.op("matmul", {u.input("x", {2, 3}), u.input("y", {5, 4})});
       }},
      {"adds shapes that do not broadcast",
       RLX_E_SHAPE,
       {"add: ", "[2] and [3]", "broadcast"},
       [](User& u) {
         u.op("add", {u.input("x", {2}), u.input("y", {3})});
       }},
      {"reshapes to another number of elements",
       RLX_E_SHAPE,
       {"reshape: ", "number of elements", "8 is not 6"},
       [](User& u) {
         u.op("reshape shape=[2,4]", {u.input("x", {2, 3})});
       }},
      {"reshapes to a size above all sizes",
       RLX_E_RANGE,
       {"reshape: ", "the size 9223372036854775807 is above 2^48"},
       [](User& u) {
         u.op("reshape shape=[9223372036854775807,2]", {u.input("x", {2, 4})});
       }},
  });
}

TEST(errors, values_that_are_not_of_this_graph) {
  expect_kept({
      {"goes on with a value that failed",
       RLX_E_INVALID_ARGUMENT,
       {"exp: ", "0", "failed"},
       [](User& u) { u.op("exp", {0}); }},
      {"passes a value of a larger graph",
       RLX_E_INVALID_ARGUMENT,
       {"exp: ", "not a value of this graph"},
       [](User& u) {
         Other other;
         rlx_value_t far = 0;
         for (const char* name : {"a", "b", "c"}) far = other.user.input(name, {1});
         u.op("exp", {far});
       }},
  });
}

TEST(errors, values_that_failed_or_are_left_out) {
  expect_told(std::vector<Told>{
      {"makes an output of a value that failed",
       RLX_E_INVALID_ARGUMENT,
       {nullptr, "y", nullptr, "0"},
       {"output 'y': the value is 0, which a call that failed returns"},
       {"an input"},
       [](User& u) {
         rlx_graph_output(u.graph, "y", 0);
         return rlx_graph_status(u.graph);
       }},
      {"makes an output of an input that is left out",
       RLX_E_INVALID_ARGUMENT,
       {nullptr, "y", "a value of this graph", "RLX_ABSENT"},
       {"output 'y': RLX_ABSENT is not a value of this graph"},
       {},
       [](User& u) {
         rlx_graph_output(u.graph, "y", RLX_ABSENT);
         return rlx_graph_status(u.graph);
       }},
      {"names a value that failed",
       RLX_E_INVALID_ARGUMENT,
       {nullptr, nullptr, nullptr, "0"},
       {"rlx_graph_set_name: the value is 0, which a call that failed returns"},
       {"an input"},
       [](User& u) {
         rlx_graph_set_name(u.graph, 0, "x");
         return rlx_graph_status(u.graph);
       }},
      {"asks what a value that failed is",
       RLX_E_INVALID_ARGUMENT,
       {nullptr, nullptr, nullptr, "0"},
       {"rlx_graph_value_info: the value is 0, which a call that failed returns"},
       {"an input"},
       [](User& u) { return rlx_graph_value_info(u.graph, 0, nullptr, nullptr, 0, nullptr); }},
  });
}

TEST(errors, attributes_of_ops) {
  expect_kept({
      {"misspells an attribute",
       RLX_E_OPTION,
       {"softmax: ", "'axs'", "did you mean 'axis'"},
       [](User& u) { u.op("softmax axs=0", {u.input("x", {2})}); }},
      {"gives an attribute to an op without any",
       RLX_E_OPTION,
       {"exp: ", "unknown attribute 'axis'", "none"},
       [](User& u) { u.op("exp axis=0", {u.input("x", {2})}); }},
      {"gives a word where a number is due",
       RLX_E_OPTION,
       {"softmax: ", "'axis'", "i64", "last"},
       [](User& u) { u.op("softmax axis=last", {u.input("x", {2})}); }},
      {"gives a list where a number is due",
       RLX_E_OPTION,
       {"softmax: ", "'axis'", "i64", "[0,1]"},
       [](User& u) { u.op("softmax axis=[0,1]", {u.input("x", {2})}); }},
      {"gives a number outside its range",
       RLX_E_OPTION,
       {"depth_to_space: ", "'block'", "from 1 to", "not 0"},
       [](User& u) {
         u.op("depth_to_space block=0", {u.input("x", {1, 4, 2, 2})});
       }},
      {"gives a word that is not a choice",
       RLX_E_OPTION,
       {"gelu: ", "'approx'", "none|tanh", "not 'erf'"},
       [](User& u) { u.op("gelu approx=erf", {u.input("x", {2})}); }},
      {"gives a dtype that the op does not make",
       RLX_E_DTYPE,
       {"arg_max: ", "'index_dtype'", "f32", "takes i32 or i64"},
       [](User& u) { u.op("arg_max index_dtype=f32", {u.input("x", {2})}); }},
      {"leaves a needed attribute out",
       RLX_E_OPTION,
       {"transpose: ", "'perm'", "missing"},
       [](User& u) {
         u.op("transpose", {u.input("x", {2, 3})});
       }},
      {"gives an attribute twice",
       RLX_E_OPTION,
       {"softmax: ", "'axis'", "twice"},
       [](User& u) { u.op("softmax axis=0 axis=1", {u.input("x", {2})}); }},
      {"writes attributes that cannot be read",
       RLX_E_OPTION,
       {"softmax: ", "column 14"},
       [](User& u) { u.op("softmax axis=", {u.input("x", {2})}); }},
      {"names an axis that is not there",
       RLX_E_RANGE,
       {"softmax: ", "axis 2", "rank 2"},
       [](User& u) {
         u.op("softmax axis=2", {u.input("x", {2, 3})});
       }},
      {"names an axis twice",
       RLX_E_INVALID_ARGUMENT,
       {"reduce: ", "axis", "twice"},
       [](User& u) {
         u.op("reduce fn=sum axes=[0,-2]", {u.input("x", {2, 3})});
       }},
      {"permutes other axes than there are",
       RLX_E_OPTION,
       {"transpose: ", "'perm'", "3 axes", "rank 2"},
       [](User& u) {
         u.op("transpose perm=[0,1,2]", {u.input("x", {2, 3})});
       }},
  });
}

TEST(errors, names_that_are_taken_or_empty) {
  expect_kept({
      {"declares an input twice",
       RLX_E_EXISTS,
       {"input or param 'x'"},
       [](User& u) { u.input("x", {1}), u.input("x", {1}); }},
      {"names two outputs alike",
       RLX_E_EXISTS,
       {"output 'y'"},
       [](User& u) {
         rlx_value_t x = u.input("x", {1});
         rlx_graph_output(u.graph, "y", x), rlx_graph_output(u.graph, "y", x);
       }},
      {"makes an output of a failed value",
       RLX_E_INVALID_ARGUMENT,
       {"output 'y'", "failed"},
       [](User& u) { rlx_graph_output(u.graph, "y", 0); }},
      {"passes NULL for a name",
       RLX_E_INVALID_ARGUMENT,
       {"rlx_graph_input", "name is NULL"},
       [](User& u) { u.input(nullptr, {1}); }},
      {"passes an empty name", RLX_E_INVALID_ARGUMENT, {"input or param", "name"}, [](User& u) { u.input("", {1}); }},
  });
}

TEST(errors, sizes_that_an_input_or_param_cannot_have) {
  expect_kept({
      {"gives an input a negative size", RLX_E_SHAPE, {"'x'", "-3"}, [](User& u) { u.input("x", {-3}); }},
      {"gives an input too many axes",
       RLX_E_SHAPE,
       {"input 'x'", "rank 9", "limit of 8"},
       [](User& u) {
         u.input("x", {1, 1, 1, 1, 1, 1, 1, 1, 1});
       }},
      {"gives an input an unknown dtype",
       RLX_E_DTYPE,
       {"input 'x'", "63 is not a dtype"},
       [](User& u) { u.input("x", {1}, 63); }},
      {"leaves a param's size open",
       RLX_E_SHAPE,
       {"param 'p'", "[n]", "numbers"},
       [](User& u) {
         int64_t n = rlx_graph_dim(u.graph, "n", 0, 0);
         rlx_graph_param(u.graph, "p", RLX_F32, &n, 1);
       }},
      {"writes a size that cannot be read",
       RLX_E_INVALID_ARGUMENT,
       {"seq +", "column 6"},
       [](User& u) { rlx_graph_dim(u.graph, "seq +", 0, 0); }},
      {"declares an empty range",
       RLX_E_RANGE,
       {"'n'", "its minimum 5 is above its maximum 2"},
       [](User& u) { rlx_graph_dim(u.graph, "n", 5, 2); }},
      {"declares a negative minimum",
       RLX_E_RANGE,
       {"'n'", "the minimum -5", "no size is negative"},
       [](User& u) { rlx_graph_dim(u.graph, "n", -5, 10); }},
      {"declares a known size again, with a negative minimum",
       RLX_E_RANGE,
       {"'n'", "the minimum -1"},
       [](User& u) { rlx_graph_dim(u.graph, "n", 1, 4), rlx_graph_dim(u.graph, "n", -1, 4); }},
      {"narrows a range to nothing",
       RLX_E_RANGE,
       {"'n'", "[1, 4]", "[8, 9]"},
       [](User& u) { rlx_graph_dim(u.graph, "n", 1, 4), rlx_graph_dim(u.graph, "n", 8, 9); }},
  });
}

TEST(errors, constants_and_graphs_that_a_graph_cannot_take) {
  expect_kept({
      {"gives too few bytes for a constant",
       RLX_E_INVALID_ARGUMENT,
       {"f32[2]", "8 bytes", "not 4"},
       [](User& u) {
         float data = 0;
         int64_t dims = 2;
         rlx_graph_constant(u.graph, RLX_F32, &dims, 1, &data, 4);
       }},
      {"takes a constant from another environment",
       RLX_E_INVALID_ARGUMENT,
       {"'tensor'", "another environment"},
       [](User& u) {
         Other other;
         rlx_graph_tensor(u.graph, other.tensor);
       }},
      {"takes a tensor as an attribute from another environment",
       RLX_E_INVALID_ARGUMENT,
       {"'data'", "another environment"},
       [](User& u) {
         Other other;
         rlx_attrs_t* attrs = u.attrs("");
         rlx_attrs_set_tensor(attrs, "data", other.tensor);
         rlx_value_t x = u.input("x", {2});
         rlx_graph_op(u.graph, "relu", &x, 1, attrs);
       }},
      {"takes a branch from another environment",
       RLX_E_INVALID_ARGUMENT,
       {"if", "'then'", "another environment"},
       [](User& u) {
         Other other;
         rlx_attrs_t* attrs = u.attrs("");
         rlx_attrs_set_graph(attrs, "then", other.user.graph);
         rlx_attrs_set_graph(attrs, "else", u.graph);
         rlx_value_t pred = u.input("pred", {}, RLX_BOOL);
         rlx_graph_op(u.graph, "if", &pred, 1, attrs);
       }},
      {"nests graphs without end",
       RLX_E_UNSUPPORTED,
       {"'then'", "more than 64 graphs are nested"},
       [](User& u) { nest_graphs(u, Else::kLeaf); }},
      {"takes each graph for two branches, again and again",
       RLX_E_UNSUPPORTED,
       {"'then'", "more than 65536 graphs"},
       [](User& u) { nest_graphs(u, Else::kSame); }},
  });
}

TEST(errors, leaves_of_graphs) {
  expect_kept({
      {"declares an input of endless size",
       RLX_E_RANGE,
       {"input 'x': ", "1125899906842624", "above 2^48"},
       [](User& u) { u.input("x", {int64_t{1} << 50}); }},
      {"declares a param of endless size",
       RLX_E_RANGE,
       {"param 'w': ", "above 2^48"},
       [](User& u) {
         int64_t dim = int64_t{1} << 50;
         rlx_graph_param(u.graph, "w", RLX_F32, &dim, 1);
       }},
      {"makes a constant of an open size",
       RLX_E_SHAPE,
       {"axis 1 is the size 'n'", "numbers"},
       [](User& u) {
         int64_t dims[] = {2, rlx_graph_dim(u.graph, "n", 0, 0)};
         rlx_graph_constant(u.graph, RLX_F32, dims, 2, "", 0);
       }},
      {"takes a constant for an op",
       RLX_E_NOT_FOUND,
       {"rlx_graph_constant makes one"},
       [](User& u) { u.op("constant", {}); }},
  });
}

// Such a name would not read back from text, and no client could decode it.
TEST(errors, text_that_is_not_utf8_in_a_graph) {
  const auto kCode = RLX_E_INVALID_ARGUMENT;
  expect_kept({
      {"names an input",
       kCode,
       {"rlx_graph_input", "name is not UTF-8 at byte 1", "'x\\xff'"},
       [](User& u) { u.input("x\xff", {1}); }},
      {"names a param",
       kCode,
       {"name", "UTF-8"},
       [](User& u) { rlx_graph_param(u.graph, "\xc3", RLX_F32, nullptr, 0); }},
      {"names an output",
       kCode,
       {"name", "UTF-8"},
       [](User& u) { rlx_graph_output(u.graph, "\x80", u.input("x", {})); }},
      {"names a value",
       kCode,
       {"name", "UTF-8"},
       [](User& u) { rlx_graph_set_name(u.graph, u.input("x", {}), "\xff"); }},
      {"names a scope", kCode, {"name", "UTF-8"}, [](User& u) { rlx_graph_push_name(u.graph, "\xed\xa0\x80"); }},
      {"names a size", kCode, {"text", "UTF-8"}, [](User& u) { rlx_graph_dim(u.graph, "'n\xff'", 0, 0); }},
      {"gives an attribute with an op",
       kCode,
       {"op", "UTF-8"},
       [](User& u) { u.op("gelu x=\"\xff\"", {u.input("x", {1})}); }},
      {"sets an attribute",
       kCode,
       {"rlx_attrs_set_str", "value is not UTF-8"},
       [](User& u) {
         rlx_attrs_t* attrs = u.attrs("");
         rlx_attrs_set_str(attrs, "equation", "\xff");
         rlx_value_t x = u.input("x", {1});
         rlx_graph_op(u.graph, "einsum", &x, 1, attrs);
       }},
      {"sets a list of strings",
       kCode,
       {"'names'", "values[1] is not UTF-8"},
       [](User& u) {
         rlx_attrs_t* attrs = u.attrs("");
         const char* names[] = {"x", "\xff"};
         rlx_attrs_set_strs(attrs, "names", names, 2);
         rlx_value_t x = u.input("x", {1});
         rlx_graph_op(u.graph, "exp", &x, 1, attrs);
       }},
  });
}

TEST(errors, text_that_is_not_utf8_in_a_call_with_a_status) {
  const auto kCode = RLX_E_INVALID_ARGUMENT;
  expect_told({
      {"makes attributes",
       kCode,
       {"rlx_attrs_create", "text is not UTF-8"},
       [](User&) {
         rlx_attrs_t* made = nullptr;
         return rlx_attrs_create("a=\"\xff\"", &made);
       }},
      {"names a graph",
       kCode,
       {"rlx_graph_create", "name is not UTF-8"},
       [](User& u) {
         rlx_graph_t* made = nullptr;
         return rlx_graph_create(u.env, "\xff", &made);
       }},
      {"names a weight",
       kCode,
       {"rlx_weights_put", "name is not UTF-8"},
       [](User& u) { return rlx_weights_put(u.weights({}), "\xff", u.tensor({1})); }},
      {"names an op of its own",
       kCode,
       {"rlx_op_def_t", "name is not UTF-8"},
       [](User& u) {
         rlx_op_def_t def;
         rlx_op_def_init(&def, sizeof def);
         def.name = "\xff";
         def.body = u.graph;
         return rlx_env_register_op(u.env, &def);
       }},
      {"names an input of a run",
       RLX_E_NOT_FOUND,
       {"there is no input 'x\\xff'"},
       [](User& u) {
         return u.run({u.tensor({1, 3})}, {"x\xff"});
       }},
      {"opens a file whose name is any bytes",
       RLX_E_NOT_FOUND,
       {"/nonexistent/\\xff"},
       [](User& u) { return u.open("/nonexistent/\xff"); }},
  });
}

// ---- as text ----

static rlx_status_t* parsed(User& u, const std::string& body) {
  return u.import("rlx", "graph {\n  x = input f32[2,3]\n" + body + "\n}\n");
}

TEST(errors, graphs_as_text) {
  expect_told({
      {"misspells an op",
       RLX_E_DATA,
       {"3:7: ", "'exq'", "did you mean 'exp'"},
       [](User& u) { return parsed(u, "  y = exq(x)"); }},
      {"uses a value before it is there",
       RLX_E_DATA,
       {"3:11: ", "'z'"},
       [](User& u) { return parsed(u, "  y = exp(z)\n  z = exp(x)"); }},
      {"states a wrong type",
       RLX_E_SHAPE,
       {"3:", "f32[3,2]", "f32[2,3]"},
       [](User& u) { return parsed(u, "  y = exp(x) -> f32[3,2]"); }},
      {"forgets a parenthesis", RLX_E_DATA, {"4:1: ", "')'"}, [](User& u) { return parsed(u, "  y = exp(x"); }},
      {"misspells a dtype",
       RLX_E_DATA,
       {"3:13: ", "'float'"},
       [](User& u) { return parsed(u, "  y = input float[2]"); }},
      {"misspells an attribute",
       RLX_E_OPTION,
       {"3:", "softmax", "'axs'"},
       [](User& u) { return parsed(u, "  y = softmax(x) axs=0"); }},
      {"adds what does not broadcast",
       RLX_E_SHAPE,
       {"4:7: ", "add 'y'", "[2,3] and [5]"},
       [](User& u) { return parsed(u, "  z = input f32[5]\n  y = add(x, z)"); }},
      {"names two values alike", RLX_E_DATA, {"3:3: ", "'x'"}, [](User& u) { return parsed(u, "  x = exp(x)"); }},
      {"ends in the middle",
       RLX_E_DATA,
       {"2:12: ", "dtype"},
       [](User& u) { return u.import("rlx", "graph {\n  x = input"); }},
  });
}

}  // namespace rlx::errors
