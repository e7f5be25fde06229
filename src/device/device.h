// SPDX-License-Identifier: Apache-2.0
// All that a backend must be. Names, params, casts, caching, sizes and profiling live above this line, once: a backend
// sees bytes and a plan. Invariant: an Executable is immutable, so many execs may run it at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/allocator.h"
#include "base/function_ref.h"
#include "base/os/thread_pool.h"
#include "base/storage.h"
#include "device/fence.h"
#include "plan/plan.h"

namespace rlx {

// What a backend keeps per exec: encoded steps, recorded commands.
class ExecState {
 public:
  virtual ~ExecState() = default;
};

// Where a base lies in this run. On the CPU only `host` is set.
struct Binding {
  std::byte* host = nullptr;
  Buffer* buffer = nullptr;
};

// What has changed in the midst of a run; the spans of RunArgs show it at once.
struct Changes {
  std::span<const SizeId> sizes;
  std::span<const uint32_t> bases;  // rooms that have grown
};

// Tells the exec a size that the run has computed.
using SetSize = FunctionRef<Result<Changes>(uint32_t symbol, int64_t size)>;

// Runs the bodies of a step of control flow, whose operands lie ready.
using RunControl = FunctionRef<Result<Changes>(const Step& step)>;

struct RunArgs {
  std::span<const Binding> bases;           // by base of the plan
  std::span<const int64_t> sizes;           // by SizeId
  std::span<const int64_t> symbols;         // by symbol of the plan
  std::span<const uint32_t> changed_bases;  // since the last submit with this state
  std::span<const SizeId> changed_sizes;
  ExecState* state = nullptr;                 // from make_state
  const SetSize* set_size = nullptr;          // where the plan has fresh symbols
  const RunControl* control = nullptr;        // where the plan has steps of control flow
  const std::atomic<bool>* cancel = nullptr;  // read between steps
  int threads = INT32_MAX;                    // most workers of this run
};

class Executable {
 public:
  virtual ~Executable() = default;
  virtual Result<std::unique_ptr<ExecState>> make_state() const = 0;
  virtual Result<Fence> submit(const RunArgs&) const = 0;
  // As submit and wait: what a synchronous run calls. A backend that works on the caller's thread needs no fence.
  virtual Status run(const RunArgs& args) const;
};

struct DeviceInfo {
  std::string name;         // "cpu", "vulkan:0"
  std::string kind;         // "cpu"
  std::string description;  // "AMD EPYC ..., avx512"
  bool host_memory = true;  // its bases are host pointers
  bool prologue = true;     // false: wants the whole graph, params included
  std::vector<std::pair<std::string, std::string>> capabilities;
};

// The functions for memory are for devices that have their own; a device that works in the host's memory inherits them.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual Found find(const KernelQuery&) const = 0;  // also the answer to "is this supported?"
  virtual Result<std::unique_ptr<Executable>> compile(std::shared_ptr<const Plan>) = 0;

  virtual Result<std::shared_ptr<Buffer>> allocate(size_t bytes, MemoryKind);
  virtual Result<std::shared_ptr<Buffer>> wrap(void* host, size_t bytes);
  virtual Status write(Buffer&, size_t offset, std::span<const std::byte>);
  virtual Status read(const Buffer&, size_t offset, std::span<std::byte>);
  virtual Status copy(Buffer& to, size_t to_offset, const Buffer& from, size_t from_offset, size_t bytes);
};

// What an env gives its devices; it outlives them.
struct DeviceContext {
  std::shared_ptr<Host> host;
  ThreadPool* pool;
};

}  // namespace rlx
