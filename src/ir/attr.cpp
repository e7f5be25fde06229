// SPDX-License-Identifier: Apache-2.0
// Attribute values: equality and hashes.
#include "ir/attr.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>

#include "base/hash.h"
#include "base/inlined_vector.h"
#include "ir/graph.h"
#include "ir/structure.h"

namespace rlx {

struct Attrs::Shared {
  explicit Shared(std::span<AttrValue> given) {
    values.reserve(given.size());
    for (AttrValue& value : given) values.push_back(std::move(value));
  }
  Shared(const Shared& other) : values(other.values) {}

  InlinedVector<AttrValue, 3> values;
  std::atomic<size_t> hash = 0;  // 0: not computed yet; any thread may
};

Attrs::Attrs(const OpInfo* info, std::vector<AttrValue> values) : info_(info) {
  if (!values.empty()) shared_ = std::make_shared<Shared>(values);
}

std::span<const AttrValue> Attrs::values() const {
  return shared_ ? std::span<const AttrValue>(shared_->values.data(), shared_->values.size())
                 : std::span<const AttrValue>();
}

void Attrs::set(size_t index, AttrValue value) {
  if (shared_.use_count() > 1) shared_ = std::make_shared<Shared>(*shared_);
  shared_->values[index] = std::move(value);
  shared_->hash = 0;
}

const AttrValue& Attrs::get(std::string_view name) const {
  std::span<const AttrValue> values = this->values();
  for (size_t i = 0; i < values.size(); i++)
    if (info_->attrs[i].name == name) return values[i];
  assert(!"no such attribute in the row");
  static const AttrValue kNothing;
  return kNothing;
}

Attrs Attrs::with(std::string_view name, AttrValue value) const {
  Attrs changed = *this;
  for (size_t i = 0; i < values().size(); i++) {
    if (info_->attrs[i].name != name) continue;
    changed.set(i, std::move(value));
    break;
  }
  return changed;
}

NamedAttrs Attrs::named() const {
  NamedAttrs list;
  for (size_t i = 0; i < values().size(); i++) {
    const AttrValue& value = values()[i];
    bool absent = std::holds_alternative<std::monostate>(value);
    const AttrDef& def = info_->attrs[i];
    if (!absent && (def.required || !equal(value, def.fallback))) list.emplace_back(def.name, value);
  }
  return list;
}

bool Attrs::operator==(const Attrs& other) const {
  if (info_ != other.info_ || values().size() != other.values().size()) return false;
  auto same = [](const AttrValue& a, const AttrValue& b) { return equal(a, b); };
  return shared_ == other.shared_ || std::equal(values().begin(), values().end(), other.values().begin(), same);
}

// ---- equality and hash of one value ----

static bool equal(const FreeAttrs& a, const FreeAttrs& b) {
  auto same = [](const auto& x, const auto& y) { return x.first == y.first && equal(x.second, y.second); };
  return a.op == b.op && std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(), same);
}

// A NaN equals itself, and 0 is not -0: an op of the host may tell them apart.
static bool same_bits(double a, double b) {
  return std::bit_cast<int64_t>(a) == std::bit_cast<int64_t>(b);
}

bool equal(const AttrValue& a, const AttrValue& b) {
  if (a.index() != b.index()) return false;
  if (auto* x = std::get_if<TensorAttr>(&a)) return (**x).same_bytes(*std::get<TensorAttr>(b));
  if (auto* x = std::get_if<double>(&a)) return same_bits(*x, std::get<double>(b));
  if (auto* x = std::get_if<std::vector<double>>(&a))
    return std::ranges::equal(*x, std::get<std::vector<double>>(b), same_bits);
  if (auto* x = std::get_if<std::shared_ptr<const Graph>>(&a)) {
    const auto& y = std::get<std::shared_ptr<const Graph>>(b);
    return *x == y || same_structure(**x, *y);
  }
  if (auto* x = std::get_if<std::shared_ptr<const FreeAttrs>>(&a))
    return equal(**x, *std::get<std::shared_ptr<const FreeAttrs>>(b));
  return std::visit(
      [&]<class T>(const T& x) {
        if constexpr (std::is_same_v<T, TensorAttr>)
          return false;
        else
          return x == std::get<T>(b);
      },
      a);
}

static size_t hash_of(const FreeAttrs& attrs);

static size_t hash_of(const AttrValue& value) {
  return std::visit(
      []<class T>(const T& x) -> size_t {
        if constexpr (std::is_same_v<T, std::monostate>)
          return 0;
        else if constexpr (std::is_same_v<T, Dim>)
          return x.hash();
        else if constexpr (std::is_same_v<T, DType>)
          return static_cast<size_t>(x);
        else if constexpr (std::is_same_v<T, std::shared_ptr<const Graph>>)
          return structure_hash(*x);
        else if constexpr (std::is_same_v<T, std::shared_ptr<const FreeAttrs>>)
          return hash_of(*x);
        else if constexpr (std::is_same_v<T, TensorAttr>) {
          // All bytes: many constants may agree in all but a few of them, and == compares those of one hash one by one.
          const Tensor& tensor = *x;
          return hash_mix(tensor.bytes(), hash64(std::span<const std::byte>(tensor.data(), tensor.bytes())));
        } else if constexpr (requires { x.begin(); } && !std::is_same_v<T, std::string>) {
          size_t seed = x.size();
          for (const auto& item : x) seed = hash_mix(seed, hash_of(AttrValue(item)));
          return seed;
        } else {
          return std::hash<T>()(x);
        }
      },
      value);
}

static size_t hash_of(const FreeAttrs& attrs) {
  size_t seed = std::hash<const CustomOp*>()(attrs.op.get());
  for (const auto& [key, value] : attrs.values) seed = hash_mix(hash_mix(seed, hash64(key)), hash_of(value));
  return seed;
}

size_t Attrs::hash() const {
  if (!shared_) return 0;
  if (size_t known = shared_->hash.load(std::memory_order_relaxed)) return known;
  size_t seed = values().size();
  for (const AttrValue& value : values()) seed = hash_mix(seed, hash_of(value));
  shared_->hash.store(seed, std::memory_order_relaxed);
  return seed;
}

}  // namespace rlx
