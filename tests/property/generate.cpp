// SPDX-License-Identifier: Apache-2.0
#include "generate.h"

#include <algorithm>

#include "base/visit.h"

namespace rlx::test {

bool can_generate(const OpInfo& row) {
  if (row.is(kLeaf) || row.is(kInternal)) return false;
  // Block-quantised values are params only, and an equation is a language of its own: both have samples instead.
  for (const Port& port : row.signature.in)
    if (port.letter == "Q") return false;
  for (const AttrDef& def : row.attrs)
    if (def.required && def.name == "equation") return false;
  return std::none_of(row.attrs.begin(), row.attrs.end(), [](const AttrDef& def) {
    return def.required && (def.kind == AttrKind::kGraph || def.kind == AttrKind::kTensor);
  });
}

namespace {

constexpr int64_t kMostElements = 4096;  // of any value
constexpr DType kDense[] = {DType::kF32,  DType::kF16, DType::kBF16, DType::kF64,    DType::kI8,    DType::kI16,
                            DType::kI32,  DType::kI64, DType::kU8,   DType::kU16,    DType::kU32,   DType::kU64,
                            DType::kBool, DType::kC64, DType::kC128, DType::kF8E4M3, DType::kF8E5M2};
constexpr double kReals[] = {0, 0.5, 1, 2, -1, 1e-3};

using Shape = std::vector<Dim>;

// ---- contents of leaves ----

// Small numbers mostly, so that integers serve as indices and floats do not overflow; now and then a special one.
template <class T>
T random_element(Random& random) {
  if constexpr (is_complex_type<T>) {
    using Part = typename T::value_type;
    return T(random_element<Part>(random), random_element<Part>(random));
  } else if constexpr (std::is_same_v<T, bool8>) {
    return random.chance(50);
  } else if constexpr (std::is_integral_v<T>) {
    return random.chance(95)   ? static_cast<T>(random.between(std::is_signed_v<T> ? -3 : 0, 3))
           : random.chance(50) ? std::numeric_limits<T>::max()
                               : std::numeric_limits<T>::min();
  } else {
    using C = Compute<T>;
    static constexpr C kSpecial[] = {C(0),
                                     C(-0.0),
                                     std::numeric_limits<C>::infinity(),
                                     -std::numeric_limits<C>::infinity(),
                                     std::numeric_limits<C>::quiet_NaN(),
                                     C(100)};
    return T(random.chance(97) ? static_cast<C>(random.between(-2000, 2000)) / C(512) : random.pick(kSpecial));
  }
}

Tensor random_tensor(Random& random, DType dtype, std::span<const int64_t> dims) {
  Tensor tensor = *Tensor::create(dtype, dims);
  visit<dtypes::A>(dtype, [&]<class T>() {
    for (int64_t i = 0; i < tensor.count(); i++) tensor.as<T>()[i] = random_element<T>(random);
  });
  return tensor;
}

// ---- one graph under construction ----

class Generator {
 public:
  Generator(uint64_t seed, Graph graph) : random_(seed), made_{std::move(graph), {}, {}} {
    static constexpr int64_t kSizes[] = {0, 1, 2, 3, 3, 5};
    sizes_ = {{"n", random_.pick(kSizes)}, {"m", random_.pick(kSizes)}};
    for (const OpInfo& row : made_.graph.table().rows())
      if (can_generate(row)) rows_.push_back(&row);
  }

  RandomGraph make(const OpInfo* wanted) {
    if (wanted) add_node(*wanted, 400);
    for (int64_t count = random_.between(1, 8); count > 0; count--) add_node(*random_.pick(rows_), 40);
    add_outputs();
    return filled();
  }

  RandomGraph filled() {
    for (uint32_t leaf : made_.graph.inputs()) made_.inputs.push_back(contents(leaf));
    for (uint32_t leaf : made_.graph.params()) made_.params[made_.graph.leaf_name(leaf)] = contents(leaf);
    return std::move(made_);
  }

 private:
  // ---- types ----

  std::optional<int64_t> size_of(const Dim& dim) const {
    auto size = evaluate(dim, [&](std::string_view name) -> std::optional<int64_t> {
      auto found = sizes_.find(name);
      return found == sizes_.end() ? std::nullopt : std::optional(found->second);
    });
    return size.ok() ? std::optional(*size) : std::nullopt;
  }

  // Of a leaf that has contents: legal and small at this graph's sizes.
  std::optional<Dims> sizes_of(const Shape& shape) const {
    Dims sizes;
    int64_t count = 1;
    for (const Dim& dim : shape) {
      auto size = size_of(dim);
      if (!size || *size < 0 || (count *= std::max<int64_t>(*size, 1)) > kMostElements) return std::nullopt;
      sizes.push_back(*size);
    }
    return sizes;
  }

  // Of what a node gives: small at this graph's sizes, whatever the sizes that contents decide.
  bool is_small(const Graph& graph, const ValueType& type) const {
    RangeLookup ranges = [&](std::string_view name) -> Interval {
      if (auto known = sizes_.find(name); known != sizes_.end()) return {known->second, known->second};
      for (const auto& [symbol, range] : graph.symbols())
        if (symbol == name) return range;
      return {};
    };
    int64_t count = 1;
    for (const Dim& dim : type.dims) {
      Interval range = range_of(dim, ranges);
      if (range.hi < 0 || range.hi > kMostElements || (count *= std::max<int64_t>(range.hi, 1)) > kMostElements)
        return false;
    }
    return true;
  }

  Dim random_dim() {
    static constexpr int64_t kLiterals[] = {0, 1, 1, 2, 2, 3, 4, 5, 7};
    if (random_.chance(25)) return Dim::symbol(random_.chance(50) ? "n" : "m");
    return random_.pick(kLiterals);
  }

  Shape random_shape() {
    Shape shape;
    for (int64_t rank = random_.between(0, 4); rank > 0; rank--) shape.push_back(random_dim());
    return shape;
  }

  // For an attribute: the run knows only the symbols that inputs have as sizes.
  Dim attribute_dim(const Dim& dim) {
    const auto& known = made_.graph.symbols();
    bool is_known = dim.is_literal() || std::any_of(known.begin(), known.end(), [&](const auto& symbol) {
                      return symbol.first == *dim.symbol_name();
                    });
    return is_known ? dim : Dim(random_.between(0, 3));
  }

  // A shape that may go with another one: the same, one that broadcasts to it, a matrix to multiply it by.
  Shape related(Shape shape) {
    switch (random_.below(6)) {
      case 0: return random_shape();
      case 1:
        for (Dim& dim : shape)
          if (random_.chance(40)) dim = 1;
        return shape;
      case 2: return Shape(shape.end() - std::min<int64_t>(1, static_cast<int64_t>(shape.size())), shape.end());
      case 3:
        if (shape.size() >= 2) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
        return shape;
      case 4:
        if (!shape.empty())
          shape[static_cast<size_t>(random_.below(static_cast<int64_t>(shape.size())))] = random_dim();
        return shape;
      default: return shape;
    }
  }

  // ---- inputs ----

  std::vector<Value> values_of(const Graph& graph, DTypeSet set) const {
    std::vector<Value> found;
    for (uint32_t node = 0; node < graph.nodes().size(); node++)
      for (uint32_t i = 0; i < graph.node(node).out.size(); i++)
        if (set.has(graph.node(node).out[i].dtype)) found.push_back({node, i});
    return found;
  }

  std::optional<Value> new_leaf(Graph& graph, DTypeSet set, const Shape& shape) {
    std::vector<DType> legal;
    for (DType dtype : kDense)
      if (set.has(dtype)) legal.push_back(dtype);
    auto sizes = sizes_of(shape);
    if (legal.empty() || !sizes) return std::nullopt;
    DType dtype = random_.chance(50) ? legal[0] : random_.pick(legal);
    std::string name = std::string("x") + std::to_string(graph.nodes().size());
    bool open = !all_literal(shape);
    int64_t kind = open ? 0 : random_.below(4);
    auto leaf = kind == 1   ? graph.add_param(name, dtype, shape)
                : kind == 2 ? graph.add_constant(random_tensor(random_, dtype, *sizes))
                            : graph.add_input(name, dtype, shape);
    return leaf.ok() ? std::optional(*leaf) : std::nullopt;
  }

  // Inputs for a row, of the dtypes that its letters ask for; new leaves go into `graph`.
  std::optional<std::vector<Value>> random_inputs(Graph& graph, const OpInfo& row) {
    std::vector<Value> in;
    std::map<std::string_view, DType> letters;
    Shape shape = random_shape();
    for (const Port& port : row.signature.in) {
      if (port.optional && random_.chance(40)) {
        in.push_back(kAbsent);
        continue;
      }
      for (int64_t count = port.variadic ? random_.between(1, 3) : 1; count > 0; count--) {
        DTypeSet set = letters.contains(port.letter) ? DTypeSet{letters[port.letter]} : port.set;
        std::vector<Value> known = values_of(graph, set);
        std::optional<Value> value;
        if (!known.empty() && random_.chance(in.empty() ? 70 : 35))
          value = random_.pick(known);
        else
          value = new_leaf(graph, set, in.empty() ? shape : related(shape));
        if (!value) return std::nullopt;
        if (in.empty()) shape = graph.type(*value).dims;
        letters.emplace(port.letter, graph.type(*value).dtype);
        in.push_back(*value);
      }
    }
    return in;
  }

  // ---- attributes ----

  std::vector<int64_t> random_integers(int64_t rank) {
    std::vector<int64_t> list;
    switch (random_.below(4)) {
      case 0:  // a permutation
        for (int64_t i = 0; i < rank; i++) list.insert(list.begin() + random_.below(i + 1), i);
        break;
      case 1:  // some axes
        for (int64_t i = 0; i < rank; i++)
          if (random_.chance(40)) list.push_back(random_.chance(30) ? i - rank : i);
        break;
      case 2:  // one for each axis
        for (int64_t i = 0; i < rank; i++) list.push_back(random_.between(1, 2));
        break;
      default:
        for (int64_t count = random_.between(1, 2); count > 0; count--) list.push_back(random_.between(-1, 3));
    }
    return list;
  }

  Shape random_dims(const Shape& like) {
    Shape dims = like;
    switch (random_.below(6)) {
      case 0: return {-1};
      case 1: std::reverse(dims.begin(), dims.end()); break;
      case 2: dims.insert(dims.begin(), random_dim()); break;
      case 3:
        for (Dim& dim : dims) dim = random_.between(0, 2);
        break;
      case 4:
        dims.clear();
        for (int64_t count = random_.between(1, 2); count > 0; count--) dims.push_back(random_.between(-2, 3));
        break;
      default: dims = random_shape();
    }
    for (Dim& dim : dims)
      if (dim.symbol_name()) dim = attribute_dim(dim);
    return dims;
  }

  AttrValue random_value(const AttrDef& def, const Shape& like) {
    auto rank = static_cast<int64_t>(like.size());
    switch (def.kind) {
      case AttrKind::kI64: return random_.chance(70) ? random_.between(-rank, rank) : random_.between(0, 3);
      case AttrKind::kI64s: return random_integers(rank);
      case AttrKind::kF64: return random_.pick(kReals);
      case AttrKind::kF64s:
        return std::vector<double>(static_cast<size_t>(random_.between(1, 3)), random_.pick(kReals));
      case AttrKind::kBool: return random_.below(2);
      case AttrKind::kEnum: return random_choice(def.choices);
      case AttrKind::kStr: return "a name " + std::to_string(made_.graph.nodes().size());
      case AttrKind::kStrs: return std::vector<std::string>{"a", "b"};
      case AttrKind::kDtype: return random_.pick(kDense);
      case AttrKind::kDim: return attribute_dim(random_dim());
      case AttrKind::kDims: return random_dims(like);
      default: return {};
    }
  }

  std::string random_choice(std::string_view choices) {
    std::vector<std::string> words(1);
    for (char c : choices) {
      if (c == '|')
        words.emplace_back();
      else
        words.back().push_back(c);
    }
    return random_.pick(words);
  }

  NamedAttrs random_attrs(const OpInfo& row, const Shape& like) {
    NamedAttrs attrs;
    for (const AttrDef& def : row.attrs) {
      if (!def.required && random_.chance(60)) continue;
      AttrValue value = random_value(def, like);
      if (!std::holds_alternative<std::monostate>(value)) attrs.emplace_back(def.name, std::move(value));
    }
    return attrs;
  }

  // ---- nodes ----

  void add_node(const OpInfo& row, int attempts) {
    for (; attempts > 0; attempts--) {
      Graph trial = made_.graph;
      auto in = random_inputs(trial, row);
      if (!in) continue;
      Shape like = !in->empty() && present((*in)[0]) ? trial.type((*in)[0]).dims : random_shape();
      auto added = trial.add(row.op(), *in, random_attrs(row, like));
      if (!added.ok()) continue;
      const auto& out = trial.node(*added).out;
      if (!std::all_of(out.begin(), out.end(), [&](const ValueType& type) { return is_small(trial, type); })) continue;
      made_.graph = std::move(trial);
      return;
    }
  }

  void add_outputs() {
    Graph& graph = made_.graph;
    auto uses = use_counts(graph);
    for (uint32_t node = 0; node < uses.size(); node++)
      for (uint32_t i = 0; i < uses[node].size(); i++)
        if (uses[node][i] == 0 || random_.chance(10))
          (void)graph.add_output("out" + std::to_string(graph.outputs().size()), {node, i});
  }

  Tensor contents(uint32_t leaf) {
    const ValueType& type = made_.graph.node(leaf).out[0];
    return random_tensor(random_, type.dtype, *sizes_of(Shape(type.dims.begin(), type.dims.end())));
  }

  Random random_;
  RandomGraph made_;
  std::map<std::string, int64_t, std::less<>> sizes_;  // of the symbols
  std::vector<const OpInfo*> rows_;
};

}  // namespace

RandomGraph random_graph(uint64_t seed, const OpTable& table, const OpInfo* wanted) {
  return Generator(seed, Graph("random", &table)).make(wanted);
}

RandomGraph with_contents(uint64_t seed, Graph graph) {
  return Generator(seed, std::move(graph)).filled();
}

}  // namespace rlx::test
