// SPDX-License-Identifier: Apache-2.0
// The table of ops, the parser of signatures, and the search for an op by a name that it does not have here.
#include "ir/op.h"

#include <cassert>

#include "base/nearest.h"
#include "base/split.h"

namespace rlx {

static std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

static std::vector<std::string_view> split_and_trim(std::string_view text, char separator) {
  std::vector<std::string_view> parts = split(trim(text), separator);
  for (std::string_view& part : parts) part = trim(part);
  return parts;
}

std::optional<DTypeSet> parse_dtypes(std::string_view letters) {
  static constexpr std::pair<char, DTypeSet> kSets[] = {
      {'F', dtypes::F}, {'S', dtypes::S}, {'U', dtypes::U}, {'I', dtypes::I}, {'N', dtypes::N}, {'B', dtypes::B},
      {'Z', dtypes::Z}, {'D', dtypes::D}, {'E', dtypes::E}, {'A', dtypes::A}, {'X', dtypes::X}, {'Q', dtypes::Q}};
  while (!letters.empty() && letters.back() == '\'') letters.remove_suffix(1);
  if (auto one = find_dtype(letters)) return DTypeSet{*one};
  if (letters == kAnyDtype) return dtypes::A;
  DTypeSet set;
  for (char letter : letters) {
    bool known = false;
    for (auto [name, members] : kSets)
      if (name == letter) set = set | members, known = true;
    if (!known) return std::nullopt;
  }
  return set;
}

static Result<Port> parse_port(std::string_view text) {
  Port port;
  size_t colon = std::min(text.find(':'), text.size());
  std::string_view name = trim(text.substr(0, colon));
  if (colon < text.size()) port.letter = trim(text.substr(colon + 1));
  if (name.ends_with("...")) port.variadic = true, name.remove_suffix(3);
  if (name.ends_with("?")) port.optional = true, name.remove_suffix(1);
  port.name = name;
  auto set = parse_dtypes(port.letter);
  if (!set || name.empty()) return Status(Code::kInternal, "bad signature part \"" + std::string(text) + "\"");
  port.set = *set;
  return port;
}

Result<Signature> parse_signature(std::string_view text) {
  Signature signature;
  size_t arrow = text.find("->");
  if (arrow == std::string_view::npos) return Status(Code::kInternal, "a signature needs \"->\"");
  for (std::string_view part : split_and_trim(text.substr(0, arrow), ','))
    signature.in.push_back(RLX_TRY(parse_port(part)));
  for (std::string_view part : split_and_trim(text.substr(arrow + 2), ','))
    signature.out.push_back(RLX_TRY(parse_port(part)));
  return signature;
}

OpTable::OpTable(std::vector<OpInfo> rows) : rows_(std::move(rows)) {
  for (size_t i = 0; i < rows_.size(); i++) {
    OpInfo& row = rows_[i];
    auto signature = parse_signature(row.sig);
    assert(signature.ok() && "malformed signature");
    row.signature = *signature;
    for (const AttrDef& def : row.attrs) {
      row.decides_sizes |= def.names_decided();
      row.has_bodies |= def.kind == AttrKind::kGraph;
      row.has_free_attrs |= def.kind == AttrKind::kFree;
    }
    assert((row.is(kView) && row.primitive()) == (row.view != nullptr) && "a primitive view says how it lies");
    if (row.id >= index_.size()) index_.resize(row.id + size_t{1}, kNoRow);
    assert(index_[row.id] == kNoRow && "id used twice");
    index_[row.id] = static_cast<uint16_t>(i);
    [[maybe_unused]] bool is_new = by_name_.emplace(row.name, i).second;
    assert(is_new && "name used twice");
  }
}

// The letters and digits of a word, in lower case: "LayerNorm", "layer_norm" and "layer.norm" become one word.
static std::string folded(std::string_view word) {
  std::string text;
  for (char c : word) {
    if (c >= 'A' && c <= 'Z') text += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) text += c;
  }
  return text;
}

std::string OpTable::suggestion(std::string_view word) const {
  std::string wanted = folded(word);
  std::vector<std::string_view> known;
  for (const OpInfo& row : rows_) {
    if (!row.is_for_users()) continue;
    known.push_back(row.name);
    std::vector<std::string_view> names = split_and_trim(row.aliases, '|');
    names.push_back(row.name);
    for (std::string_view name : names)
      if (folded(name) == wanted) return " (did you mean '" + std::string(row.name) + "'?)";
  }
  return did_you_mean(word, known);
}

const OpInfo* OpTable::find(std::string_view name) const {
  auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &rows_[found->second];
}

}  // namespace rlx
