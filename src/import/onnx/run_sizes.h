// SPDX-License-Identifier: Apache-2.0
// Node kinds whose sizes only a run knows: the sizes become symbols that the run binds, and indices are computed.
#pragma once

#include "import/onnx/call.h"

namespace rlx::onnx {

Expr reshape_in_run(Call& call, Expr x, Expr shape, bool zero_is_size);
Expr expand_in_run(Call& call, Expr x, Expr shape);
// Along these axes; `steps` may be absent.
Expr slice_in_run(Call& call, Expr x, Expr starts, Expr ends, Expr steps, const Axes& axes);
// `pads`: all the lows, then all the highs, of these axes; `value` may be absent.
Expr pad_in_run(Call& call, Expr x, Expr pads, const Axes& axes, const std::string& mode, Expr value);
Expr trilu_in_run(Expr x, Expr k, bool upper);

}  // namespace rlx::onnx
