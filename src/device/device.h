// SPDX-License-Identifier: Apache-2.0
// The interface of a backend. Names, params, casts, caching, sizes, control flow and profiling are done once, in the
// layers above: a backend sees bytes and a plan. Invariant: an Executable is immutable, so many execs may run it at
// once.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/kept_memory.h"
#include "base/os/thread_pool.h"
#include "base/storage.h"
#include "device/cancel.h"
#include "device/fence.h"
#include "plan/plan.h"

namespace rlx {

// What a backend keeps for one segment in one run: encoded steps, recorded commands.
class ExecState {
 public:
  virtual ~ExecState() = default;
};

// A table of a run, with the version of the last change of each entry. Whatever was computed from an entry at one
// version stays valid until the entry has a higher version. So no lists of changes are passed on, and a failed run
// loses none.
template <class T>
struct Versioned {
  std::span<const T> values;
  std::span<const uint64_t> changed;  // by entry
  const uint64_t* newest = nullptr;   // the highest version
};

// Tells the run a size that a step has computed. The tables of RunArgs are up to date when it returns.
using SetSize = FunctionRef<Status(uint32_t symbol, int64_t size)>;

struct RunArgs {
  Versioned<Place> bases;            // by base of the plan
  Versioned<int64_t> sizes;          // by SizeId
  std::span<const int64_t> symbols;  // by symbol of the plan
  const SetSize* set_size = nullptr;
  CancelToken cancel;       // read between steps
  int threads = INT32_MAX;  // most workers of this run
};

// One segment of a plan.
class Executable {
 public:
  virtual ~Executable() = default;
  virtual Result<std::unique_ptr<ExecState>> make_state() const = 0;
  // `args` and `state` must live until the fence is done.
  virtual Result<Fence> submit(const RunArgs& args, ExecState& state) const = 0;
  // The same as submit and wait. A backend that works on the caller's thread needs no fence.
  virtual Status run(const RunArgs& args, ExecState& state) const;
};

struct DeviceInfo {
  std::string name;                     // "cpu", "vulkan:0"
  std::string kind;                     // "cpu"
  std::string description;              // "AMD EPYC ..., avx512"
  bool prologue = true;                 // false: takes the whole graph, params included
  size_t alignment = kMemoryAlignment;  // of its buffers
  std::vector<std::pair<std::string, std::string>> capabilities;
};

// What an env gives its devices. It outlives them.
struct DeviceContext {
  std::shared_ptr<Host> host;
  std::shared_ptr<KeptMemory> memory;
  ThreadPool* pool;
};

struct Copy {
  Place to, from;
  size_t bytes = 0;
};

// Devices with memory of their own override the functions for memory. A device that uses host memory inherits them.
class Device {
 public:
  explicit Device(DeviceContext context) : context_(std::move(context)) {}
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual Found find(const KernelQuery&) const = 0;  // also the answer to "is this supported?"
  // The names of its kernels for an op, the best first. Ops that run by `eval` or by their decomposition have none.
  virtual std::vector<std::string_view> kernels(Op) const { return {}; }
  virtual Result<std::unique_ptr<Executable>> compile(std::shared_ptr<const Plan> plan, size_t segment) = 0;

  // Not cleared. RLX_E_NO_MEMORY.
  virtual Result<std::shared_ptr<Buffer>> allocate(size_t bytes, MemoryKind kind);
  // Whether its kernels can use the buffer directly.
  virtual bool can_use(const Buffer& buffer) const { return buffer.host() != nullptr; }
  // Copies between its buffers, and between these and the host's. A small read or write is one Copy.
  virtual Result<Fence> transfer(std::span<const Copy> copies, std::span<const Fence> wait);

 protected:
  DeviceContext context_;
};

// Copies bytes between any two places, and waits. The two may overlap within one buffer of the host.
Status copy_bytes(const Place& to, const Place& from, size_t bytes);

Status clear_bytes(const Place& place, size_t bytes);

}  // namespace rlx
