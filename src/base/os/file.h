// SPDX-License-Identifier: Apache-2.0
// Files as the library uses them: mapped read-only, read whole, or replaced in one step. Every failure names the path
// and what the system said. A mapping is immutable and lives as long as the last copy of its MappedFile.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace rlx {

// The bytes of a file, shared between copies. Later writes of other processes to the file may become visible. If
// another process shortens the file, reads past its new end fault (SIGBUS), as for every mapping.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);

  std::span<const std::byte> bytes() const { return {data_.get(), size_}; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, std::shared_ptr<const std::byte> data, size_t size)
      : path_(std::move(path)), data_(std::move(data)), size_(size) {}

  std::string path_;
  std::shared_ptr<const std::byte> data_;  // null for an empty file
  size_t size_;
};

// The whole file; works for files of /proc too. A file of more than `limit` bytes is kRange.
Result<std::string> read_file(const std::string& path, size_t limit = size_t{1} << 30);

// Writes a temporary file beside `path` and renames it: readers see the old file or the new one, never a part.
Status write_file(const std::string& path, std::span<const std::byte> bytes);

}  // namespace rlx
