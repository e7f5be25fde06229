// SPDX-License-Identifier: Apache-2.0
// Tensors by name, and prepared forms by key. Forms are made without the lock, and tensors are released without it,
// because either may call the host.
#include "runtime/weights.h"

#include <algorithm>
#include <tuple>

#include "base/contains.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/undo.h"
#include "ir/structure.h"

namespace rlx {

static bool same_owner(const std::weak_ptr<Storage>& a, const std::weak_ptr<Storage>& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

size_t FormKey::hash() const {
  uint64_t hash = hash64(device);
  for (const std::string& form : forms) hash = hash_combine(hash, hash64(form));
  for (const auto& source : sources) hash = hash_combine(hash, reinterpret_cast<uintptr_t>(source.lock().get()));
  return body ? hash_combine(hash, structure_hash(*body)) : hash;
}

bool FormKey::operator==(const FormKey& other) const {
  auto choice = [](const FormKey& key) {
    return std::tie(key.kernels.math, key.kernels.bounds, key.kernels.dispatch, key.dispatch_of);
  };
  return forms == other.forms && device == other.device && choice(*this) == choice(other) &&
         std::equal(sources.begin(), sources.end(), other.sources.begin(), other.sources.end(), same_owner) &&
         (body == other.body || (body && other.body && same_structure(*body, *other.body)));
}

bool FormKey::reads(const std::shared_ptr<Storage>& bytes) const {
  return std::any_of(sources.begin(), sources.end(), [&](const auto& source) { return same_owner(source, bytes); });
}

void Weights::forget_forms(const std::shared_ptr<Storage>& source, Forms& gone) noexcept {
  auto [first, last] = hashes_of_.equal_range(source.get());
  for (auto it = first; it != last; ++it) {
    auto [place, end] = by_hash_.equal_range(it->second);
    while (place != end) {
      Forms::iterator form = place->second;
      if (!form->key.reads(source)) {
        ++place;
        continue;
      }
      place = by_hash_.erase(place);
      gone.splice(gone.end(), forms_, form);
    }
  }
  hashes_of_.erase(first, last);
}

Status dropped_bytes(std::string_view name) {
  return Status(Code::kState, format("the bytes of '{}' were released by weights.drop", name)).with("value", name);
}

Status Weights::put(std::string_view name, Tensor tensor) {
  if (name.empty()) return Status(Code::kInvalidArgument, "a weight needs a name, not ''").with("input", "name");
  if (!tensor)
    return Status(Code::kInvalidArgument, format("the weight '{}' needs a tensor", name)).with("value", name);
  Forms gone;  // and `tensor`, the old one then: released without the lock, as that may call the host
  Tensor copy;
  std::lock_guard lock(mutex_);
  auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    Entry& entry = entries_.emplace_back(Entry{std::string(name), Tensor()});
    Undo undo([&] { entries_.pop_back(); });
    by_name_.emplace(entry.name, entries_.size() - 1);
    undo.commit();
    entry.tensor = std::move(tensor);
    return {};
  }
  Entry& entry = entries_[found->second];
  if (entry.tensor && makers_ > 0) replaced_.push_back(entry.tensor.storage());
  if (entry.tensor) forget_forms(entry.tensor.storage(), gone);
  std::swap(entry.tensor, tensor);
  std::swap(entry.copy, copy);
  entry.dropped = false;
  return {};
}

// A program looks for one weight after the other, mostly in their order.
const Weights::Entry* Weights::find_entry(std::string_view name) const {
  bool is_next = next_ < entries_.size() && entries_[next_].name == name;
  if (!is_next) {
    auto found = by_name_.find(name);
    if (found == by_name_.end()) return nullptr;
    next_ = found->second;
  }
  return &entries_[next_++];
}

Status Weights::unknown(std::string_view name) const {
  std::vector<std::string_view> known;
  for (const Entry& entry : entries_) known.push_back(entry.name);
  std::string hint = did_you_mean(name, known);
  return Status(Code::kNotFound, format("there is no weight '{}'{}", name, hint.empty() ? only(known) : hint))
      .with("value", name)
      .with("expected", listed(known));
}

// The copy is made without the lock: that may call the host.
Result<Tensor> Weights::aligned(std::string_view name, const Tensor& tensor, const Env& env) const {
  if (tensor.is_aligned()) return tensor;
  const Entry* entry = nullptr;  // stays where it is
  auto is_of_entry = [&] { return entry && entry->tensor.storage() == tensor.storage(); };
  {
    std::lock_guard lock(mutex_);
    entry = find_entry(name);
    if (is_of_entry() && entry->copy) return entry->copy;
  }
  Tensor copy = RLX_TRY(env.aligned(tensor));
  std::lock_guard lock(mutex_);
  if (!is_of_entry()) return copy;
  if (!entry->copy) entry->copy = copy;
  return entry->copy;
}

Result<Tensor> Weights::get(std::string_view name, const Env& env) const {
  Tensor tensor;
  {
    std::lock_guard lock(mutex_);
    const Entry* entry = find_entry(name);
    if (!entry) return unknown(name);
    if (entry->dropped) return dropped_bytes(name);
    tensor = entry->tensor;
  }
  return aligned(name, tensor, env);
}

Tensor Weights::find(std::string_view name) const {
  std::lock_guard lock(mutex_);
  const Entry* entry = find_entry(name);
  return entry ? entry->tensor : Tensor();
}

Result<Tensor> Weights::find_undropped(std::string_view name) const {
  std::lock_guard lock(mutex_);
  const Entry* entry = find_entry(name);
  if (entry && entry->dropped) return dropped_bytes(name);
  return entry ? entry->tensor : Tensor();
}

size_t Weights::count() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

const char* Weights::name(size_t index) const {
  std::lock_guard lock(mutex_);
  return index < entries_.size() ? entries_[index].name.c_str() : nullptr;
}

void Weights::set_metadata(std::string_view key, std::string_view value) {
  std::lock_guard lock(mutex_);
  auto found = metadata_index_.find(key);
  if (found != metadata_index_.end()) {
    metadata_[found->second].second = value;
    return;
  }
  metadata_.emplace_back(key, value);
  Undo undo([&] { metadata_.pop_back(); });
  metadata_index_.emplace(key, metadata_.size() - 1);
  undo.commit();
}

Result<std::string> Weights::report(std::string_view what) const {
  std::lock_guard lock(mutex_);
  JsonWriter json;
  json.begin_object();
  if (what == "metadata") {
    for (const auto& [key, value] : metadata_) json.member(key, std::string_view(value));
  } else if (what == "memory") {
    uint64_t originals = 0, forms = 0;
    for (const Entry& entry : entries_) originals += entry.tensor.bytes() + entry.copy.bytes();
    for (const Form& form : forms_)
      for (const Tensor& tensor : form.tensors) forms += tensor.bytes();
    json.member("originals", originals).member("forms", forms).member("form_count", uint64_t{forms_.size()});
  } else {
    return Status(Code::kNotFound, "weights have no report '" + std::string(what) + "', only metadata, memory")
        .with("value", what);
  }
  json.end_object();
  return std::move(json).take();
}

Result<Weights::Tensors> Weights::form(const FormKey& key, const std::function<Result<Tensors>()>& make) {
  size_t hash = key.hash();
  auto find = [&]() -> const Tensors* {
    auto [first, last] = by_hash_.equal_range(hash);
    for (auto it = first; it != last; ++it)
      if (it->second->key == key) return &it->second->tensors;
    return nullptr;
  };
  std::vector<std::shared_ptr<Storage>> gone;  // like `made`, released without the lock
  Tensors made;
  {
    std::lock_guard lock(mutex_);
    if (const Tensors* known = find()) return *known;
    makers_++;
  }
  Result<Tensors> result = Status::no_memory();
  try {
    result = make();
  } catch (const std::bad_alloc&) {  // becomes a failure
  } catch (...) {                    // from a callback of the host
    std::lock_guard lock(mutex_);
    if (--makers_ == 0) gone.swap(replaced_);
    throw;
  }
  std::lock_guard lock(mutex_);
  // If its bytes were replaced meanwhile, the form is not kept: nobody would forget it.
  bool is_current = std::none_of(key.sources.begin(), key.sources.end(),
                                 [&](const auto& source) { return contains(replaced_, source.lock()); });
  if (--makers_ == 0) gone.swap(replaced_);
  made = RLX_TRY(std::move(result));
  if (const Tensors* known = find()) return *known;  // another thread was faster: all share its form
  if (!is_current) return made;
  // In this order: if memory ends between them, forget_forms can do without a form, but not without its hash.
  Forms form;
  form.push_back({key, made});
  for (const auto& source : key.sources) hashes_of_.emplace(source.lock().get(), hash);
  by_hash_.emplace(hash, form.begin());
  forms_.splice(forms_.end(), form);
  return made;
}

// If there is no memory to compare keys, the form stays until its source goes.
void Weights::forget(const FormKey& key) noexcept try {
  Forms gone;  // released without the lock
  std::lock_guard lock(mutex_);
  size_t hash = key.hash();
  auto [first, last] = by_hash_.equal_range(hash);
  auto found = std::find_if(first, last, [&](const auto& entry) { return entry.second->key == key; });
  if (found == last) return;
  gone.splice(gone.end(), forms_, found->second);
  by_hash_.erase(found);
  for (const auto& source : key.sources) {
    auto [begin, end] = hashes_of_.equal_range(source.lock().get());
    auto entry = std::find_if(begin, end, [&](const auto& it) { return it.second == hash; });
    if (entry != end) hashes_of_.erase(entry);
  }
} catch (const std::bad_alloc&) {}

void Weights::drop(std::string_view name, const Tensor& original) noexcept {
  Tensor gone, copy;  // released without the lock
  Forms forms;        // likewise: whoever needs one holds it, and without its source nobody can ask for it
  std::lock_guard lock(mutex_);
  auto found = by_name_.find(name);
  if (found == by_name_.end()) return;
  Entry& entry = entries_[found->second];
  if (entry.tensor.storage() != original.storage()) return;
  forget_forms(entry.tensor.storage(), forms);
  std::swap(gone, entry.tensor);
  std::swap(copy, entry.copy);
  entry.dropped = true;
}

}  // namespace rlx
