// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

#include <array>
#include <vector>

namespace rlx {

static constexpr std::array<DTypeInfo, 79> kInfos = [] {
  std::array<DTypeInfo, 79> infos{};
#define RLX_DTYPE(id, Enum, name, block, bytes) infos[id] = {#name, block, bytes};
#include "base/dtype.def"
#undef RLX_DTYPE
  return infos;
}();

const DTypeInfo& info(DType dtype) {
  return kInfos[static_cast<size_t>(dtype)];
}

std::optional<DType> find_dtype(std::string_view name) {
  for (size_t id = 1; id < kInfos.size(); id++)
    if (!name.empty() && kInfos[id].name == name) return static_cast<DType>(id);
  return std::nullopt;
}

std::string text_of(DTypeSet set) {
  std::vector<std::string_view> names;
  bool has_all_blocks = (set | dtypes::Q) == set;
  for (size_t id = 1; id < kInfos.size(); id++) {
    auto dtype = static_cast<DType>(id);
    if (kInfos[id].name.empty() || !set.has(dtype) || (has_all_blocks && dtypes::Q.has(dtype))) continue;
    names.push_back(kInfos[id].name);
  }
  if (has_all_blocks) names.push_back("a block-quantised dtype");
  std::string text;
  for (size_t i = 0; i < names.size(); i++)
    text += std::string(i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + std::string(names[i]);
  return text.empty() ? "none" : text;
}

std::optional<int64_t> byte_size(DType dtype, int64_t elements) {
  const DTypeInfo& type = info(dtype);
  int64_t bytes;
  if (!type.block || elements < 0) return std::nullopt;
  if (type.block > 1) {  // a run asks for many sizes, and division is slow
    if (elements % type.block) return std::nullopt;
    elements /= type.block;
  }
  if (__builtin_mul_overflow(elements, int64_t{type.bytes}, &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace rlx
