// SPDX-License-Identifier: Apache-2.0
// rlx_env_t: what belongs to one user of the library. Every handle that can outlive a call holds its environment.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "capi/dim_tokens.h"
#include "capi/handle.h"
#include "capi/variables.h"
#include "ir/attr.h"
#include "ops/custom.h"
#include "rlx.h"
#include "runtime/env.h"

namespace rlx::capi {

// A page that the kernel zeroes in a forked child, so that the child recognises handles made before the fork.
class ForkMark {
 public:
  ForkMark();
  ~ForkMark();
  ForkMark(const ForkMark&) = delete;
  ForkMark& operator=(const ForkMark&) = delete;
  const uint32_t* alive() const { return page_; }  // points to 0 in a child; null if the system lacks MADV_WIPEONFORK

 private:
  uint32_t* page_;
};

// What may outlive the handle of an environment, in a run that goes on: whoever has it can tell whether the handle is
// still there.
struct EnvLife : Counted {
  const ForkMark mark;
};

std::span<const AttrDef> env_options();

}  // namespace rlx::capi

// Borrowed from its environment, which alone makes and frees it.
struct rlx_device {
  const uint32_t* alive() const { return alive_word; }
  rlx::Device* device;
  const rlx_env* env;
  const uint32_t* alive_word;
};

struct rlx_env {
  rlx_env(std::shared_ptr<rlx::Env> made, rlx::capi::Variables read);
  void finish();  // the runs in flight, before the last release
  const uint32_t* alive() const { return life->mark.alive(); }
  const rlx_device* handle_of(const rlx::Device* device) const;

  const std::shared_ptr<rlx::Env> env;
  const rlx::capi::Variables variables;
  const std::shared_ptr<rlx::capi::EnvLife> life = std::make_shared<rlx::capi::EnvLife>();
  std::atomic<int64_t>& references = life->references;
  const std::shared_ptr<rlx::CustomOps> customs = std::make_shared<rlx::CustomOps>();
  rlx::capi::DimTokens dims;
  std::vector<rlx_device> devices;
};

namespace rlx::capi {

// RLX_E_INVALID_ARGUMENT if a handle is used with another environment than its own; RLX_E_FORKED if that is one of
// before a fork.
Status same_env(const rlx_env* expected, const rlx_env* got, const char* argument);

// Translates a spec to the runtime's form. In C the default device is NULL, and "" is an error; for the runtime it is
// "".
Result<std::string_view> device_spec(const rlx_env& env, const char* spec);

// The device, checked; NULL means the default device of the environment.
Result<Device*> device_of(const rlx_env& env, const rlx_device_t* device);

}  // namespace rlx::capi
