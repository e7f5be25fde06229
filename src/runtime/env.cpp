// SPDX-License-Identifier: Apache-2.0
// Opens the backends, and makes memory from the host's allocator.
#include "runtime/env.h"

#include <cstring>

#include "base/nearest.h"
#include "runtime/program.h"
#include "runtime/queue.h"

namespace rlx {

Env::Env(std::shared_ptr<Host> host, const EnvOptions& options)
    : host_(std::move(host)),
      options_(options),
      kept_(std::make_shared<KeptMemory>(host_, options.kept_memory)),
      pool_(std::make_unique<ThreadPool>(host_, PoolOptions{options.threads, options.pin, options.spin})) {}

Result<std::shared_ptr<Env>> Env::create(const EnvOptions& options, const HostServices& services) {
  auto env = std::make_shared<Env>(RLX_TRY(Host::make(services)), options);
  DeviceContext context{env->host_, env->kept_, env->pool_.get()};
  std::vector<BackendEntry> backends;
  for (const BuiltInBackend& it : kBackends) backends.push_back({it.name, it.open});
  backends.insert(backends.end(), options.backends.begin(), options.backends.end());
  for (const BackendEntry& backend : backends) {
    Devices devices = RLX_TRY(backend.open(context));
    for (auto& device : devices) {
      const DeviceInfo& info = device->info();
      env->host_->log(LogLevel::kInfo, "device", [&] { return format("{}: {}", info.name, info.description); });
      env->devices_.push_back(std::move(device));
    }
  }
  bool is_inline = options.threads == 0 || !env->host_->has_own_threads();
  env->queue_ = std::make_unique<RunQueue>(is_inline ? nullptr : env->pool_.get());
  return env;
}

Env::~Env() = default;

Result<Device*> Env::find_device(std::string_view spec) const {
  if (spec.empty()) spec = options_.default_device;
  std::string first = std::string(spec) + ":0";
  for (const auto& device : devices_)
    if (device->info().name == spec || device->info().name == first || (device->info().name + ":0" == spec))
      return device.get();
  return no_device(spec);
}

Device* Env::fallback_of(const Device& device) const {
  Device* host = devices_.front().get();  // "cpu"
  return host == &device ? nullptr : host;
}

Status Env::no_device(std::string_view spec) const {
  std::vector<std::string_view> known;
  for (const auto& device : devices_) known.emplace_back(device->info().name);
  return Status(Code::kUnavailable, format("there is no device '{}', only {}", spec, listed(known)))
      .with("device", spec)
      .with("expected", listed(known))
      .with("got", spec);
}

Result<Tensor> Env::make_tensor(DType dtype, std::span<const int64_t> dims, Device* device) const {
  if (!device) {
    Tensor tensor = RLX_TRY(make_unfilled(dtype, dims, MemoryKind::kTensor));
    if (tensor.bytes()) std::memset(tensor.data(), 0, tensor.bytes());
    return tensor;
  }
  size_t bytes = RLX_TRY(Tensor::checked_bytes(dtype, dims));
  auto buffer = RLX_TRY(device->allocate(bytes, MemoryKind::kTensor));
  RLX_TRY(clear_bytes({*buffer, 0}, bytes));
  return Tensor::whole(dtype, dims, std::make_shared<Storage>(std::move(buffer), 0, bytes));
}

Result<Tensor> Env::make_unfilled(DType dtype, std::span<const int64_t> dims, MemoryKind kind) const {
  size_t bytes = RLX_TRY(Tensor::checked_bytes(dtype, dims));
  auto memory = kept_->allocate_storage(bytes, kind);
  if (!memory.ok() && memory.status().code() == Code::kNoMemory)
    return Status(Code::kNoMemory, format("cannot allocate {} bytes for {}", bytes, type_text(dtype, dims)))
        .with("got", std::to_string(bytes));
  return Tensor::whole(dtype, dims, RLX_TRY(std::move(memory)));
}

Result<Tensor> Env::aligned(const Tensor& tensor) const {
  if (tensor.is_aligned()) return tensor;
  Tensor copy = RLX_TRY(make_unfilled(tensor.dtype(), tensor.dims()));
  std::memcpy(copy.data(), tensor.data(), tensor.bytes());
  return copy;
}

void Env::watch(std::weak_ptr<Program> program) {
  std::lock_guard lock(programs_mutex_);
  if (programs_.size() == programs_.capacity()) std::erase_if(programs_, [](const auto& it) { return it.expired(); });
  programs_.push_back(std::move(program));
}

void Env::trim() {
  std::vector<std::shared_ptr<Program>> programs;  // released, perhaps as the last, without the lock
  {
    std::lock_guard lock(programs_mutex_);
    for (const auto& it : programs_)
      if (auto program = it.lock()) programs.push_back(std::move(program));
  }
  for (const auto& program : programs) program->trim();
  programs.clear();
  kept_->trim();
}

}  // namespace rlx
