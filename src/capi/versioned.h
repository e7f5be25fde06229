// SPDX-License-Identifier: Apache-2.0
// The structs of rlx.h that the caller fills in. Their first member, struct_size, says which members the caller knows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/status.h"
#include "rlx.h"

namespace rlx::capi {

// No version of such a struct will be larger. A larger size is a mistake of the caller.
inline constexpr size_t kLargestStruct = 4096;

template <class T>
void init_versioned(T* given, size_t struct_size) {
  if (!given || struct_size < sizeof given->struct_size || struct_size > kLargestStruct) return;
  std::memset(static_cast<void*>(given), 0, struct_size);
  given->struct_size = static_cast<uint32_t>(struct_size);
}

// The members that this library knows. It accepts any struct from the first version on, which had `first` bytes;
// members that it does not know must be zero. `type` is the name of T.
template <class T>
Result<T> known_members(const T& given, size_t first, std::string_view type) {
  size_t size = given.struct_size;
  if (size < first || size > kLargestStruct) {
    std::string_view stem = type.substr(0, type.size() - 2);  // without "_t"
    return Status(Code::kVersion, format("{}: struct_size is {}, expected {} to {}: call {}_init", type, size, first,
                                         kLargestStruct, stem))
        .with("expected", format("{} to {}", first, kLargestStruct))
        .with("got", std::to_string(size));
  }
  auto* bytes = reinterpret_cast<const unsigned char*>(&given);
  if (size > sizeof given && std::any_of(bytes + sizeof given, bytes + size, [](unsigned char byte) { return byte; }))
    return Status(Code::kVersion,
                  format("{}: it uses members that librlx {} does not know", type, rlx_version_string()))
        .with("expected", std::to_string(sizeof given))
        .with("got", std::to_string(size));
  T known{};  // a shorter struct has no bytes for the last members
  std::memcpy(&known, &given, std::min(size, sizeof known));
  return known;
}

}  // namespace rlx::capi
