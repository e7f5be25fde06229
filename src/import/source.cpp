// SPDX-License-Identifier: Apache-2.0
#include "import/source.h"

#include "base/os/file.h"

namespace rlx {

Result<Source> Source::open(const std::string& path) {
  auto file = std::make_shared<const MappedFile>(RLX_TRY(MappedFile::open(path)));
  return Source{file->bytes(), file, path};
}

Result<Tensor> tensor_over(const Source& source, std::span<const std::byte> bytes, DType dtype,
                           std::span<const int64_t> dims) {
  if (dims.size() > kMaxRank)
    return Status(Code::kUnsupported, format("a tensor of rank {}; at most {}", dims.size(), kMaxRank));
  auto count = element_count(dims);
  auto size = count ? byte_size(dtype, *count) : std::nullopt;
  if (!size || static_cast<uint64_t>(*size) != bytes.size())
    return Status(Code::kData, format("{} for a {}", plural(bytes.size(), "byte"), type_text(dtype, dims)))
        .with("expected", size ? std::to_string(*size) : "a size")
        .with("got", std::to_string(bytes.size()));
  auto* data = const_cast<std::byte*>(bytes.data());  // a constant's or param's bytes are frozen: nobody writes to them
  return Tensor::adopt(dtype, dims, std::shared_ptr<std::byte>(std::const_pointer_cast<void>(source.owner), data),
                       bytes.size(), Writable::kNo);
}

}  // namespace rlx
