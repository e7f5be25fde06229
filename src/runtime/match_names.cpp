// SPDX-License-Identifier: Apache-2.0
#include "runtime/match_names.h"

#include "base/nearest.h"

namespace rlx {

static std::vector<std::string_view> names_of(const NamedThings& things) {
  std::vector<std::string_view> known;
  for (size_t i = 0; i < things.count; i++) known.push_back(things.name(i));
  return known;
}

static Status unknown(const NamedThings& things, std::string_view name) {
  std::vector<std::string_view> known = names_of(things);
  return Status(Code::kNotFound,
                format("there is no {} '{}'{}{}", things.kind, name, only(known), did_you_mean(name, known)))
      .with("value", name)
      .with("expected", listed(known));
}

static Status wrong_count(const NamedThings& things, size_t got) {
  return Status(Code::kInvalidArgument,
                format("{} given, there {} {}: {}", plural(got, things.kind), things.count == 1 ? "is" : "are",
                       things.count, listed(names_of(things))))
      .with("expected", std::to_string(things.count))
      .with("got", std::to_string(got));
}

static Status missing(const NamedThings& things, size_t index) {
  std::string_view name = things.name(index);
  return Status(Code::kInvalidArgument, format("the {} '{}' is missing", things.kind, name)).with("value", name);
}

static Result<Indices> first_ones(const NamedThings& things, size_t count, Required required) {
  if (count > things.count) return wrong_count(things, count);
  if (required == Required::kAll && count < things.count) return missing(things, count);
  Indices list;
  for (size_t i = 0; i < count; i++) list.push_back(i);
  return list;
}

Result<Indices> match_names(const NamedThings& things, std::span<const std::string_view> names, size_t count,
                            Required required) {
  if (names.empty()) return first_ones(things, count, required);
  Indices list;
  std::vector<bool> taken(things.count, false);
  for (std::string_view name : names.first(count)) {
    int64_t found = things.find(name);
    if (found < 0) return unknown(things, name);
    auto index = static_cast<size_t>(found);
    if (taken[index])
      return Status(Code::kInvalidArgument, format("the {} '{}' is given twice", things.kind, things.name(index)))
          .with("value", things.name(index));
    taken[index] = true;
    list.push_back(index);
  }
  for (size_t i = 0; i < things.count; i++)
    if (required == Required::kAll && !taken[i]) return missing(things, i);
  return list;
}

}  // namespace rlx
