// SPDX-License-Identifier: Apache-2.0
#include "draw.h"

#include <algorithm>

#include "edit.h"

namespace rlx::test {

namespace {

constexpr int64_t kMaxElements = 4096;  // of any value
constexpr size_t kRuns = 3;

bool is_decided(const Graph& graph, std::string_view symbol) {
  std::vector<DecidedSize> decided = decided_sizes(graph);
  return std::any_of(decided.begin(), decided.end(), [&](const DecidedSize& size) { return size.symbol == symbol; });
}

}  // namespace

Draw::Draw(uint64_t seed, Graph given) : random(seed), graph(std::move(given)), runs_(kRuns) {
  draw_sizes("n", graph.symbol_range("n"));
  Interval range = graph.symbol_range("m");
  if (random.chance(25))
    for (Sizes& sizes : runs_) sizes["m"] = std::clamp(sizes["n"], range.lo, range.hi);
  else
    draw_sizes("m", range);
  for (const auto& [symbol, range] : graph.symbols())
    if (!runs_[0].contains(symbol) && !is_decided(graph, symbol)) draw_sizes(symbol, range);
}

Draw::Draw(uint64_t seed, Graph given, const Draw& around)
    : random(seed), graph(std::move(given)), is_body(true), depth(around.depth + 1), runs_(around.runs_) {
  for (const auto& [symbol, range] : around.graph.symbols()) {
    known_.insert(symbol);
    (void)graph.declare_symbol(symbol, range);
  }
  known_.insert(around.known_.begin(), around.known_.end());
}

Draw Draw::body_of(Draw& around, std::string name) {
  Draw body(around.random.next(), Graph(name, &around.graph.table()), around);
  body.prefix_ = around.prefix_ + std::to_string(around.graph.nodes().size()) + "." + name + ".";
  return body;
}

// One of some elements, one of 0 or 1, one of any size, in any order.
void Draw::draw_sizes(const std::string& symbol, Interval range) {
  static constexpr int64_t kSome[] = {2, 3, 3, 4, 5}, kAny[] = {0, 1, 2, 3, 5, 6};
  int64_t sizes[kRuns] = {random.pick(kSome), random.below(2), random.pick(kAny)};
  int64_t first = random.below(kRuns);
  for (size_t run = 0; run < kRuns; run++)
    runs_[run][symbol] = std::clamp(sizes[(run + static_cast<size_t>(first)) % kRuns], range.lo, range.hi);
}

// ---- sizes and types ----

std::optional<Dims> Draw::sizes_of(const Shape& shape, size_t run) const {
  Dims sizes;
  int64_t count = 1;
  for (const Dim& dim : shape) {
    auto size = evaluate(dim, [&](std::string_view name) -> std::optional<int64_t> {
      auto found = runs_[run].find(name);
      return found == runs_[run].end() ? std::nullopt : std::optional(found->second);
    });
    if (!size.ok() || *size < 0 || (count *= std::max<int64_t>(*size, 1)) > kMaxElements) return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

// Whatever the sizes that contents decide.
bool Draw::is_small(const ValueType& type) const {
  RangeLookup ranges = [&](std::string_view name) -> Interval {
    if (!runs_[0].contains(name)) return graph.symbol_range(name);
    Interval range{Interval::kUnbounded, 0};
    for (const Sizes& sizes : runs_) {
      range.lo = std::min(range.lo, sizes.find(name)->second);
      range.hi = std::max(range.hi, sizes.find(name)->second);
    }
    return range;
  };
  int64_t count = 1;
  for (const Dim& dim : type.dims) {
    Interval range = range_of(dim, ranges);
    if (range.hi < 0 || range.hi > kMaxElements || (count *= std::max<int64_t>(range.hi, 1)) > kMaxElements)
      return false;
  }
  return true;
}

Dim Draw::dim() {
  static constexpr int64_t kLiterals[] = {0, 1, 1, 2, 2, 3, 4, 5, 7};
  if (random.chance(25)) {
    Dim n = Dim::symbol("n"), m = Dim::symbol("m");
    if (!random.chance(15) || !is_known(n + m)) return random.chance(50) ? n : m;
    return random.chance(50) ? n + m : 2 * n;
  }
  return random.pick(kLiterals);
}

Shape Draw::shape() {
  Shape shape;
  for (int64_t rank = random.between(0, 4); rank > 0; rank--) shape.push_back(dim());
  return shape;
}

bool Draw::is_known(const Dim& dim) const {
  bool is_known = true;
  visit_symbols(dim, [&](const std::string& name) {
    const auto& symbols = graph.symbols();
    is_known &= known_.contains(name) ||
                std::any_of(symbols.begin(), symbols.end(), [&](const auto& symbol) { return symbol.first == name; });
  });
  return is_known;
}

// Now and then one that some runs put below 0.
Dim Draw::attribute_dim(const Dim& dim) {
  if (!is_known(dim)) return random.between(0, 3);
  return !dim.is_literal() && random.chance(10) ? dim - random.between(1, 2) : dim;
}

Shape Draw::related(Shape shape) {
  switch (random.below(6)) {
    case 0: return this->shape();
    case 1:
      for (Dim& dim : shape)
        if (random.chance(40)) dim = 1;
      return shape;
    case 2: return Shape(shape.end() - std::min<int64_t>(1, static_cast<int64_t>(shape.size())), shape.end());
    case 3:
      if (shape.size() >= 2) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
      return shape;
    case 4:
      if (!shape.empty()) shape[static_cast<size_t>(random.below(static_cast<int64_t>(shape.size())))] = dim();
      return shape;
    default: return shape;
  }
}

DType Draw::float_type() {
  int64_t kind = random.below(20);
  return kind < 13 ? DType::kF32 : kind < 16 ? DType::kF16 : kind < 18 ? DType::kBF16 : DType::kF64;
}

// ---- values ----

std::vector<Value> Draw::values(DTypeSet set) const {
  std::vector<Value> found;
  for (uint32_t node = 0; node < graph.nodes().size(); node++)
    for (uint32_t i = 0; i < graph.node(node).out.size(); i++)
      if (set.has(graph.node(node).out[i].dtype)) found.push_back({node, i});
  return found;
}

std::optional<Value> Draw::leaf(DTypeSet set, const Shape& shape) {
  std::vector<DType> legal;
  for (DType dtype : kDense)
    if (set.has(dtype)) legal.push_back(dtype);
  for (size_t run = 0; run < kRuns; run++)
    if (!sizes_of(shape, run)) return std::nullopt;
  if (legal.empty() || (is_body && !all_literal(shape))) return std::nullopt;
  DType dtype = random.chance(50) ? legal[0] : random.pick(legal);
  std::string name = prefix_ + std::to_string(graph.nodes().size());
  int64_t kind = !all_literal(shape) ? 0 : is_body ? random.between(1, 2) : random.below(4);
  auto leaf = kind == 1   ? graph.add_param(name, dtype, shape)
              : kind == 2 ? graph.add_constant(random_constant(random, dtype, *sizes_of(shape, 0)))
                          : graph.add_input(name, dtype, shape);
  return leaf.ok() ? std::optional(*leaf) : std::nullopt;
}

Expr Draw::value(Builder& builder, DType dtype, const Shape& shape) {
  std::vector<Value> known;
  for (Value value : values(DTypeSet{dtype}))
    if (graph.type(value).dims == shape) known.push_back(value);
  if (!known.empty() && (random.chance(50) || (is_body && !all_literal(shape))))
    return builder.wrap(random.pick(known));
  if (is_body || !random.chance(80) || !sizes_of(shape, 0)) {  // an input has no size that a node decides
    auto made = leaf(DTypeSet{dtype}, shape);
    return made ? builder.wrap(*made) : builder.fail(Status(Code::kShape, "no value of this type"));
  }
  auto made = graph.add_input(prefix_ + std::to_string(graph.nodes().size()), dtype, shape);
  return made.ok() ? builder.wrap(*made) : builder.fail(made.status());
}

Expr Draw::any(Builder& builder, DTypeSet set, size_t least_rank) {
  std::vector<Value> known;
  for (Value value : values(set))
    if (graph.type(value).rank() >= least_rank) known.push_back(value);
  if (!known.empty() && (is_body || random.chance(60))) return builder.wrap(random.pick(known));
  Shape wanted = shape();
  while (wanted.size() < least_rank) wanted.push_back(dim());
  auto made = leaf(set, wanted);
  return made ? builder.wrap(*made) : builder.fail(Status(Code::kShape, "no value of this type"));
}

Expr Draw::weight(Builder& builder, DType dtype, const Shape& shape) {
  if (!all_literal(shape)) return value(builder, dtype, shape);
  auto sizes = sizes_of(shape, 0);
  if (!sizes) return builder.fail(Status(Code::kShape, "too large"));
  std::string name = prefix_ + std::to_string(graph.nodes().size());
  auto made = random.chance(60) ? graph.add_param(name, dtype, shape)
                                : graph.add_constant(random_tensor(random, dtype, *sizes));
  return made.ok() ? builder.wrap(*made) : builder.fail(made.status());
}

Expr Draw::number(Expr like, double value) {
  if (!like.valid()) return like;
  Expr scalar = scalar_like(like, value);
  if (!scalar.valid() || random.chance(70)) return scalar;
  Shape ones(static_cast<size_t>(random.between(1, std::max<int64_t>(1, static_cast<int64_t>(like.rank())))), Dim(1));
  if (random.chance(20) && like.rank() > 0 && like.dim(-1).is_literal()) ones.back() = like.dim(-1);
  if (ones.back().is(1)) return reshape(scalar, ones);
  return broadcast_to(reshape(scalar, Shape(ones.size(), Dim(1))), ones);
}

// ---- attempts ----

bool Draw::attempt(const Build& build, int attempts) {
  Graph before = graph;
  size_t nodes = before.nodes().size(), symbols = before.symbols().size(), guards = before.guards().size();
  for (; attempts > 0; attempts--) {
    Builder builder(graph);
    Expr made = build(*this, builder);
    if (builder.status().ok() && made.valid() && are_small(nodes)) return true;
    if (graph.nodes().size() > nodes || graph.symbols().size() > symbols || graph.guards().size() > guards)
      graph = before;
  }
  return false;
}

bool Draw::are_small(size_t first) const {
  for (auto i = static_cast<uint32_t>(first); i < graph.nodes().size(); i++)
    for (const ValueType& type : graph.node(i).out)
      if (!is_small(type)) return false;
  return true;
}

// ---- contents ----

static constexpr int64_t kMaxGiven = int64_t{1} << 20;  // elements of a leaf that a text has

Tensor Draw::contents(const ValueType& type, size_t run) {
  auto sizes = sizes_of(type.dims, run);
  if (!sizes && all_literal(type.dims)) {  // a text may have larger ones than are drawn
    sizes.emplace();
    for (const Dim& dim : type.dims) sizes->push_back(dim.literal());
    if (element_count(*sizes).value_or(kMaxGiven + 1) > kMaxGiven) sizes.reset();
  }
  // A size that is found in the run alone is no size of an input: the run will say so.
  return random_tensor(random, type.dtype, sizes ? *sizes : Dims(std::vector<int64_t>(type.rank(), 0)));
}

void Draw::fill_params(const Graph& of, RandomGraph& made) {
  visit_nodes(of, [&](const Graph& around, const Node& node) {
    if (node.op != Op::kParam || made.params.contains(node.attrs.str("name"))) return;
    (void)around;
    made.params[node.attrs.str("name")] = contents(node.out[0], 0);
  });
}

RandomGraph Draw::filled() {
  bool is_open = false, has_open_params = false;
  for (uint32_t leaf : graph.inputs()) is_open |= !all_literal(graph.node(leaf).out[0].dims);
  for (uint32_t leaf : graph.params()) has_open_params |= !all_literal(graph.node(leaf).out[0].dims);
  RandomGraph made;
  for (size_t run = 0; run < (is_open && !has_open_params ? kRuns : 1); run++) {
    made.runs.emplace_back();
    for (uint32_t leaf : graph.inputs()) made.runs[run].push_back(contents(graph.node(leaf).out[0], run));
  }
  fill_params(graph, made);
  made.graph = std::move(graph);
  return made;
}

}  // namespace rlx::test
