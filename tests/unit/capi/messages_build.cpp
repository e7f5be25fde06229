// SPDX-License-Identifier: Apache-2.0
// What a user is told of a graph that cannot be built: which op, which operand, what is wanted, and what to call
// instead.
#include <cstring>

#include "errors.h"

namespace rlx::errors {

// The first failure of building.
static rlx_status_t* kept(User& u) {
  return rlx_graph_status(u.graph);
}

static rlx_status_t* built(User& u, const char* op, std::vector<rlx_value_t> in) {
  u.op(op, std::move(in));
  return kept(u);
}

static rlx_status_t* misnamed(User& u, const char* op) {
  return built(u, op, {u.input("x", {2})});
}

static rlx_status_t* reduced(User& u, const char* op) {
  rlx_graph_reduce(u.graph, op, u.input("x", {2}), nullptr, 0, 0);
  return kept(u);
}

TEST(messages, names_that_other_libraries_give_an_op) {
  struct Known {
    const char *theirs, *ours;
  };
  static const Known kKnown[] = {
      {"for_loop", "scan"},       {"swish", "silu"},        {"gemm", "linear"}, {"maximum", "max"},
      {"greater", "gt"},          {"cat", "concat"},        {"ReLU", "relu"},   {"equal", "eq"},
      {"multiply", "mul"},        {"reduce_sum", "sum"},    {"Sum", "sum"},     {"LayerNormalization", "layer_norm"},
      {"batch_matmul", "matmul"}, {"cumsum", "cumulative"}, {"avg", "mean"}};
  for (const Known& it : kKnown) {
    User user;
    rlx_status_t* status = misnamed(user, it.theirs);
    EXPECT_EQ(rlx_status_message(status), "no op '" + std::string(it.theirs) + "' (did you mean '" + it.ours + "'?)");
    EXPECT_STREQ(rlx_status_detail(status, "value"), it.theirs);
    EXPECT_EQ(rlx_status_detail(status, "op"), nullptr);
    rlx_status_release(status);
  }
}

TEST(messages, no_far_guesses) {
  for (const char* name : {"frobnicate", "xyz", "lstmcell", "warp", "qq"}) {
    User user;
    rlx_status_t* status = misnamed(user, name);
    EXPECT_EQ(rlx_status_message(status), "no op '" + std::string(name) + "'");
    rlx_status_release(status);
  }
}

TEST(messages, blanks_around_the_name_of_an_op) {
  for (const char* text : {"softmax\taxis=0", "softmax\naxis=0", " softmax axis=0", "\n softmax  axis=0 "}) {
    User u;
    EXPECT_NE(u.op(text, {u.input("x", {2})}), 0u) << text;
    EXPECT_EQ(told_by(kept(u)), "");
  }
  for (const char* text : {"", " ", "\t"}) {
    User u;
    EXPECT_EQ(told_by(misnamed(u, text)), "RLX_E_NOT_FOUND: the text names no op: it is empty");
  }
}

TEST(messages, sum_is_an_op) {
  User u;
  int64_t axes[] = {1};
  rlx_value_t x = u.input("x", {2, 3});
  rlx_graph_output(u.graph, "a", u.op("sum axes=[1] keep_dims=true", {x}));
  rlx_graph_output(u.graph, "b", rlx_graph_reduce(u.graph, "sum", x, axes, 1, 1));
  EXPECT_EQ(rlx_status_code(kept(u)), RLX_OK);
  EXPECT_GE(rlx_feature("op.sum"), 1);
}

TEST(messages, dtypes_that_an_op_does_not_take) {
  expect_told(std::vector<Told>{
      {"takes e to the power of integers",
       RLX_E_DTYPE,
       {"exp", nullptr, "f32, f16, bf16, f64, c64 or c128", "i64"},
       {"exp: input 'x' may not be i64 (takes f32, f16, bf16, f64, c64 or c128)", "x is input 'i' i64[2]"},
       {"FZ"},
       [](User& u) { return built(u, "exp", {u.input("i", {2}, RLX_I64)}); }},
      {"gathers at floats",
       RLX_E_DTYPE,
       {"gather", nullptr, "i32 or i64", "f32"},
       {"gather: input 'idx' may not be f32 (takes i32 or i64)", "idx is input 'at' f32[1]"},
       {"takes X"},
       [](User& u) {
         return built(u, "gather", {u.input("x", {2}), u.input("at", {1})});
       }},
      {"asks for positions as floats",
       RLX_E_DTYPE,
       {"arg_max", "index_dtype", "i32 or i64", "f32"},
       {"'index_dtype' may not be f32 (takes i32 or i64)"},
       {"takes X"},
       [](User& u) { return misnamed(u, "arg_max index_dtype=f32"); }},
      {"reduces floats by any",
       RLX_E_DTYPE,
       {"any", nullptr, "bool", "f32"},
       {"any: ", "may not be f32 (takes bool)"},
       {},
       [](User& u) { return reduced(u, "any"); }},
  });
}

TEST(messages, numbers_that_are_no_dtype) {
  expect_told(std::vector<Told>{
      {"gives a number that is not a dtype",
       RLX_E_DTYPE,
       {nullptr, "x", nullptr, "99"},
       {"input 'x': 99 is not a dtype"},
       {"no dtype"},
       [](User& u) {
         u.input("x", {2}, 99);
         return kept(u);
       }},
      {"makes a scalar of a number that is not a dtype",
       RLX_E_DTYPE,
       {nullptr, nullptr, nullptr, "99"},
       {"constant: 99 is not a dtype"},
       {},
       [](User& u) {
         rlx_graph_scalar(u.graph, 99, 1);
         return kept(u);
       }},
      {"casts to a number that is not a dtype",
       RLX_E_DTYPE,
       {"cast", nullptr, nullptr, "99"},
       {"cast: 99 is not a dtype"},
       {},
       [](User& u) {
         rlx_graph_cast(u.graph, u.input("x", {2}), 99);
         return kept(u);
       }},
  });
}

TEST(messages, operands_and_the_op_that_the_user_wrote) {
  expect_told(std::vector<Told>{
      {"multiplies what does not fit",
       RLX_E_SHAPE,
       {"matmul", nullptr, "3", "5"},
       {"matmul: ", "5 is not 3", "a is input 'x' f32[2,3]", "b is exp 'wide' f32[5,4]"},
       {},
       [](User& u) {
         rlx_value_t wide = u.op("exp", {u.input("y", {5, 4})});
         rlx_graph_set_name(u.graph, wide, "wide");
         return built(u, "matmul", {u.input("x", {2, 3}), wide});
       }},
      {"takes softmax of an axis that is not there",
       RLX_E_RANGE,
       {"softmax", nullptr, "-2..1", "5"},
       {"softmax: axis 5 is outside rank 2", "x is input 'x' f32[2,3]"},
       {"reduce"},
       [](User& u) {
         return built(u, "softmax axis=5", {u.input("x", {2, 3})});
       }},
      {"normalises by weights of another size",
       RLX_E_SHAPE,
       {"layer_norm", nullptr, nullptr, nullptr},
       {"layer_norm: ", "gamma is input 'g' f32[5]"},
       {"mul", "broadcast_to"},
       [](User& u) {
         return built(u, "layer_norm", {u.input("x", {2, 3}), u.input("g", {5})});
       }},
      {"multiplies by a vector of weights",
       RLX_E_SHAPE,
       {"linear", "w", "rank 2", "rank 1"},
       {"linear: w needs rank 2, not 1"},
       {},
       [](User& u) {
         return built(u, "linear", {u.input("x", {2, 3}), u.input("w", {3})});
       }},
      {"joins pieces of other ranks",
       RLX_E_SHAPE,
       {"concat", "input 1", "rank 2, that of the first", "rank 1"},
       {"concat: input 1 needs rank 2", "input 1 is input 'b' f32[3]"},
       {},
       [](User& u) {
         return built(u, "concat axis=0", {u.input("a", {2, 3}), u.input("b", {3})});
       }},
      {"leaves an operand out",
       RLX_E_INVALID_ARGUMENT,
       {"add", nullptr, nullptr, "nothing"},
       {"add: input 'b' is missing", "a is input 'x' f32[2]"},
       {},
       [](User& u) { return misnamed(u, "add"); }},
  });
}

TEST(messages, calls_for_ops_of_one_and_of_two_inputs) {
  expect_told(std::vector<Told>{
      {"adds one value",
       RLX_E_INVALID_ARGUMENT,
       {"add", nullptr, "an elementwise op of 1 input", "an elementwise op of 2 inputs"},
       {"add takes 2 inputs, use rlx_graph_binary"},
       {"is no"},
       [](User& u) {
         rlx_graph_unary(u.graph, "add", u.input("x", {2}));
         return kept(u);
       }},
      {"negates two values",
       RLX_E_INVALID_ARGUMENT,
       {"neg", nullptr, "an elementwise op of 2 inputs", "an elementwise op of 1 input"},
       {"neg takes 1 input, use rlx_graph_unary"},
       {},
       [](User& u) {
         rlx_value_t x = u.input("x", {2});
         rlx_graph_binary(u.graph, "neg", x, x);
         return kept(u);
       }},
      {"takes softmax as an elementwise op",
       RLX_E_INVALID_ARGUMENT,
       {"softmax", nullptr, "an elementwise op of 1 input", "an op that is not elementwise"},
       {"softmax is not elementwise, use rlx_graph_op"},
       {},
       [](User& u) {
         rlx_graph_unary(u.graph, "softmax", u.input("x", {2}));
         return kept(u);
       }},
      {"takes an input as an elementwise op",
       RLX_E_NOT_FOUND,
       {"", "input", nullptr, nullptr},
       {"'input' is not an op for rlx_graph_op: rlx_graph_input makes one"},
       {"use rlx_graph_op"},
       [](User& u) {
         rlx_graph_unary(u.graph, "input", u.input("x", {2}));
         return kept(u);
       }},
      {"reduces by an average",
       RLX_E_NOT_FOUND,
       {"", "avg", "sum, prod, max, min, mean, any, all", nullptr},
       {"no reduction 'avg' (did you mean 'mean'?): there are sum, prod, max, min, mean, any, all"},
       {},
       [](User& u) { return reduced(u, "avg"); }},
      {"misspells a reduction",
       RLX_E_NOT_FOUND,
       {"", "summ", nullptr, nullptr},
       {"no reduction 'summ' (did you mean 'sum'?)"},
       {},
       [](User& u) { return reduced(u, "summ"); }},
      {"reduces by a median",
       RLX_E_NOT_FOUND,
       {"", "median", nullptr, nullptr},
       {"no reduction 'median': there are sum, prod"},
       {"did you mean"},
       [](User& u) { return reduced(u, "median"); }},
  });
}

TEST(messages, sizes_that_an_input_cannot_have) {
  expect_told(std::vector<Told>{
      {"leaves a size open by -1",
       RLX_E_SHAPE,
       {nullptr, "x", "0 or more", "-1"},
       {"input 'x'", "-1 is negative", "rlx_graph_dim"},
       {},
       [](User& u) {
         u.input("x", {-1, 3});
         return kept(u);
       }},
      {"leaves a size of a param open by -1",
       RLX_E_SHAPE,
       {nullptr, "p", "0 or more", "-1"},
       {"param 'p': the size -1 is negative"},
       {"rlx_graph_dim"},
       [](User& u) {
         const int64_t dims[] = {-1, 3};
         rlx_graph_param(u.graph, "p", RLX_F32, dims, 2);
         return kept(u);
       }},
      {"gives an input a size above all sizes",
       RLX_E_RANGE,
       {nullptr, "x", "at most 281474976710656", "9223372036854775807"},
       {"input 'x': the size 9223372036854775807 is above 2^48"},
       {"the result"},
       [](User& u) {
         u.input("x", {INT64_MAX, 2});
         return kept(u);
       }},
      {"reshapes to too many dims",
       RLX_E_SHAPE,
       {"reshape", nullptr, "rank 8 or less", "rank 9"},
       {"reshape: rank 9 is above the limit of 8"},
       {},
       [](User& u) {
         const std::vector<int64_t> ones(9, 1);
         rlx_graph_reshape(u.graph, u.input("x", {1}), ones.data(), ones.size());
         return kept(u);
       }},
      {"reshapes to a negative size",
       RLX_E_SHAPE,
       {"reshape", nullptr, "0 or more", "-5"},
       {"reshape: the size -5 is negative", "input 'x' f32[2]"},
       {},
       [](User& u) {
         const int64_t dim = -5;
         rlx_graph_reshape(u.graph, u.input("x", {2}), &dim, 1);
         return kept(u);
       }},
      {"makes a constant of too few bytes",
       RLX_E_INVALID_ARGUMENT,
       {nullptr, nullptr, "8", "4"},
       {"constant: f32[2] has 8 bytes, not 4"},
       {},
       [](User& u) {
         const int64_t two = 2;
         const float one = 1;
         rlx_graph_constant(u.graph, RLX_F32, &two, 1, &one, 4);
         return kept(u);
       }},
  });
}

TEST(messages, sizes_that_a_tensor_cannot_have) {
  expect_told(std::vector<Told>{
      {"makes a tensor of a negative size",
       RLX_E_SHAPE,
       {nullptr, nullptr, "0 or more", "-1"},
       {"f32[-1,3]: the size of axis 0 is negative"},
       {"blocks", "too large"},
       [](User& u) {
         int64_t dims[] = {-1, 3};
         rlx_tensor_t* made;
         return rlx_tensor_create(u.env, nullptr, RLX_F32, dims, 2, &made);
       }},
      {"makes too large a tensor",
       RLX_E_NO_MEMORY,
       {nullptr, nullptr, nullptr, "4611686018427387904"},
       {"cannot allocate 4611686018427387904 bytes", "f32[1073741824,1073741824]"},
       {"out of memory"},
       [](User& u) {
         int64_t dims[] = {1 << 30, 1 << 30};
         rlx_tensor_t* made;
         return rlx_tensor_create(u.env, nullptr, RLX_F32, dims, 2, &made);
       }},
      {"makes a tensor of more bytes than numbers have",
       RLX_E_SHAPE,
       {nullptr, nullptr, nullptr, nullptr},
       {"f32[4611686018427387904]", "63 bits"},
       {"blocks"},
       [](User& u) {
         int64_t dims[] = {int64_t{1} << 62};
         rlx_tensor_t* made;
         return rlx_tensor_create(u.env, nullptr, RLX_F32, dims, 1, &made);
       }},
      {"cuts a block in two",
       RLX_E_SHAPE,
       {nullptr, nullptr, "a multiple of 32", "33"},
       {"q4_0[33]", "must be a multiple of 32"},
       {},
       [](User& u) {
         int64_t dims[] = {33};
         rlx_tensor_t* made;
         return rlx_tensor_create(u.env, nullptr, rlx_dtype_find("q4_0"), dims, 1, &made);
       }},
  });
}

TEST(messages, values_of_another_graph) {
  expect_told(std::vector<Told>{
      {"uses a value of another graph",
       RLX_E_INVALID_ARGUMENT,
       {"exp", nullptr, "a value of this graph", nullptr},
       {"exp: ", "is not a value of this graph", "of another graph?"},
       {},
       [](User& u) {
         rlx_graph_t* other = nullptr;
         rlx_status_release(rlx_graph_create(u.env, "other", &other));
         int64_t two = 2;
         rlx_value_t far = rlx_graph_input(other, "x", RLX_F32, &two, 1);
         u.input("x", {2});
         rlx_graph_release(other);
         return built(u, "exp", {far});
       }},
      {"uses a value of the graph around a body",
       RLX_E_INVALID_ARGUMENT,
       {"neg", nullptr, nullptr, nullptr},
       {"is not a value of this graph"},
       {},
       [](User& u) {
         rlx_value_t x = u.input("x", {2}), cond = u.input("cond", {}, RLX_BOOL);
         rlx_graph_t* body = nullptr;
         rlx_status_release(rlx_graph_create(u.env, "body", &body));
         int64_t two = 2;
         rlx_graph_input(body, "x", RLX_F32, &two, 1);
         rlx_graph_output(body, "y", rlx_graph_unary(body, "neg", x));
         rlx_attrs_t* attrs = u.attrs("");
         rlx_attrs_set_graph(attrs, "then", body);
         rlx_attrs_set_graph(attrs, "else", body);
         rlx_graph_release(body);
         rlx_value_t in[] = {cond, x};
         rlx_graph_op(u.graph, "if", in, 2, attrs);
         return kept(u);
       }},
      {"makes an output of another graph's value",
       RLX_E_INVALID_ARGUMENT,
       {nullptr, "y", nullptr, nullptr},
       {"output 'y': ", "is not a value of this graph"},
       {},
       [](User& u) {
         User other;
         rlx_value_t far = other.input("x", {2});
         u.input("x", {2});
         rlx_graph_output(u.graph, "y", far);
         return kept(u);
       }},
      {"asks what another graph's value is",
       RLX_E_INVALID_ARGUMENT,
       {nullptr, nullptr, nullptr, nullptr},
       {"is not a value of this graph"},
       {},
       [](User& u) {
         User other;
         rlx_value_t far = other.input("x", {2});
         u.input("x", {2});
         return rlx_graph_value_info(u.graph, far, nullptr, nullptr, 0, nullptr);
       }},
  });
}

// A large negative number is a token only where a dim stands.
TEST(messages, tokens_are_tokens_where_a_dim_stands) {
  User u;
  int64_t far = -(int64_t{1} << 60), n = rlx_graph_dim(u.graph, "n", 1, 8);
  rlx_value_t x = u.input("x", {2, 3});
  rlx_attrs_t* attrs = u.attrs("starts=[0]");
  rlx_attrs_set_i64s(attrs, "ends", &far, 1);  // a list of dims
  rlx_graph_op(u.graph, "slice", &x, 1, attrs);
  rlx_status_t* status = kept(u);
  EXPECT_EQ(rlx_status_code(status), RLX_E_RANGE) << rlx_status_message(status);
  rlx_status_release(status);

  User v;
  x = v.input("x", {2, 3});
  attrs = v.attrs("");
  rlx_attrs_set_i64(attrs, "k", far);  // an integer
  EXPECT_NE(rlx_graph_op(v.graph, "trilu", &x, 1, attrs), 0u) << rlx_status_message(kept(v));
  rlx_attrs_set_i64(attrs, "k", n);
  EXPECT_NE(rlx_graph_op(v.graph, "trilu", &x, 1, attrs), 0u);
  rlx_attrs_t* options = v.attrs("");
  rlx_attrs_set_i64(options, "threads", n);
  rlx_env_t* env = nullptr;
  status = rlx_env_create(options, nullptr, &env);
  EXPECT_EQ(rlx_status_code(status), RLX_E_OPTION);
  rlx_status_release(status);
}

// ---- names of scopes ----

static std::string text_of(rlx_graph_t* graph) {
  rlx_blob_t* blob = nullptr;
  rlx_status_release(rlx_graph_print(graph, "rlx", &blob));
  std::string text = static_cast<const char*>(rlx_blob_data(blob));
  rlx_blob_release(blob);
  return text;
}

TEST(messages, scopes_name_ops) {
  User u;
  rlx_value_t x = u.input("x", {2, 3});
  rlx_graph_push_name(u.graph, "layer.3");
  rlx_value_t a = u.op("exp", {x}), b = u.op("exp", {a});
  rlx_graph_push_name(u.graph, "attention");
  rlx_value_t c = u.op("neg", {b});
  rlx_graph_pop_name(u.graph);
  rlx_value_t d = u.op("neg", {c});
  rlx_graph_set_name(u.graph, d, "q");
  rlx_graph_pop_name(u.graph);
  rlx_graph_output(u.graph, "y", u.op("abs", {d}));
  std::string text = text_of(u.graph);
  for (const char* line : {"layer.3/exp = exp(x)", "layer.3/exp_2 = exp(layer.3/exp)",
                           "layer.3/attention/neg = neg(layer.3/exp_2)", "layer.3/q = neg(layer.3/attention/neg)"})
    EXPECT_NE(text.find(line), text.npos) << line << " in " << text;
  EXPECT_EQ(text.find("layer.3/abs"), text.npos) << text;
}

static rlx_value_t hundred_products(User& u, int wrong) {
  rlx_value_t x = u.input("x", {2, 4});
  for (int i = 0; i < 100; i++) {
    rlx_graph_push_name(u.graph, ("layer." + std::to_string(i)).c_str());
    int64_t dims[] = {i == wrong ? 5 : 4, 4};
    rlx_value_t w = rlx_graph_param(u.graph, ("w" + std::to_string(i)).c_str(), RLX_F32, dims, 2);
    x = rlx_graph_matmul(u.graph, x, w);
    rlx_graph_pop_name(u.graph);
  }
  return x;
}

TEST(messages, one_of_a_hundred_products_is_found) {
  expect_told(std::vector<Told>{
      {"builds a hundred products, of which one is wrong",
       RLX_E_SHAPE,
       {"matmul", "layer.73/matmul", "4", "5"},
       {"matmul 'layer.73/matmul': ", "b is param 'w73' f32[5,4]"},
       {},
       [](User& u) {
         hundred_products(u, 73);
         return kept(u);
       }},
      {"plans a hundred products above the limit",
       RLX_E_NO_MEMORY,
       {nullptr, "memory.limit", nullptr, nullptr},
       {"param 'w", " 'layer."},
       {},
       [](User& u) {
         rlx_graph_output(u.graph, "y", hundred_products(u, -1));
         rlx_compiled_t* made;
         return rlx_compile(u.graph, nullptr, nullptr, u.attrs("memory.limit=1"), &made);
       }},
  });
}

TEST(messages, an_op_in_a_scope_is_named) {
  expect_told(std::vector<Told>{
      {"misspells an attribute in a scope",
       RLX_E_OPTION,
       {"softmax", "axs", nullptr, nullptr},
       {"softmax 'layer.1/softmax': ", "'axs'"},
       {},
       [](User& u) {
         rlx_graph_push_name(u.graph, "layer.1");
         return misnamed(u, "softmax axs=0");
       }},
      {"runs with sizes that one of its ops refuses",
       RLX_E_SHAPE,
       {"add", nullptr, nullptr, nullptr},
       {"add 'layer.7/add'", "n = m"},
       {},
       [](User& u) -> rlx_status_t* {
         rlx_value_t a = u.input("a", {rlx_graph_dim(u.graph, "n", 2, 4)});
         rlx_value_t b = u.input("b", {rlx_graph_dim(u.graph, "m", 2, 4)});
         rlx_graph_push_name(u.graph, "layer.7");
         rlx_graph_output(u.graph, "y", u.op("add", {a, b}));
         rlx_compiled_t* program = nullptr;
         if (rlx_status_t* status = rlx_compile(u.graph, nullptr, nullptr, nullptr, &program)) return status;
         rlx_tensor_t *in[] = {u.tensor({2}), u.tensor({3})}, *out = nullptr;
         rlx_status_t* status = rlx_compiled_run(program, nullptr, in, 2, nullptr, &out, 1);
         rlx_compiled_release(program);
         return status;
       }},
  });
}

TEST(messages, scopes_that_cannot_be_pushed_or_popped) {
  expect_told(std::vector<Told>{
      {"pops a name too many",
       RLX_E_STATE,
       {nullptr, nullptr, nullptr, nullptr},
       {"rlx_graph_pop_name"},
       {},
       [](User& u) {
         rlx_graph_push_name(u.graph, "a");
         rlx_graph_pop_name(u.graph);
         rlx_graph_pop_name(u.graph);
         return kept(u);
       }},
      {"pushes an empty name",
       RLX_E_INVALID_ARGUMENT,
       {nullptr, nullptr, nullptr, nullptr},
       {"rlx_graph_push_name", "empty"},
       {},
       [](User& u) {
         rlx_graph_push_name(u.graph, "");
         return kept(u);
       }},
  });
}

// A report of the program names its steps by their scopes.
TEST(messages, reports_name_scopes) {
  User u;
  rlx_graph_output(u.graph, "y", hundred_products(u, -1));
  rlx_compiled_t* program = nullptr;
  rlx_status_t* status = rlx_compile(u.graph, nullptr, nullptr, nullptr, &program);
  ASSERT_EQ(status, nullptr) << rlx_status_message(status);
  rlx_blob_t* report = nullptr;
  rlx_status_release(rlx_compiled_report(program, "dispatch", &report));
  std::string text = static_cast<const char*>(rlx_blob_data(report));
  EXPECT_NE(text.find("layer.73/matmul"), text.npos);
  rlx_blob_release(report);
  rlx_compiled_release(program);
}

}  // namespace rlx::errors
