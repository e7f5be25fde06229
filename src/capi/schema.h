// SPDX-License-Identifier: Apache-2.0
// Schemas: the tables of ops and options as JSON.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "device/device.h"
#include "ir/op.h"

namespace rlx::capi {

const OpInfo* find_public_op(std::string_view name);  // null: unknown, or not an op for rlx_graph_op

using Devices = std::span<const std::unique_ptr<Device>>;  // the devices whose kernels are listed

std::string schema_of_ops(const OpTable& table, Devices devices = {});
std::string schema_of_op(const OpInfo& info, Devices devices = {});  // inputs, outputs, attributes, kernels by device
std::string schema_of_options(std::span<const AttrDef> options);

}  // namespace rlx::capi
