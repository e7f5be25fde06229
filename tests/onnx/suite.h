// SPDX-License-Identifier: Apache-2.0
// Cases of ONNX models that run through the C API. What fails must stand in a list, with its reason; what stands there
// must fail. Each case runs in a process of its own, so that one that crashes or hangs fails alone.
#pragma once

#include <rlx.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor.h"

namespace rlx::test {

// --suite NAME, --list FILE, --only GLOB, --device NAME, --verbose, and folders
struct Options {
  std::string suite, list, only = "*";
  std::vector<std::string> devices, folders;
  bool verbose = false;
  unsigned seconds = 30;  // a case may take
};
Options parse_options(int argc, char** argv, Options options);

struct Case {
  std::function<std::string()> run;  // "" or what is wrong
  std::string note = {};             // of its line in the table
  bool is_ours = true;               // else others fail as well: no list has it
};
using Cases = std::map<std::string, Case>;  // by name, KIND/CASE

// Those that --only names; prints what fails, or with --verbose all, and counts. The exit status.
int run_cases(const Options& options, Cases cases);

// Without cases: the exit status is that of a skipped test, or of a failed one where this variable is set.
int nothing_to_run(const char* why, const char* required_by);

std::string taken(rlx_status_t* status);  // "" or its message
std::string copied(rlx_env_t* env, const Tensor& tensor, rlx_tensor_t** out);
// Into a tensor of ours, if it has the dtype and the dims of `want`; else what is wrong.
std::string same_type(rlx_tensor_t* got, const Tensor& want, Tensor& out);

}  // namespace rlx::test
