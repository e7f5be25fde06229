// SPDX-License-Identifier: Apache-2.0
// Constructors of attribute definitions, so that a row reads like a signature: i64("axis", -1), enums("mode", "a|b",
// "a").
#pragma once

#include <algorithm>

#include "ir/attr.h"

namespace rlx::attr_defs {

inline constexpr double kInf = std::numeric_limits<double>::infinity();

inline AttrDef required(std::string_view name, AttrKind kind, std::string_view choices = {}) {
  AttrDef def{name, kind, true, {}};
  def.choices = choices;
  return def;
}
inline AttrDef optional(std::string_view name, AttrKind kind, AttrValue fallback = {}, std::string_view choices = {}) {
  AttrDef def{name, kind, false, std::move(fallback)};
  def.choices = choices;
  return def;
}

// Required.
inline AttrDef i64(std::string_view name) {
  return required(name, AttrKind::kI64);
}
inline AttrDef i64s(std::string_view name) {
  return required(name, AttrKind::kI64s);
}
inline AttrDef f64(std::string_view name) {
  return required(name, AttrKind::kF64);
}
inline AttrDef str(std::string_view name) {
  return required(name, AttrKind::kStr);
}
inline AttrDef dim(std::string_view name) {
  return required(name, AttrKind::kDim);
}
inline AttrDef dims(std::string_view name) {
  return required(name, AttrKind::kDims);
}
inline AttrDef graph(std::string_view name) {
  return required(name, AttrKind::kGraph);
}
inline AttrDef tensor(std::string_view name) {
  return required(name, AttrKind::kTensor);
}
inline AttrDef dtype(std::string_view name, std::string_view set = {}) {
  return required(name, AttrKind::kDtype, set);
}
inline AttrDef enums(std::string_view name, std::string_view choices) {
  return required(name, AttrKind::kEnum, choices);
}

// With a default.
inline AttrDef i64(std::string_view name, int64_t fallback) {
  return optional(name, AttrKind::kI64, fallback);
}
inline AttrDef i64s(std::string_view name, std::vector<int64_t> fallback) {
  return optional(name, AttrKind::kI64s, std::move(fallback));
}
inline AttrDef f64(std::string_view name, double fallback) {
  return optional(name, AttrKind::kF64, fallback);
}
inline AttrDef str(std::string_view name, std::string fallback) {
  return optional(name, AttrKind::kStr, std::move(fallback));
}
inline AttrDef strs(std::string_view name, std::vector<std::string> fallback) {
  return optional(name, AttrKind::kStrs, std::move(fallback));
}
inline AttrDef dim(std::string_view name, int64_t fallback) {
  return optional(name, AttrKind::kDim, Dim(fallback));
}
inline AttrDef flag(std::string_view name, bool fallback) {
  return optional(name, AttrKind::kBool, int64_t{fallback});
}
inline AttrDef enums(std::string_view name, std::string_view choices, std::string fallback) {
  return optional(name, AttrKind::kEnum, std::move(fallback), choices);
}
inline AttrDef dtype(std::string_view name, std::string_view set, DType fallback) {
  return optional(name, AttrKind::kDtype, fallback, set);
}

// Absent by default: inference or the decomposition of the op defines what that means.
inline AttrDef opt_i64(std::string_view name) {
  return optional(name, AttrKind::kI64);
}
inline AttrDef opt_i64s(std::string_view name) {
  return optional(name, AttrKind::kI64s);
}
inline AttrDef opt_f64(std::string_view name) {
  return optional(name, AttrKind::kF64);
}
inline AttrDef opt_f64s(std::string_view name) {
  return optional(name, AttrKind::kF64s);
}
inline AttrDef opt_str(std::string_view name) {
  return optional(name, AttrKind::kStr);
}
// Takes every attribute that the row does not name.
inline AttrDef free(std::string_view name) {
  return optional(name, AttrKind::kFree);
}
inline AttrDef opt_flag(std::string_view name) {
  return optional(name, AttrKind::kBool);
}
inline AttrDef opt_tensor(std::string_view name) {
  return optional(name, AttrKind::kTensor);
}
inline AttrDef opt_graph(std::string_view name) {
  return optional(name, AttrKind::kGraph);
}
inline AttrDef opt_strs(std::string_view name) {
  return optional(name, AttrKind::kStrs);
}
inline AttrDef opt_dim(std::string_view name) {
  return optional(name, AttrKind::kDim);
}
inline AttrDef opt_dims(std::string_view name) {
  return optional(name, AttrKind::kDims);
}
inline AttrDef opt_dtype(std::string_view name, std::string_view set = {}) {
  return optional(name, AttrKind::kDtype, {}, set);
}

// Names of symbols.
inline AttrDef naming(NamedSymbols names, AttrDef def) {
  def.names = names;
  return def;
}
inline AttrDef opt_fresh_symbol(std::string_view name) {
  return naming(NamedSymbols::kFresh, opt_str(name));
}
inline AttrDef opt_fresh_symbols(std::string_view name) {
  return naming(NamedSymbols::kFresh, opt_strs(name));
}
inline AttrDef opt_chosen_symbols(std::string_view name) {
  return naming(NamedSymbols::kChosen, opt_strs(name));
}
inline AttrDef opt_carried_symbols(std::string_view name) {
  return naming(NamedSymbols::kCarried, opt_strs(name));
}

// The same definition with a legal range, ends included.
inline AttrDef within(AttrDef def, double lo, double hi = kInf) {
  def.lo = lo, def.hi = hi;
  return def;
}
// An option, and what it does.
inline AttrDef option(AttrDef def, std::string_view summary) {
  def.summary = summary;
  return def;
}

// ---- roles of the numbers: AttrRole in ir/attr.h ----

inline AttrDef as(AttrRole role, AttrDef def, std::string_view with = {}, int64_t fill = 0) {
  def.role = role, def.with = with, def.fill = fill;
  return def;
}
// The role is about this input instead of the first.
inline AttrDef of(uint8_t input, AttrDef def) {
  def.of = input;
  return def;
}

inline AttrDef axis(std::string_view name) {
  return as(AttrRole::kAxis, i64(name));
}
inline AttrDef axis(std::string_view name, int64_t fallback) {
  return as(AttrRole::kAxis, i64(name, fallback));
}
inline AttrDef opt_axis(std::string_view name) {
  return as(AttrRole::kAxis, opt_i64(name));
}
inline AttrDef inserted_axis(std::string_view name, int64_t fallback) {
  return as(AttrRole::kInsertedAxis, i64(name, fallback));
}
inline AttrDef axes(std::string_view name) {
  return as(AttrRole::kAxes, i64s(name));
}
inline AttrDef axes(std::string_view name, std::vector<int64_t> fallback) {
  return as(AttrRole::kAxes, i64s(name, std::move(fallback)));
}
inline AttrDef opt_axes(std::string_view name) {
  return as(AttrRole::kAxes, opt_i64s(name));
}
inline AttrDef paired_axes(AttrDef def) {
  return as(AttrRole::kPairedAxes, std::move(def));
}
inline AttrDef listed_axes(std::string_view name) {
  return as(AttrRole::kListedAxes, opt_i64s(name));
}
inline AttrDef besides(std::string_view axes, AttrDef def, int64_t fill = 0) {
  return as(AttrRole::kBesides, std::move(def), axes, fill);
}
// Strides, dilations and pads are added to sizes and multiplied with them: within these limits no sum wraps.
inline AttrDef within_sizes(AttrDef def) {
  constexpr double kLongest = 281474976710656;  // 2^48
  def.lo = std::max(def.lo, -kLongest), def.hi = std::min(def.hi, kLongest);
  return def;
}
inline AttrDef per_axis(AttrDef def, int64_t fill = 0) {
  return as(AttrRole::kPerAxis, within_sizes(std::move(def)), {}, fill);
}
inline AttrDef per_spatial_axis(AttrDef def, int64_t fill = 0) {
  return as(AttrRole::kPerSpatialAxis, within_sizes(std::move(def)), {}, fill);
}

}  // namespace rlx::attr_defs
