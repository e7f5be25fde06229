// SPDX-License-Identifier: Apache-2.0
// What the library says about the memory and the sizes of slots.
#include "errors.h"

namespace rlx::errors {

// A run of an exec whose x is f32[n,3] with n at most 4.
static rlx_status_t* run_with(User& u, int32_t kind, size_t bytes, std::vector<int64_t> dims, int64_t n) {
  static float memory[64];
  rlx_exec_t* exec = u.exec();
  rlx_status_t* status =
      dims.empty() ? rlx_exec_bind_ptr(exec, kind, 0, memory, bytes) : rlx_exec_bind(exec, kind, 0, u.tensor(dims));
  if (!status && n >= 0) status = rlx_exec_set_dim(exec, "n", n);
  return status ? status : rlx_exec_run(exec);
}

TEST(messages, memory_of_slots) {
  expect_told(std::vector<Told>{
      {"binds too few bytes",
       RLX_E_INVALID_ARGUMENT,
       {nullptr, "x", "at least 24", "20"},
       {"the input 'x' needs 24 bytes in this run, 20 are bound"},
       {},
       [](User& u) { return run_with(u, RLX_INPUT, 20, {}, 2); }},
      {"binds an output of another shape",
       RLX_E_SHAPE,
       {nullptr, "y", "f32[2,3]", "f32[3,3]"},
       {"the output 'y' is f32[2,3] in this run, not f32[3,3]"},
       {},
       [](User& u) {
         return run_with(u, RLX_OUTPUT, 0, {3, 3}, 2);
       }},
      {"binds more rows than are planned",
       RLX_E_RANGE,
       {nullptr, "n", "at most 4", "5"},
       {"the size 'n' = 5 is above the largest 4"},
       {},
       [](User& u) {
         return run_with(u, RLX_INPUT, 0, {5, 3}, -1);
       }},
      {"binds more rows than the option plans for",
       RLX_E_RANGE,
       {nullptr, "n", "at most 4", "5"},
       {"the size 'n' = 5 is above the planned 4: the option dims.n plans for more"},
       {},
       [](User& u) {
         u.small_graph(false);
         rlx_compiled_t* program = nullptr;
         if (auto* status = rlx_compile(u.graph, nullptr, nullptr, u.attrs("dims.n=4"), &program)) return status;
         rlx_exec_t* exec = nullptr;
         rlx_status_t* status = rlx_exec_create(program, nullptr, &exec);
         if (!status) status = rlx_exec_set_dim(exec, "n", 5);
         rlx_exec_release(exec);
         rlx_compiled_release(program);
         return status;
       }},
      {"reads more bytes than there are",
       RLX_E_RANGE,
       {nullptr, nullptr, "1", "1 + 1"},
       {"read: 1 byte at offset 1 of a tensor of 1 byte"},
       {},
       [](User& u) {
         char byte = 0;
         return rlx_tensor_read(u.tensor({1}, RLX_U8), 1, &byte, 1);
       }},
      {"sets a size below the smallest",
       RLX_E_RANGE,
       {nullptr, "n", "at least 1", "0"},
       {"the size 'n' = 0 is below the smallest 1"},
       {},
       [](User& u) { return run_with(u, RLX_INPUT, 64, {}, 0); }},
      {"looks at memory that is too small",
       RLX_E_INVALID_ARGUMENT,
       {nullptr, "x", "at least 48", "20"},
       {"the input 'x' needs 48 bytes in this run, 20 are bound"},
       {},
       [](User& u) {
         static float memory[5];
         rlx_exec_t* exec = u.exec();
         rlx_tensor_t* shown = nullptr;
         rlx_status_t* status = rlx_exec_bind_ptr(exec, RLX_INPUT, 0, memory, sizeof memory);
         return status ? status : rlx_exec_tensor(exec, RLX_INPUT, 0, &shown);
       }},
  });
}

}  // namespace rlx::errors
