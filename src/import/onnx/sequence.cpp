// SPDX-License-Identifier: Apache-2.0
// Sequences and optionals: lists of values of known length. They exist only during the import.
#include <algorithm>

#include "import/onnx/call.h"
#include "import/onnx/control.h"
#include "import/onnx/importer.h"
#include "import/onnx/tensor.h"

namespace rlx::onnx {

namespace {

const std::vector<OnnxValue>* items_of(Call& call, size_t i) {
  const OnnxValue* value = call.value(i);
  if (value && value->is_stacked) return call.fail_of_sizes("a sequence whose length only the run knows"), nullptr;
  if (value && value->is_sequence) return &value->items;
  call.fail(Code::kData, "its input is not a sequence");
  return nullptr;
}

OnnxValue sequence_of(std::vector<OnnxValue> items) {
  OnnxValue sequence{.is_sequence = true};
  for (const OnnxValue& item : items) sequence.refused |= item.refused;
  sequence.items = std::move(items);
  return sequence;
}

void put_sequence(Call& call, std::vector<OnnxValue> items) {
  call.out(0, sequence_of(std::move(items)));
}

// A value of the graph as an item.
OnnxValue item_of(Expr x) {
  OnnxValue item;
  item.type = x.type();
  item.value = x.value();
  return item;
}

// The tensor whose rows are the elements, if only the run knows how many there are.
Expr rows_of(Call& call, size_t i = 0) {
  const OnnxValue* value = call.value(i);
  if (!value || !value->is_stacked) return {};
  OnnxValue rows = value->items[0];
  return call.importer().expr(rows, call.builder());
}

void put_rows(Call& call, Expr rows, size_t i = 0) {
  if (!rows.valid()) return;
  OnnxValue sequence{.is_sequence = true, .is_stacked = true};
  sequence.items.push_back(item_of(rows));
  call.out(i, sequence);
}

// The position that an input gives among `count` rows, or the fallback.
Expr row_position(Call& call, size_t input, Expr count, Expr fallback) {
  if (!call.has(input)) return fallback;
  Expr at = cast(reshape(call.in(input), {}), DType::kI64);
  return where(less(at, 0), at + count, at);
}

// Rows by their places, if the position is from 0 to `last`. Else a place is beyond the end: the run fails.
Expr rows_at(Expr rows, Expr places, Expr position, Expr last) {
  Expr is_valid = logical_and(less_equal(position * 0.0, position), less_equal(position, last));
  return gather(rows, where(is_valid, places, rows.builder().size(rows.dim(0), DType::kI64)), 0);
}

void insert_row(Call& call, Expr rows) {
  Expr x = call.in(1);
  if (!rows.valid() || !x.valid()) return;
  if (rows.rank() != x.rank() + 1 || rows.dtype() != x.dtype())
    return call.fail_of_sizes("a sequence of unlike elements whose length only the run knows");
  Builder& b = call.builder();
  Expr count = b.size(rows.dim(0), DType::kI64), at = row_position(call, 2, count, count);
  Expr both[] = {rows, unsqueeze(x, 0)};
  Expr joined = concat(both, 0);
  if (!call.has(2) || !joined.valid()) return put_rows(call, joined);
  Expr place = iota(b, {joined.dim(0)}, 0, DType::kI64);
  put_rows(call,
           rows_at(joined, where(less(place, at), place, where(equal(place, at), count, place - 1.0)), at, count));
}

void erase_row(Call& call, Expr rows) {
  if (!rows.valid()) return;
  Builder& b = call.builder();
  Expr count = b.size(rows.dim(0), DType::kI64), last = count - 1.0, at = row_position(call, 1, count, last);
  // The row that goes comes last, so that there is a place to check where no row stays.
  Expr place = iota(b, {rows.dim(0)}, 0, DType::kI64);
  place = where(less(place, at), place, where(less(place, last), place + 1.0, at));
  put_rows(call, slice(rows_at(rows, place, at, last), 0, 0, rows.dim(0) - 1));
}

// A position below `end`, counted from the end of `count` items if negative; `fallback` where it is not given.
std::optional<size_t> position(Call& call, size_t input, size_t count, size_t end, int64_t fallback) {
  int64_t given = fallback;
  if (call.has(input)) {
    std::vector<int64_t> numbers = call.numbers(input, "position");
    if (numbers.size() != 1) return std::nullopt;
    given = numbers[0];
  }
  int64_t at = given < 0 ? given + static_cast<int64_t>(count) : given;
  if (at >= 0 && at < static_cast<int64_t>(end)) return static_cast<size_t>(at);
  call.fail(Code::kRange, format("position {} of a sequence of {}", given, count));
  return std::nullopt;
}

void build_empty(Call& call) {
  call.ignore("dtype");
  put_sequence(call, {});
}

void build_construct(Call& call) {
  std::vector<OnnxValue> items;
  for (size_t i = 0; i < call.inputs(); i++)
    if (call.has(i)) items.push_back(call.local(i));
  put_sequence(call, std::move(items));
}

void build_insert(Call& call) {
  if (Expr rows = rows_of(call)) return insert_row(call, rows);
  const auto* items = items_of(call, 0);
  if (!items || !call.has(1)) return;
  auto at = position(call, 2, items->size(), items->size() + 1, static_cast<int64_t>(items->size()));
  if (!at) return;
  std::vector<OnnxValue> longer;
  longer.reserve(items->size() + 1);  // avoids copies of values, which are expensive
  longer.assign(items->begin(), items->end());
  longer.insert(longer.begin() + static_cast<std::ptrdiff_t>(*at), call.local(1));
  put_sequence(call, std::move(longer));
}

void build_erase(Call& call) {
  if (Expr rows = rows_of(call)) return erase_row(call, rows);
  const auto* items = items_of(call, 0);
  if (!items) return;
  auto at = position(call, 1, items->size(), items->size(), static_cast<int64_t>(items->size()) - 1);
  if (!at) return;
  std::vector<OnnxValue> shorter = *items;
  shorter.erase(shorter.begin() + static_cast<std::ptrdiff_t>(*at));
  put_sequence(call, std::move(shorter));
}

void build_at(Call& call) {
  if (Expr rows = rows_of(call)) return call.out(0, gather(rows, reshape(call.in(1), {}), 0));
  const auto* items = items_of(call, 0);
  if (!items) return;
  if (auto at = position(call, 1, items->size(), items->size(), 0)) call.out(0, (*items)[*at]);
}

void put_number(Call& call, DType dtype, int64_t number) {
  auto tensor = scalar_tensor(dtype, static_cast<double>(number));
  if (!tensor.ok()) return call.fail(tensor.status().code(), std::string(tensor.status().message()));
  call.out(0, *tensor);
}

std::optional<Sizes> fold_length(Call& call) {
  Expr rows = rows_of(call);
  if (!rows || !rows.valid()) return std::nullopt;
  return Sizes{.items = {rows.dim(0)}};
}

void build_length(Call& call) {
  if (const auto* items = items_of(call, 0)) put_number(call, DType::kI64, static_cast<int64_t>(items->size()));
}

Expr without_axis(Expr x, int64_t axis) {
  std::vector<Dim> dims = x.dims();
  dims.erase(dims.begin() + axis);
  return reshape(x, dims);
}

// The elements of an axis, however many there are, as rows.
Expr rows_along(Expr x, int64_t axis, bool keeps_axis) {
  Axes perm = trailing_axes(0, x.rank());
  std::rotate(perm.begin(), perm.begin() + axis, perm.begin() + axis + 1);
  Expr rows = transpose(x, perm);
  return keeps_axis ? unsqueeze(rows, axis + 1) : rows;
}

// The last piece may be smaller where one size is given for all.
void build_split(Call& call) {
  Expr x = call.in(0);
  if (!x.valid()) return;
  int64_t axis = call.axis(call.i64("axis", 0), x.rank()), keep = call.i64("keepdims", 1);
  if (!call.status().ok()) return;
  const Dim& total = x.dim(axis);
  std::vector<int64_t> sizes;
  if (!call.has(1) || call.type(1).rank() == 0) {
    int64_t each = call.has(1) ? 0 : 1;
    if (call.has(1))
      for (int64_t size : call.numbers(1, "split")) each = size;
    if (!total.is_literal() && each == 1) return put_rows(call, rows_along(x, axis, call.has(1) || keep != 0));
    if (!total.is_literal()) return call.fail_of_sizes("how many pieces there are is not known");
    if (each < 1 || total.literal() / each > int64_t{1} << 16) return call.fail(Code::kData, "pieces without a size");
    for (int64_t at = 0; at < total.literal(); at += each) sizes.push_back(std::min(each, total.literal() - at));
  } else {
    sizes = call.numbers(1, "split");
  }
  std::vector<OnnxValue> items;
  Dim at = 0;
  for (int64_t size : sizes) {
    Expr piece = slice(x, axis, at, at + Dim(size));
    if (!call.has(1) && keep == 0) piece = without_axis(piece, axis);
    if (!piece.valid()) return;
    items.push_back(item_of(piece));
    at += Dim(size);
  }
  put_sequence(call, std::move(items));
}

// The rows stand along a new axis, or one after another along an axis of theirs.
Expr joined(Call& call, Expr rows, int64_t axis, bool is_new) {
  if (!rows.valid()) return rows;
  axis = call.axis(axis, rows.rank() - (is_new ? 0 : 1));
  Axes perm = trailing_axes(1, rows.rank());
  perm.insert(perm.begin() + std::min<int64_t>(axis, static_cast<int64_t>(perm.size())), 0);
  Expr y = transpose(rows, perm);
  if (is_new || !y.valid()) return y;
  std::vector<Dim> dims = y.dims();
  dims[static_cast<size_t>(axis)] *= dims[static_cast<size_t>(axis) + 1];
  dims.erase(dims.begin() + axis + 1);
  return reshape(y, dims);
}

void build_concat(Call& call) {
  if (Expr rows = rows_of(call))
    return call.out(0, joined(call, rows, call.i64("axis", 0), call.i64("new_axis", 0) != 0));
  const auto* items = items_of(call, 0);
  if (!items) return;
  bool is_new = call.i64("new_axis", 0) != 0;
  int64_t axis = call.i64("axis", 0);
  std::vector<Expr> parts;
  for (OnnxValue item : *items) parts.push_back(call.importer().expr(item, call.builder()));
  if (parts.empty()) return call.fail(Code::kData, "nothing to join");
  if (!parts[0].valid()) return;
  axis = call.axis(axis, parts[0].rank() + (is_new ? 1 : 0));
  if (!call.status().ok()) return;
  if (is_new)
    for (Expr& part : parts) part = unsqueeze(part, axis);
  call.out(0, parts.size() == 1 ? parts[0] : concat(parts, axis));
}

// ---- optionals: a value, or none ----

void build_optional(Call& call) {
  call.ignore("type");
  call.out_value(0, 0);
}

void build_get(Call& call) {
  if (!call.has(0)) return call.fail(Code::kData, "there is no element");
  call.out_value(0, 0);
}

void build_has(Call& call) {
  put_number(call, DType::kBool, call.has(0) ? 1 : 0);
}

// ---- SequenceMap: a graph for every element ----

// Goes through all sequences together, up to the length of the first; a tensor is the same every time.
Status map_items(Call& call, const GraphProto& body) {
  const auto* first = items_of(call, 0);
  RLX_TRY(call.status());
  std::vector<std::vector<OnnxValue>> made(body.output.size());
  for (size_t at = 0; at < first->size(); at++) {
    std::vector<OnnxValue> in;
    for (size_t i = 0; i < call.inputs(); i++) {
      const OnnxValue* value = call.value(i);
      const auto* items = value && value->is_sequence ? items_of(call, i) : nullptr;
      RLX_TRY(call.status());
      if (items && at >= items->size())
        return Status(Code::kData,
                      format("input {} has {}, input 0 has {}", i, plural(items->size(), "element"), first->size()));
      in.push_back(items ? (*items)[at] : call.local(i));
    }
    std::vector<OnnxValue> out = RLX_TRY(call.importer().inline_graph(body, std::move(in)));
    for (size_t i = 0; i < out.size(); i++) made[i].push_back(std::move(out[i]));
  }
  for (size_t i = 0; i < made.size(); i++) call.out(i, sequence_of(std::move(made[i])));
  return {};
}

// Rows go through a scan, and become rows. Its operands are the sequences, then the tensors, which stay as they are.
Status map_rows(Call& call, const GraphProto& proto) {
  GraphProto ordered = proto;
  ordered.input.clear();
  std::vector<Expr> in;
  std::vector<ValueType> types;
  auto sequences = int64_t{0};
  for (bool is_of_sequences : {true, false})
    for (size_t i = 0; i < std::min(call.inputs(), proto.input.size()); i++) {
      const OnnxValue* value = call.value(i);
      if (!value || value->is_sequence != is_of_sequences) continue;
      if (value->is_sequence && !value->is_stacked) return Status(Code::kUnsupported, "sequences of unlike kinds");
      in.push_back(is_of_sequences ? rows_of(call, i) : call.in(i));
      RLX_TRY(call.status());
      types.push_back(in.back().type());
      if (is_of_sequences) types.back().dims.erase(types.back().dims.begin()), sequences++;
      ordered.input.push_back(proto.input[i]);
    }
  BodyGraph body = RLX_TRY(call.importer().body_graph(call.importer().keep(std::move(ordered)), types, {}));
  RLX_TRY(check_rows(body, 0, call.builder().graph()));
  add_captures(call, body, in);
  auto step = RLX_TRY(body.finish());
  Outputs results = call.ops("scan", in, {{"n_carry", int64_t{0}}, {"n_xs", sequences}, {"body", std::move(step)}});
  RLX_TRY(call.status());
  for (size_t i = 0; i < std::min(results.size(), call.outputs()); i++) put_rows(call, results[i], i);
  return {};
}

void build_map(Call& call) {
  const GraphProto* body = call.graph("body");
  if (!body) return;
  if (call.has(0) && call.value(0)->is_stacked) {
    Importer::Refusals before = call.importer().refusals();
    if (map_rows(call, *body).ok()) return;
    call.importer().refusals() = std::move(before);
  }
  call.fail(map_items(call, *body));
}

constexpr NodeKind kKinds[] = {
    {.op_type = "SequenceEmpty", .build = build_empty, .control = true},
    {.op_type = "SequenceConstruct", .build = build_construct, .control = true},
    {.op_type = "SequenceInsert", .build = build_insert, .control = true},
    {.op_type = "SequenceErase", .build = build_erase, .control = true},
    {.op_type = "SequenceAt", .build = build_at, .control = true},
    {.op_type = "SequenceLength", .build = build_length, .fold = fold_length, .control = true},
    {.op_type = "SplitToSequence", .build = build_split, .control = true},
    {.op_type = "ConcatFromSequence", .build = build_concat, .control = true},
    {.op_type = "SequenceMap", .build = build_map, .control = true},
    {.op_type = "Optional", .build = build_optional, .control = true},
    {.op_type = "OptionalGetElement", .build = build_get, .control = true},
    {.op_type = "OptionalHasElement", .build = build_has, .control = true},
};

}  // namespace

std::span<const NodeKind> sequence_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
