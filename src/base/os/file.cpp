// SPDX-License-Identifier: Apache-2.0
// Reading, mapping and replacing files by plain POSIX calls. Invariant: every descriptor is closed and every temporary
// file is removed on every path out.
#include "base/os/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>

namespace rlx {
namespace {

Code code_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR: return Code::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS: return Code::kDenied;
    case ENOMEM: return Code::kNoMemory;
    default: return Code::kIo;
  }
}

Status failed(const char* verb, const std::string& path, int error) {
  std::string why = std::generic_category().message(error);  // thread-safe, unlike strerror
  return Status(code_of(error), format("cannot {} \"{}\": {}", verb, path, why)).with("value", path);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int close() { return ::close(std::exchange(fd_, -1)); }  // for callers that must know whether all was written

 private:
  int fd_;
};

// The size of an open regular file; a folder or a pipe has no bytes to map.
Result<size_t> size_of(const Descriptor& file, const std::string& path) {
  struct stat info;
  if (fstat(file.get(), &info) != 0) return failed("open", path, errno);
  if (S_ISDIR(info.st_mode)) return failed("open", path, EISDIR);
  if (!S_ISREG(info.st_mode))
    return Status(Code::kIo, format("cannot open \"{}\": not a regular file", path)).with("value", path);
  return static_cast<size_t>(info.st_size);
}

// Without O_NONBLOCK, opening a pipe would wait for its writer before anyone can refuse it.
Descriptor open_to_read(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

Status write_all(const Descriptor& file, const std::string& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(file.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("write", path, errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

// A new file beside `path`; the counter keeps two threads of this process apart, the id two processes.
std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  return format("{}.{}.{}.tmp", path, getpid(), counter.fetch_add(1));
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  Descriptor file = open_to_read(path);
  if (file.get() < 0) return failed("open", path, errno);
  size_t size = RLX_TRY(size_of(file, path));
  if (size == 0) return MappedFile(path, nullptr, 0);  // mmap refuses an empty range
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) return failed("map", path, errno);
  std::shared_ptr<const std::byte> data(static_cast<const std::byte*>(address), [size](const std::byte* bytes) {
    munmap(const_cast<std::byte*>(bytes), size);
  });
  return MappedFile(path, std::move(data), size);
}

Result<std::string> read_file(const std::string& path, size_t limit) {
  Descriptor file = open_to_read(path);
  if (file.get() < 0) return failed("open", path, errno);
  size_t expected = RLX_TRY(size_of(file, path));  // 0 for the files of /proc, whatever they hold
  auto too_long = [&] { return Status(Code::kRange, format("\"{}\" has more than {} bytes", path, limit)); };
  if (expected > limit) return too_long();
  std::string text;
  for (size_t done = 0;;) {
    text.resize(std::max(expected, done) + 4096);
    ssize_t n = ::read(file.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("read", path, errno);
    done += static_cast<size_t>(n);
    if (done > limit) return too_long();
    if (n == 0) {
      text.resize(done);
      return text;
    }
  }
}

Status write_file(const std::string& path, std::span<const std::byte> bytes) {
  std::string temporary = temporary_name(path);
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) return failed("write", path, errno);
  Status status = write_all(file, path, bytes);
  if (status.ok() && file.close() != 0) status = failed("write", path, errno);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) status = failed("replace", path, errno);
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

}  // namespace rlx
