// SPDX-License-Identifier: Apache-2.0
#include "backends/far/far.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace rlx::far {

void Faults::plan(Act act, int64_t nth) {
  seen_[static_cast<size_t>(act)] = 0;
  failing_[static_cast<size_t>(act)] = nth;
}

void Faults::clear() {
  for (auto& it : failing_) it = -1;
  is_lost_ = false;
}

Status Faults::next(Act act) {
  auto index = static_cast<size_t>(act);
  bool fails = seen_[index]++ == failing_[index];
  if (fails && act == Act::kLoss) is_lost_ = true;
  if (is_lost_) return Status(Code::kUnavailable, "the device far was lost");
  if (!fails) return {};
  return Status(act == Act::kAllocate ? Code::kNoMemory : Code::kUnknown, "planted: " + std::string(kActs[index]));
}

namespace {

constexpr size_t kAlignment = 256;

// Bytes that only the device may look at.
class FarBuffer : public Buffer {
 public:
  FarBuffer(Device& device, HostMemory memory, size_t bytes)
      : device_(device), memory_(std::move(memory)), bytes_(bytes) {}
  size_t size() const override { return bytes_; }
  Device* device() const override { return &device_; }
  std::byte* data() const { return memory_.data(); }

 private:
  Device& device_;
  HostMemory memory_;
  size_t bytes_;
};

// The address of a place for the device's own thread.
std::byte* address(const Place& place) {
  if (place.host || !place.buffer) return place.host;
  return static_cast<const FarBuffer&>(*place.buffer).data() + place.offset;
}

// Does one piece of work after the other.
class Worker {
 public:
  Worker() : thread_([this] { serve(); }) {}
  ~Worker() {
    {
      std::lock_guard lock(mutex_);
      leaving_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  Fence add(std::span<const Fence> wait, std::function<Status()> work) {
    Fence done;
    auto after = std::make_shared<std::vector<Fence>>(wait.begin(), wait.end());
    auto job = [done, after, work = std::move(work)] {
      Status status = Fence::wait_all(*after);
      for (const Fence& fence : *after)
        if (status.ok() && !fence.result().ok()) status = Status(Code::kAborted, "what it waited for has failed");
      done.signal(status.ok() ? work() : status);
    };
    std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    changed_.notify_all();
    return done;
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return leaving_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      auto job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      job = nullptr;
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool leaving_ = false;
  std::thread thread_;
};

class FarState : public ExecState {
 public:
  std::unique_ptr<ExecState> cpu;
  std::vector<Place> bases;  // with addresses
};

class FarExecutable : public Executable {
 public:
  FarExecutable(std::unique_ptr<Executable> cpu, Worker& worker, Faults& faults)
      : cpu_(std::move(cpu)), worker_(worker), faults_(faults) {}

  Result<std::unique_ptr<ExecState>> make_state() const override {
    auto state = std::make_unique<FarState>();
    state->cpu = RLX_TRY(cpu_->make_state());
    return std::unique_ptr<ExecState>(std::move(state));
  }

  Result<Fence> submit(const RunArgs& args, ExecState& own) const override {
    RLX_TRY(faults_.next(Act::kSubmit));
    return worker_.add({}, [this, &args, &state = static_cast<FarState&>(own)] { return work(args, state); });
  }

 private:
  Status work(const RunArgs& args, FarState& state) const {
    RLX_TRY(faults_.next(Act::kLoss));
    look(args, state);
    auto tell = [&](uint32_t symbol, int64_t size) -> Status {
      RLX_TRY((*args.set_size)(symbol, size));
      look(args, state);  // rooms may have moved
      return {};
    };
    SetSize set_size(tell);
    RunArgs near = args;
    near.bases.values = state.bases;
    near.set_size = &set_size;
    return cpu_->run(near, *state.cpu);
  }

  static void look(const RunArgs& args, FarState& state) {
    state.bases.assign(args.bases.values.begin(), args.bases.values.end());
    for (Place& place : state.bases) place.host = address(place);
  }

  std::unique_ptr<Executable> cpu_;
  Worker& worker_;
  Faults& faults_;
};

class FarDevice : public Device {
 public:
  FarDevice(std::string name, const DeviceContext& context, std::unique_ptr<Device> cpu, std::shared_ptr<Faults> faults,
            std::function<bool(Op)> lacks)
      : Device(context), cpu_(std::move(cpu)), faults_(std::move(faults)), lacks_(std::move(lacks)) {
    info_.kind = name.substr(0, name.find(':'));
    info_.name = std::move(name);
    info_.description = "the CPU, from afar";
    info_.alignment = kAlignment;
  }
  const DeviceInfo& info() const override { return info_; }
  Found find(const KernelQuery& query) const override {
    if (lacks_ && lacks_(query.node.op)) return {nullptr, info_.name + " has no kernel for it"};
    return cpu_->find(query);
  }

  Result<std::unique_ptr<Executable>> compile(std::shared_ptr<const Plan> plan, size_t segment) override {
    RLX_TRY(faults_->next(Act::kCompile));
    auto cpu = RLX_TRY(cpu_->compile(std::move(plan), segment));
    return std::unique_ptr<Executable>(new FarExecutable(std::move(cpu), worker_, *faults_));
  }

  Result<std::shared_ptr<Buffer>> allocate(size_t bytes, MemoryKind kind) override {
    RLX_TRY(faults_->next(Act::kAllocate));
    auto memory = RLX_TRY(HostMemory::allocate(context_.host, bytes, kind, kAlignment));
    return std::shared_ptr<Buffer>(std::make_shared<FarBuffer>(*this, std::move(memory), bytes));
  }
  bool can_use(const Buffer& buffer) const override { return buffer.device() == this; }

  Result<Fence> transfer(std::span<const Copy> copies, std::span<const Fence> wait) override {
    RLX_TRY(faults_->next(Act::kTransfer));
    return worker_.add(wait, [list = std::vector(copies.begin(), copies.end())]() -> Status {
      for (const Copy& copy : list)
        if (copy.bytes) std::memmove(address(copy.to), address(copy.from), copy.bytes);
      return {};
    });
  }

 private:
  DeviceInfo info_;
  std::unique_ptr<Device> cpu_;
  std::shared_ptr<Faults> faults_;
  std::function<bool(Op)> lacks_;
  Worker worker_;  // ends first
};

}  // namespace

BackendEntry backend(std::shared_ptr<Faults> faults, std::function<bool(Op)> lacks) {
  if (!faults) faults = std::make_shared<Faults>();
  return {"far", [faults, lacks = std::move(lacks)](const DeviceContext& context) -> Result<Devices> {
            RLX_TRY(faults->next(Act::kOpen));
            Devices near = RLX_TRY(open_cpu(context)), devices;
            devices.push_back(std::make_unique<FarDevice>("far", context, std::move(near[0]), faults, lacks));
            return devices;
          }};
}

BackendEntry poor_backend() {
  return {"poor", [](const DeviceContext& context) -> Result<Devices> {
            Devices devices;
            for (uint32_t i = 0; i < kPoorDevices; i++) {
              auto lacks = [i](Op op) {
                uint32_t drawn = (static_cast<uint32_t>(op) * kPoorDevices + i + 1) * 2654435761u;
                return ((drawn ^ drawn >> 15) * 2246822519u >> 31) != 0;
              };
              Devices near = RLX_TRY(open_cpu(context));
              devices.push_back(std::make_unique<FarDevice>("poor:" + std::to_string(i), context, std::move(near[0]),
                                                            std::make_shared<Faults>(), lacks));
            }
            return devices;
          }};
}

}  // namespace rlx::far
