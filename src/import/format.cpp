// SPDX-License-Identifier: Apache-2.0
// The formats, how each is recognised, and the options of an import. A file that no format recognises is named by
// what it looks like.
#include "import/format.h"

#include <algorithm>
#include <array>

#include "base/lasting.h"
#include "import/gguf.h"
#include "import/onnx/onnx.h"
#include "import/safetensors.h"
#include "ir/text.h"
#include "ops/attr_defs.h"

namespace rlx {

static Result<ImportedFile> read_onnx(const Source& source, const ImportOptions& options) {
  Imported imported = RLX_TRY(import_onnx(source, options));
  return ImportedFile{std::move(imported.graph), std::move(imported.weights), std::move(imported.metadata),
                      std::move(imported.open_ranks)};
}

static Result<ImportedFile> read_safetensors_file(const Source& source, const ImportOptions&) {
  SafeTensors file = RLX_TRY(read_safetensors(source));
  return ImportedFile{Graph(), std::move(file.tensors), std::move(file.metadata)};
}

static Result<ImportedFile> read_gguf_file(const Source& source, const ImportOptions& options) {
  Gguf file = RLX_TRY(read_gguf(source, options));
  return ImportedFile{Graph(), std::move(file.tensors), std::move(file.metadata)};
}

static Result<ImportedFile> read_text(const Source& source, const ImportOptions& options) {
  std::string_view text(reinterpret_cast<const char*>(source.bytes.data()), source.bytes.size());
  return ImportedFile{RLX_TRY(parse(text, op_table(), options.customs)), {}, {}};
}

static bool is_text(std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && (text[first] == ';' || text.substr(first).starts_with("graph"));
}

struct Format {
  std::string_view name;
  bool (*matches)(std::span<const std::byte>);
  bool has_graph;
  Result<ImportedFile> (*read)(const Source&, const ImportOptions&);
  bool has_choices = false;
};
static constexpr Format kFormats[] = {
    {"rlx", is_text, true, read_text},
    {"safetensors", is_safetensors, false, read_safetensors_file},
    {"gguf", is_gguf, false, read_gguf_file},
    {"onnx", is_onnx, true, read_onnx, true},
};

bool has_format(std::string_view name) {
  return std::any_of(std::begin(kFormats), std::end(kFormats), [&](const Format& it) { return it.name == name; });
}

static constexpr const char* kFormatNames = "onnx, safetensors, gguf, rlx";

// Files that people take for models, recognised by bytes at a position.
struct Lookalike {
  size_t at;
  std::string_view bytes;
  std::string_view what;
};
using namespace std::literals;
static constexpr Lookalike kLookalikes[] = {
    {0, "GGUF"sv, "a GGUF file, which holds weights"},
    {0, "PK\x03\x04"sv, "a zip archive, as PyTorch's .pt files are: export the model to ONNX"},
    {0, "\x80\x02"sv, "a Python pickle, as older PyTorch files are: export the model to ONNX"},
    {0, "\x89HDF"sv, "an HDF5 file, as Keras writes: export the model to ONNX"},
    {4, "TFL3"sv, "a TensorFlow Lite file"},
    {0, "\x93NUMPY"sv, "a NumPy array"},
    {0, "\x1f\x8b"sv, "a gzip archive: unpack it first"},
    {0, "\x89PNG"sv, "a PNG picture"},
    {0, "\xff\xd8\xff"sv, "a JPEG picture"},
    {0, "version https://git-lfs"sv, "a Git LFS pointer: fetch the file that it stands for"},
    {0, "<!"sv, "an HTML or XML page"},
    {0, "<?"sv, "an XML file"},
    {0, "<h"sv, "an HTML page"},
    {0, "<H"sv, "an HTML page"},
};

// " It looks like a GGUF file.", or "".
static std::string looks_like(std::span<const std::byte> bytes) {
  if (bytes.empty()) return " It is empty.";
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const Lookalike& it : kLookalikes)
    if (text.size() >= it.at && text.substr(it.at).starts_with(it.bytes)) return format(" It looks like {}.", it.what);
  return "";
}

static std::string subject_of(const Source& source) {
  return source.path.empty() ? "the memory" : "'" + source.path + "'";
}

Status no_format(std::string_view name) {
  return Status(Code::kNotFound, format("there is no format '{}', only {}", name, kFormatNames))
      .with("value", name)
      .with("expected", kFormatNames);
}

static Result<const Format*> find_format(const Source& source, std::string_view name) {
  for (const Format& format : kFormats)
    if (name.empty() ? format.matches(source.bytes) : format.name == name) return &format;
  if (name.empty())
    return Status(Code::kUnsupported, format("{} is not a recognised format.{} What can be read: {}",
                                             subject_of(source), looks_like(source.bytes), kFormatNames))
        .with("value", source.path)
        .with("expected", kFormatNames);
  return no_format(name);
}

static Result<ImportedFile> import_as(const Format& format, const Source& source, const ImportOptions& options) {
  if (options.with_graph && !format.has_graph)
    return Status(Code::kUnsupported, rlx::format("{} files hold weights and no graph: rlx_import_file and "
                                                  "rlx_import_memory read them where no graph is asked for",
                                                  format.name));
  if (!format.has_choices && !options.choices.empty())
    return Status(Code::kOption, rlx::format("'{}': nothing about inputs can be chosen in {} files",
                                             options.first_choice, format.name))
        .with("value", options.first_choice);
  if (options.host) RLX_TRY(options.host->progress("import", 0));
  ImportedFile file = RLX_TRY(format.read(source, options));
  for (const auto& [name, tensor] : file.weights)
    if (name.empty()) return Status(Code::kData, rlx::format("{}: a tensor has no name", format.name));
  file.has_choices = format.has_choices;
  if (options.host) RLX_TRY(options.host->progress("import", 1));
  return file;
}

static constexpr int64_t kLongestSequence = 4096;

enum ImportOption : size_t { kParamsMin, kDecode };  // those about the file as a whole come first

std::span<const AttrDef> import_options() {
  using namespace attr_defs;
  static const auto& kOptions = lasting([] {
    return std::to_array<AttrDef>({
        option(within(i64("params.min", ImportOptions().params_min), 1),
               "how many elements an initialiser needs to become a param"),
        option(flag("decode", ImportOptions().decode), "convert the tq1_0 and tq2_0 tensors of a gguf file to f32"),
        option(within(opt_i64("dims.<symbol>"), 0), "make a size a number"),
        option(opt_tensor("value.<input>"), "make an input a constant"),
        option(within(opt_i64("rank.<input>"), 0, kMaxRank), "the rank of an input, where the file does not say it"),
        option(within(opt_i64("sequence.<input>"), 0, kLongestSequence), "the elements of an input that is a sequence"),
        option(opt_flag("absent.<input>"), "leave out an optional input"),
        option(opt_flag("input.<initialiser>"), "make an initialiser an input that every run is given"),
    });
  });
  return kOptions;
}

// The row of an option about one size or input, "rank.<input>" for "rank.x"; null for any other key.
static const AttrDef* choice_row(std::string_view key) {
  size_t dot = key.find('.');
  for (const AttrDef& row : import_options())
    if (dot != key.npos && row.name.starts_with(key.substr(0, dot + 1)) && row.name[dot + 1] == '<') return &row;
  return nullptr;
}

static void choose(ImportChoices& choices, std::string_view kind, const std::string& name, const AttrValue& value) {
  if (kind == "value") return void(choices.values.emplace_back(name, *std::get<TensorAttr>(value)));
  int64_t number = std::get<int64_t>(value);
  if (kind == "dims") choices.dims.emplace_back(name, number);
  if (kind == "rank") choices.ranks.emplace_back(name, number);
  if (kind == "sequence") choices.sequences.emplace_back(name, number);
  if (kind == "absent" && number) choices.absent.push_back(name);
  if (kind == "input" && number) choices.given.push_back(name);
}

Result<ImportOptions> parse_import_options(const NamedAttrs& given) {
  ImportOptions options;
  NamedAttrs rest;
  for (const auto& [key, value] : given) {
    const AttrDef* row = choice_row(key);
    if (!row) {
      rest.emplace_back(key, value);
      continue;
    }
    AttrDef named = *row;
    named.name = key;
    size_t dot = key.find('.');
    if (options.first_choice.empty()) options.first_choice = key;
    choose(options.choices, std::string_view(key).substr(0, dot), key.substr(dot + 1), RLX_TRY(coerce(named, value)));
  }
  std::vector<AttrValue> values = RLX_TRY(bind_options(import_options(), rest));
  options.params_min = std::get<int64_t>(values[kParamsMin]);
  options.decode = std::get<int64_t>(values[kDecode]) != 0;
  return options;
}

Result<ImportedFile> import_source(const Source& source, std::string_view name, const ImportOptions& options) {
  const Format& format = *RLX_TRY(find_format(source, name));
  auto file = import_as(format, source, options);
  if (file.ok()) return file;
  Status status = std::move(file).status();
  if (status.code() == Code::kData && !looks_like(source.bytes).empty())
    status = std::move(status).suffixed("." + looks_like(source.bytes));
  if (source.path.empty()) return status;
  return std::move(status)
      .prefixed(rlx::format("{}, read as {}: ", subject_of(source), format.name))
      .with("value", source.path);
}

}  // namespace rlx
