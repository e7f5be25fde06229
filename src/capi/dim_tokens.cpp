// SPDX-License-Identifier: Apache-2.0
#include "capi/dim_tokens.h"

namespace rlx::capi {

int64_t DimTokens::token(const Dim& dim) {
  if (dim.is_literal()) return dim.literal();
  std::string text = dim.text();
  std::lock_guard lock(mutex_);
  if (auto known = tokens_.find(text); known != tokens_.end()) return known->second;
  int64_t token = kNoToken - 1 - static_cast<int64_t>(dims_.size());
  dims_.push_back(dim);
  tokens_.emplace(std::move(text), token);
  return token;
}

Result<Dim> DimTokens::dim(int64_t number) const {
  if (!is_token(number)) return Dim(number);
  std::lock_guard lock(mutex_);
  uint64_t index = static_cast<uint64_t>(kNoToken - 1) - static_cast<uint64_t>(number);
  if (index < dims_.size()) return dims_[index];
  return Status(Code::kRange, format("{} is neither a size nor a token of rlx_graph_dim in this environment", number))
      .with("got", std::to_string(number));
}

Result<std::vector<Dim>> DimTokens::dims(std::span<const int64_t> numbers) const {
  std::vector<Dim> result;
  for (int64_t number : numbers) result.push_back(RLX_TRY(dim(number)));
  return result;
}

}  // namespace rlx::capi
