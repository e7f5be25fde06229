// SPDX-License-Identifier: Apache-2.0
#include "import/source.h"

#include <filesystem>

#include "base/os/file.h"

namespace rlx {

namespace fs = std::filesystem;

static Result<Source> mapped(const std::string& path) {
  auto file = std::make_shared<const MappedFile>(RLX_TRY(MappedFile::open(path)));
  return Source{file->bytes(), file, path};
}

Result<Source> Source::open(const std::string& path) {
  Source source = RLX_TRY(mapped(path));
  source.external = std::make_shared<ExternalFiles>(path);
  return source;
}

static std::string folder_of(const std::string& file) {
  std::error_code failure;
  fs::path found = fs::canonical(file, failure);
  return failure ? "" : found.parent_path().string();
}

ExternalFiles::ExternalFiles(const std::string& model) : folder_(folder_of(model)) {}

// Compares folders after following links: a model must not read files outside its folder.
Result<Source> ExternalFiles::open(std::string_view location) {
  std::lock_guard lock(mutex_);
  if (auto found = files_.find(location); found != files_.end()) return found->second;
  std::string name(location);
  auto denied = [&](const char* why) {
    return Status(Code::kDenied, "its external data '" + name + "' " + why).with("got", name);
  };
  if (name.empty() || fs::path(name).is_absolute()) return denied("is not a path relative to the model");
  if (folder_.empty()) return denied("cannot be found: the model's own path was gone");
  std::error_code failure;
  fs::path file = fs::weakly_canonical(fs::path(folder_) / name, failure);
  fs::path inside = file.lexically_relative(folder_);
  if (failure || inside.empty() || *inside.begin() == "..") return denied("is outside the model's folder");
  return files_.emplace(name, RLX_TRY(mapped(file.string()))).first->second;
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
