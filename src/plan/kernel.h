// SPDX-License-Identifier: Apache-2.0
// The kernel row: what the compiler and the planner ask of a kernel. Rows stand in an ordered table per device, the
// best first; each backend derives a struct from this one that says how its kernels are encoded and launched.
// Invariant: all functions here are pure, so reports and tests call them without a device.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/bounds.h"
#include "base/grade.h"
#include "ir/facts.h"
#include "ir/graph.h"

namespace rlx {

enum class Dispatch : uint8_t { kNative, kCommon, kReference };
template <>
inline constexpr std::string_view kChoices<Dispatch> = "native|common|reference";

// The compile options that choose kernels.
struct KernelOptions {
  Grade math = Grade::kClose;
  Bounds bounds = Bounds::kError;
  Dispatch dispatch = Dispatch::kNative;  // for the op of the query
};

// One node that needs a kernel. Rows may read the op, dtypes, ranks, attributes, literal dims, and which inputs are
// resident (depend on params and constants only), but never the values of symbols.
struct KernelQuery {
  const Graph& graph;
  const Node& node;
  const KernelOptions& options;
  std::span<const Phase> phases;  // of the graph, by node

  const ValueType& type(size_t input) const { return graph.type(node.in[input]); }
  bool has(size_t input) const { return input < node.in.size() && present(node.in[input]); }
  bool resident(size_t input) const { return has(input) && phases[node.in[input].node] == Phase::kResident; }
};

// The form in which a kernel reads a resident input: packed panels, repacked blocks. These are the attributes of the op
// `prepack`, whose kernel makes the form when params are set.
struct Form {
  std::string_view layout;
  int64_t bytes = 0;
  int64_t groups = 1;
  bool transposed = false;

  std::string text() const;  // distinguishes the forms of one tensor
  NamedAttrs attrs() const;
};

enum class Path : uint8_t { kNative, kRegion, kReference };  // for the dispatch report

// Where and how one operand of a step lies in a run. Strides count elements.
struct View {
  DType dtype = DType::kNone;  // kNone: absent
  Dims dims, strides;
  std::byte* data = nullptr;
  explicit operator bool() const { return dtype != DType::kNone; }
  int64_t count() const { return *element_count(std::span<const int64_t>(dims)); }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

struct Kernel {
  Op op;
  std::string_view name;
  Path path = Path::kNative;
  bool is_alone = false;                                     // elementwise, but regions cannot compute it
  std::string_view (*refuse)(const KernelQuery&) = nullptr;  // empty: accepted; null: accepts all
  uint32_t strided = 0;                                      // bit i: input i may be a view with any strides
  uint32_t unit_last = 0;                         // bit i: a view of input i must have stride 1 on its last axis
  uint32_t optional_outputs = 0;                  // bit i: output i may be omitted if nobody reads it
  uint32_t in_place[2] = {};                      // for outputs 0 and 1; bit i: may be written over input i
  uint32_t unaligned = 0;                         // bit i: input i may be unaligned
  int form_input = -1;                            // the input that is read in a form; -1: none
  Form (*form_of)(const KernelQuery&) = nullptr;  // that form
  // Bytes of scratch, enough for all sizes up to `upper`: the dims of the inputs, then of the outputs.
  size_t (*scratch)(const Node&, std::span<const Dims> upper) = nullptr;

  bool takes_strided(size_t input) const { return input < 32 && (strided >> input & 1); }
  bool takes_unaligned(size_t input) const { return input < 32 && (unaligned >> input & 1); }
  bool wants_unit_last(size_t input) const { return input < 32 && (unit_last >> input & 1); }
  bool may_omit(size_t output) const { return output < 32 && (optional_outputs >> output & 1); }
  // For a dense input with the dtype and dims of the output; the other inputs must lie elsewhere.
  bool writes_over(size_t output, size_t input) const {
    return output < 2 && input < 32 && (in_place[output] >> input & 1);
  }
};

struct Found {
  const Kernel* kernel = nullptr;
  std::string why_not;   // the reasons of all rows that refused
  bool on_host = false;  // the kernel is the host's: the device has none for it
};

}  // namespace rlx
