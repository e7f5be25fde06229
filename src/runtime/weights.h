// SPDX-License-Identifier: Apache-2.0
// Weights: named tensors in the order of their first put, and the metadata of the file that they came from. Also the
// forms that programs have prepared from them: every program, plan and exec of these weights shares one. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/tensor.h"
#include "compile/compile.h"
#include "ir/graph.h"
#include "runtime/env.h"

namespace rlx {

// The key of a prepared form: the expressions over params that it holds, what chose the kernels that compute them,
// their forms, and the device. Expressions that are computed together are one form of several tensors.
struct FormKey {
  std::vector<std::string> forms;  // by tensor, of the kernel that reads it; empty: dense
  std::string device;
  std::shared_ptr<const Graph> body;  // compared by structure; its params stand for `sources`; null: the source
  // The options that chose the kernels of `body`, which decide its bits; none for a source alone, whose bytes are the
  // same in every program.
  KernelOptions kernels = {};
  std::vector<std::pair<std::string, Dispatch>> dispatch_of = {};
  std::vector<std::weak_ptr<Storage>> sources;  // compared by identity
  size_t hash() const;
  bool operator==(const FormKey& other) const;
  bool reads(const std::shared_ptr<Storage>& bytes) const;
};

Status dropped_bytes(std::string_view name);  // RLX_E_STATE: weights.drop has released them

class Weights {
 public:
  Status put(std::string_view name, Tensor tensor);  // replaces; forms of the replaced tensor are forgotten
  // The tensor of a name, aligned for its elements: a copy in memory of the env if it is not. RLX_E_NOT_FOUND.
  Result<Tensor> get(std::string_view name, const Env& env) const;
  // The tensor of a name as its file holds it, aligned or not. Tests false if there is none.
  Tensor find(std::string_view name) const;
  // The same, but RLX_E_STATE if weights.drop has released its bytes.
  Result<Tensor> find_undropped(std::string_view name) const;
  // An aligned form of what `find` gave: one copy, which all callers share.
  Result<Tensor> aligned(std::string_view name, const Tensor& tensor, const Env& env) const;
  size_t count() const;
  const char* name(size_t index) const;  // null past the end; lives as long as the object

  void set_metadata(std::string_view key, std::string_view value);
  Result<std::string> report(std::string_view what) const;  // JSON: "metadata" "memory"

  // The form of this key, made by `make` where there is none yet. `make` runs without the lock.
  using Tensors = std::vector<Tensor>;
  Result<Tensors> form(const FormKey& key, const std::function<Result<Tensors>()>& make);
  void forget(const FormKey& key) noexcept;  // for who made it and does not need it after all
  // Releases an original that only forms are read of (weights.drop), if the name still has these bytes. A later get of
  // the name is RLX_E_STATE.
  void drop(std::string_view name, const Tensor& original) noexcept;

 private:
  struct Entry {
    std::string name;
    Tensor tensor;
    bool dropped = false;
    mutable Tensor copy = {};  // an aligned one, where somebody has asked for it and `tensor` is not
  };
  struct Form {
    FormKey key;
    Tensors tensors;
  };
  using Forms = std::list<Form>;  // they leave it without a need for memory
  // These need the lock.
  const Entry* find_entry(std::string_view name) const;
  Status unknown(std::string_view name) const;
  void forget_forms(const std::shared_ptr<Storage>& source, Forms& gone) noexcept;

  mutable std::mutex mutex_;
  std::deque<Entry> entries_;  // a deque: names stay where they are
  std::unordered_map<std::string_view, size_t> by_name_;
  mutable size_t next_ = 0;  // after the one that was found last
  std::vector<std::pair<std::string, std::string>> metadata_;
  ByName<size_t> metadata_index_;  // by key
  Forms forms_;
  std::unordered_multimap<size_t, Forms::iterator> by_hash_;   // of the key
  std::unordered_multimap<const Storage*, size_t> hashes_of_;  // of the forms that read a source
  size_t makers_ = 0;                                          // calls of `form` that are making one now
  std::vector<std::shared_ptr<Storage>> replaced_;             // by `put`, while there are such calls
};

}  // namespace rlx
