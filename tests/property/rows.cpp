// SPDX-License-Identifier: Apache-2.0
// Nodes of any row. Nothing here names an op: inputs and attributes are guessed from the row, and what the builder
// refuses is guessed again. Where no guess suits, they are those of a sample.
#include <algorithm>

#include "draw.h"
#include "tests/support/samples.h"

namespace rlx::test {

bool can_generate(const OpInfo& row) {
  if (row.is(kLeaf) || row.is(kInternal)) return false;
  for (const Port& port : row.signature.in)
    if (port.letter == "Q") return false;
  return std::none_of(row.attrs.begin(), row.attrs.end(), [](const AttrDef& def) {
    bool is_made_elsewhere = def.kind == AttrKind::kFree;  // for ops of a host
    return is_made_elsewhere || (def.required && (def.kind == AttrKind::kGraph || def.kind == AttrKind::kTensor));
  });
}

namespace {

// An equation is a language of its own.
bool can_be_guessed(const OpInfo& row) {
  return std::none_of(row.attrs.begin(), row.attrs.end(),
                      [](const AttrDef& def) { return def.required && def.name == "equation"; });
}

constexpr double kReals[] = {0, 0.5, 1, 2, -1, 1e-3};

// ---- inputs ----

// For a row, of the dtypes that its letters ask for.
std::optional<std::vector<Value>> random_inputs(Draw& draw, const OpInfo& row) {
  Random& random = draw.random;
  std::vector<Value> in;
  std::map<std::string_view, DType> letters;
  Shape shape = draw.shape();
  for (const Port& port : row.signature.in) {
    if (port.optional && random.chance(40)) {
      in.push_back(kAbsent);
      continue;
    }
    for (int64_t count = port.variadic ? random.between(1, 3) : 1; count > 0; count--) {
      DTypeSet set = letters.contains(port.letter) ? DTypeSet{letters[port.letter]} : port.set;
      std::vector<Value> known = draw.values(set);
      std::optional<Value> value;
      if (!known.empty() && random.chance(in.empty() ? 70 : 35))
        value = random.pick(known);
      else
        value = draw.leaf(set, in.empty() ? shape : draw.related(shape));
      if (!value) return std::nullopt;
      if (in.empty()) shape = draw.graph.type(*value).dims;
      letters.emplace(port.letter, draw.graph.type(*value).dtype);
      in.push_back(*value);
    }
  }
  return in;
}

// ---- attributes ----

std::vector<int64_t> random_integers(Random& random, int64_t rank) {
  std::vector<int64_t> list;
  switch (random.below(4)) {
    case 0:  // a permutation, some of it counted from the end
      for (int64_t i = 0; i < rank; i++)
        list.insert(list.begin() + random.below(i + 1), random.chance(15) ? i - rank : i);
      break;
    case 1:  // some axes
      for (int64_t i = 0; i < rank; i++)
        if (random.chance(40)) list.push_back(random.chance(30) ? i - rank : i);
      break;
    case 2:  // one for each axis
      for (int64_t i = 0; i < rank; i++) list.push_back(random.between(1, 2));
      break;
    default:
      for (int64_t count = random.between(1, 2); count > 0; count--) list.push_back(random.between(-1, 3));
  }
  return list;
}

Shape random_dims(Draw& draw, const Shape& like) {
  Random& random = draw.random;
  Shape dims = like;
  switch (random.below(6)) {
    case 0: return {-1};
    case 1: std::reverse(dims.begin(), dims.end()); break;
    case 2: dims.insert(dims.begin(), draw.dim()); break;
    case 3:
      for (Dim& dim : dims) dim = random.between(0, 2);
      break;
    case 4:
      dims.clear();
      for (int64_t count = random.between(1, 2); count > 0; count--) dims.push_back(random.between(-2, 3));
      break;
    default: dims = draw.shape();
  }
  for (Dim& dim : dims) dim = draw.attribute_dim(dim);
  return dims;
}

std::string random_choice(Random& random, std::string_view choices) {
  std::vector<std::string> words(1);
  for (char c : choices) {
    if (c == '|')
      words.emplace_back();
    else
      words.back().push_back(c);
  }
  return random.pick(words);
}

AttrValue random_value(Draw& draw, const AttrDef& def, const Shape& like) {
  Random& random = draw.random;
  auto rank = static_cast<int64_t>(like.size());
  switch (def.kind) {
    case AttrKind::kI64: return random.chance(70) ? random.between(-rank, rank) : random.between(0, 3);
    case AttrKind::kI64s: return random_integers(random, rank);
    case AttrKind::kF64: return random.pick(kReals);
    case AttrKind::kF64s: return std::vector<double>(static_cast<size_t>(random.between(1, 3)), random.pick(kReals));
    case AttrKind::kBool: return random.below(2);
    case AttrKind::kEnum: return random_choice(random, def.choices);
    case AttrKind::kStr: return "a name " + std::to_string(draw.graph.nodes().size());
    case AttrKind::kStrs: return std::vector<std::string>{"a", "b"};
    case AttrKind::kDtype: return random.pick(kDense);
    case AttrKind::kDim: return draw.attribute_dim(draw.dim());
    case AttrKind::kDims: return random_dims(draw, like);
    default: return {};
  }
}

NamedAttrs random_attrs(Draw& draw, const OpInfo& row, const Shape& like) {
  NamedAttrs attrs;
  for (const AttrDef& def : row.attrs) {
    if (!def.required && draw.random.chance(60)) continue;
    AttrValue value = random_value(draw, def, like);
    if (!std::holds_alternative<std::monostate>(value)) attrs.emplace_back(def.name, std::move(value));
  }
  return attrs;
}

// ---- nodes ----

Expr guessed_node(Draw& draw, Builder& builder, const OpInfo& row) {
  auto in = random_inputs(draw, row);
  if (!in) return {};
  Shape like = !in->empty() && present((*in)[0]) ? draw.graph.type((*in)[0]).dims : draw.shape();
  auto added = draw.graph.add(row.op(), *in, random_attrs(draw, row, like));
  return added.ok() ? builder.wrap(*added) : Expr();
}

// A leaf of the sample's type. Floats mostly get other contents. All else stays as it is: it may be indices, or packed.
std::optional<Value> sampled_leaf(Draw& draw, const Tensor& given) {
  if (dtypes::F.has(given.dtype()) && draw.random.chance(70))
    return draw.leaf(DTypeSet{given.dtype()}, Shape(given.dims().begin(), given.dims().end()));
  auto constant = draw.graph.add_constant(given);
  return constant.ok() ? std::optional(*constant) : std::nullopt;
}

// A node with the attributes of a sample, on leaves of its types.
Expr sampled_node(Draw& draw, Builder& builder, const OpInfo& row) {
  std::vector<const Sample*> samples = samples_of(row.name);
  auto is_block_tensor = [](const Tensor& tensor) { return tensor && is_block(tensor.dtype()); };
  std::erase_if(samples, [&](const Sample* it) {
    return !it->program.empty() || !it->error.empty() || std::any_of(it->in.begin(), it->in.end(), is_block_tensor);
  });
  if (samples.empty()) return {};
  const Sample& sample = *draw.random.pick(samples);
  auto graph = graph_of(sample, draw.graph.table());
  if (!graph.ok()) return {};
  std::vector<Value> in;
  for (const Tensor& given : sample.in) {
    std::optional<Value> leaf = given ? sampled_leaf(draw, given) : kAbsent;
    if (!leaf) return {};
    in.push_back(*leaf);
  }
  const Node& node = graph->nodes()[graph->nodes().size() - 1];
  NamedAttrs attrs = node.attrs.named();
  std::erase_if(attrs, [](const auto& it) { return it.first == "symbol"; });  // the graph may have that size
  auto added = node.op == row.op() ? draw.graph.add(row.op(), in, attrs) : Result<Value>(kAbsent);
  return added.ok() && present(*added) ? builder.wrap(*added) : Expr();
}

}  // namespace

bool add_row(Draw& draw, const OpInfo& row, int attempts) {
  auto guess = [&](Draw& of, Builder& builder) { return guessed_node(of, builder, row); };
  auto sample = [&](Draw& of, Builder& builder) { return sampled_node(of, builder, row); };
  return (can_be_guessed(row) && draw.attempt(guess, attempts)) || draw.attempt(sample);
}

bool add_any_row(Draw& draw) {
  std::vector<const OpInfo*> rows;
  for (const OpInfo& row : draw.graph.table().rows())
    if (can_generate(row)) rows.push_back(&row);
  return add_row(draw, *draw.random.pick(rows), 40);
}

bool add_repeated(Draw& draw) {
  auto index = static_cast<uint32_t>(draw.random.below(static_cast<int64_t>(draw.graph.nodes().size()) + 1));
  if (index >= draw.graph.nodes().size() || draw.graph.info(draw.graph.node(index)).is(kLeaf)) return false;
  if (!decided_sizes(draw.graph).empty()) return false;  // the same size may not be decided twice
  return draw.attempt(
      [&](Draw&, Builder& builder) -> Expr {
        Node node = draw.graph.node(index);
        auto added = draw.graph.add(draw.graph.info(node), node.in, node.attrs);
        return added.ok() ? builder.wrap(*added) : Expr();
      },
      1);
}

}  // namespace rlx::test
