// SPDX-License-Identifier: Apache-2.0
// TensorProto to Tensor: the element types of ONNX, the three places where elements may be stored, and external files.
#pragma once

#include <map>
#include <string>

#include "base/tensor.h"
#include "import/onnx/model.h"
#include "import/source.h"

namespace rlx::onnx {

// RLX_E_UNSUPPORTED names the ONNX type: we have no dtype for strings, the fnuz floats and float8e8m0.
Result<DType> dtype_of(int32_t element_type);

// The bits of a type narrower than a byte, which is stored as bytes: 2 or 4; else 0.
int bits_of(int32_t element_type);

// Reads tensors of one model. External files are mapped once each and must lie in the model's folder.
class TensorReader {
 public:
  explicit TensorReader(const Source& source) : source_(source) {}
  Result<Tensor> read(const TensorProto& proto);
  Result<Tensor> read(const SparseTensorProto& proto);  // as a dense one

 private:
  Result<Tensor> read_external(const TensorProto& proto, DType dtype);
  Result<Source> open_external(std::string_view location);

  const Source& source_;
  std::map<std::string, Source, std::less<>> files_;  // by location
};

}  // namespace rlx::onnx
