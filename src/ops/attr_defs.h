// SPDX-License-Identifier: Apache-2.0
// Constructors of attribute definitions, so that a row reads like a signature: i64("axis", -1), enums("mode", "a|b",
// "a").
#pragma once

#include "ir/attr.h"

namespace rlx::attr_defs {

// The activations that fused ops apply; act.h turns a name into its formula.
inline constexpr std::string_view kActivations =
    "none|relu|relu2|gelu|gelu_tanh|quick_gelu|silu|sigmoid|tanh|hard_sigmoid|hard_swish|leaky_relu|elu|softplus|mish";
inline constexpr double kInf = std::numeric_limits<double>::infinity();

inline AttrDef make(std::string_view name, AttrKind kind, bool required, AttrValue fallback = {},
                    std::string_view choices = {}, double lo = -kInf, double hi = kInf) {
  return {name, kind, required, std::move(fallback), choices, lo, hi};
}

// Required.
inline AttrDef i64(std::string_view name) {
  return make(name, AttrKind::kI64, true);
}
inline AttrDef i64s(std::string_view name) {
  return make(name, AttrKind::kI64s, true);
}
inline AttrDef f64(std::string_view name) {
  return make(name, AttrKind::kF64, true);
}
inline AttrDef str(std::string_view name) {
  return make(name, AttrKind::kStr, true);
}
inline AttrDef dim(std::string_view name) {
  return make(name, AttrKind::kDim, true);
}
inline AttrDef dims(std::string_view name) {
  return make(name, AttrKind::kDims, true);
}
inline AttrDef graph(std::string_view name) {
  return make(name, AttrKind::kGraph, true);
}
inline AttrDef tensor(std::string_view name) {
  return make(name, AttrKind::kTensor, true);
}
inline AttrDef dtype(std::string_view name, std::string_view set = {}) {
  return make(name, AttrKind::kDtype, true, {}, set);
}
inline AttrDef enums(std::string_view name, std::string_view choices) {
  return make(name, AttrKind::kEnum, true, {}, choices);
}

// With a default.
inline AttrDef i64(std::string_view name, int64_t fallback) {
  return make(name, AttrKind::kI64, false, fallback);
}
inline AttrDef i64s(std::string_view name, std::vector<int64_t> fallback) {
  return make(name, AttrKind::kI64s, false, std::move(fallback));
}
inline AttrDef f64(std::string_view name, double fallback) {
  return make(name, AttrKind::kF64, false, fallback);
}
inline AttrDef flag(std::string_view name, bool fallback) {
  return make(name, AttrKind::kBool, false, int64_t{fallback});
}
inline AttrDef enums(std::string_view name, std::string_view choices, std::string fallback) {
  return make(name, AttrKind::kEnum, false, std::move(fallback), choices);
}
inline AttrDef dtype(std::string_view name, std::string_view set, DType fallback) {
  return make(name, AttrKind::kDtype, false, fallback, set);
}

// Absent by default: inference or the decomposition of the op says what that means.
inline AttrDef opt_i64(std::string_view name) {
  return make(name, AttrKind::kI64, false);
}
inline AttrDef opt_i64s(std::string_view name) {
  return make(name, AttrKind::kI64s, false);
}
inline AttrDef opt_f64(std::string_view name) {
  return make(name, AttrKind::kF64, false);
}
inline AttrDef opt_str(std::string_view name) {
  return make(name, AttrKind::kStr, false);
}
inline AttrDef opt_strs(std::string_view name) {
  return make(name, AttrKind::kStrs, false);
}
inline AttrDef opt_dim(std::string_view name) {
  return make(name, AttrKind::kDim, false);
}
inline AttrDef opt_dims(std::string_view name) {
  return make(name, AttrKind::kDims, false);
}
inline AttrDef opt_dtype(std::string_view name, std::string_view set = {}) {
  return make(name, AttrKind::kDtype, false, {}, set);
}

// The same definition with a legal range, ends included.
inline AttrDef within(AttrDef def, double lo, double hi = kInf) {
  def.lo = lo, def.hi = hi;
  return def;
}

}  // namespace rlx::attr_defs
