// SPDX-License-Identifier: Apache-2.0
// A table from ops to codes of the region interpreter, and the emitter that turns nodes into instructions and
// assigns registers.
#include "backends/cpu/rows/region_program.h"

#include <algorithm>
#include <optional>

#include "base/half.h"
#include "base/lasting.h"

namespace rlx::cpu {

namespace {

enum Kind : uint8_t { kFloats, kMasks };  // of operands and results
constexpr uint8_t kSwapped = 1;           // operands in reverse: a > b is b < a
constexpr size_t kMaxBodyNodes = 128;     // registers are numbered by a byte

struct OpRow {
  Op op;
  RegionCode code;
  Kind in = kFloats, out = kFloats;
  uint8_t flags = 0;
};

constexpr OpRow kRows[] = {
    {Op::kNeg, RegionCode::kNeg},
    {Op::kAbs, RegionCode::kAbs},
    {Op::kFloor, RegionCode::kFloor},
    {Op::kRound, RegionCode::kRound},
    {Op::kExp, RegionCode::kExp},
    {Op::kExpm1, RegionCode::kExpm1},
    {Op::kLog, RegionCode::kLog},
    {Op::kLog1p, RegionCode::kLog1p},
    {Op::kSqrt, RegionCode::kSqrt},
    {Op::kSin, RegionCode::kSin},
    {Op::kCos, RegionCode::kCos},
    {Op::kTanh, RegionCode::kTanh},
    {Op::kErf, RegionCode::kErf},
    {Op::kRecip, RegionCode::kRecip},
    {Op::kRsqrt, RegionCode::kRsqrt},
    {Op::kSquare, RegionCode::kSquare},
    {Op::kRelu, RegionCode::kRelu},
    {Op::kSigmoid, RegionCode::kSigmoid},
    {Op::kMish, RegionCode::kMish},
    {Op::kHardSwish, RegionCode::kHardSwish},
    {Op::kAdd, RegionCode::kAdd},
    {Op::kSub, RegionCode::kSub},
    {Op::kMul, RegionCode::kMul},
    {Op::kDiv, RegionCode::kDiv},
    {Op::kRem, RegionCode::kRem},
    {Op::kPow, RegionCode::kPow},
    {Op::kAtan2, RegionCode::kAtan2},
    {Op::kMax, RegionCode::kMax},
    {Op::kMin, RegionCode::kMin},
    {Op::kEq, RegionCode::kEq, kFloats, kMasks},
    {Op::kNe, RegionCode::kNe, kFloats, kMasks},
    {Op::kLt, RegionCode::kLt, kFloats, kMasks},
    {Op::kLe, RegionCode::kLe, kFloats, kMasks},
    {Op::kGt, RegionCode::kLt, kFloats, kMasks, kSwapped},
    {Op::kGe, RegionCode::kLe, kFloats, kMasks, kSwapped},
    {Op::kIsNan, RegionCode::kIsNan, kFloats, kMasks},
    {Op::kBitAnd, RegionCode::kAnd, kMasks, kMasks},
    {Op::kBitOr, RegionCode::kOr, kMasks, kMasks},
    {Op::kBitXor, RegionCode::kXor, kMasks, kMasks},
    {Op::kBitNot, RegionCode::kNot, kMasks, kMasks},
};

// Ops whose code depends on an attribute or on the types of their operands.
constexpr Op kSpecial[] = {Op::kElementwiseRegion, Op::kGelu, Op::kSilu, Op::kHardSigmoid, Op::kWhere, Op::kCast,
                           Op::kGatedAct,          Op::kGlu};

// The activations of gates; "none" has no code.
constexpr std::pair<std::string_view, RegionCode> kActivationCodes[] = {
    {"relu", RegionCode::kRelu},
    {"gelu", RegionCode::kGelu},
    {"gelu_tanh", RegionCode::kGeluTanh},
    {"silu", RegionCode::kSilu},
    {"sigmoid", RegionCode::kSigmoid},
    {"tanh", RegionCode::kTanh},
    {"softplus", RegionCode::kSoftplus},
    {"mish", RegionCode::kMish},
    {"hard_swish", RegionCode::kHardSwish},
    {"hard_sigmoid", RegionCode::kHardSigmoid},
};

std::optional<RegionType> region_type(DType dtype) {
  switch (dtype) {
    case DType::kF32: return RegionType::kF32;
    case DType::kBool: return RegionType::kBool;
    case DType::kI32: return RegionType::kI32;
    case DType::kI64: return RegionType::kI64;
    case DType::kU8: return RegionType::kU8;
    case DType::kF16: return RegionType::kF16;
    case DType::kBF16: return RegionType::kBF16;
    default: return std::nullopt;
  }
}

// The value of a scalar of floats.
float number_of(const Tensor& scalar) {
  if (scalar.dtype() == DType::kF16) return static_cast<float>(*scalar.as<f16>());
  if (scalar.dtype() == DType::kBF16) return static_cast<float>(*scalar.as<bf16>());
  return *scalar.as<float>();
}

// By op: its row, or null.
std::vector<const OpRow*> rows_by_op() {
  std::vector<const OpRow*> rows;
  for (const OpRow& row : kRows) {
    auto index = static_cast<size_t>(row.op);
    if (rows.size() <= index) rows.resize(index + 1);
    rows[index] = &row;
  }
  return rows;
}

const OpRow* find_row(Op op) {
  static const std::vector<const OpRow*>& kByOp = lasting(rows_by_op);
  auto index = static_cast<size_t>(op);
  return index < kByOp.size() ? kByOp[index] : nullptr;
}

bool is_real(DType dtype) {
  return dtype == DType::kF32 || is_half(dtype);
}

bool is_of(Kind kind, DType dtype) {
  return kind == kFloats ? is_real(dtype) : dtype == DType::kBool;
}

RegionCode rounding(DType half) {
  return half == DType::kF16 ? RegionCode::kRoundF16 : RegionCode::kRoundBF16;
}

// Whether a hard_sigmoid is x / 5 + 1 / 2, whatever float type its numbers were given in.
bool is_usual(const Node& node) {
  return static_cast<float>(node.attrs.f64("alpha")) == 0.2f && node.attrs.f64("beta") == 0.5;
}

// Emits nodes into a program. While it is built every input, constant and op has a register of its own.
class Emitter {
 public:
  Emitter(const Graph& graph, RegionProgram& program) : graph_(graph), program_(program) {}

  void reserve(size_t inputs, size_t ops) {
    program_.sources.reserve(inputs);
    program_.ops.reserve(ops);
  }

  std::string_view add_input(DType dtype, const RegionSource& source) {
    auto type = region_type(dtype);
    if (!type) return "an operand is neither a float nor bool nor a common integer";
    RegionArgs& args = program_.args;
    if (args.input_count == kMaxRegionInputs) return "too many inputs";
    args.inputs[args.input_count] = {.type = *type, .reg = next()};
    args.input_count++;
    program_.sources.push_back(source);
    return {};
  }

  std::string_view add_constant(const Tensor& value) {
    RegionArgs& args = program_.args;
    if (!is_real(value.dtype()) || value.count() != 1) return "a constant is not a float scalar";
    if (args.constant_count == kMaxRegionConstants) return "too many constants";
    args.constants[args.constant_count] = {.value = number_of(value), .reg = next()};
    args.constant_count++;
    return {};
  }

  // `in`: the registers of the operands. A half is computed in f32 and rounded once.
  std::string_view emit(const Node& node, std::span<const uint8_t> in) {
    if (node.op == Op::kCast) return emit_cast(node, in[0]);
    std::string_view why = emit_wide(node, in);
    return why.empty() ? round_to(node.out[0].dtype) : why;
  }

  std::string_view round_to(DType dtype) {
    return is_half(dtype) ? push(rounding(dtype), last(), 0, 0) : std::string_view();
  }

  std::string_view emit_wide(const Node& node, std::span<const uint8_t> in) {
    if (const OpRow* row = find_row(node.op)) {
      for (Value value : node.in)
        if (!is_of(row->in, graph_.type(value).dtype)) return "takes f32 and halves, or bool where it is logical";
      if (!is_of(row->out, node.out[0].dtype)) return "takes f32 and halves, or bool where it is logical";
      bool swapped = row->flags & kSwapped;
      return push(row->code, in[swapped ? 1 : 0], in.size() > 1 ? in[swapped ? 0 : 1] : uint8_t{0}, 0);
    }
    if (!is_real(node.out[0].dtype)) return "takes f32 and halves only";
    if (node.op == Op::kGatedAct) return emit_gate(node, in[0], in[1]);
    if (node.op == Op::kWhere) return push(RegionCode::kWhere, in[0], in[1], in[2]);
    if (node.op == Op::kGelu)
      return push(node.attrs.is("approx", "tanh") ? RegionCode::kGeluTanh : RegionCode::kGelu, in[0], 0, 0);
    if (node.op == Op::kSilu)
      return node.attrs.f64("beta") == 1 ? push(RegionCode::kSilu, in[0], 0, 0) : std::string_view("beta is not 1");
    if (node.op == Op::kHardSigmoid)
      return is_usual(node) ? push(RegionCode::kHardSigmoid, in[0], 0, 0) : std::string_view("has other numbers");
    return "no such op in regions";
  }

  // up * act(gate)
  std::string_view emit_gate(const Node& node, uint8_t gate, uint8_t up) {
    if (!node.attrs.is("act", "none")) {
      auto found = std::find_if(std::begin(kActivationCodes), std::end(kActivationCodes),
                                [&](const auto& it) { return node.attrs.is("act", it.first); });
      if (found == std::end(kActivationCodes)) return "no kernel has this activation";
      push(found->second, gate, 0, 0);
      gate = last();
    }
    return push(RegionCode::kMul, up, gate, 0);
  }

  uint8_t last() const { return last_; }  // of the last value

 private:
  // Integers were converted when they were loaded: exact up to 2^24, and beyond rounded to nearest, as by a cast. What
  // lies beyond is infinite in f16.
  std::string_view emit_cast(const Node& node, uint8_t in) {
    DType from = graph_.type(node.in[0]).dtype, to = node.out[0].dtype;
    if (!region_type(from)) return "casts from common dtypes only";
    if (to == DType::kBool && is_real(from)) return push(RegionCode::kTruth, in, 0, 0);
    if (!is_real(to)) return "casts to floats and bool only";
    if (to == DType::kBF16 && (from == DType::kI32 || from == DType::kI64)) return "would round twice";
    if (from == DType::kBool) return push(RegionCode::kMaskToFloat, in, 0, 0);
    if (is_half(to)) return push(rounding(to), in, 0, 0);
    last_ = in;  // the value itself
    return {};
  }

  std::string_view push(RegionCode code, uint8_t a, uint8_t b, uint8_t c) {
    program_.ops.push_back({code, next(), a, b, c});
    program_.args.op_count++;
    return {};
  }
  uint8_t next() { return last_ = static_cast<uint8_t>(registers_++); }

  const Graph& graph_;
  RegionProgram& program_;
  int registers_ = 0;
  uint8_t last_ = 0;
};

}  // namespace

// One node on its own operands.
static std::string_view emit_node(const Graph& graph, const Node& node, Emitter& emitter) {
  uint8_t registers[3] = {};
  if (node.in.size() > 3) return "too many operands";
  emitter.reserve(node.in.size(), 1);
  for (size_t i = 0; i < node.in.size(); i++) {
    if (std::string_view why = emitter.add_input(graph.type(node.in[i]).dtype, {i}); !why.empty()) return why;
    registers[i] = emitter.last();
  }
  return emitter.emit(node, {registers, node.in.size()});
}

static std::string_view emit_glu(const Graph& graph, const Node& node, Emitter& emitter) {
  DType dtype = graph.type(node.in[0]).dtype;
  if (!is_real(dtype)) return "takes f32 and halves only";
  uint8_t halves[2] = {};
  for (int half : {0, 1}) {
    std::string_view why = emitter.add_input(dtype, {0, half, node.attrs.i64("axis")});
    if (!why.empty()) return why;
    halves[half] = emitter.last();
  }
  bool gate_first = node.attrs.flag("gate_first");
  std::string_view why = emitter.emit_gate(node, halves[gate_first ? 0 : 1], halves[gate_first ? 1 : 0]);
  return why.empty() ? emitter.round_to(dtype) : why;
}

// Emits a body: its inputs, then its constants, then its ops. `result` receives the register of its one output.
static std::string_view emit_body(const Graph& body, Emitter& emitter, uint8_t& result) {
  std::vector<uint8_t> registers(body.nodes().size());
  if (body.nodes().size() > kMaxBodyNodes) return "too many ops";
  emitter.reserve(body.inputs().size(), body.nodes().size() - body.inputs().size());
  for (size_t i = 0; i < body.inputs().size(); i++) {
    uint32_t node = body.inputs()[i];
    if (std::string_view why = emitter.add_input(body.node(node).out[0].dtype, {i}); !why.empty()) return why;
    registers[node] = emitter.last();
  }
  for (uint32_t i = 0; i < body.nodes().size(); i++) {
    if (body.node(i).op != Op::kConstant) continue;
    if (std::string_view why = emitter.add_constant(body.node(i).attrs.tensor("value")); !why.empty()) return why;
    registers[i] = emitter.last();
  }
  for (uint32_t i = 0; i < body.nodes().size(); i++) {
    const Node& node = body.node(i);
    if (body.info(node).is(kLeaf)) continue;
    uint8_t in[3] = {};
    if (node.in.size() > 3) return "too many operands";
    for (size_t k = 0; k < node.in.size(); k++) in[k] = registers[node.in[k].node];
    if (std::string_view why = emitter.emit(node, {in, node.in.size()}); !why.empty()) return why;
    registers[i] = emitter.last();
  }
  result = registers[body.outputs()[0].value.node];
  return {};
}

// A half is rounded as it is stored, so the last op need not do it.
static void leave_rounding_to_store(DType dtype, RegionProgram& program) {
  RegionArgs& args = program.args;
  if (!is_half(dtype) || program.ops.empty()) return;
  const RegionOp last = program.ops.back();
  if (last.code != rounding(dtype) || last.dst != args.outputs[0].reg) return;
  args.outputs[0].reg = last.a;
  program.ops.truncate(program.ops.size() - 1);
  args.op_count--;
}

std::string_view emit_region(const Graph& graph, const Node& node, RegionProgram& program) {
  if (node.out.size() != 1) return "more than one output";
  std::string_view why;
  uint8_t result = 0;
  if (node.op == Op::kElementwiseRegion) {
    const Graph& body = *node.attrs.graph("body");
    for (size_t i = 0; i < node.in.size(); i++)
      if (graph.type(node.in[i]).dtype != body.node(body.inputs()[i]).out[0].dtype) return "the body has other dtypes";
    Emitter emitter(body, program);
    why = emit_body(body, emitter, result);
  } else {
    Emitter emitter(graph, program);
    why = node.op == Op::kGlu ? emit_glu(graph, node, emitter) : emit_node(graph, node, emitter);
    result = emitter.last();
  }
  if (!why.empty()) return why;
  auto type = region_type(node.out[0].dtype);
  if (!is_real(node.out[0].dtype) && node.out[0].dtype != DType::kBool) return "makes neither floats nor bool";
  program.args.outputs[0] = {.type = *type, .reg = result};
  program.args.output_count = 1;
  leave_rounding_to_store(node.out[0].dtype, program);
  return {};
}

std::string_view build_region(const Graph& graph, const Node& node, RegionProgram& program) {
  if (std::string_view why = emit_region(graph, node, program); !why.empty()) return why;
  join_pairs(program);
  return assign_registers(program.args, program.ops) ? std::string_view() : "too many values at once";
}

std::vector<Op> region_ops() {
  std::vector<Op> ops;
  for (const OpRow& row : kRows) ops.push_back(row.op);
  ops.insert(ops.end(), std::begin(kSpecial), std::end(kSpecial));
  return ops;
}

}  // namespace rlx::cpu
