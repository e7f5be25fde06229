// SPDX-License-Identifier: Apache-2.0
// rlx_attrs_t: named values as the caller gave them. They get their kinds when an op or an option takes them
// (bind_attrs).
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "base/status.h"
#include "capi/dim_tokens.h"
#include "capi/env.h"
#include "ir/graph.h"
#include "ir/op.h"
#include "rlx.h"

struct rlx_attrs {
  explicit rlx_attrs(rlx::NamedAttrs given = {});
  rlx::AttrValue* find(std::string_view key);  // null: there is no such key
  const rlx::AttrValue* find(std::string_view key) const { return const_cast<rlx_attrs*>(this)->find(key); }
  // `owner`: the environment of a graph or a tensor. It is held, since an op of the host in the graph needs it.
  void set(const std::string& key, rlx::AttrValue value, rlx_env* owner);

  std::deque<rlx::NamedAttrs::value_type> values;  // a deque: rlx_attrs_get_str gives out their characters
  rlx::ByName<rlx::capi::Ref<rlx_env>> owners;
  rlx::Status failure;  // the first failure of a setter; the call that uses the attrs returns it

 private:
  static constexpr size_t kFew = 8;
  void note_places();
  rlx::ByName<size_t> places;  // in `values`, by key, if there are more than a few
};

namespace rlx::capi {

// The values for a call in `env`, or the failure that they hold. NULL attrs: none. NULL env: there is none yet.
Result<NamedAttrs> values_of(const rlx_attrs_t* attrs, const rlx_env* env);

// The values for an op: in attributes that are dims, tokens become the dims that they stand for. In all others an
// integer stays an integer, whatever its size.
Result<NamedAttrs> values_of(const rlx_attrs_t* attrs, const rlx_env& env, const OpInfo& op);

}  // namespace rlx::capi
