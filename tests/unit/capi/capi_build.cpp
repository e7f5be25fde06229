// SPDX-License-Identifier: Apache-2.0
// The C API without a device: environments, attributes, tensors, graphs, schemas; and the message of every way to get
// them wrong.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rlx.h"
#include "words.h"

namespace {

using rlx::capi_tests::words;

std::string text_of(rlx_blob_t* blob) {
  std::string text(static_cast<const char*>(rlx_blob_data(blob)), rlx_blob_size(blob));
  rlx_blob_release(blob);
  return text;
}

struct Capi : testing::Test {
  void SetUp() override {
    rlx_attrs_t* options;
    OK(rlx_attrs_create(nullptr, &options));
    rlx_attrs_set_i64(options, "threads", 0);
    OK(rlx_env_create(options, nullptr, &env));
    rlx_attrs_release(options);
    OK(rlx_graph_create(env, "test", &graph));
  }
  void TearDown() override {
    rlx_env_release(env);
    rlx_graph_release(graph);
  }
  rlx_tensor_t* tensor(std::vector<int64_t> dims, std::vector<float> data) {
    rlx_tensor_t* made = nullptr;
    EXPECT_EQ(words(rlx_tensor_copy_from(env, RLX_F32, dims.data(), dims.size(), data.data(), data.size() * 4, &made)),
              "");
    return made;
  }
  rlx_value_t input(const char* name, std::vector<int64_t> dims, rlx_dtype_t dtype = RLX_F32) {
    return rlx_graph_input(graph, name, dtype, dims.data(), dims.size());
  }
  std::string failure() { return words(rlx_graph_status(graph)); }
  std::vector<int64_t> dims_of(rlx_value_t value) {
    int64_t dims[8];
    size_t rank = 0;
    EXPECT_EQ(words(rlx_graph_value_info(graph, value, nullptr, dims, 8, &rank)), "");
    return {dims, dims + rank};
  }
  rlx_env_t* env = nullptr;
  rlx_graph_t* graph = nullptr;
};

// ---- environments ----

TEST_F(Capi, env_options_are_checked) {
  rlx_env_t* other = reinterpret_cast<rlx_env_t*>(8);
  rlx_attrs_t* options;
  OK(rlx_attrs_create(nullptr, &options));
  rlx_attrs_set_i64(options, "thread", 1);
  EXPECT_EQ(words(rlx_env_create(options, nullptr, &other)),
            "RLX_E_OPTION: unknown option 'thread' (did you mean 'threads'?)");
  EXPECT_EQ(other, nullptr);
  rlx_attrs_release(options);
}

TEST_F(Capi, host_structs_of_other_sizes) {
  struct Longer {
    rlx_host_t host;
    uint64_t tail;
  } longer;
  auto create = [&](uint32_t size, uint64_t tail) {
    rlx_host_init(&longer.host, sizeof longer);
    longer.host.struct_size = size;
    longer.tail = tail;
    rlx_env_t* made = nullptr;
    std::string text = words(rlx_env_create(nullptr, &longer.host, &made));
    rlx_env_release(made);
    return text.substr(0, text.find(':'));
  };
  constexpr uint32_t kFirst = offsetof(rlx_host_t, progress);  // of version 0.1
  for (uint32_t size = kFirst; size <= sizeof(rlx_host_t); size++) EXPECT_EQ(create(size, 1), "") << size;
  EXPECT_EQ(create(sizeof(Longer), 0), "");
  for (uint32_t size : {0u, 8u, kFirst - 1, UINT32_MAX}) EXPECT_EQ(create(size, 0), "RLX_E_VERSION") << size;
  EXPECT_EQ(create(sizeof(Longer), 1), "RLX_E_VERSION");
}

TEST_F(Capi, memory_comes_from_the_host) {
  struct Counts {
    int taken = 0, given = 0;
  } counts;
  rlx_host_t host;
  rlx_host_init(&host, sizeof host);
  host.user = &counts;
  host.alloc = [](void* user, size_t size, size_t align, uint32_t) {
    static_cast<Counts*>(user)->taken++;
    return aligned_alloc(align, (size + align - 1) / align * align);
  };
  host.dealloc = [](void* user, void* data, size_t, size_t, uint32_t) {
    static_cast<Counts*>(user)->given++;
    free(data);
  };
  rlx_env_t* own;
  OK(rlx_env_create(nullptr, &host, &own));
  int64_t dims[] = {3}, now = -1;
  rlx_tensor_t* made;
  OK(rlx_tensor_create(own, nullptr, RLX_I64, dims, 1, &made));
  OK(rlx_env_stat(own, "memory.tensor.now", &now));
  EXPECT_EQ(now, 24);
  EXPECT_EQ(counts.taken, 1);
  rlx_env_release(own);
  rlx_tensor_release(made);
  EXPECT_EQ(counts.given, 1);
}

TEST_F(Capi, handles_do_not_cross_a_fork) {
  static float bytes[2];
  static int returned;
  const int64_t two = 2;
  rlx_attrs_t* attrs = nullptr;
  rlx_tensor_t* lent = nullptr;
  OK(rlx_attrs_create("", &attrs));
  OK(rlx_tensor_wrap(
      env, RLX_F32, &two, 1, bytes, sizeof bytes, [](void*, void*) { returned++; }, nullptr, &lent));
  rlx_attrs_set_tensor(attrs, "value", lent);
  rlx_tensor_release(lent);
  pid_t child = fork();
  if (child == 0) {
    rlx_attrs_release(attrs);
    if (returned != 0) _exit(2);
    rlx_blob_t* blob;
    bool refused = rlx_status_code(rlx_schema(env, "ops", &blob)) == RLX_E_FORKED && rlx_graph_count(graph, 1) == 0;
    rlx_env_t* fresh;
    bool works = rlx_env_create(nullptr, nullptr, &fresh) == nullptr && rlx_schema(fresh, "ops", &blob) == nullptr;
    _exit(refused && works ? 0 : 1);
  }
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(failure(), "") << "the parent goes on";
  rlx_attrs_release(attrs);
  EXPECT_EQ(returned, 1);
}

TEST_F(Capi, schemas_and_reports) {
  rlx_blob_t* json;
  OK(rlx_schema(env, "op.layer_norm", &json));
  std::string text = text_of(json);
  EXPECT_NE(text.find("\"eps\""), std::string::npos) << text;
  auto row = nlohmann::json::parse(text);
  EXPECT_EQ(row["inputs"][0]["types"], (nlohmann::json{"f32", "f16", "bf16", "f64"}));
  EXPECT_FALSE(row["kernels"]["cpu"].empty());
  EXPECT_TRUE(row["kernels"]["reference"].empty());
  OK(rlx_schema(env, "ops", &json));
  auto all = nlohmann::json::parse(text_of(json))["ops"];
  EXPECT_NE(std::find(all.begin(), all.end(), row), all.end());
  for (const char* what : {"options.env", "options.compile", "options.import", "options.model"}) {
    OK(rlx_schema(env, what, &json));
    auto options = nlohmann::json::parse(text_of(json))["options"];
    EXPECT_FALSE(options.empty()) << what;
    for (const auto& option : options)
      for (const char* key : {"name", "kind", "required", "default", "summary"})
        EXPECT_TRUE(option.contains(key) && option[key] != "") << what << " lacks " << key << ": " << option;
  }
  EXPECT_TRUE(words(rlx_schema(env, "op.layer", &json)).starts_with("RLX_E_NOT_FOUND: no schema 'op.layer', only ops"));
  EXPECT_EQ(json, nullptr);
  OK(rlx_env_report(env, "environment", &json));
  EXPECT_NE(text_of(json).find("RLX_THREADS"), std::string::npos);
  int64_t count;
  EXPECT_TRUE(words(rlx_env_stat(env, "memory", &count)).starts_with("RLX_E_NOT_FOUND: no counter 'memory', only "));
}

// ---- attributes ----

TEST_F(Capi, attrs_convert_and_keep_their_first_failure) {
  rlx_attrs_t* attrs;
  OK(rlx_attrs_create(nullptr, &attrs));
  int64_t list[] = {3, 1, 4}, got[2] = {-1, -1};
  size_t n = 0;
  rlx_attrs_set_i64s(attrs, "list", list, 3);
  OK(rlx_attrs_get_i64s(attrs, "list", got, 2, &n));
  EXPECT_EQ(n, 3u);
  EXPECT_EQ(got[1], 1);
  double real[1];
  rlx_attrs_set_i64(attrs, "list", 7);
  OK(rlx_attrs_get_f64s(attrs, "list", real, 1, &n));
  EXPECT_EQ(real[0], 7.0);
  const char* text = "x";
  EXPECT_EQ(words(rlx_attrs_get_str(attrs, "list", &text)), "RLX_E_OPTION: 'list' is not a string");
  EXPECT_EQ(text, nullptr);
  EXPECT_EQ(words(rlx_attrs_get_str(attrs, "no", &text)), "RLX_E_NOT_FOUND: no attribute 'no'");
  rlx_attrs_set_str(attrs, "word", nullptr);
  rlx_attrs_set_i64(attrs, nullptr, 1);
  EXPECT_EQ(words(rlx_attrs_get_i64s(attrs, "list", got, 2, &n)),
            "RLX_E_INVALID_ARGUMENT: 'word': rlx_attrs_set_str: value is NULL");
  rlx_attrs_release(attrs);
}

TEST_F(Capi, text_from_attrs_stays_while_other_keys_are_set) {
  rlx_attrs_t* attrs = nullptr;
  OK(rlx_attrs_create("short=yes", &attrs));
  const char* text = nullptr;
  OK(rlx_attrs_get_str(attrs, "short", &text));
  for (int i = 0; i < 100; i++) {
    rlx_attrs_set_i64(attrs, ("other" + std::to_string(i)).c_str(), i);
    ASSERT_STREQ(text, "yes") << i;
  }
  rlx_attrs_release(attrs);
}

TEST_F(Capi, attrs_are_read_from_text) {
  rlx_attrs_t* attrs = reinterpret_cast<rlx_attrs_t*>(8);
  OK(rlx_attrs_create("axis=-1 eps=1e-5 perm=[0,2,1] act=gelu keep=true drop=false", &attrs));
  int64_t perm[3];
  size_t n;
  double eps;
  const char* act;
  OK(rlx_attrs_get_i64s(attrs, "perm", perm, 3, &n));
  EXPECT_EQ(perm[1], 2);
  OK(rlx_attrs_get_f64s(attrs, "eps", &eps, 1, &n));
  EXPECT_EQ(eps, 1e-5);
  OK(rlx_attrs_get_str(attrs, "act", &act));
  EXPECT_STREQ(act, "gelu");
  int64_t keep = -1, drop = -1;
  OK(rlx_attrs_get_i64s(attrs, "keep", &keep, 1, &n));
  OK(rlx_attrs_get_i64s(attrs, "drop", &drop, 1, &n));
  EXPECT_EQ(keep, 1);
  EXPECT_EQ(drop, 0);
  OK(rlx_attrs_get_f64s(attrs, "keep", &eps, 1, &n));
  EXPECT_EQ(eps, 1);
  EXPECT_EQ(words(rlx_attrs_get_i64s(attrs, "act", &keep, 1, &n)),
            "RLX_E_OPTION: 'act' must be of kind i64s, not 'gelu'");
  rlx_attrs_release(attrs);
  for (const char* bad : {"axis", "axis=", "perm=[1,", "a=1 a=2", "=3"}) {
    rlx_status_t* status = rlx_attrs_create(bad, &attrs);
    EXPECT_EQ(rlx_status_code(status), RLX_E_OPTION) << bad;
    EXPECT_EQ(attrs, nullptr);
    rlx_status_release(status);
  }
}

TEST_F(Capi, op_strings_and_attrs_are_joined) {
  rlx_attrs_t* attrs;
  OK(rlx_attrs_create("eps=0.5", &attrs));
  rlx_value_t x = input("x", {2, 3});
  EXPECT_NE(rlx_graph_op(graph, "layer_norm axis=-1", &x, 1, attrs), 0u);
  EXPECT_EQ(failure(), "");
  EXPECT_EQ(rlx_graph_op(graph, "layer_norm eps=1", &x, 1, attrs), 0u);
  EXPECT_EQ(failure(), "RLX_E_OPTION: layer_norm: attribute 'eps' is given twice");
  rlx_attrs_release(attrs);
}

TEST_F(Capi, a_failed_setter_is_reported_where_the_attrs_are_used) {
  rlx_attrs_t* attrs;
  OK(rlx_attrs_create(nullptr, &attrs));
  rlx_attrs_set_i64s(attrs, "axes", nullptr, 2);
  rlx_value_t x = input("x", {2, 3});
  EXPECT_EQ(rlx_graph_op(graph, "softmax", &x, 1, attrs), 0u);
  EXPECT_EQ(failure(), "RLX_E_INVALID_ARGUMENT: softmax: 'axes': rlx_attrs_set_i64s: values is NULL");
  rlx_attrs_release(attrs);
}

TEST_F(Capi, a_graph_prints_as_text) {
  rlx_value_t x = input("x", {rlx_graph_dim(graph, "n", 0, 8), 3});
  rlx_graph_output(graph, "y", rlx_graph_unary(graph, "exp", x));
  rlx_blob_t* blob;
  OK(rlx_graph_print(graph, "rlx", &blob));
  std::string text = text_of(blob);
  EXPECT_NE(text.find("exp(x)"), std::string::npos) << text;
  EXPECT_EQ(words(rlx_graph_print(graph, "dot", &blob)),
            "RLX_E_NOT_FOUND: a graph cannot be printed as 'dot', only as 'rlx'");
}

TEST_F(Capi, a_device_says_how_it_would_run_a_graph) {
  rlx_graph_output(graph, "y", rlx_graph_unary(graph, "exp", input("x", {2, 3})));
  const rlx_device_t* cpu;
  OK(rlx_env_find_device(env, "cpu", &cpu));
  rlx_blob_t* json;
  OK(rlx_device_supports(cpu, graph, nullptr, &json));
  auto report = nlohmann::json::parse(text_of(json));
  EXPECT_NE(report.dump().find("\"exp\""), std::string::npos) << report;
  EXPECT_EQ(report.dump().find("unsupported"), std::string::npos) << report;
  rlx_attrs_t* options;
  OK(rlx_attrs_create("no.such=1", &options));
  EXPECT_NE(words(rlx_device_supports(cpu, graph, options, &json)).find("RLX_E_OPTION"), std::string::npos);
  EXPECT_EQ(json, nullptr);
  rlx_attrs_release(options);
  for (const char* wrong : {"dims.n=1", "io.alias=[y=z]", "io.alias=[z=x]", "io.alias=[y]"}) {
    OK(rlx_attrs_create(wrong, &options));
    rlx_compiled_t* program;
    std::string refusal = words(rlx_compile(graph, nullptr, cpu, options, &program));
    EXPECT_NE(refusal, "") << wrong;
    EXPECT_EQ(words(rlx_device_supports(cpu, graph, options, &json)), refusal) << wrong;
    rlx_attrs_release(options);
  }
  EXPECT_NE(words(rlx_device_supports(nullptr, graph, nullptr, &json)).find("device is NULL"), std::string::npos);
}

// ---- tensors ----

TEST_F(Capi, tensor_bytes_go_in_and_out) {
  rlx_tensor_t* t = tensor({2, 2}, {1, 2, 3, 4});
  float value = 9, all[4];
  OK(rlx_tensor_write(t, 4, &value, 4));
  OK(rlx_tensor_read(t, 0, all, 16));
  EXPECT_EQ(all[1], 9);
  EXPECT_EQ(words(rlx_tensor_write(t, 13, &value, 4)),
            "RLX_E_RANGE: write: 4 bytes at offset 13 of a tensor of 16 bytes");
  EXPECT_EQ(words(rlx_tensor_read(t, UINT64_MAX, all, 4)).substr(0, 12), "RLX_E_RANGE:");
  OK(rlx_tensor_copy(t, 8, t, 4, 8));
  OK(rlx_tensor_read(t, 0, all, 16));
  EXPECT_EQ(all[2], 9);
  EXPECT_EQ(all[3], 3);
  rlx_tensor_release(t);
}

TEST_F(Capi, tensor_errors_say_what_came) {
  int64_t dims[9] = {2, 3, 1, 1, 1, 1, 1, 1, 1}, negative[] = {-1};
  float data[6] = {};
  rlx_tensor_t* t = reinterpret_cast<rlx_tensor_t*>(8);
  EXPECT_EQ(words(rlx_tensor_copy_from(env, RLX_F32, dims, 2, data, 20, &t)),
            "RLX_E_INVALID_ARGUMENT: f32[2,3] has 24 bytes, not 20");
  EXPECT_EQ(t, nullptr);
  EXPECT_EQ(words(rlx_tensor_create(env, nullptr, 99, dims, 2, &t)), "RLX_E_DTYPE: 99 is not a dtype");
  EXPECT_EQ(words(rlx_tensor_create(env, nullptr, RLX_F32, dims, 9, &t)),
            "RLX_E_SHAPE: rank 9 is above the limit of 8");
  EXPECT_EQ(words(rlx_tensor_create(env, nullptr, RLX_F32, negative, 1, &t)),
            "RLX_E_SHAPE: f32[-1]: the size of axis 0 is negative");
  EXPECT_EQ(words(rlx_tensor_copy_from(env, RLX_F32, dims, 2, nullptr, 24, &t)),
            "RLX_E_INVALID_ARGUMENT: rlx_tensor_copy_from: data is NULL");
}

TEST_F(Capi, wrapped_memory_is_given_back_once) {
  static int given;
  given = 0;
  float data[2] = {1, 2};
  int64_t dims[] = {2};
  rlx_tensor_t* t;
  auto done = [](void* user, void* bytes) { given += user == bytes; };
  EXPECT_NE(words(rlx_tensor_wrap(env, RLX_F32, dims, 1, data, 7, done, data, &t)), "");
  EXPECT_EQ(given, 0) << "a failed wrap does not give back";
  OK(rlx_tensor_wrap(env, RLX_F32, dims, 1, data, 8, done, data, &t));
  EXPECT_EQ(rlx_tensor_data(t), data);
  EXPECT_NE(rlx_graph_tensor(graph, t), 0u);
  rlx_tensor_release(t);
  EXPECT_EQ(given, 0) << "the graph still reads it";
  rlx_graph_release(graph);
  graph = nullptr;
  EXPECT_EQ(given, 1);
}

TEST_F(Capi, mapped_tensors_are_read_only) {
  std::string path = testing::TempDir() + "rlx_capi_map";
  std::ofstream(path, std::ios::binary) << std::string("\0\0\0\0abcdefgh", 12);
  int64_t dims[] = {8}, more[] = {9};
  rlx_tensor_t* t;
  OK(rlx_tensor_map_file(env, RLX_U8, dims, 1, path.c_str(), 4, &t));
  EXPECT_EQ(std::memcmp(rlx_tensor_data(t), "abcdefgh", 8), 0);
  EXPECT_EQ(words(rlx_tensor_write(t, 0, "x", 1)),
            "RLX_E_STATE: the tensor u8[8] cannot be written, it is read-only: a view of a file");
  rlx_tensor_release(t);
  std::string beyond = words(rlx_tensor_map_file(env, RLX_U8, more, 1, path.c_str(), 4, &t));
  EXPECT_EQ(beyond.substr(0, 12), "RLX_E_RANGE:");
  EXPECT_NE(beyond.find(" of a file of "), std::string::npos) << beyond;
  EXPECT_EQ(words(rlx_tensor_map_file(env, RLX_U8, dims, 1, "/no/such", 0, &t)).substr(0, 16), "RLX_E_NOT_FOUND:");
  unlink(path.c_str());
}

TEST_F(Capi, a_constant_freezes_its_tensor_while_it_lives) {
  rlx_tensor_t* t = tensor({1}, {1});
  EXPECT_NE(rlx_graph_tensor(graph, t), 0u);
  float value = 2;
  EXPECT_EQ(words(rlx_tensor_write(t, 0, &value, 4)),
            "RLX_E_STATE: the tensor f32[1] cannot be written, it is frozen: a param, a constant or a weight");
  rlx_graph_release(graph);
  graph = nullptr;
  OK(rlx_tensor_write(t, 0, &value, 4));
  rlx_tensor_release(t);
}

// Sanitizers see every element that is read where it lies.
TEST_F(Capi, memory_of_any_alignment_is_cast_printed_and_a_constant) {
  struct Owner {
    alignas(8) char bytes[9] = {};
    int given_back = 0;
  } owner;
  float values[] = {1.5f, 2.5f};
  std::memcpy(owner.bytes + 1, values, sizeof values);
  auto done = [](void* user, void*) { static_cast<Owner*>(user)->given_back++; };
  int64_t two = 2;
  rlx_tensor_t *t, *wide;
  OK(rlx_tensor_wrap(env, RLX_F32, &two, 1, owner.bytes + 1, 8, done, &owner, &t));
  OK(rlx_tensor_cast(t, RLX_F64, &wide));
  EXPECT_EQ(static_cast<const double*>(rlx_tensor_data(wide))[1], 2.5);
  rlx_tensor_release(wide);
  rlx_blob_t* text;
  OK(rlx_tensor_print(t, 2, &text));
  EXPECT_EQ(text_of(text), "f32[2]\n1.5 2.5\n");
  rlx_value_t same = rlx_graph_binary(graph, "eq", rlx_graph_tensor(graph, t), input("x", {2}));
  rlx_graph_output(graph, "y", same);
  EXPECT_EQ(words(rlx_tensor_write(t, 0, values, 4)),
            "RLX_E_STATE: the tensor f32[2] cannot be written, it is frozen: a param, a constant or a weight");
  rlx_compiled_t* program;
  OK(rlx_compile(graph, nullptr, nullptr, nullptr, &program));
  rlx_tensor_t* y;
  OK(rlx_compiled_run(program, nullptr, &t, 1, nullptr, &y, 1));
  EXPECT_EQ(std::memcmp(rlx_tensor_data(y), "\1\1", 2), 0);
  rlx_tensor_release(y);
  rlx_graph_release(std::exchange(graph, nullptr));
  rlx_tensor_release(t);
  EXPECT_EQ(owner.given_back, 0) << "the program has the constant";
  rlx_compiled_release(program);
  EXPECT_EQ(owner.given_back, 1);
}

TEST_F(Capi, cast_and_print) {
  rlx_tensor_t *t = tensor({3}, {1.5f, NAN, -3e9f}), *i;
  OK(rlx_tensor_cast(t, RLX_I32, &i));
  auto* data = static_cast<const int32_t*>(rlx_tensor_data(i));
  EXPECT_EQ(data[0], 1);
  EXPECT_EQ(data[1], 0);
  EXPECT_EQ(data[2], INT32_MIN);
  rlx_blob_t* text;
  OK(rlx_tensor_print(i, 2, &text));
  EXPECT_EQ(text_of(text), "i32[3]\n1 0 ... 3 elements in all\n");
  rlx_tensor_release(t);
  rlx_tensor_release(i);
  int64_t blocks = 32;
  OK(rlx_tensor_create(env, nullptr, rlx_dtype_find("q4_0"), &blocks, 1, &t));
  EXPECT_EQ(words(rlx_tensor_cast(t, RLX_F32, &i)),
            "RLX_E_DTYPE: cast: q4_0 is block-quantised: the op dequantize converts it");
  rlx_tensor_release(t);
}

// ---- graphs ----

TEST_F(Capi, a_graph_is_built_and_asked) {
  int64_t batch = rlx_graph_dim(graph, "batch", 1, 8);
  EXPECT_LT(batch, -(int64_t{1} << 48));
  rlx_value_t x = input("x", {batch, 3}), w = rlx_graph_scalar(graph, RLX_F32, 2);
  rlx_value_t y = rlx_graph_binary(graph, "add", rlx_graph_unary(graph, "relu", x), w);
  rlx_graph_output(graph, "y", y);
  EXPECT_EQ(failure(), "");
  EXPECT_EQ(dims_of(y), (std::vector<int64_t>{batch, 3}));
  EXPECT_EQ(rlx_graph_count(graph, RLX_INPUT), 1u);
  EXPECT_STREQ(rlx_graph_name(graph, RLX_OUTPUT, 0), "y");
  EXPECT_STREQ(rlx_graph_name(graph, RLX_SYMBOL, 0), "batch");
  EXPECT_EQ(rlx_graph_name(graph, RLX_OUTPUT, 1), nullptr);
  EXPECT_EQ(rlx_graph_find(graph, RLX_OUTPUT, "y"), y);
  EXPECT_EQ(rlx_graph_find(graph, RLX_INPUT, "y"), 0u);
}

TEST_F(Capi, dims_are_tokens_that_print) {
  int64_t sum = rlx_graph_dim(graph, "past + seq", 0, 0);
  char text[32];
  EXPECT_EQ(rlx_graph_dim_text(graph, sum, text, sizeof text), std::strlen("past + seq"));
  EXPECT_STREQ(text, "past + seq");
  EXPECT_EQ(rlx_graph_dim(graph, "seq + past", 0, 0), sum) << "the same expression, the same token";
  rlx_graph_t* other;
  OK(rlx_graph_create(env, nullptr, &other));
  EXPECT_EQ(rlx_graph_dim(other, "past+seq", 0, 0), sum) << "in every graph of an environment";
  rlx_graph_release(other);
  EXPECT_EQ(rlx_graph_dim_text(graph, 42, text, 2), 2u);
  EXPECT_STREQ(text, "4");
  EXPECT_EQ(rlx_graph_dim_text(graph, INT64_MIN, text, sizeof text), 0u);
  EXPECT_EQ(failure(), "");
  EXPECT_EQ(rlx_graph_dim(graph, "past +", 0, 0), INT64_MIN);
  EXPECT_NE(failure().find("column"), std::string::npos) << failure();
}

TEST_F(Capi, typed_builders_agree_with_op_strings) {
  rlx_value_t x = input("x", {2, 3, 4});
  int64_t dims[] = {6, -1}, perm[] = {2, 0, 1}, axes[] = {-1};
  EXPECT_EQ(dims_of(rlx_graph_reshape(graph, x, dims, 2)), (std::vector<int64_t>{6, 4}));
  EXPECT_EQ(dims_of(rlx_graph_transpose(graph, x, perm, 3)), (std::vector<int64_t>{4, 2, 3}));
  EXPECT_EQ(dims_of(rlx_graph_reduce(graph, "mean", x, axes, 1, 0)), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(dims_of(rlx_graph_reduce(graph, "sum", x, nullptr, 0, 1)), (std::vector<int64_t>{1, 1, 1}));
  EXPECT_EQ(dims_of(rlx_graph_softmax(graph, x, 1)), (std::vector<int64_t>{2, 3, 4}));
  rlx_value_t half = rlx_graph_cast(graph, x, RLX_F16), out[3] = {7, 7, 7};
  EXPECT_EQ(rlx_graph_op_n(graph, "layer_norm", &half, 1, nullptr, out, 3), out[0]);
  EXPECT_EQ(dims_of(out[2]), (std::vector<int64_t>{2, 3, 1}));
  EXPECT_EQ(failure(), "");
}

TEST_F(Capi, the_first_error_of_a_graph_stays) {
  rlx_value_t x = input("x", {2, 3}), i = input("i", {2, 3}, RLX_I32);
  EXPECT_EQ(rlx_graph_binary(graph, "add", x, i), 0u);
  std::string first = failure();
  EXPECT_EQ(
      first,
      "RLX_E_DTYPE: add: input 'b' is i32, but input 'a' is f32: they must agree (a cast converts); a is input 'x' "
      "f32[2,3], b is input 'i' i32[2,3]");
  EXPECT_EQ(rlx_graph_unary(graph, "nothing", x), 0u);
  EXPECT_EQ(failure(), first);
}

TEST_F(Capi, building_errors_name_op_and_cause) {
  struct Case {
    const char* expected;
    rlx_value_t (*build)(Capi&, rlx_value_t x);
  };
  static const Case kCases[] = {
      {"RLX_E_NOT_FOUND: no op 'ad' (did you mean 'add'?)",
       [](Capi& t, rlx_value_t x) { return rlx_graph_binary(t.graph, "ad", x, x); }},
      {"RLX_E_INVALID_ARGUMENT: relu takes 1 input, use rlx_graph_unary",
       [](Capi& t, rlx_value_t x) { return rlx_graph_binary(t.graph, "relu", x, x); }},
      {"RLX_E_INVALID_ARGUMENT: matmul: an input is 0, which a call that failed returns",
       [](Capi& t, rlx_value_t x) { return rlx_graph_matmul(t.graph, x, 0); }},
      {"RLX_E_INVALID_ARGUMENT: matmul: input 'b' is missing; a is input 'x' f32[2,3]",
       [](Capi& t, rlx_value_t x) { return rlx_graph_matmul(t.graph, x, RLX_ABSENT); }},
      {"RLX_E_INVALID_ARGUMENT: relu: 99999999 is not a value of this graph; is it of another graph?",
       [](Capi& t, rlx_value_t) { return rlx_graph_unary(t.graph, "relu", 99999999); }},
      {"RLX_E_NOT_FOUND: no reduction 'median': there are sum, prod, max, min, mean, any, all",
       [](Capi& t, rlx_value_t x) { return rlx_graph_reduce(t.graph, "median", x, nullptr, 0, 0); }},
      {"RLX_E_DTYPE: any: input 'x' may not be f32 (takes bool); x is input 'x' f32[2,3]",
       [](Capi& t, rlx_value_t x) { return rlx_graph_reduce(t.graph, "any", x, nullptr, 0, 0); }},
      {"RLX_E_EXISTS: there is already an input or param 'x'", [](Capi& t, rlx_value_t) { return t.input("x", {1}); }},
      {"RLX_E_DTYPE: cast: 63 is not a dtype", [](Capi& t, rlx_value_t x) { return rlx_graph_cast(t.graph, x, 63); }},
      {"RLX_E_SHAPE: param 'p': the dims [n] must be numbers",
       [](Capi& t, rlx_value_t) {
         int64_t n = rlx_graph_dim(t.graph, "n", 0, 0);
         return rlx_graph_param(t.graph, "p", RLX_F32, &n, 1);
       }},
      {"RLX_E_RANGE: input 'q': -1125899906842624 is neither a size nor a token of rlx_graph_dim in this environment",
       [](Capi& t, rlx_value_t) { return t.input("q", {-(int64_t{1} << 50)}); }},
      {"RLX_E_INVALID_ARGUMENT: relu has 1 output, not 2",
       [](Capi& t, rlx_value_t x) {
         rlx_value_t out[2];
         return rlx_graph_op_n(t.graph, "relu", &x, 1, nullptr, out, 2);
       }},
  };
  for (const Case& c : kCases) {
    rlx_graph_release(graph);
    OK(rlx_graph_create(env, "test", &graph));
    EXPECT_EQ(c.build(*this, input("x", {2, 3})), 0u) << c.expected;
    EXPECT_EQ(failure(), c.expected);
  }
}

}  // namespace
