// SPDX-License-Identifier: Apache-2.0
// One compilation, one session: what a child does in its turns. Any failure ends the process with its message.
#pragma once

#include <memory>

#include "child.h"
#include "graphs.h"

struct rlx_env;

namespace bench {

enum class Weights { kAtCompile, kAfterwards };  // afterwards: passes and plan are one stage, packing another

using Env = std::unique_ptr<rlx_env, void (*)(rlx_env*)>;
Env make_env();  // one thread

void compile_once(Teller& teller, rlx_env* env, const Model& model, Weights weights);
void session_once(Teller& teller, const Model& model);  // of the peer

// Runs both on the model's feeds, so that the two are known to have compiled the same meaning.
void assert_equal_outputs(Teller& teller, rlx_env* env, const Model& model);

}  // namespace bench
