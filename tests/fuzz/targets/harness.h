// SPDX-License-Identifier: Apache-2.0
// What the libFuzzer targets share. Bytes go through the public C API. Whatever they are, a call ends in a result, or
// in a status whose message is not an error of ours. Sanitizers, and libFuzzer's own limits of time and memory, see the
// rest.
#pragma once

#include <rlx.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace rlx::fuzz {

struct Release {
  void operator()(rlx_attrs_t* it) const { rlx_attrs_release(it); }
  void operator()(rlx_blob_t* it) const { rlx_blob_release(it); }
  void operator()(rlx_compiled_t* it) const { rlx_compiled_release(it); }
  void operator()(rlx_exec_t* it) const { rlx_exec_release(it); }
  void operator()(rlx_graph_t* it) const { rlx_graph_release(it); }
  void operator()(rlx_tensor_t* it) const { rlx_tensor_release(it); }
  void operator()(rlx_weights_t* it) const { rlx_weights_release(it); }
};
template <typename T>
using Handle = std::unique_ptr<T, Release>;

struct Imported {
  Handle<rlx_graph_t> graph;  // null, as are the weights, where the import has failed
  Handle<rlx_weights_t> weights;
};

// One environment for all inputs: no threads, and an allocator that refuses what a small file must not ask for.
rlx_env_t* env();

// Whether the call succeeded. Ends the process for a failure that is our bug, or that says nothing.
bool passes(rlx_status_t* status);

Handle<rlx_attrs_t> attrs_of(const std::string& text);  // null: a syntax error

// From memory, which must outlive what is imported. Formats without a graph give weights alone.
Imported import(const char* format, std::string_view bytes, const rlx_attrs_t* options = nullptr);

// Every name and every byte of every tensor, which may be shown and converted too.
void read_all(const rlx_weights_t* weights);

// The text of a graph is read back as the same text.
std::string print_and_read_back(const rlx_graph_t* graph);

// Compiled with sizes of 2 and, if it does little work, run twice: on zeros, and on inputs that repeat `bytes`.
void compile_and_run(const Imported& imported, std::string_view bytes);

}  // namespace rlx::fuzz
