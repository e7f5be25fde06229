// SPDX-License-Identifier: Apache-2.0
// The work of a child in one turn: one compilation, or one session of the peer. Any failure ends the process with its
// message.
#pragma once

#include <memory>

#include "child.h"
#include "graphs.h"

struct rlx_env;

namespace bench {

enum class Weights { kAtCompile, kAfterwards };  // kAfterwards: packing is a stage of its own, after passes and plan

using Env = std::unique_ptr<rlx_env, void (*)(rlx_env*)>;
Env make_env();  // one thread

void compile_once(Reporter& reporter, rlx_env* env, const Model& model, Weights weights);
void session_once(Reporter& reporter, const Model& model);  // of the peer

// Runs both on the model's feeds, to check that the two compiled the same function.
void assert_equal_outputs(Reporter& reporter, rlx_env* env, const Model& model);

}  // namespace bench
