// SPDX-License-Identifier: Apache-2.0
// rlx_env_*: an environment, from the struct of the host and the environment variables to its devices.
#include "capi/env.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>

#include "base/json.h"
#include "base/lasting.h"
#include "base/nearest.h"
#include "capi/attrs.h"
#include "capi/blob.h"
#include "capi/guard.h"
#include "capi/versioned.h"
#include "ir/op.h"
#include "ops/attr_defs.h"
#include "runtime/queue.h"

using namespace rlx;
using namespace rlx::capi;

namespace rlx::capi {

ForkMark::ForkMark() : page_(nullptr) {
  void* page = mmap(nullptr, sizeof *page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (madvise(page, sizeof *page_, MADV_WIPEONFORK) != 0) {  // Linux before 4.14
    munmap(page, sizeof *page_);
    return;
  }
  page_ = static_cast<uint32_t*>(page);
  *page_ = 1;
}

ForkMark::~ForkMark() {
  if (page_) munmap(page_, sizeof *page_);
}

static constexpr double kMaxThreads = 1024, kLongestSpin = 1e6;

enum EnvOption : size_t { kThreads, kPin, kSpin, kPrefix, kKeptMemory };

std::span<const AttrDef> env_options() {
  using namespace attr_defs;
  static const auto& kOptions = lasting([] {
    return std::to_array<AttrDef>({
        option(within(opt_i64("threads"), 0, kMaxThreads), "the most threads of a run; absent: one per physical core"),
        option(flag("threads.pin", false), "bind each thread to a core of its own"),
        option(within(opt_i64("threads.spin"), 0, kLongestSpin),
               "microseconds that an idle thread waits before it sleeps"),
        option(str("env.prefix", "RLX"), "the prefix of environment variables"),
        option(within(i64("memory.cache", int64_t{256} << 20), 0), "the most bytes of freed buffers that are kept"),
    });
  });
  return kOptions;
}

// The struct of version 0.1 ended here: no valid struct is shorter.
static constexpr size_t kFirstHostSize = offsetof(rlx_host_t, progress);
static_assert(RLX_CB_OK == kCallbackOk && RLX_CB_STOP == kCallbackStop);

static Result<HostServices> services_of(const rlx_host_t* host) {
  if (!host) return HostServices();
  rlx_host_t known = RLX_TRY(known_members(*host, kFirstHostSize, "rlx_host_t"));
  return HostServices{known.log_level,    known.user,         known.log,          known.alloc,   known.dealloc,
                      known.thread_count, known.thread_index, known.parallel_for, known.progress};
}

static Result<int> thread_count(const AttrValue& option, const Variables& variables) {
  if (auto* count = std::get_if<int64_t>(&option)) return static_cast<int>(*count);
  const std::optional<std::string>& text = variables["THREADS"];
  if (!text) return PoolOptions::kAllCores;
  int count = -1;
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), count);
  if (error == std::errc() && end == text->data() + text->size() && count >= 0 && count <= kMaxThreads) return count;
  return Status(Code::kOption,
                format("{}={}: must be a number from 0 to {}", variables.name("THREADS"), text->c_str(), kMaxThreads))
      .with("value", variables.name("THREADS"))
      .with("expected", format("0 to {}", kMaxThreads))
      .with("got", *text);
}

static Result<rlx_env*> new_env(const rlx_attrs_t* options, const rlx_host_t* host) {
  auto values = RLX_TRY(bind_options(env_options(), RLX_TRY(values_of(options, nullptr))));
  Variables variables(std::get<std::string>(values[kPrefix]));
  EnvOptions chosen;
  chosen.threads = RLX_TRY(thread_count(values[kThreads], variables));
  chosen.pin = std::get<int64_t>(values[kPin]) != 0;
  if (auto* spin = std::get_if<int64_t>(&values[kSpin])) chosen.spin = static_cast<int>(*spin);
  chosen.kept_memory = static_cast<size_t>(std::get<int64_t>(values[kKeptMemory]));
  if (const auto& device = variables["DEVICE"]) chosen.default_device = *device;
  auto made = RLX_TRY(Env::create(chosen, RLX_TRY(services_of(host))));
  if (auto found = made->find_device(""); !found.ok())
    return std::move(found).status().prefixed(variables.name("DEVICE") + ": ").with("got", chosen.default_device);
  return new rlx_env(std::move(made), std::move(variables));
}

static std::string environment_report(const rlx_env& env) {
  JsonWriter json;
  json.begin_object().key("environment").begin_array();
  for (const Variable& variable : env.variables.all()) {
    json.begin_object().member("name", variable.name).member("summary", variable.summary);
    variable.value ? json.member("value", *variable.value) : json.key("value").null();
    json.end_object();
  }
  json.end_array().end_object();
  return std::move(json).take();
}

static std::string devices_report(const rlx_env& env) {
  JsonWriter json;
  json.begin_object().key("devices").begin_array();
  for (const rlx_device& device : env.devices) {
    const DeviceInfo& info = device.device->info();
    json.begin_object().member("name", std::string_view(info.name)).member("kind", std::string_view(info.kind));
    json.member("description", std::string_view(info.description));
    for (const auto& [key, value] : info.capabilities) json.member(key, std::string_view(value));
    json.end_object();
  }
  json.end_array().end_object();
  return std::move(json).take();
}

static std::string threads_report(const rlx_env& env) {
  JsonWriter json;
  json.begin_object().member("threads", env.env->pool().workers());
  json.member("owner", env.env->host()->has_own_threads() ? "library" : "host").end_object();
  return std::move(json).take();
}

struct Stat {
  std::string_view key;
  int64_t (*read)(const rlx_env& env);
};

template <MemoryKind kind, std::atomic<int64_t> MemoryCounts::*counter>
static int64_t memory(const rlx_env& env) {
  return env.env->host()->counts(kind).*counter;
}

static constexpr Stat kStats[] = {
    {"memory.tensor.now", memory<MemoryKind::kTensor, &MemoryCounts::bytes>},
    {"memory.tensor.peak", memory<MemoryKind::kTensor, &MemoryCounts::peak>},
    {"memory.tensor.allocations", memory<MemoryKind::kTensor, &MemoryCounts::allocations>},
    {"memory.arena.now", memory<MemoryKind::kArena, &MemoryCounts::bytes>},
    {"memory.arena.peak", memory<MemoryKind::kArena, &MemoryCounts::peak>},
    {"memory.arena.allocations", memory<MemoryKind::kArena, &MemoryCounts::allocations>},
    {"memory.prepared.now", memory<MemoryKind::kPrepared, &MemoryCounts::bytes>},
    {"memory.prepared.peak", memory<MemoryKind::kPrepared, &MemoryCounts::peak>},
    {"memory.prepared.allocations", memory<MemoryKind::kPrepared, &MemoryCounts::allocations>},
    {"memory.scratch.now", memory<MemoryKind::kScratch, &MemoryCounts::bytes>},
    {"memory.scratch.peak", memory<MemoryKind::kScratch, &MemoryCounts::peak>},
    {"memory.scratch.allocations", memory<MemoryKind::kScratch, &MemoryCounts::allocations>},
    {"memory.kept", [](const rlx_env& env) { return env.env->kept_memory().bytes(); }},
    {"threads", [](const rlx_env& env) { return int64_t{env.env->pool().workers()}; }},
};

Status same_env(const rlx_env* expected, const rlx_env* got, const char* argument) {
  if (expected == got) return {};
  if (is_of_parent(*got)) return made_before_fork(argument);
  return Status(Code::kInvalidArgument, format("'{}' belongs to another environment", argument))
      .with("input", argument);
}

}  // namespace rlx::capi

rlx_env::rlx_env(std::shared_ptr<Env> made, Variables read) : env(std::move(made)), variables(std::move(read)) {
  for (const auto& device : env->devices()) devices.push_back({device.get(), this, alive()});
  auto chosen = env->find_device("");  // the default device, which RLX_DEVICE may name, comes first
  auto is_default = [&](const rlx_device& it) { return chosen.ok() && it.device == *chosen; };
  auto first = std::find_if(devices.begin(), devices.end(), is_default);
  if (first != devices.end()) std::rotate(devices.begin(), first, first + 1);
}

// A run in flight holds the environment. The thread of the run must not be the one to delete it, because nobody could
// then join that thread.
void rlx_env::finish() {
  env->queue().finish();
}

const rlx_device* rlx_env::handle_of(const Device* device) const {
  for (const rlx_device& handle : devices)
    if (handle.device == device) return &handle;
  return nullptr;
}

rlx_status_t* rlx_env_create(const rlx_attrs_t* options, const rlx_host_t* host, rlx_env_t** out) {
  return guard({cleared(out, "out")}, [&]() -> Status {
    *out = RLX_TRY(new_env(options, host));
    return {};
  });
}

rlx_env_t* rlx_env_retain(rlx_env_t* env) {
  return retain(env);
}

void rlx_env_release(rlx_env_t* env) {
  release(env);
}

void rlx_env_trim(rlx_env_t* env) {
  guard_value(0, {handle(env, "env")}, [&] {
    env->env->trim();
    return 0;
  });
}

struct EnvReport {
  std::string_view name;
  std::string (*write)(const rlx_env& env);
};
static constexpr EnvReport kReports[] = {
    {"devices", devices_report}, {"threads", threads_report}, {"environment", environment_report}};

rlx_status_t* rlx_env_report(const rlx_env_t* env, const char* what, rlx_blob_t** json) {
  return guard({cleared(json, "json"), handle(env, "env"), {what, "what"}}, [&]() -> Status {
    for (const EnvReport& report : kReports)
      if (report.name == what) {
        *json = new rlx_blob(report.write(*env));
        return {};
      }
    return Status(Code::kNotFound,
                  format("an environment has no report '{}', only devices, threads, environment", what))
        .with("value", what);
  });
}

rlx_status_t* rlx_env_stat(const rlx_env_t* env, const char* key, int64_t* out) {
  return guard({cleared(out, "out"), handle(env, "env"), {key, "key"}}, [&]() -> Status {
    for (const Stat& stat : kStats)
      if (stat.key == key) {
        *out = stat.read(*env);
        return {};
      }
    std::vector<std::string_view> known;
    for (const Stat& stat : kStats) known.push_back(stat.key);
    std::string hint = did_you_mean(key, known);
    return Status(Code::kNotFound, format("no counter '{}'{}", key, hint.empty() ? only(known) : hint))
        .with("value", key)
        .with("expected", listed(known));
  });
}
