// SPDX-License-Identifier: Apache-2.0
// rlx_env_t: what one user of the library has to itself. Every other handle that can outlive a call holds it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/allocator.h"
#include "base/thread_pool.h"
#include "capi/dim_tokens.h"
#include "capi/environment.h"
#include "capi/handle.h"
#include "ir/attr.h"
#include "rlx.h"

namespace rlx::capi {

// A page that the kernel wipes in a forked child: handles made before the fork are recognised there.
class ForkMark {
 public:
  ForkMark();
  ~ForkMark();
  ForkMark(const ForkMark&) = delete;
  ForkMark& operator=(const ForkMark&) = delete;
  const uint32_t* alive() const { return page_; }  // points to 0 in a child; null where the system cannot tell

 private:
  uint32_t* page_;
};

std::span<const AttrDef> env_options();

}  // namespace rlx::capi

struct rlx_env : rlx::capi::Counted {
  rlx_env(std::shared_ptr<rlx::Host> services, rlx::PoolOptions options, rlx::capi::Environment read)
      : host(std::move(services)), pool(host, options), environment(std::move(read)) {}
  const uint32_t* alive() const { return mark.alive(); }

  const std::shared_ptr<rlx::Host> host;
  rlx::ThreadPool pool;
  const rlx::capi::Environment environment;
  rlx::capi::DimTokens dims;
  const rlx::capi::ForkMark mark;
};
