// SPDX-License-Identifier: Apache-2.0
// How the results of view ops lie in the buffer of their input; nullopt where they have to be computed.
#pragma once

#include <optional>

#include "ir/view.h"

namespace rlx {

std::optional<Strided> view_same(const ViewArgs& args);
std::optional<Strided> view_reshape(const ViewArgs& args);
std::optional<Strided> view_transpose(const ViewArgs& args);
std::optional<Strided> view_broadcast_to(const ViewArgs& args);
std::optional<Strided> view_slice(const ViewArgs& args);

}  // namespace rlx
