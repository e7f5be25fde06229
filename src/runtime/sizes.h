// SPDX-License-Identifier: Apache-2.0
// SizeState: the sizes of one exec: a number for each symbol and for each entry of the plan's size table. The table is
// evaluated only when a symbol has changed. Invariant: every symbol lies within its range and the plan's upper size.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "runtime/solve.h"

namespace rlx {

class SizeState {
 public:
  SizeState() = default;
  explicit SizeState(const Plan& plan);

  // Gives every symbol its size, from inputs or else from `requested` (by symbol; kUnknownSize: none), checks dims,
  // ranges and guards, and evaluates the table. On failure the sizes stay as before.
  Status resolve(const Plan& plan, std::span<const GivenDims> given, std::span<const int64_t> requested);

  std::span<const int64_t> values() const { return values_; }    // by SizeId
  std::span<const int64_t> symbols() const { return symbols_; }  // by symbol
  Versioned<int64_t> table() const { return {values_, changed_, &version_}; }
  uint64_t version() const { return version_; }  // grows with every change

  // For a body, whose sizes come from outside. `symbols`: by symbol; those that the run will find are not read.
  Status assign(const Plan& plan, std::span<const int64_t> symbols);

  // Forgets which sizes the last run has found: the next one finds them anew.
  void begin_run() { std::fill(found_.begin(), found_.end(), false); }
  // Sets a size that the run has computed, and checks the guards whose last size it is.
  Status set_fresh(const Plan& plan, uint32_t fresh, int64_t size);

 private:
  Status choose(const Plan& plan, const SymbolLookup& lookup);
  Status evaluate_table(const Plan& plan);
  void commit();              // makes the next values the present ones
  void take_next(SizeId id);  // of one entry

  std::vector<int64_t> symbols_, values_;
  std::vector<int64_t> next_, next_symbols_;  // while they are being resolved
  std::vector<bool> found_;                   // by symbol: whether this run has computed it
  std::vector<uint64_t> changed_;             // by SizeId: the version of its last change
  uint64_t version_ = 0;                      // 0: nothing was evaluated yet
};

// RLX_E_RANGE if the size is above the plan's upper size or below the minimum.
Status check_range(const PlanSymbol& symbol, int64_t size);

// The index of the symbol. RLX_E_NOT_FOUND: there is none. RLX_E_RANGE: the size is above the plan's upper size or
// below the minimum. RLX_E_INVALID_ARGUMENT: the run finds this size.
Result<uint32_t> check_dim(const Plan& plan, std::string_view symbol, int64_t size);

}  // namespace rlx
