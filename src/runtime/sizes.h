// SPDX-License-Identifier: Apache-2.0
// SizeState: the sizes of one exec: a number per symbol, a number per entry of the plan's size table. Evaluated when a
// symbol has changed and at no other time. Invariant: every symbol lies within its range and the plan's upper size.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace rlx {

// Dims that an input has in this run: they determine symbols and are checked.
struct GivenDims {
  const ValueType* type;
  std::span<const int64_t> dims;
  std::string_view name;
};

class SizeState {
 public:
  static constexpr int64_t kUnknown = -1;

  SizeState() = default;
  explicit SizeState(const Plan& plan);

  // Gives every symbol its size, from inputs or else as wished (by symbol; kUnknown: no wish), checks dims, ranges and
  // guards, and evaluates the table. On failure the sizes are as before.
  Status resolve(const Plan& plan, std::span<const GivenDims> given, std::span<const int64_t> wished);

  std::span<const int64_t> values() const { return values_; }    // by SizeId
  std::span<const int64_t> symbols() const { return symbols_; }  // by symbol
  Versioned<int64_t> table() const { return {values_, changed_, &version_}; }
  uint64_t version() const { return version_; }  // moves with every size

  // Of a body: its sizes are decided around it. `symbols`: by symbol; those that the run will find are not asked.
  Status assign(const Plan& plan, std::span<const int64_t> symbols);

  // A size that the run has computed. Checks the guards that it completes.
  Status set_fresh(const Plan& plan, uint32_t fresh, int64_t size);

 private:
  Status choose(const Plan& plan, const SymbolLookup& lookup);
  Status evaluate_table(const Plan& plan);
  void commit();  // the next values become those of now

  std::vector<int64_t> symbols_, values_;
  std::vector<int64_t> next_, next_symbols_;  // while they are being resolved
  std::vector<bool> found_;                   // by symbol: those that this run has computed
  std::vector<uint64_t> changed_;             // by SizeId: the version of its last change
  uint64_t version_ = 0;                      // 0: nothing was evaluated yet
};

// RLX_E_NOT_FOUND, RLX_E_RANGE where it is above the plan's upper size or below the least; else the symbol's index.
Result<uint32_t> check_dim(const Plan& plan, std::string_view symbol, int64_t size);

// The sizes that the inputs' dims determine; a symbol that none does is absent. Used where no plan exists yet.
// RLX_E_SHAPE where no size of the last unknown symbol of a dim gives the size of the input.
Result<std::vector<std::optional<int64_t>>> solve_symbols(std::span<const std::string_view> symbols,
                                                          std::span<const GivenDims> given);

}  // namespace rlx
