// SPDX-License-Identifier: Apache-2.0
// The pass over the attributes of a node, and a function for each group of roles.
#include "ir/normal.h"

#include <algorithm>
#include <numeric>

#include "base/check_size.h"
#include "base/contains.h"

namespace rlx {

InlinedVector<const ValueType*, 4> input_types(const Graph& graph, const OpInfo& info, std::span<const Value> in) {
  const auto& ports = info.signature.in;
  bool variadic = !ports.empty() && ports.back().variadic;
  InlinedVector<const ValueType*, 4> types;
  types.resize(variadic ? in.size() : std::max(in.size(), ports.size()), nullptr);
  for (size_t i = 0; i < in.size(); i++)
    if (present(in[i])) types[i] = &graph.type(in[i]);
  return types;
}

namespace {

using Axes = std::vector<int64_t>;

Axes first_axes(size_t count) {
  Axes axes(count);
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return axes;
}

Result<Axes> checked_axes(const Axes& given, size_t rank) {
  if (given.size() > kMaxRank)
    return Status(Code::kInvalidArgument, format("{} axes, the limit is {}", given.size(), size_t{kMaxRank}));
  Axes axes;
  for (int64_t axis : given) {
    int64_t normal = RLX_TRY(checked_axis(axis, rank));
    if (contains(axes, normal))
      return Status(Code::kInvalidArgument, format("axis {} is named twice", normal)).with("got", std::to_string(axis));
    axes.push_back(normal);
  }
  return axes;
}

Result<Axes> sorted_axes(const Axes& given, size_t rank) {
  Axes axes = RLX_TRY(checked_axes(given, rank));
  std::sort(axes.begin(), axes.end());
  return axes;
}

size_t length_of(const AttrValue& value) {
  auto* numbers = std::get_if<Axes>(&value);
  return numbers ? numbers->size() : std::get<std::vector<Dim>>(value).size();
}

AttrValue filled(const AttrDef& def, size_t length) {
  if (def.kind == AttrKind::kI64s) return Axes(length, def.fill);
  return std::vector<Dim>(length, Dim(def.fill));
}

template <class T>
std::vector<T> in_order(const std::vector<T>& list, const std::vector<size_t>& order) {
  std::vector<T> result;
  for (size_t from : order) result.push_back(list[from]);
  return result;
}

// ---- the attributes of one node ----

class Normaliser {
 public:
  Normaliser(const OpInfo& info, InputTypes in, Attrs& attrs) : info_(info), in_(in), attrs_(attrs) {}

  Status run() {
    for (size_t i = 0; i < info_.attrs.size(); i++)
      if (info_.attrs[i].role != AttrRole::kPlain) RLX_TRY(visit(i, info_.attrs[i]));
    return {};
  }

 private:
  Status visit(size_t i, const AttrDef& def) {
    if (def.role == AttrRole::kSameAs) return fill(i, attrs_.get(def.with));
    if (def.role == AttrRole::kShapeAxis) return shape_axis(i, attrs_.dims(def.with).size());
    if (def.of >= in_.size() || !in_[def.of]) return {};
    const ValueType& type = *in_[def.of];
    switch (def.role) {
      case AttrRole::kSizes: return resolve_sizes(i, type.dims);
      case AttrRole::kDtypeOf: return fill(i, type.dtype);
      case AttrRole::kCountOf: return fill(i, element_count(type.dims));
      case AttrRole::kPerAxis: return per_axis(i, def, type.rank(), "axis");
      case AttrRole::kPerSpatialAxis:
        return type.rank() >= 2 ? per_axis(i, def, type.rank() - 2, "spatial axis") : Status();
      case AttrRole::kAxis:
      case AttrRole::kChannelAxis:
      case AttrRole::kInsertedAxis: return absent(i) ? Status() : one_axis(i, def, type.rank());
      case AttrRole::kCut: return absent(i) ? Status() : cut(i, static_cast<int64_t>(type.rank()));
      case AttrRole::kPerm: return perm(i, type.rank());
      case AttrRole::kListedAxes: return listed_axes(i, def, type.rank());
      case AttrRole::kAxes:
      case AttrRole::kUnitAxes:
      case AttrRole::kInsertedAxes:
      case AttrRole::kPairedAxes: return set_of_axes(i, def, type);
      case AttrRole::kBesides: break;  // handled with its axes
      case AttrRole::kPlain:
      case AttrRole::kSameAs:
      case AttrRole::kShapeAxis: break;  // not reached
    }
    return {};
  }

  Status shape_axis(size_t i, size_t rank) {
    return rank == 0 ? Status() : set(i, RLX_TRY(checked_axis(axis(i), rank)));
  }

  bool absent(size_t i) const { return std::holds_alternative<std::monostate>(attrs_.values()[i]); }
  int64_t axis(size_t i) const { return std::get<int64_t>(attrs_.values()[i]); }
  const Axes& axes(size_t i) const { return std::get<Axes>(attrs_.values()[i]); }

  Status set(size_t i, AttrValue value) {
    attrs_.set(i, std::move(value));
    return {};
  }
  Status fill(size_t i, AttrValue value) { return absent(i) ? set(i, std::move(value)) : Status(); }

  // ---- by role ----

  Status one_axis(size_t i, const AttrDef& def, size_t rank) {
    bool is_channel = def.role == AttrRole::kChannelAxis && def.of + size_t{1} < in_.size();
    if (is_channel && in_[def.of + 1] && in_[def.of + 1]->rank() == 0) return set(i, def.fallback);
    return set(i, RLX_TRY(checked_axis(axis(i), rank + (def.role == AttrRole::kInsertedAxis))));
  }

  Status cut(size_t i, int64_t rank) {
    if (axis(i) == rank) return {};  // after the last axis
    if (auto normal = checked_axis(axis(i), static_cast<size_t>(rank)); normal.ok()) return set(i, *normal);
    return Status(Code::kRange, format("axis {} is outside 0..{}", axis(i), rank))
        .with("expected", format("{}..{}", -rank, rank))
        .with("got", std::to_string(axis(i)));
  }

  Status set_of_axes(size_t i, const AttrDef& def, const ValueType& type) {
    if (!absent(i)) {
      if (def.role == AttrRole::kPairedAxes) return set(i, RLX_TRY(checked_axes(axes(i), type.rank())));
      size_t added = def.role == AttrRole::kInsertedAxes ? axes(i).size() : 0;
      return set(i, RLX_TRY(sorted_axes(axes(i), type.rank() + added)));
    }
    Axes all = first_axes(type.rank());
    if (def.role == AttrRole::kUnitAxes)
      std::erase_if(all, [&](int64_t axis) { return !type.dims[static_cast<size_t>(axis)].is(1); });
    return set(i, all);
  }

  Status perm(size_t i, size_t rank) {
    if (axes(i).size() != rank)
      return Status(Code::kOption, format("'{}' names {} of a value of rank {}", std::string(info_.attrs[i].name),
                                          plural(axes(i).size(), "axis"), rank))
          .with("expected", std::to_string(rank))
          .with("got", std::to_string(axes(i).size()));
    return set(i, RLX_TRY(checked_axes(axes(i), rank)));
  }

  Status per_axis(size_t i, const AttrDef& def, size_t count, const char* what) {
    if (absent(i)) return set(i, filled(def, count));
    return expect_length(def, attrs_.values()[i], count, what);
  }

  static Status expect_length(const AttrDef& def, const AttrValue& value, size_t count, const char* what) {
    size_t got = length_of(value);
    if (got == count) return {};
    return Status(Code::kOption, format("'{}' needs one entry per {}: {}, not {}", def.name, what, count, got))
        .with("expected", std::to_string(count))
        .with("got", std::to_string(got));
  }

  // Axes and the lists beside them, sorted together. The first list that is given says how many axes there are.
  Status listed_axes(size_t i, const AttrDef& def, size_t rank) {
    std::vector<size_t> lists;
    for (size_t k = 0; k < info_.attrs.size(); k++)
      if (info_.attrs[k].role == AttrRole::kBesides && info_.attrs[k].with == def.name) lists.push_back(k);
    size_t count = length_of(attrs_.values()[absent(i) ? lists[0] : i]);
    if (absent(i)) attrs_.set(i, first_axes(count));
    for (size_t k : lists) RLX_TRY(per_axis(k, info_.attrs[k], count, "axis that is named"));
    Axes normal = RLX_TRY(checked_axes(axes(i), rank));
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return normal[a] < normal[b]; });
    for (size_t k : lists) {
      const AttrValue& value = attrs_.values()[k];
      if (auto* numbers = std::get_if<Axes>(&value))
        attrs_.set(k, in_order(*numbers, order));
      else
        attrs_.set(k, in_order(std::get<std::vector<Dim>>(value), order));
    }
    return set(i, in_order(normal, order));
  }

  // Replaces the one -1 by the quotient of the number of elements and the other sizes. Where the division cannot be
  // proved exact, the op itself requires the same number of elements. A 0 cancels a 0 of the input, as a symbol would
  // cancel itself.
  Status resolve_sizes(size_t i, std::span<const Dim> from) {
    std::vector<Dim> sizes = std::get<std::vector<Dim>>(attrs_.values()[i]), rest(from.begin(), from.end());
    Dim known = 1;
    Dim* unknown = nullptr;
    bool has_zero = false, is_ambiguous = false;  // ambiguous: there is no 0 in the input that a 0 cancels
    for (Dim& size : sizes) {
      if (size.is(-1)) {
        if (unknown) return Status(Code::kShape, "more than one size is -1");
        unknown = &size;
        continue;
      }
      if (size.is_literal() && size.literal() < 0)
        return Status(Code::kShape, "the size " + size.text() + " is negative")
            .with("expected", "0 or more")
            .with("got", size.text());
      RLX_TRY(check_literal(size));  // in a product it would saturate
      auto zero = size.is(0) ? std::find(rest.begin(), rest.end(), size) : rest.end();
      has_zero |= size.is(0);
      is_ambiguous |= size.is(0) && zero == rest.end();
      if (zero == rest.end())
        known *= size;
      else
        *zero = 1;
    }
    if (!unknown) return {};
    Dim total = element_count(rest);
    auto exact = exact_div(total, known);
    if (is_ambiguous || (has_zero && !exact)) return Status(Code::kShape, "-1 beside a size of 0 is ambiguous");
    if (!exact && total.is_literal() && known.is_literal())
      return Status(Code::kShape,
                    format("the number of elements, {}, is not a multiple of the other sizes, {}", total, known))
          .with("got", known.text());
    *unknown = exact ? *exact : floor_div(total, known);
    return set(i, std::move(sizes));
  }

  const OpInfo& info_;
  InputTypes in_;
  Attrs& attrs_;
};

}  // namespace

Result<Attrs> normal_attrs(const OpInfo& info, InputTypes in, Attrs attrs) {
  RLX_TRY(Normaliser(info, in, attrs).run());
  return attrs;
}

NamedAttrs non_default_attrs(const OpInfo& info, InputTypes in, const Attrs& attrs) {
  std::vector<AttrValue> defaults(attrs.values().begin(), attrs.values().end());
  for (size_t i = 0; i < defaults.size(); i++)
    if (!info.attrs[i].required) defaults[i] = info.attrs[i].fallback;
  auto plain = normal_attrs(info, in, Attrs(&info, std::move(defaults)));
  if (!plain.ok()) return attrs.named();  // a default that does not fit these inputs
  NamedAttrs differing;
  for (size_t i = 0; i < info.attrs.size(); i++) {
    const AttrValue& value = attrs.values()[i];
    bool absent = std::holds_alternative<std::monostate>(value);
    if (!absent && (info.attrs[i].required || !equal(value, plain->values()[i])))
      differing.emplace_back(info.attrs[i].name, value);
  }
  return differing;
}

}  // namespace rlx
