// SPDX-License-Identifier: Apache-2.0
// Mistakes in reading files: what is not there, not whole, not understood, or not what its name says.
#include <filesystem>

#include "errors.h"
#include "tests/unit/import/onnx_maker.h"

namespace rlx::errors {

using onnx::Maker;

static Maker model(int64_t opset = 13) {
  Maker made(opset);
  made.input("x", 1, {"n", "3"});
  return made;
}

static std::string with_node(const char* op_type, const char* domain = "", int64_t opset = 13) {
  return model(opset).node(op_type, {"x"}, {"y"}, {}, domain).output("y").bytes();
}

static std::string with_a_sequence() {
  return Maker(13).input("token", 1, {"batch"}).sequence("s", 1).node("Relu", {"token"}, {"y"}).output("y").bytes();
}

static rlx_status_t* with_options(User& u, const char* options) {
  rlx_graph_t* graph;
  std::string bytes = with_a_sequence();
  return rlx_import_memory(u.env, "onnx", bytes.data(), bytes.size(), nullptr, nullptr, u.attrs(options), &graph,
                           nullptr);
}

static rlx_status_t* opened_with(User& u, const char* options) {
  rlx_model_t* made;
  return rlx_model_open(u.env, u.path("model.onnx", with_a_sequence()).c_str(), u.attrs(options), &made);
}

TEST(errors, files_that_hold_no_graph) {
  expect_told({
      {"opens a file that is not there",
       RLX_E_NOT_FOUND,
       {"/no/such.onnx"},
       [](User& u) { return u.open("/no/such.onnx"); }},
      {"opens a folder", RLX_E_IO, {"/tmp", "directory"}, [](User& u) { return u.open("/tmp"); }},
      {"opens a picture",
       RLX_E_UNSUPPORTED,
       {"picture.png", "onnx, safetensors, gguf, rlx"},
       [](User& u) { return u.open(u.path("picture.png", "\x89PNG\r\n\x1a\n")); }},
      {"opens an empty file",
       RLX_E_UNSUPPORTED,
       {"empty", "onnx, safetensors, gguf, rlx"},
       [](User& u) { return u.open(u.path("empty", "")); }},
      {"opens weights as a model",
       RLX_E_UNSUPPORTED,
       {"safetensors", "no graph"},
       [](User& u) { return u.open(u.path("w.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10))); }},
      {"names an unknown format",
       RLX_E_NOT_FOUND,
       {"'pickle'", "onnx, safetensors, gguf, rlx"},
       [](User& u) { return u.import("pickle", "GGUF"); }},
      {"names no format",
       RLX_E_NOT_FOUND,
       {"''", "onnx, safetensors, gguf, rlx", "NULL"},
       [](User& u) { return u.import("", "GGUF"); }},
      {"asks for a graph of weights in memory",
       RLX_E_UNSUPPORTED,
       {"safetensors", "no graph", "rlx_import_memory"},
       [](User& u) { return u.import("safetensors", ""); }},
      {"chooses a size of a graph from text",
       RLX_E_OPTION,
       {"'dims.n'", "rlx files"},
       [](User& u) {
         rlx_graph_t* graph;
         return rlx_import_memory(u.env, "rlx", "graph", 5, nullptr, nullptr, u.attrs("dims.n=2"), &graph, nullptr);
       }},
      {"asks for nothing",
       RLX_E_INVALID_ARGUMENT,
       {"graph", "weights"},
       [](User& u) { return rlx_import_memory(u.env, "onnx", "", 0, nullptr, nullptr, nullptr, nullptr, nullptr); }},
  });
}

TEST(errors, values_that_an_import_option_cannot_have) {
  expect_told({
      {"gives an unknown option",
       RLX_E_OPTION,
       {"'opset'"},
       [](User& u) {
         rlx_graph_t* graph;
         return rlx_import_memory(u.env, "onnx", "", 0, nullptr, nullptr, u.attrs("opset=3"), &graph, nullptr);
       }},
      {"gives an input a rank that no tensor has",
       RLX_E_OPTION,
       {"'rank.x'", "8", "9"},
       [](User& u) {
         rlx_graph_t* graph;
         return rlx_import_memory(u.env, "onnx", "", 0, nullptr, nullptr, u.attrs("rank.x=9"), &graph, nullptr);
       }},
      {"gives a size that is negative",
       RLX_E_OPTION,
       {"'dims.n'", "at least 0", "-1"},
       [](User& u) {
         rlx_graph_t* graph;
         return rlx_import_memory(u.env, "onnx", "", 0, nullptr, nullptr, u.attrs("dims.n=-1"), &graph, nullptr);
       }},
      {"gives a size as a word",
       RLX_E_OPTION,
       {"'dims.n'", "i64", "many"},
       [](User& u) {
         rlx_graph_t* graph;
         return rlx_import_memory(u.env, "onnx", "", 0, nullptr, nullptr, u.attrs("dims.n=many"), &graph, nullptr);
       }},
      {"gives a value as a list of numbers",
       RLX_E_OPTION,
       {"'value.axes'", "tensor", "[1]"},
       [](User& u) {
         rlx_graph_t* graph;
         return rlx_import_memory(u.env, "onnx", "", 0, nullptr, nullptr, u.attrs("value.axes=[1]"), &graph, nullptr);
       }},
      {"leaves an input out twice",
       RLX_E_OPTION,
       {"'absent.x'", "bool", "2"},
       [](User& u) {
         rlx_graph_t* graph;
         return rlx_import_memory(u.env, "onnx", "", 0, nullptr, nullptr, u.attrs("absent.x=2"), &graph, nullptr);
       }},
      {"gives a sequence too many elements",
       RLX_E_OPTION,
       {"'sequence.s'", "4096", "100000000"},
       [](User& u) {
         rlx_graph_t* graph;
         return rlx_import_memory(u.env, "onnx", "", 0, nullptr, nullptr, u.attrs("sequence.s=100000000"), &graph,
                                  nullptr);
       }},
  });
}

TEST(errors, import_options_that_do_not_fit_the_file) {
  expect_told({
      {"gives an input that is not there a rank",
       RLX_E_OPTION,
       {"'rank.tokens'", "no input 'tokens'", "did you mean 'token'"},
       [](User& u) { return with_options(u, "rank.tokens=2"); }},
      {"leaves out an input that is not there",
       RLX_E_OPTION,
       {"'absent.mask'", "no input 'mask'", "only token, s"},
       [](User& u) { return with_options(u, "absent.mask=true"); }},
      {"gives the length of a sequence that is not there",
       RLX_E_OPTION,
       {"'sequence.t'", "no input 't'"},
       [](User& u) { return with_options(u, "sequence.t=2"); }},
      {"gives an element beyond the last a rank",
       RLX_E_OPTION,
       {"'rank.s.2'", "no input 's.2'"},
       [](User& u) { return with_options(u, "sequence.s=2 rank.s=1 rank.s.2=1"); }},
      {"gives a value of another dtype",
       RLX_E_DTYPE,
       {"the input 'token' is f32[batch]", "is i32[2]"},
       [](User& u) { return with_options(u, "sequence.s=1 rank.s=1 value.token=i32[2]{1,2}"); }},
      {"gives a value of another rank",
       RLX_E_SHAPE,
       {"the input 'token' is f32[batch]", "is f32[1,1]"},
       [](User& u) { return with_options(u, "sequence.s=1 rank.s=1 value.token=f32[1,1]{1}"); }},
      {"gives a size that is not there",
       RLX_E_OPTION,
       {"'dims.batches'", "no size 'batches'", "did you mean 'batch'"},
       [](User& u) { return with_options(u, "sequence.s=1 rank.s=1 dims.batches=2"); }},
  });
}

TEST(errors, options_of_an_opened_model_that_are_misspelt) {
  expect_told({
      {"opens a model with an import option that is misspelt",
       RLX_E_OPTION,
       {"unknown option 'ranks.token'", "did you mean 'rank.token'"},
       [](User& u) { return opened_with(u, "ranks.token=2"); }},
      {"opens a model with an option of models that is misspelt",
       RLX_E_OPTION,
       {"unknown option 'alow'", "did you mean 'allow'"},
       [](User& u) { return opened_with(u, "alow=[cpu]"); }},
      {"opens a model with an option of compilation that is misspelt",
       RLX_E_OPTION,
       {"unknown option 'dim.batch'", "did you mean 'dims.batch'"},
       [](User& u) { return opened_with(u, "dim.batch=2"); }},
  });
}

TEST(errors, onnx_files) {
  expect_told({
      {"calls text a model",
       RLX_E_DATA,
       {"ONNX model", "at byte 2"},
       [](User& u) { return u.import("onnx", "hello, world"); }},
      {"cuts a model",
       RLX_E_DATA,
       {"ONNX model", "at byte", "are left"},
       [](User& u) {
         std::string bytes = with_node("Relu");
         return u.import("onnx", bytes.substr(0, bytes.size() / 2));
       }},
      {"has a node that is not known",
       RLX_E_UNSUPPORTED,
       {"Frobnicate", "'y'", "ai.onnx", "opset 13"},
       [](User& u) { return u.import("onnx", with_node("Frobnicate")); }},
      {"has a node of another domain",
       RLX_E_UNSUPPORTED,
       {"Relu of com.acme"},
       [](User& u) { return u.import("onnx", with_node("Relu", "com.acme")); }},
      {"comes from a later opset",
       RLX_E_UNSUPPORTED,
       {"opset 99", " to "},
       [](User& u) { return u.import("onnx", with_node("Relu", "", 99)); }},
      {"has a node with an attribute that is not known",
       RLX_E_UNSUPPORTED,
       {"Relu", "'warp'"},
       [](User& u) {
         return u.import("onnx", model().node("Relu", {"x"}, {"y"}, {Maker::attr("warp", 1)}).output("y").bytes());
       }},
      {"has a node without its inputs",
       RLX_E_INVALID_ARGUMENT,
       {"Relu", "input 'x'", "missing"},
       [](User& u) { return u.import("onnx", model().node("Relu", {}, {"y"}).output("y").bytes()); }},
      {"reads a value that nothing makes",
       RLX_E_DATA,
       {"'z'"},
       [](User& u) { return u.import("onnx", model().node("Relu", {"z"}, {"y"}).output("y").bytes()); }},
      {"makes a value twice",
       RLX_E_DATA,
       {"'y'", "twice"},
       [](User& u) {
         return u.import("onnx", model().node("Relu", {"x"}, {"y"}).node("Exp", {"x"}, {"y"}).output("y").bytes());
       }},
      {"adds what does not broadcast",
       RLX_E_SHAPE,
       {"Add", "'y'", "[n,3] and [5]"},
       [](User& u) {
         return u.import("onnx", model().input("z", 1, {"5"}).node("Add", {"x", "z"}, {"y"}).output("y").bytes());
       }},
      {"takes text",
       RLX_E_UNSUPPORTED,
       {"'s'", "string"},
       [](User& u) {
         return u.import("onnx", model().input("s", 8, {"5"}).node("Identity", {"s"}, {"y"}).output("y").bytes());
       }},
      {"has an initializer of the wrong length",
       RLX_E_DATA,
       {"tensor 'w'", "8 bytes", "f32[3]"},
       [](User& u) {
         return u.import("onnx", model().f32("w", {3}, {1, 2}).node("Add", {"x", "w"}, {"y"}).output("y").bytes());
       }},
  });
}

// An initializer whose bytes lie in another file.
static std::string with_external(const char* location) {
  Message tensor = Message().text(8, "w").number(1, 2).number(2, 1).number(14, 1);
  tensor.sub(13, Message().text(1, "location").text(2, location));
  tensor.sub(13, Message().text(1, "length").text(2, "8"));
  Message graph = Message().sub(5, tensor).sub(12, Message().text(1, "w"));
  return Message().number(1, 8).sub(7, graph).sub(8, Message().number(2, 13)).bytes();
}

TEST(errors, external_data) {
  expect_told({
      {"lacks its external file",
       RLX_E_NOT_FOUND,
       {"tensor 'w'", "rlx_no_such.bin"},
       [](User& u) { return u.open(u.path("a.onnx", with_external("rlx_no_such.bin"))); }},
      {"points out of its folder",
       RLX_E_DENIED,
       {"tensor 'w'", "../../etc/passwd"},
       [](User& u) { return u.open(u.path("a.onnx", with_external("../../etc/passwd"))); }},
      {"has external data in memory",
       RLX_E_DENIED,
       {"tensor 'w'", "w.bin"},
       [](User& u) { return u.import("onnx", with_external("w.bin")); }},
      {"has an external file that is too short",
       RLX_E_DATA,
       {"tensor 'w'", "short.bin", "8", "has 4"},
       [](User& u) {
         auto file = std::filesystem::path(u.path("short.bin", "1234")).filename().string();
         return u.open(u.path("a.onnx", with_external(file.c_str())));
       }},
  });
}

static rlx_status_t* safetensors(User& u, const std::string& header, size_t bytes) {
  uint64_t length = header.size();
  return u.import("safetensors", std::string(reinterpret_cast<char*>(&length), 8) + header + std::string(bytes, '\0'),
                  false);
}

TEST(errors, safetensors_files) {
  expect_told({
      {"cuts the header",
       RLX_E_DATA,
       {"safetensors", "header of 99 bytes"},
       [](User& u) { return u.import("safetensors", std::string("\x63\0\0\0\0\0\0\0{", 9), false); }},
      {"has a header that is not JSON",
       RLX_E_DATA,
       {"safetensors", "header", "JSON"},
       [](User& u) { return safetensors(u, "w: F32", 0); }},
      {"has a shape of other bytes",
       RLX_E_DATA,
       {"tensor 'w'", "4 bytes", "f32[2]"},
       [](User& u) { return safetensors(u, R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4); }},
      {"has a shape that is not a list",
       RLX_E_DATA,
       {"tensor 'w'", "'shape'"},
       [](User& u) { return safetensors(u, R"({"w":{"dtype":"F32","shape":"2","data_offsets":[0,4]}})", 4); }},
      {"has a dtype that is not known",
       RLX_E_UNSUPPORTED,
       {"tensor 'w'", "'F4'"},
       [](User& u) { return safetensors(u, R"({"w":{"dtype":"F4","shape":[2],"data_offsets":[0,4]}})", 4); }},
      {"has a tensor without a name",
       RLX_E_DATA,
       {"safetensors", "a tensor has no name"},
       [](User& u) { return safetensors(u, R"({"":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4); }},
      {"ends before its data",
       RLX_E_DATA,
       {"tensor 'w'", "2 bytes"},
       [](User& u) { return safetensors(u, R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 2); }},
  });
}

}  // namespace rlx::errors
