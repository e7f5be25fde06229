// SPDX-License-Identifier: Apache-2.0
// Reads and writes what follows `=` in text: types, tensors and attribute values.
#pragma once

#include "ir/graph.h"
#include "ir/text/scan.h"

namespace rlx::text {

Result<ValueType> scan_type(Scanner& in);  // f32[batch,past + seq]

// f32[2] {1, 2.5}, c64[1] {(1, -2)}, or any dtype as f32[1024] base64 "...": a tensor to the bit.
Result<Tensor> scan_tensor(Scanner& in);
std::string tensor_text(const Tensor& tensor);

Result<AttrValue> scan_value(Scanner& in);
std::string value_text(AttrKind kind, const AttrValue& value);  // of any kind but graph
std::string free_text(const AttrValue& value);                  // that reads back as the same kind
std::string number_text(double number);                         // shortest digits that read back equal
std::optional<double> special_number(std::string_view word);    // inf, -inf, nan

}  // namespace rlx::text
