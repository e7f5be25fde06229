// SPDX-License-Identifier: Apache-2.0
// What the IR knows about an op: a row of a table. The IR, the builder, the verifier, the printer and the parser read
// only rows. They name no op but the leaves, and `custom`, the name of an op of the host in messages. The rows are in
// ops/ops.def, their functions in src/ops.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "ir/attr.h"

namespace rlx {

// Ids below 4000 are ABI; internal ops have the others. Tables other than the library's own may have ids without an
// enumerator.
enum class Op : uint16_t {
  kNone = 0,
#define RLX_PRIMITIVE(id, Enum, name, infer, ...) k##Enum = id,
#define RLX_WALKED(id, Enum, name, infer, ...) k##Enum = id,
#define RLX_COMPOSITE(id, Enum, name, ...) k##Enum = id,
#include "ops/ops.def"
#undef RLX_PRIMITIVE
#undef RLX_WALKED
#undef RLX_COMPOSITE
};

enum Trait : uint32_t {
  kPure = 1 << 0,         // same inputs, same outputs, no effects: may be merged, folded, dropped
  kCommutative = 1 << 1,  // of its first two inputs
  kElementwise = 1 << 2,  // output i depends on broadcast inputs i only
  kWide = 1 << 3,         // a composite whose half inputs arrive as f32 (semantics.md N7)
  kView = 1 << 4,         // every element of the result is an element of the input, perhaps at another index
  kInternal = 1 << 5,     // made by passes and rules; the C API refuses it, but text reads it back
  kLeaf = 1 << 6,         // input, param, constant
  kSpelling = 1 << 7,     // a composite that is only a name for its decomposition: canonicalize expands it
  kInterface = 1 << 8,    // a leaf that the user named: input, param
  kVaries = 1 << 9,       // not known before a run, even if its inputs are
  kOfSizes = 1 << 10,     // reads the sizes of its inputs, not their contents
  kTotal = 1 << 11,       // has a result for all values of its inputs: a run never fails in it
  kFormula = 1 << 12,     // a composite that is recognised by its own decomposition (rules/derived.cpp)
  kStandIn = 1 << 13,     // an internal op that becomes its first input again at the end of a stage of fuse
  kOnHost = 1 << 14,      // runs on the CPU, beside whatever device runs the rest
  kCopies = 1 << 15,      // as a view, but with bytes of its own: each element of a result is one of an operand, or 0
  // What an error of one rounding in an operand does to a result (rules/flow.h). With neither trait, it may be a jump
  // in ops of class E0 or U1 and in ops with bodies or free attributes, and is lost in the error of `tol` in all
  // others.
  kPassesErrors = 1 << 16,  // it is about as large in the result
  kJumps = 1 << 17,         // it may change the result by a jump, though `tol` allows errors
  // If an operand beside the first is rounded to a half, the result may be far off: a mask becomes infinite, the steps
  // of a quantisation change.
  kShowsRounding = 1 << 18,
};

// How close a kernel must be to the meaning (semantics.md C1-C10).
enum class Tol : uint8_t { kE0, kU1, kU4, kU16, kSUM, kACT, kNRM, kATT, kLIN, kQNT, kRNG };

struct InferArgs;
struct FactArgs;
struct Strided;
struct ViewArgs;
struct Operand;
struct Node;
class Graph;
struct EvalArgs;
class Expr;
class Inputs;
using InferFn = Status (*)(InferArgs&);
using EvalFn = Status (*)(EvalArgs&);
using FactFn = void (*)(FactArgs&);
using ViewFn = std::optional<Strided> (*)(const ViewArgs&);  // ir/view.h
using WorkFn = double (*)(const Node& node, std::span<const Operand> in);
using TripsFn = double (*)(const Graph& graph, const Node& node);
using DecomposeFn = std::vector<Expr> (*)(const Inputs& in, const Attrs& attrs);

// The letter of ports that take any dense dtype, independently of each other.
inline constexpr std::string_view kAnyDtype = "any";

// One input or output of a signature. Inputs whose `letter` is the same text have the same dtype; "any" and the block
// types of a Q at its end are exempt.
struct Port {
  std::string name;
  std::string letter;  // "F", "NZ", "X'"; an output's may be empty: its dtype is inferred
  DTypeSet set;        // what the letter stands for
  bool optional = false;
  bool variadic = false;  // the last input only: one or more
};

struct Signature {
  std::vector<Port> in, out;
};

struct OpInfo {
  uint16_t id = 0;
  std::string_view name;
  std::string_view summary;
  std::string_view aliases;  // its names in other libraries, "swish|SiLU": suggested in messages, never accepted
  std::string_view sig;
  std::vector<AttrDef> attrs = {};
  uint32_t traits = kPure;
  Tol tol = Tol::kE0;
  ViewFn view = nullptr;    // for a primitive that is kView: where its result lies in the bytes of its input
  FactFn facts = nullptr;   // the facts of output 0, given those of the inputs; null: none
  WorkFn work = nullptr;    // of `eval`, for an element of the largest output (ops/work.h); null: one
  TripsFn trips = nullptr;  // of a loop: how many trips it takes at most, or 1 where sizes decide that
  InferFn infer = nullptr;
  EvalFn eval = nullptr;            // set for primitives other than leaves and control flow
  DecomposeFn decompose = nullptr;  // set for a composite
  Signature signature = {};         // parsed from `sig` by the table
  bool decides_sizes = false;       // has an attribute that names_decided(): set by the table
  bool has_bodies = false;          // has an attribute that is a graph: set by the table
  bool has_free_attrs = false;      // takes attributes that it does not name: set by the table

  Op op() const { return static_cast<Op>(id); }
  bool is(Trait trait) const { return (traits & trait) != 0; }
  bool moves() const { return is(kView) || is(kCopies); }
  bool cannot_fail() const { return is(kElementwise) || is(kView) || is(kTotal); }
  bool primitive() const { return decompose == nullptr; }
  bool is_for_users() const { return !is(kInternal) && !is(kLeaf); }  // rlx_graph_op can make one
};

// "x:F, gamma?:F, xs...:A -> y:F, inv_std". A letter group is a union of the sets of dtype.h, or the name of one dtype;
// a prime (F') makes it independent of the plain letter.
Result<Signature> parse_signature(std::string_view text);
std::optional<DTypeSet> parse_dtypes(std::string_view letters);

class OpTable {
 public:
  explicit OpTable(std::vector<OpInfo> rows);  // a malformed row or a repeated id or name is our bug
  const OpInfo& info(Op op) const { return rows_[index_[static_cast<size_t>(op)]]; }
  bool has(Op op) const { return static_cast<size_t>(op) < index_.size() && index_[static_cast<size_t>(op)] != kNoRow; }
  const OpInfo* find(std::string_view name) const;  // null: no such op
  // Help with an unknown name, " (did you mean 'silu'?)". It names the op whose name differs only in case, or that has
  // this name in another library; else one with a similar name. "" if there is none. Only ops for users.
  std::string suggestion(std::string_view word) const;
  std::span<const OpInfo> rows() const { return rows_; }

 private:
  static constexpr uint16_t kNoRow = UINT16_MAX;
  std::vector<OpInfo> rows_;
  std::vector<uint16_t> index_;  // by id
  std::unordered_map<std::string_view, size_t> by_name_;
};

const OpTable& op_table();  // the library's own, defined in ops/table.cpp

}  // namespace rlx
