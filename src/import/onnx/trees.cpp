// SPDX-License-Identifier: Apache-2.0
// Ensembles of decision trees of ai.onnx.ml. All rows go down all trees together: a scan whose carry is the node where
// each row stands in each tree. A leaf leads to itself, so that it does not matter how deep it lies.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "import/onnx/importer.h"
#include "import/onnx/ml.h"
#include "ops/recurrent.h"

namespace rlx::onnx {

namespace {

constexpr int64_t kMaxVotes = int64_t{1} << 26;  // numbers in the table of all nodes and targets
constexpr int64_t kMaxNodes = int64_t{1} << 30;  // whose children's places are i32

// How a value compares with a split. A node accepts some of these.
enum Outcome : int64_t { kBelow = 1, kEqual = 2, kAbove = 4, kNaN = 8 };

struct ModeRow {
  std::string_view name;
  int64_t accepts;
};
// In the order of the numbers that TreeEnsemble has for them.
constexpr ModeRow kModes[] = {{"BRANCH_LEQ", kBelow | kEqual}, {"BRANCH_LT", kBelow},
                              {"BRANCH_GTE", kAbove | kEqual}, {"BRANCH_GT", kAbove},
                              {"BRANCH_EQ", kEqual},           {"BRANCH_NEQ", kBelow | kAbove | kNaN},
                              {"BRANCH_MEMBER", kEqual},       {"LEAF", 0}};
constexpr int64_t kMember = 6, kLeaf = 7;

struct Vote {
  int64_t node, target;
  double weight;
};

struct Forest {
  std::vector<int64_t> feature, accepts, yes, no, roots;  // of each node; a leaf leads to itself
  std::vector<double> split;
  std::vector<Vote> votes;
  int64_t targets = 1;

  int64_t size() const { return static_cast<int64_t>(feature.size()); }
  int64_t add_leaf() {
    feature.push_back(0), accepts.push_back(0), split.push_back(0);
    yes.push_back(size() - 1), no.push_back(size() - 1);
    return size() - 1;
  }
};

// The longest way from a root to a leaf; nullopt if a way never ends.
std::optional<int64_t> depth_of(const Forest& forest) {
  std::vector<int64_t> parents(forest.feature.size()), depth(forest.feature.size()), ready;
  auto children = [&](int64_t node, auto visit) {
    auto at = static_cast<size_t>(node);
    for (int64_t child : {forest.yes[at], forest.no[at]})
      if (child != node) visit(static_cast<size_t>(child));
  };
  for (int64_t node = 0; node < forest.size(); node++) children(node, [&](size_t child) { parents[child]++; });
  for (int64_t node = 0; node < forest.size(); node++)
    if (parents[static_cast<size_t>(node)] == 0) ready.push_back(node);
  int64_t longest = 0, done = 0;
  while (!ready.empty()) {
    int64_t node = ready.back(), here = depth[static_cast<size_t>(node)];
    ready.pop_back();
    done++;
    longest = std::max(longest, here);
    children(node, [&](size_t child) {
      depth[child] = std::max(depth[child], here + 1);
      if (--parents[child] == 0) ready.push_back(static_cast<int64_t>(child));
    });
  }
  return done == forest.size() ? std::optional(longest) : std::nullopt;
}

Status check(const Forest& forest) {
  auto is_node = [&](int64_t node) { return node >= 0 && node < forest.size(); };
  bool good = forest.size() > 0 && !forest.roots.empty() && std::ranges::all_of(forest.roots, is_node) &&
              std::ranges::all_of(forest.yes, is_node) && std::ranges::all_of(forest.no, is_node) &&
              std::ranges::all_of(forest.feature, [](int64_t feature) { return feature >= 0; }) &&
              std::ranges::all_of(forest.votes, [&](const Vote& vote) {
                return is_node(vote.node) && vote.target >= 0 && vote.target < forest.targets;
              });
  if (!good || forest.targets < 1)
    return Status(Code::kData, "its trees name nodes, features or targets that are not there");
  if (forest.targets > kMaxVotes / forest.size()) return Status(Code::kUnsupported, "too many nodes and targets");
  return {};
}

// What all splits accept apart from NaN; nullopt if they differ.
std::optional<int64_t> common_test(const Forest& forest) {
  int64_t common = 0;
  for (int64_t accepts : forest.accepts) {
    if (accepts == 0) continue;  // a leaf
    if (common != 0 && common != (accepts & ~kNaN)) return std::nullopt;
    common = accepts & ~kNaN;
  }
  return common;
}

// Whether a value passes a test that accepts these outcomes.
Expr passes(Expr value, Expr split, int64_t accepts) {
  switch (accepts) {
    case kBelow: return less(value, split);
    case kBelow | kEqual: return less_equal(value, split);
    case kAbove: return less(split, value);
    case kAbove | kEqual: return less_equal(split, value);
    case kEqual: return equal(value, split);
    default: return logical_or(less(value, split), less(split, value));
  }
}

// The same where each split has its own test.
Expr passes_own(Expr value, Expr split, Expr accepts) {
  auto number = [&](Outcome outcome) { return scalar_like(accepts, static_cast<double>(outcome)); };
  Expr outcome = where(equal(value, split), number(kEqual), number(kNaN));
  outcome = where(less(value, split), number(kBelow), where(less(split, value), number(kAbove), outcome));
  return not_equal(binary(Op::kBitAnd, accepts, outcome), 0);
}

Expr small_list(Call& call, const std::vector<int64_t>& numbers) {
  return cast(list_of(call, numbers), DType::kI32);
}

// [N, trees]: the leaves that the rows reach. Where all splits have one test, only NaN may need a table.
Expr leaves_of(Call& call, const Forest& forest, Expr x) {
  auto depth = depth_of(forest);
  if (!depth) return call.fail(Code::kData, "a tree has a cycle"), x;
  if (forest.size() > kMaxNodes) return call.fail(Code::kUnsupported, "too many nodes"), x;
  Dim rows = x.dim(0), trees = static_cast<int64_t>(forest.roots.size());
  Expr start = broadcast_to(small_list(call, forest.roots), {rows, trees});
  if (*depth == 0) return start;
  std::vector<int64_t> children;  // no and yes of each node
  for (size_t i = 0; i < forest.yes.size(); i++) children.insert(children.end(), {forest.no[i], forest.yes[i]});
  std::optional<int64_t> test = common_test(forest);
  bool may_be_nan = std::ranges::any_of(forest.accepts, [](int64_t accepts) { return (accepts & kNaN) != 0; });
  Expr steps = iota(call.builder(), {Dim(*depth)}, 0, DType::kI64);
  Expr kept[] = {x, small_list(call, forest.feature), list_of(call, x.dtype(), forest.split),
                 small_list(call, children), small_list(call, forest.accepts)};
  auto step = [&](auto carry, auto, auto in) -> std::vector<Expr> {
    auto here = [&](size_t table) { return gather(in[table], carry[0], 0); };
    Expr value = carry[0].builder().op(Op::kGatherElements, {in[0], here(1)}, {{"axis", int64_t{1}}}), split = here(2);
    Expr takes_yes = test ? passes(value, split, *test) : passes_own(value, split, here(4));
    if (test && may_be_nan)
      takes_yes = logical_or(
          takes_yes,
          logical_and(not_equal(value, value), not_equal(binary(Op::kBitAnd, here(4), scalar_like(here(4), kNaN)), 0)));
    return {gather(in[3], carry[0] * 2.0 + cast(takes_yes, DType::kI32), 0)};
  };
  return scan(std::span(&start, 1), std::span(&steps, 1), kept, ScanOrder::kForward, step)[0];
}

// [N, targets]: what the leaves say, joined. `how`: SUM, AVERAGE, MIN or MAX.
Expr aggregated(Call& call, const Forest& forest, Expr x, std::string_view how) {
  if (Status status = check(forest); !status.ok()) return call.fail(status), x;
  if (how != "SUM" && how != "AVERAGE" && how != "MIN" && how != "MAX")
    return call.fail(Code::kData, "'aggregate_function' is " + std::string(how)), x;
  bool is_sum = how == "SUM" || how == "AVERAGE";
  double most = std::numeric_limits<double>::infinity(), none = is_sum ? 0 : how == "MIN" ? most : -most;
  std::vector<double> table(static_cast<size_t>(forest.size() * forest.targets), none);
  for (const Vote& vote : forest.votes) {
    double& sum = table[static_cast<size_t>(vote.node * forest.targets + vote.target)];
    sum = is_sum ? sum + vote.weight : vote.weight;
  }
  Expr rows = reshape(list_of(call, x.dtype(), table), {Dim(forest.size()), Dim(forest.targets)});
  Expr votes = gather(rows, leaves_of(call, forest, x), 0);
  Expr y = reduce(votes, is_sum ? "sum" : how == "MIN" ? "min" : "max", {1}, KeepDims::kNo);
  if (how == "AVERAGE") y = y / static_cast<double>(forest.roots.size());
  return is_sum || !y.valid() ? y : where(equal(y, none), 0, y);
}

// ---- trees as lists of attributes, whose nodes have the numbers of a tree and a node ----

std::vector<double> reals_of(Call& call, const std::string& name) {
  const TensorProto* proto = call.tensor(name + "_as_tensor");
  if (!proto) return call.f64s(name);
  auto tensor = call.importer().read(*proto);
  if (!tensor.ok() || !is_float(tensor->dtype()))
    return call.fail(Code::kData, "'" + name + "_as_tensor' is not a list of numbers"), std::vector<double>();
  std::vector<double> numbers;
  for (int64_t i = 0; i < tensor->count(); i++) numbers.push_back(element_as_f64(*tensor, i));
  return numbers;
}

std::optional<int64_t> accepts_of(std::string_view mode) {
  for (const ModeRow& row : kModes)
    if (row.name == mode && mode != "BRANCH_MEMBER") return row.accepts;
  return std::nullopt;
}

using Places = std::map<std::pair<int64_t, int64_t>, int64_t>;  // by the numbers of tree and node

// The votes' attributes begin with `prefix`.
void add_votes(Call& call, const std::string& prefix, const Places& places, Forest& forest) {
  std::vector<int64_t> trees = call.i64s(prefix + "_treeids"), nodes = call.i64s(prefix + "_nodeids"),
                       targets = call.i64s(prefix + "_ids");
  std::vector<double> weights = reals_of(call, prefix + "_weights");
  if (nodes.size() != trees.size() || targets.size() != trees.size() || weights.size() != trees.size())
    return call.fail(Code::kData, "the lists of its leaves are not of one length");
  for (size_t i = 0; i < trees.size(); i++) {
    auto place = places.find({trees[i], nodes[i]});
    forest.votes.push_back({place == places.end() ? -1 : place->second, targets[i], weights[i]});
  }
}

Forest listed_forest(Call& call, const std::string& prefix) {
  Forest forest;
  for (const char* unused : {"nodes_hitrates", "nodes_hitrates_as_tensor"}) call.ignore(unused);
  std::vector<int64_t> trees = call.i64s("nodes_treeids"), nodes = call.i64s("nodes_nodeids"),
                       yes = call.i64s("nodes_truenodeids"), no = call.i64s("nodes_falsenodeids"),
                       follows = call.i64s("nodes_missing_value_tracks_true");
  std::vector<std::string_view> modes = call.texts("nodes_modes");
  forest.feature = call.i64s("nodes_featureids"), forest.split = reals_of(call, "nodes_values");
  size_t count = trees.size();
  follows.resize(count, 0);
  for (size_t size : {nodes.size(), yes.size(), no.size(), modes.size(), forest.feature.size(), forest.split.size()})
    if (size != count) return call.fail(Code::kData, "the lists of its nodes are not of one length"), Forest();
  Places places;
  for (size_t i = 0; i < count; i++) places.emplace(std::pair(trees[i], nodes[i]), static_cast<int64_t>(i));
  std::vector<bool> is_child(count);
  auto child = [&](size_t i, int64_t node) {
    auto place = places.find({trees[i], node});
    if (place != places.end()) is_child[static_cast<size_t>(place->second)] = true;
    return place == places.end() ? -1 : place->second;
  };
  for (size_t i = 0; i < count; i++) {
    auto accepts = accepts_of(modes[i]);
    if (!accepts) return call.fail(Code::kData, "'nodes_modes' holds " + std::string(modes[i])), Forest();
    bool is_leaf = modes[i] == kModes[kLeaf].name;
    forest.accepts.push_back(*accepts | (follows[i] != 0 ? int64_t{kNaN} : 0));
    forest.yes.push_back(is_leaf ? static_cast<int64_t>(i) : child(i, yes[i]));
    forest.no.push_back(is_leaf ? static_cast<int64_t>(i) : child(i, no[i]));
    if (is_leaf) forest.feature[i] = 0, forest.split[i] = 0;
  }
  for (size_t i = 0; i < count; i++)
    if (!is_child[i]) forest.roots.push_back(static_cast<int64_t>(i));
  add_votes(call, prefix, places, forest);
  return forest;
}

Expr with_base(Call& call, Expr y, const std::vector<double>& base) {
  return base.empty() ? y : y + list_of(call, y.dtype(), base);
}

Expr rows_of(Call& call) {
  Expr x = call.in(0);
  if (!x.valid()) return x;
  if (x.rank() == 1) x = unsqueeze(x, 0);
  if (x.rank() != 2) return call.builder().fail(Status(Code::kShape, "its input must have rank 2"));
  return is_float(x.dtype()) && !is_half(x.dtype()) ? x : cast(x, DType::kF32);
}

void build_regressor(Call& call) {
  Expr x = rows_of(call);
  Forest forest = listed_forest(call, "target");
  forest.targets = call.i64("n_targets", 1);
  std::vector<double> base = reals_of(call, "base_values");
  std::string_view transform = call.text("post_transform", "NONE"), how = call.text("aggregate_function", "SUM");
  if (!call.status().ok() || !x.valid()) return;
  Expr y = with_base(call, aggregated(call, forest, x, how), base);
  call.out(0, cast(transformed_rows(call, y, transform), DType::kF32));
}

// Trees for two labels may vote for one of them only. Where all votes are positive they are the probability of the
// second label, whichever label they name.
void build_classifier(Call& call) {
  Expr x = rows_of(call);
  Forest forest = listed_forest(call, "class");
  std::vector<double> base = reals_of(call, "base_values");
  std::string_view transform = call.text("post_transform", "NONE");
  forest.targets = static_cast<int64_t>(call.i64s("classlabels_int64s").size());
  if (!call.texts("classlabels_strings").empty()) return call.fail(Code::kUnsupported, "labels that are strings");
  if (!call.status().ok() || !x.valid() || forest.votes.empty()) return;
  int64_t first = forest.votes[0].target;
  bool is_of_one =
      forest.targets == 2 && std::ranges::all_of(forest.votes, [&](const Vote& vote) { return vote.target == first; });
  bool is_one = is_of_one && first == 0;
  bool is_share = std::ranges::all_of(forest.votes, [](const Vote& vote) { return vote.weight >= 0; });
  if (is_one) forest.targets = 1;
  Expr scores = cast(aggregated(call, forest, x, "SUM"), DType::kF32);
  if (is_one && base.size() > 1) base.resize(1);
  scores = with_base(call, scores, base);
  double least = is_share ? 0.5 : 0;
  if (is_one) return give_two_classes(call, scores, least, is_share ? 1 : 0, transform);
  Expr transformed = transformed_rows(call, scores, transform);
  // SOFTMAX_ZERO gives nothing to a label without votes, though others may have less than its 0.
  Expr ranked = transform == "SOFTMAX_ZERO" ? transformed : scores;
  is_of_one ? give_label_of_two(call, slice(scores, 1, 1, 2), least) : give_label_of_most(call, ranked);
  call.out(1, transformed);
}

// ---- trees as tensors: the children of a node are nodes or leaves ----

struct Children {
  std::vector<int64_t> places, are_leaves;
};

Children children_of(Call& call, const std::string& side) {
  return {call.i64s("nodes_" + side + "nodeids"), call.i64s("nodes_" + side + "leafs")};
}

std::vector<double> tensor_of(Call& call, const char* name) {
  std::vector<double> numbers;
  const TensorProto* proto = call.tensor(name);
  if (!proto) return numbers;
  auto tensor = call.importer().read(*proto);
  if (!tensor.ok()) return call.fail(tensor.status()), numbers;
  if (is_complex(tensor->dtype())) return call.fail(Code::kData, format("'{}' holds complex numbers", name)), numbers;
  for (int64_t i = 0; i < tensor->count(); i++) numbers.push_back(element_as_f64(*tensor, i));
  return numbers;
}

// The sets of the nodes that ask for membership; NaN ends a set. They stand in the order of the nodes.
std::vector<std::vector<double>> sets_of(std::span<const double> modes, std::span<const double> members) {
  std::vector<std::vector<double>> sets(modes.size());
  size_t at = 0;
  for (size_t node = 0; node < modes.size(); node++) {
    if (modes[node] != kMember) continue;
    while (at < members.size() && !std::isnan(members[at])) sets[node].push_back(members[at++]);
    at++;
  }
  return sets;
}

struct TensorTrees {
  std::vector<double> splits, modes;
  std::vector<int64_t> features, follows;
  Children yes, no;
  std::vector<std::vector<double>> sets;  // of each node that asks for membership, which becomes a chain of nodes
  size_t leaves = 0;

  bool is_consistent() const {
    for (size_t size : {modes.size(), features.size(), yes.places.size(), yes.are_leaves.size(), no.places.size(),
                        no.are_leaves.size(), follows.size()})
      if (size != splits.size()) return false;
    return true;
  }
};

// Adds the nodes of one tree from the root on, and then its leaves' places; a leaf's place is `first_leaf` + its
// number.
class TreeWalk {
 public:
  TreeWalk(TensorTrees& trees, Forest& forest) : trees_(trees), forest_(forest) {}

  Status walk(int64_t root) {
    forest_.roots.push_back(RLX_TRY(add(root, false)));
    while (!open_.empty()) {
      Open next = open_.back();
      open_.pop_back();
      int64_t place = RLX_TRY(add(next.node, next.is_leaf));
      for (int64_t parent : next.parents) (next.is_yes ? forest_.yes : forest_.no)[static_cast<size_t>(parent)] = place;
    }
    return {};
  }

 private:
  struct Open {
    int64_t node;
    bool is_leaf, is_yes;
    std::vector<int64_t> parents;
  };

  Result<int64_t> add(int64_t node, bool is_leaf) {
    auto at = static_cast<size_t>(node);
    size_t limit = is_leaf ? trees_.leaves : trees_.splits.size();
    if (node < 0 || at >= limit) return Status(Code::kData, "its trees name nodes that are not there");
    if (is_leaf) return node;  // the leaves are the first nodes
    if (++added_ > static_cast<int64_t>(trees_.splits.size())) return Status(Code::kData, "a tree has a cycle");
    auto mode = static_cast<int64_t>(trees_.modes[at]);
    if (mode < 0 || mode > kMember) return Status(Code::kData, format("'nodes_modes' holds {}", mode));
    std::vector<double> splits = mode == kMember ? trees_.sets[at] : std::vector<double>{trees_.splits[at]};
    if (splits.empty()) return Status(Code::kData, "a set without members");
    std::vector<int64_t> chain;
    for (double split : splits) {
      int64_t place = forest_.add_leaf();
      auto last = static_cast<size_t>(place);
      forest_.feature[last] = trees_.features[at], forest_.split[last] = split;
      forest_.accepts[last] = kModes[mode].accepts | (trees_.follows[at] != 0 ? int64_t{kNaN} : 0);
      if (!chain.empty()) forest_.no[static_cast<size_t>(chain.back())] = place;
      chain.push_back(place);
    }
    open_.push_back({trees_.no.places[at], trees_.no.are_leaves[at] != 0, false, {chain.back()}});
    open_.push_back({trees_.yes.places[at], trees_.yes.are_leaves[at] != 0, true, chain});
    return chain.front();
  }

  TensorTrees& trees_;
  Forest& forest_;
  std::vector<Open> open_;
  int64_t added_ = 0;
};

void build_ensemble(Call& call) {
  static constexpr std::string_view kAggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  static constexpr std::string_view kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  int64_t aggregate = call.i64("aggregate_function", 1), transform = call.i64("post_transform", 0);
  call.ignore("nodes_hitrates");
  Expr x = rows_of(call);
  std::vector<int64_t> targets = call.i64s("leaf_targetids"), roots = call.i64s("tree_roots");
  Forest forest;
  forest.targets = call.i64("n_targets", 1);
  std::vector<double> weights = tensor_of(call, "leaf_weights");
  TensorTrees trees{tensor_of(call, "nodes_splits"),
                    tensor_of(call, "nodes_modes"),
                    call.i64s("nodes_featureids"),
                    call.i64s("nodes_missing_value_tracks_true"),
                    children_of(call, "true"),
                    children_of(call, "false"),
                    {},
                    weights.size()};
  trees.follows.resize(trees.splits.size(), 0);
  trees.sets = sets_of(trees.modes, tensor_of(call, "membership_values"));
  if (aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4 || !trees.is_consistent() ||
      targets.size() != weights.size())
    return call.fail(Code::kData, "the lists of its nodes are not of one length, or an attribute is out of range");
  if (!call.status().ok() || !x.valid()) return;
  for (size_t i = 0; i < weights.size(); i++) forest.votes.push_back({forest.add_leaf(), targets[i], weights[i]});
  TreeWalk walk(trees, forest);
  for (int64_t root : roots)
    if (Status status = walk.walk(root); !status.ok()) return call.fail(status);
  Expr y = aggregated(call, forest, x, kAggregates[aggregate]);
  call.out(0, cast(transformed_rows(call, y, kTransforms[transform]), call.type(0).dtype));
}

constexpr NodeKind kKinds[] = {
    machine_learning("TreeEnsemble", build_ensemble),
    machine_learning("TreeEnsembleRegressor", build_regressor),
    machine_learning("TreeEnsembleClassifier", build_classifier),
};

}  // namespace

std::span<const NodeKind> tree_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
