// SPDX-License-Identifier: Apache-2.0
#include "ir/view.h"

namespace rlx {

std::vector<Dim> dense_strides(std::span<const Dim> dims) {
  std::vector<Dim> strides(dims.size());
  Dim stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

bool is_dense(std::span<const Dim> dims, const Strided& strided) {
  std::vector<Dim> wanted = dense_strides(dims);
  for (size_t i = 0; i < dims.size(); i++)
    if (!dims[i].is(1) && !(strided.strides[i] == wanted[i])) return false;
  return true;
}

}  // namespace rlx
