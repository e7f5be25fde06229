// SPDX-License-Identifier: Apache-2.0
// Env: the devices, threads and memory of one user of the library. Everything made from it holds it; two environments
// share nothing. Invariant: an Env has the device "cpu".
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "base/kept_memory.h"
#include "base/os/thread_pool.h"
#include "base/tensor.h"
#include "device/registry.h"

namespace rlx {

class Program;
class RunQueue;

struct EnvOptions {
  int threads = PoolOptions::kAllCores;  // the most threads of a run, the caller included
  bool pin = false;
  int spin = PoolOptions::kDefaultSpin;    // microseconds that a thread waits awake
  std::string default_device = "cpu";      // what an empty device spec means
  size_t kept_memory = size_t{256} << 20;  // bytes of freed buffers, at most; 0: none
  std::vector<BackendEntry> backends;      // in addition to those of the library
};

class Env {
 public:
  static Result<std::shared_ptr<Env>> create(const EnvOptions& options = {}, const HostServices& services = {});

  const std::shared_ptr<Host>& host() const { return host_; }
  ThreadPool& pool() const { return *pool_; }
  KeptMemory& kept_memory() const { return *kept_; }
  RunQueue& queue() const { return *queue_; }
  std::span<const std::unique_ptr<Device>> devices() const { return devices_; }

  // "cpu", "cpu:0" or "" (the default device). RLX_E_UNAVAILABLE if there is no device of that name.
  Result<Device*> find_device(std::string_view spec) const;
  // The device for `fallback=host`; null if `device` is that one itself.
  Device* fallback_of(const Device& device) const;
  Status no_device(std::string_view spec) const;  // RLX_E_UNAVAILABLE, with a list of the devices

  // A tensor of zeros, in memory of the device; without a device, of the host's allocator.
  Result<Tensor> make_tensor(DType dtype, std::span<const int64_t> dims, Device* device = nullptr) const;
  // A tensor in host memory that is not cleared.
  Result<Tensor> make_unfilled(DType dtype, std::span<const int64_t> dims, MemoryKind kind = MemoryKind::kTensor) const;
  // The same tensor, or a copy in host memory that is aligned for its elements.
  Result<Tensor> aligned(const Tensor& tensor) const;

  // Programs keep contexts for later calls: `trim` gives back those that nobody uses, and what is kept of freed memory.
  void watch(std::weak_ptr<Program> program);
  void trim();

  Env(std::shared_ptr<Host> host, const EnvOptions& options);
  ~Env();

 private:
  std::shared_ptr<Host> host_;
  EnvOptions options_;
  std::shared_ptr<KeptMemory> kept_;
  std::unique_ptr<ThreadPool> pool_;  // outlives the devices, which run on it
  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<RunQueue> queue_;
  std::mutex programs_mutex_;
  std::vector<std::weak_ptr<Program>> programs_;  // some of them gone
};

}  // namespace rlx
