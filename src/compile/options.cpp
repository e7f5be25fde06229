// SPDX-License-Identifier: Apache-2.0
// The table of compile options, and what is checked of their values.
#include "compile/options.h"

#include <algorithm>
#include <unordered_set>

#include "base/contains.h"
#include "base/lasting.h"
#include "base/nearest.h"
#include "compile/compile.h"
#include "ops/attr_defs.h"
#include "rules/rules.h"

namespace rlx {

namespace {

struct OptionRow {
  AttrDef def;
  void (*set)(CompileOptions&, std::string_view rest, const AttrValue&);
};

template <class Enum>
Enum choice(const AttrValue& value) {
  return *find_choice<Enum>(std::get<std::string>(value));  // coerce has checked it
}

template <auto kMember>
void set_flag(CompileOptions& options, std::string_view, const AttrValue& value) {
  options.*kMember = std::get<int64_t>(value) != 0;
}
template <auto kMember>
void set_list(CompileOptions& options, std::string_view, const AttrValue& value) {
  options.*kMember = std::get<std::vector<std::string>>(value);
}

const std::vector<OptionRow>& rows() {
  using namespace attr_defs;
  using Options = CompileOptions;
  using Text = std::string_view;
  static const auto& kRows = lasting([] {
    return std::vector<OptionRow>{
        {option(within(opt_i64("dims.<symbol>"), 0), "upper size to plan for"),
         [](Options& o, Text rest, const AttrValue& v) { o.dims.emplace_back(rest, std::get<int64_t>(v)); }},
        {option(enums("math", kChoices<Grade>, "close"), "which rewrites are allowed"),
         [](Options& o, Text, const AttrValue& v) { o.kernels.math = choice<Grade>(v); }},
        {option(enums("precision", "graph|f32|f16|bf16", "graph"), "the dtype that f16, bf16 and f32 are computed in"),
         [](Options& o, Text, const AttrValue& v) {
           o.precision = find_dtype(std::get<std::string>(v)).value_or(DType::kNone);
         }},
        {option(enums("layout", "auto|plain", "auto"),
                "where axes lie between kernels: as these read best, or as the graph says"),
         [](Options& o, Text, const AttrValue& v) { o.plain_layout = std::get<std::string>(v) == "plain"; }},
        {option(enums("bounds", kChoices<Bounds>, "error"), "what an index out of range does"),
         [](Options& o, Text, const AttrValue& v) { o.kernels.bounds = choice<Bounds>(v); }},
        {option(enums("dispatch", kChoices<Dispatch>, "native"), "native kernels, primitives only, or reference"),
         [](Options& o, Text, const AttrValue& v) { o.kernels.dispatch = choice<Dispatch>(v); }},
        {option(optional("dispatch.<op>", AttrKind::kEnum, {}, kChoices<Dispatch>), "the same for one op"),
         [](Options& o, Text rest, const AttrValue& v) { o.dispatch_of.emplace_back(rest, choice<Dispatch>(v)); }},
        {option(enums("fallback", "error|host", "error"),
                "what an op does that the device has no kernel for: it fails, or runs on the CPU between copies"),
         [](Options& o, Text, const AttrValue& v) { o.falls_back = std::get<std::string>(v) == "host"; }},
        {option(flag("debug.verify", false), "verify the graph after every pass, not only after the last"),
         set_flag<&Options::verify_each>},
        {option(strs("passes.skip", {}), "passes and rules to leave out"), set_list<&Options::skip>},
        {option(strs("passes.expect", {}), "rules that must fire"), set_list<&Options::expect>},
        {option(flag("io.convert", false), "inputs of other floats, or of narrower integers, are converted"),
         set_flag<&Options::io_convert>},
        {option(strs("io.alias", {}), "\"output=input\": the two share their memory, so a run consumes the input"),
         set_list<&Options::alias>},
        {option(flag("weights.drop", false), "release original bytes that a prepared form replaces"),
         set_flag<&Options::drop_weights>},
        {option(within(opt_i64("threads"), 1, INT_MAX), "most threads of one run"),
         [](Options& o, Text, const AttrValue& v) { o.threads = static_cast<int>(std::get<int64_t>(v)); }},
        {option(within(opt_i64("memory.limit"), 0), "bytes that a plan may take"),
         [](Options& o, Text, const AttrValue& v) { o.memory_limit = std::get<int64_t>(v); }},
        {option(opt_str("dump"), "folder for the graph after each pass"),
         [](Options& o, Text, const AttrValue& v) { o.dump = std::get<std::string>(v); }},
    };
  });
  return kRows;
}

bool is_family(const OptionRow& row) {
  return stem_of(row.def.name) != row.def.name;
}

const OptionRow* find_row(std::string_view key) {
  for (const OptionRow& row : rows())
    if (is_family(row) ? key.starts_with(stem_of(row.def.name)) : key == row.def.name) return &row;
  return nullptr;
}

// The names of all options. The families are completed as the key is, so that "dim.n" is near "dims.n".
std::vector<std::string> with_rest_of(std::string_view key, std::span<const std::string_view> others) {
  size_t dot = key.find('.');
  std::string_view rest = dot == std::string_view::npos ? "" : key.substr(dot + 1);
  std::vector<std::string> names;
  auto add = [&](std::string_view name) {
    names.emplace_back(name);
    if (name.ends_with('.')) names.back() += rest;
  };
  for (const OptionRow& row : rows()) add(stem_of(row.def.name));
  std::for_each(others.begin(), others.end(), add);
  return names;
}

// A number under a plain name that is near no option is probably a size.
Status unknown_option(const std::string& key, const AttrValue& value, std::span<const std::string_view> others) {
  std::vector<std::string> names = with_rest_of(key, others);
  std::vector<std::string_view> known(names.begin(), names.end());
  std::string hint = key == "dims" ? "" : did_you_mean(key, known);
  auto* number = std::get_if<int64_t>(&value);
  if (hint.empty() && ((number && key.find('.') == key.npos) || key == "dims"))
    hint =
        format(": sizes are options dims.<symbol>, as dims.{}={}", key == "dims" ? "batch" : key, number ? *number : 4);
  bool is_policy = !others.empty();
  if (hint.empty())
    hint = format("; rlx_schema lists them: {}",
                  is_policy ? "\"options.model\", \"options.compile\"" : "\"options.compile\"");
  return Status(Code::kOption, format("unknown {} '{}'{}", is_policy ? "option" : "compile option", key, hint))
      .with("value", key);
}

// Checks names of passes and rules. An unknown name must be a typing error; ignored, it would skip nothing.
Status check_pass_names(std::string_view option, const std::vector<std::string>& names) {
  static const RuleSet& kRules = lasting([] {
    RuleSet rules;
    for (RuleSet::Family family : kRuleFamilies) family(rules);
    return rules;
  });
  if (names.empty()) return {};
  std::vector<std::string_view> known = pass_names(), rules = kRules.names();
  known.insert(known.end(), rules.begin(), rules.end());
  for (const std::string& name : names)
    if (!contains(known, name)) {
      std::string hint = did_you_mean(name, known);
      if (hint.empty()) hint = "; the passes are " + listed(pass_names());
      return Status(Code::kOption, format("{}: there is no pass or rule '{}'{}", option, name, hint))
          .with("value", name)
          .with("expected", listed(pass_names()) + ", or a rule of theirs");
    }
  return {};
}

}  // namespace

Result<CompileOptions> parse_compile_options(const NamedAttrs& given, std::span<const std::string_view> others) {
  CompileOptions options;
  std::unordered_set<std::string_view> known;
  for (const auto& [key, given_value] : given) {
    const OptionRow* row = find_row(key);
    if (!row) return unknown_option(key, given_value, others);
    if (!known.insert(key).second)
      return Status(Code::kOption, "the option '" + key + "' is given twice").with("value", key);
    std::string_view rest = is_family(*row) ? std::string_view(key).substr(stem_of(row->def.name).size()) : key;
    if (row->def.name == "dispatch.<op>" && !op_table().find(rest))
      return Status(Code::kOption, "the option '" + key + "' names no op" + op_table().suggestion(rest))
          .with("value", key)
          .with("expected", "dispatch.<op>, of an op in the schema of ops");
    AttrDef def = row->def;
    def.name = key;
    AttrValue value = RLX_TRY(coerce(def, given_value));
    row->set(options, rest, value);
  }
  RLX_TRY(check_pass_names("passes.skip", options.skip));
  RLX_TRY(check_pass_names("passes.expect", options.expect));
  return options;
}

std::string_view stem_of(std::string_view option) {
  return option.substr(0, option.find('<'));
}

std::vector<AttrDef> compile_options() {
  std::vector<AttrDef> defs;
  for (const OptionRow& row : rows()) defs.push_back(row.def);
  return defs;
}

}  // namespace rlx
