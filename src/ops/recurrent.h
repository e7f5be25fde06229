// SPDX-License-Identifier: Apache-2.0
// Recurrent networks: one scan per direction. The products of the gates with the input are one product for all steps;
// each step adds the product with the state.
#pragma once

#include <functional>

#include "ops/expr.h"

namespace rlx {

using Activate = std::function<Expr(Expr)>;

// Gates, in the order of the weights: LSTM input, output, forget, cell; GRU update, reset, hidden.
enum class Cell : uint8_t { kRnn, kGru, kLstm };

struct Recurrence {
  Cell cell;
  Expr x = {};                   // [S, B, I]
  Expr w = {}, r = {};           // [directions, gates * H, I], [directions, gates * H, H]
  Expr bias = {};                // [directions, 2 * gates * H], of the input and then of the state; may be absent
  Expr lengths = {};             // [B]: after its end a sequence keeps its state and outputs 0; may be absent
  Expr h0 = {}, c0 = {};         // [directions, B, H]; absent: 0
  Expr peephole = {};            // [directions, 3 * H] of an LSTM; may be absent
  bool reverse = false;          // the first direction starts at the end, as the second of two always does
  std::vector<Activate> acts{};  // of each direction: LSTM gates, cell, output; GRU gates, hidden; RNN
  double clip = 0;               // bounds the inputs of the gates' activations; 0: no bound
  bool input_forget = false;     // LSTM: f = 1 - i
  bool reset_after = false;      // GRU: the reset gate is applied to the product
  Activate state_to_product{};   // LSTM: applied to the state before its product; absent: nothing
};

// y [S, directions, B, H], the last h [directions, B, H], and of an LSTM the last c.
Outputs run_recurrence(const Recurrence& all);

// Builds a scan. `step` builds its body from carries, slices of xs and invariants, and returns the next carries, then
// the outputs to stack.
enum class ScanOrder : bool { kForward, kReverse };
using StepBody = std::function<std::vector<Expr>(std::span<const Expr> carries, std::span<const Expr> xs,
                                                 std::span<const Expr> invariants)>;
Outputs scan(std::span<const Expr> carries, std::span<const Expr> xs, std::span<const Expr> invariants, ScanOrder order,
             const StepBody& step);

}  // namespace rlx
