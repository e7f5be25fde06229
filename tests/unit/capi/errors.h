// SPDX-License-Identifier: Apache-2.0
// What a user of the C API does wrong, and what the library says to it: the tables of errors_*.cpp. Each mistake is
// made in a fresh environment, so that none hides another.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rlx.h"

namespace rlx::errors {

// A user with an environment without threads and a graph that is being built. What it makes lives as long as it does.
class User {
 public:
  User();
  ~User();
  User(const User&) = delete;
  User& operator=(const User&) = delete;

  rlx_value_t input(const char* name, std::vector<int64_t> dims, rlx_dtype_t dtype = RLX_F32);
  rlx_value_t op(const char* text, std::vector<rlx_value_t> in);
  rlx_attrs_t* attrs(const char* text);  // NULL: none
  rlx_tensor_t* tensor(std::vector<int64_t> dims, rlx_dtype_t dtype = RLX_F32);
  rlx_weights_t* weights(std::vector<std::pair<const char*, rlx_tensor_t*>> tensors);

  // "y" = exp(x) + w: x is f32[n,3], n at most 4, or without a maximum; w is a param f32[3].
  void small_graph(bool has_maximum = true);
  rlx_status_t* compile(const char* options);        // the graph, with w where `small_graph` made one
  rlx_status_t* compile_small(const char* options);  // small_graph, then compile
  rlx_compiled_t* program();                         // small_graph, compiled; w is set
  rlx_exec_t* exec();                                // of such a program
  rlx_status_t* run(std::vector<rlx_tensor_t*> in, std::vector<const char*> in_names = {}, size_t n_out = 1,
                    const char* out_name = nullptr);

  std::string path(const char* name, const std::string& bytes);  // a file that holds these
  rlx_status_t* import(const char* format, const std::string& bytes, bool with_graph = true);
  rlx_status_t* open(const std::string& path);

  rlx_env_t* env = nullptr;
  rlx_graph_t* graph = nullptr;

 private:
  template <class T>
  T* mine(T* made, void (*release)(T*)) {
    after_.emplace_back([made, release] { release(made); });
    return made;
  }
  std::vector<std::function<void()>> after_;  // run backwards
  rlx_compiled_t* program_ = nullptr;
};

struct Mistake {
  const char* what;  // the user does
  rlx_code_t code;
  std::vector<const char*> says;  // parts of the message: the op, the value, what was expected, what came
  rlx_status_t* (*make)(User&);
};

// A mistake in building: the graph keeps its first.
struct Misbuilt {
  const char* what;
  rlx_code_t code;
  std::vector<const char*> says;
  void (*make)(User&);
};

// Told as a program reads it: details are exactly these, null where they do not matter; `never` is what the message
// must not say.
struct Told {
  const char* what;
  rlx_code_t code;
  struct {
    const char *op, *value, *expected, *got;
  } details;
  std::vector<const char*> says, never;
  rlx_status_t* (*make)(User&);
};

// Holds for every error: the detail `op` is the name of an op, names have no quotes, and an error about a rank has the
// details `expected` and `got`.
void expect_details(const char* what, const rlx_status_t* status);

std::string told_by(rlx_status_t* status);  // its words, after a look at its details; "" for success. Releases it

void expect_told(const std::vector<Told>& mistakes);
void expect_told(const std::vector<Mistake>& mistakes);
void expect_kept(const std::vector<Misbuilt>& mistakes);

}  // namespace rlx::errors
