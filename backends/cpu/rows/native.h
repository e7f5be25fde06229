// SPDX-License-Identifier: Apache-2.0
// What rows over the kernels' loops share. An argument block is a loop and its arguments, both plain data, for each
// phase.
#pragma once

#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "backends/cpu/caps.h"
#include "backends/cpu/table.h"

namespace rlx::cpu {

template <class Args>
struct Loaded {
  Loop<Args> loop;
  Args args;
  static_assert(std::is_trivially_destructible_v<Args>);
};

template <class... Args>
constexpr size_t kLoadedBytes = (sizeof(Loaded<Args>) + ... + 0);

template <class... Args>
size_t loaded_bytes(const Step&) {
  return kLoadedBytes<Args...>;
}

template <class Args, size_t offset>
Status run_loaded(const void* block, int64_t begin, int64_t end) {
  const auto& it = *reinterpret_cast<const Loaded<Args>*>(static_cast<const std::byte*>(block) + offset);
  it.loop.run(it.args, begin, end);
  return {};
}

// The phase behind those with these arguments.
template <class... Earlier, class Args>
void load_after(void* block, const Loop<Args>& loop, const Args& args, double nanoseconds, Launch& launch) {
  constexpr size_t offset = kLoadedBytes<Earlier...>;
  const auto& it = *new (static_cast<std::byte*>(block) + offset) Loaded<Args>{loop, args};
  launch.then(run_loaded<Args, offset>, it.loop.parts(it.args), nanoseconds);
}

template <class Args>
void load(void* block, const Loop<Args>& loop, const Args& args, double nanoseconds, Launch& launch) {
  load_after(block, loop, args, nanoseconds, launch);
}

template <class T>
T* data_or_null(const View& view) {
  return view ? view.as<T>() : nullptr;
}

// The size of a dim in the attributes of a node.
inline int64_t size_of(const StepView& view, const Dim& dim) {
  return evaluate(dim, lookup_of(view.plan, view.symbols)).value();
}

// Upper sizes may be so large that their product exceeds int64_t.
inline double largest_count(const Dims& upper) {
  double count = 1;
  for (int64_t size : upper) count *= static_cast<double>(size);
  return count;
}

// ---- a row of the table, one line: what every row says, then by name what differs ----

using RefuseFn = std::string_view (*)(const KernelQuery&);
using EncodeFn = void (*)(const StepView&, const Caps&, void* block, Launch&);
using BytesFn = size_t (*)(const Step&);
using FormFn = Form (*)(const KernelQuery&);
// Bytes of scratch that are enough at every size up to these. There is a constant that no result exceeds, because an
// upper size may be far above what a run has.
using ScratchFn = size_t (*)(const Node&, std::span<const Dims> upper);
using CompileFn = std::shared_ptr<const void> (*)(const Graph&, const Node&);

class Row {
 public:
  constexpr Row(Op op, std::string_view name, RefuseFn refuse, EncodeFn encode, BytesFn bytes) {
    kernel_.op = op;
    kernel_.name = name;
    kernel_.refuse = refuse;
    kernel_.encode = encode;
    kernel_.args_bytes = bytes;
  }

  // In each mask, bit i stands for input i or output i.
  constexpr Row& strided(uint32_t inputs) { return kernel_.strided = inputs, *this; }
  constexpr Row& unit_last(uint32_t inputs) { return kernel_.unit_last = inputs, *this; }
  constexpr Row& optional_outputs(uint32_t outputs) { return kernel_.optional_outputs = outputs, *this; }
  constexpr Row& in_place(uint32_t inputs, uint32_t inputs_of_second = 0) {
    kernel_.in_place[0] = inputs;
    kernel_.in_place[1] = inputs_of_second;
    return *this;
  }
  constexpr Row& unaligned(uint32_t inputs) { return kernel_.unaligned = inputs, *this; }
  constexpr Row& form(int input, FormFn form_of) {
    return kernel_.form_input = input, kernel_.form_of = form_of, *this;
  }
  constexpr Row& compile(CompileFn compile) { return kernel_.compile = compile, *this; }
  constexpr Row& scratch(ScratchFn scratch) { return kernel_.scratch = scratch, *this; }
  constexpr Row& path(Path path) { return kernel_.path = path, *this; }
  constexpr Row& refuse(RefuseFn refuse) { return kernel_.refuse = refuse, *this; }
  constexpr Row& alone() { return kernel_.is_alone = true, *this; }
  constexpr Row& may_fail() { return kernel_.may_fail = true, *this; }
  constexpr Row& flushes_denormals() { return kernel_.keeps_denormals = false, *this; }

  constexpr const CpuKernel& kernel() const { return kernel_; }

 private:
  CpuKernel kernel_;
};

// A row of loops for any dtype. Args: the arguments of each phase, in order.
template <class... Args>
constexpr Row loops(Op op, std::string_view name, RefuseFn refuse, EncodeFn encode) {
  static_assert(sizeof...(Args) <= Launch::kMaxPhases);
  return Row(op, name, refuse, encode, loaded_bytes<Args...>);
}

// The same for loops that compute in f32: they may take denormal numbers for 0 (semantics.md N5).
template <class... Args>
constexpr Row native(Op op, std::string_view name, RefuseFn refuse, EncodeFn encode) {
  return loops<Args...>(op, name, refuse, encode).flushes_denormals();
}

// A row with an argument block of its own.
template <class Block>
constexpr Row with_block(Op op, std::string_view name, RefuseFn refuse, EncodeFn encode) {
  return Row(op, name, refuse, encode, [](const Step&) { return sizeof(Block); });
}

// A row of the op `prepack`: makes one layout from x, which may be unaligned in a mapped file.
template <class Args, const std::string_view& layout>
constexpr Row packer(EncodeFn encode) {
  auto refuse = [](const KernelQuery& query) -> std::string_view {
    return query.node.attrs.is("layout", layout) ? "" : "makes another layout";
  };
  return loops<Args>(Op::kPrepack, layout, refuse, encode).unaligned(1);
}

// The strides of an operand for each dim of the result: 0 where it broadcasts.
inline void set_strides(const View& operand, std::span<const int64_t> dims, int64_t* strides) {
  size_t lead = dims.size() - operand.dims.size();
  for (size_t i = 0; i < dims.size(); i++)
    strides[i] = i < lead || operand.dims[i - lead] == 1 ? 0 : operand.strides[i - lead];
}

inline void add(RowsByOp& by_op, const Row& row) {
  by_op[static_cast<size_t>(row.kernel().op)].push_back(row.kernel());
}

inline bool all_f32(const KernelQuery& query) {
  for (size_t i = 0; i < query.node.in.size(); i++)
    if (query.has(i) && query.type(i).dtype != DType::kF32) return false;
  return query.node.out[0].dtype == DType::kF32;
}

inline constexpr std::pair<std::string_view, Activation> kFusedActivations[] = {
    {"none", Activation::kNone},
    {"relu", Activation::kRelu},
    {"gelu", Activation::kGelu},
    {"gelu_tanh", Activation::kGeluTanh},
    {"silu", Activation::kSilu},
    {"sigmoid", Activation::kSigmoid},
    {"tanh", Activation::kTanh},
    {"hard_sigmoid", Activation::kHardSigmoid},
    {"hard_swish", Activation::kHardSwish},
    {"leaky_relu", Activation::kLeakyRelu}};

// The epilogue's activation for the attribute `act`; null if epilogues do not have it.
inline const Activation* fused_activation(const Node& node) {
  for (const auto& [name, activation] : kFusedActivations)
    if (node.attrs.is("act", name)) return &activation;
  return nullptr;
}
// Sets the activation and bounds from the attributes of a node whose activation is fused.
inline void set_ending(const Node& node, Ending& ending) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  ending.act = *fused_activation(node);
  ending.slope = static_cast<float>(node.attrs.f64("slope"));
  ending.lo = static_cast<float>(node.attrs.f64_or("lo", -kInfinity));
  ending.hi = static_cast<float>(node.attrs.f64_or("hi", kInfinity));
}

}  // namespace rlx::cpu
