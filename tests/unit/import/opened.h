// SPDX-License-Identifier: Apache-2.0
// A stated ONNX model, opened and run as a user does, and tensors to run it on.
#pragma once

#include "onnx_maker.h"
#include "runtime/special.h"
#include "tests/unit/programs.h"
#include "tests/unit/tensors.h"

namespace rlx {

using testing_programs::counting;

inline Tensor list(std::initializer_list<int64_t> values) {
  Tensor tensor = *Tensor::create(DType::kI64, std::array{static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as<int64_t>());
  return tensor;
}

inline Tensor floats(std::initializer_list<int64_t> dims, std::initializer_list<float> values) {
  Tensor tensor = *Tensor::create(DType::kF32, std::span<const int64_t>(dims.begin(), dims.size()));
  std::copy(values.begin(), values.end(), tensor.as<float>());
  return tensor;
}

// A model as a user opens it, and what a run of it gives as text.
struct Opened {
  explicit Opened(const onnx::Maker& maker, const NamedAttrs& policy = {}, const ImportOptions& options = {})
      : bytes(std::make_shared<const std::string>(maker.bytes())),
        model(open_model(testing_programs::env_with(1), {std::as_bytes(std::span(*bytes)), bytes, {}}, options,
                         policy)) {}

  // The dims of the only output, then its elements; or why there are none.
  std::string run(const std::vector<Tensor>& in) const {
    if (!model.ok()) return std::string(model.status().message());
    auto ran = (*model)->run("", {}, in, {}, 1);
    if (!ran.ok()) return std::string(ran.status().message());
    const Tensor& y = ran->outputs[0];
    std::string text = type_text(y.dtype(), y.dims());
    for (int64_t i = 0; i < y.count(); i++) text += " " + std::to_string(static_cast<int64_t>(element_as_f64(y, i)));
    return text;
  }

  std::shared_ptr<const std::string> bytes;
  Result<std::shared_ptr<Model>> model;
};

}  // namespace rlx
