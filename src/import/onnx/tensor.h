// SPDX-License-Identifier: Apache-2.0
// TensorProto to Tensor: the element types of ONNX, the three places where elements may be stored, and external files.
#pragma once

#include <string_view>

#include "base/tensor.h"
#include "import/onnx/model.h"
#include "import/source.h"

namespace rlx::onnx {

// RLX_E_UNSUPPORTED names the ONNX type: we have no dtype for strings, the fnuz floats and float8e8m0.
Result<DType> dtype_of(int32_t element_type);

// The bits of a type narrower than a byte, which is stored as bytes: 2 or 4; else 0.
int bits_of(int32_t element_type);

// The file that holds a tensor with external data, by its name in the model; "" if none is named.
std::string_view external_location(const TensorProto& proto);

// Reads tensors of one model, and of its external files.
class TensorReader {
 public:
  explicit TensorReader(const Source& source) : source_(source) {}
  Result<Tensor> read(const TensorProto& proto);
  Result<Tensor> read(const SparseTensorProto& proto);  // as a dense one

 private:
  Result<Tensor> read_external(const TensorProto& proto, DType dtype);

  const Source& source_;
};

}  // namespace rlx::onnx
