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
                format("there is no {} '{}', only {}{}", things.kind, name, listed(known), did_you_mean(name, known)))
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

Result<std::vector<size_t>> match_names(const NamedThings& things, std::span<const std::string_view> names,
                                        size_t count, bool needs_all) {
  if (names.empty() && count > things.count) return wrong_count(things, count);
  std::vector<size_t> list;
  std::vector<bool> taken(things.count, false);
  for (size_t i = 0; i < count; i++) {
    int64_t found = names.empty() ? static_cast<int64_t>(i) : things.find(names[i]);
    if (found < 0) return unknown(things, names[i]);
    auto index = static_cast<size_t>(found);
    if (taken[index])
      return Status(Code::kInvalidArgument, format("the {} '{}' is given twice", things.kind, things.name(index)))
          .with("value", things.name(index));
    taken[index] = true;
    list.push_back(index);
  }
  for (size_t i = 0; needs_all && i < things.count; i++)
    if (!taken[i])
      return Status(Code::kInvalidArgument, format("the {} '{}' is missing", things.kind, things.name(i)))
          .with("value", things.name(i));
  return list;
}

}  // namespace rlx
