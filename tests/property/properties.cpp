// SPDX-License-Identifier: Apache-2.0
#include "properties.h"
#include "base/contains.h"

#include <algorithm>

#include "edit.h"
#include "ir/body.h"
#include "ir/probe.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "meaning.h"
#include "passes/at_sizes.h"
#include "rules/rules.h"
#include "runtime/program.h"
#include "shrink.h"
#include "tests/support/printed.h"
#include "tests/support/transforms.h"

namespace rlx::test {

namespace {

std::string failed(std::string_view what, const Status& status) {
  return std::string(what) + ": " + std::string(status.message());
}

// ---- text ----

bool implies_guards_of(const Graph& graph, const Graph& other) {
  return std::all_of(other.guards().begin(), other.guards().end(),
                     [&](const Guard& guard) { return holds_at_samples(graph, guard); });
}

// "", or how `again`, read from the text of a graph, is another graph.
std::string text_difference(const Graph& graph, const Graph& again) {
  bool is_same_text = without_guards(print(again)) == without_guards(print(graph));
  if (!is_same_text || !implies_guards_of(graph, again) || !implies_guards_of(again, graph))
    return "text: printed again it is\n" + print(again);
  bool same = equal(std::make_shared<const Graph>(graph), std::make_shared<const Graph>(again));
  return same ? "" : "text: what is parsed is not what was printed";
}

// Whether the sizes that no node decides have the same ranges.
bool same_given_ranges(const Graph& graph, const Graph& other) {
  std::vector<DecidedSize> decided = decided_sizes(graph);
  return std::all_of(graph.symbols().begin(), graph.symbols().end(), [&](const auto& entry) {
    const auto& [symbol, range] = entry;
    if (std::any_of(decided.begin(), decided.end(), [&](auto& it) { return it.symbol == symbol; })) return true;
    Interval read = other.symbol_range(symbol);
    return read.lo == range.lo && read.hi == range.hi;
  });
}

// Of the graph or of a body: the nodes of a body are read after its guards.
bool has_contradiction(const Graph& graph) {
  if (guards_contradict(graph)) return true;
  for (const Node& node : graph.nodes())
    for (const Graph* body : bodies_of(node.attrs))
      if (has_contradiction(*body)) return true;
  return false;
}

std::string check_text(const Graph& graph) {
  auto again = parse(print(graph), graph.table());
  // Guards that contradict each other imply any other guard and any size. In another order, the reader may refuse them.
  bool may_be_refused = again.status().code() == Code::kShape;
  if ((again.ok() || may_be_refused) && has_contradiction(graph)) return "";
  if (!again.ok()) return failed("text: what is printed does not parse", again.status());
  std::string wrong = text_difference(graph, *again);
  if (wrong.empty()) return "";
  auto third = parse(print(*again), graph.table());
  bool is_settled = third.ok() && text_difference(*again, *third).empty();
  bool guards_agree = implies_guards_of(graph, *again) && implies_guards_of(*again, graph);
  bool may_change = is_settled && guards_agree && same_given_ranges(graph, *again);
  return may_change && settles(print(graph), print(*again), print(*third)) ? "" : wrong;
}

// An exception is a fault like any other.
template <class Check>
std::string guarded(Check check) {
  try {
    return check();
  } catch (const std::exception& thrown) {
    return std::string("it throws: ") + thrown.what();
  }
}

// ---- transforms ----

using Meanings = std::vector<Meaning*>;  // of runs in which indices out of range do the same

std::string sizes_text(const RandomGraph& random, const Meaning& meaning) {
  std::string text;
  if (auto sizes = bind_sizes(random.graph, meaning.inputs()); sizes.ok())
    for (const auto& [symbol, size] : *sizes) text += " " + symbol + "=" + std::to_string(size);
  return text.empty() ? "" : " (with" + text + ")";
}

enum class Compared : uint8_t { kInBits, kWithinTolerance };

std::string difference_of(const Graph& other, const RandomGraph& random, Meaning& meaning, Compared compared) {
  bool exact = compared == Compared::kInBits;
  EvalOptions options{exact ? EvalMode::kTyped : EvalMode::kOracle, meaning.bounds()};
  auto results = interpret(other, meaning.inputs(), random.params, options);
  std::string wrong = !results.ok() ? failed("its graph does not run", results.status())
                      : exact       ? meaning.difference_in_bits(*results)
                                    : meaning.difference(*results);
  return wrong.empty() ? "" : wrong + sizes_text(random, meaning) + "\n" + print(other);
}

std::string difference_of(const Graph& other, const RandomGraph& random, const Meanings& meanings, Grade grade) {
  for (Meaning* meaning : meanings) {
    if (grade == Grade::kFast && !meaning->is_tame()) continue;
    Compared compared = grade == Grade::kExact ? Compared::kInBits : Compared::kWithinTolerance;
    if (std::string wrong = difference_of(other, random, *meaning, compared); !wrong.empty()) return wrong;
  }
  return "";
}

// "", or that a set of rules did not come to rest; and which rules fired.
std::string check_report(const RewriteReport& report, Tally& tally) {
  std::string wrong;
  for (const RewriteReport::Line& line : report.lines) {
    if (line.reason.empty()) tally.fired.insert(line.rule);
    if (line.reason == kOutOfBudget) wrong = std::string(kOutOfBudget) + " in '" + line.pass + "'";
  }
  return wrong;
}

std::string check_transform(const Transform& transform, const RandomGraph& before, const Meanings& meanings,
                            Tally& tally) {
  RewriteReport report;
  auto after = transform.run(before.graph, meanings[0]->bounds(), &report);
  if (!after.ok()) return failed("it fails", after.status());
  if (std::string wrong = check_report(report, tally); !wrong.empty()) return wrong;
  if (Status status = verify(*after); !status.ok()) return failed("it gives no valid graph", status) + print(*after);
  return difference_of(*after, before, meanings, transform.math);
}

// `only`: nothing but the transform or way of this name; empty: all.
std::string check_transforms(const RandomGraph& random, const Meanings& meanings, const std::string& only,
                             Tally& tally) {
  for (const Transform& transform : transforms())
    if (!only.empty() && only != transform.name)
      continue;
    else if (std::string wrong = guarded([&] { return check_transform(transform, random, meanings, tally); });
             !wrong.empty())
      return std::string(transform.name) + ": " + wrong;
  return "";
}

// ---- sizes ----

// At the sizes of a run, all of them or some, the graph means the same.
std::string check_at_sizes(const RandomGraph& random, const Meanings& meanings) {
  // An axis that keeps its size is left alone where that is known; else samples of weight 0 count if they are not
  // finite.
  if (has_op(random.graph, Op::kResize)) return "";
  Random draw(random.graph.nodes().size() * 5 + random.graph.outputs().size());
  for (Meaning* meaning : meanings) {
    auto bound = bind_sizes(random.graph, meaning->inputs());
    if (!bound.ok() || bound->empty()) continue;
    std::vector<std::pair<std::string, int64_t>> some(bound->begin(), bound->end());
    for (bool is_all : {true, false}) {
      if (!is_all) std::erase_if(some, [&](const auto&) { return draw.chance(50); });
      auto fixed = at_sizes(random.graph, some);
      // A body that no run enters may be in error at these sizes.
      if (!fixed.ok() && random.graph.has_bodies()) continue;
      if (!fixed.ok()) return failed("it is refused", fixed.status()) + sizes_text(random, *meaning);
      if (Status status = verify(*fixed); !status.ok()) return failed("no valid graph", status) + print(*fixed);
      if (std::string wrong = difference_of(*fixed, random, *meaning, Compared::kInBits); !wrong.empty()) return wrong;
    }
  }
  return "";
}

// ---- families of rules, each alone ----

const std::vector<RuleSet>& families() {
  static const std::vector<RuleSet> kFamilies = [] {
    std::vector<RuleSet> sets;
    for (RuleSet::Family family : kRuleFamilies) sets.push_back(RuleSet({family}));
    return sets;
  }();
  return kFamilies;
}

std::string check_family(const RuleSet& rules, Grade grade, const RandomGraph& random, const Meanings& meanings,
                         Tally& tally) {
  RewriteReport report;
  RewriteOptions options{
      .math = grade, .checks_indices = meanings[0]->bounds() == Bounds::kError, .report = &report, .pass = "family"};
  auto after = rewrite(random.graph, rules, options);
  if (!after.ok()) return failed("it fails", after.status());
  if (std::string wrong = check_report(report, tally); !wrong.empty()) return wrong;
  auto fired = [](const RewriteReport::Line& line) { return line.reason.empty(); };
  if (std::none_of(report.lines.begin(), report.lines.end(), fired)) return "";
  if (Status status = verify(*after); !status.ok()) return failed("it gives no valid graph", status) + print(*after);
  return difference_of(*after, random, meanings, grade);
}

std::string check_families(const RandomGraph& random, const Meanings& meanings, const std::string& only, Tally& tally) {
  for (const RuleSet& rules : families())
    for (Grade grade : {Grade::kExact, Grade::kClose, Grade::kFast}) {
      static constexpr const char* kGrades[] = {"strict", "close", "fast"};
      std::string name = format("the family of {}, {}", rules.names()[0], kGrades[static_cast<size_t>(grade)]);
      if (!only.empty() && only != name) continue;
      std::string wrong = guarded([&] { return check_family(rules, grade, random, meanings, tally); });
      if (!wrong.empty()) return name + ": " + wrong;
    }
  return "";
}

// ---- programs ----

struct Way {
  std::string name;
  const char* device;
  NamedAttrs options = {};
  bool exact = false;       // every bit is that of typed evaluation
  bool is_aliased = false;  // as many outputs as go have an input's memory
};

// Plans, views and memory are judged by the bits of the reference kernels; native ones by what they may round.
const Way kWays[] = {
    {.name = "cpu, reference kernels",
     .device = "cpu",
     .options = {{"math", "strict"}, {"dispatch", "reference"}},
     .exact = true},
    {.name = "cpu", .device = "cpu"},
    {.name = "cpu, strict", .device = "cpu", .options = {{"math", "strict"}}},
    {.name = "reference", .device = "reference"},
    {.name = "far", .device = "far", .options = {{"math", "strict"}, {"dispatch", "reference"}}, .exact = true},
    {.name = "poor",
     .device = "poor",
     .options = {{"math", "strict"}, {"dispatch", "reference"}, {"fallback", "host"}},
     .exact = true},
    {.name = "poor, native", .device = "poor", .options = {{"fallback", "host"}}},
    {.name = "poor, aliased",
     .device = "poor",
     .options = {{"math", "strict"}, {"dispatch", "reference"}, {"fallback", "host"}},
     .exact = true,
     .is_aliased = true},
    {.name = "cpu, aliased", .device = "cpu", .is_aliased = true},
    {.name = "cpu, reference kernels, aliased",
     .device = "cpu",
     .options = {{"math", "strict"}, {"dispatch", "reference"}},
     .exact = true,
     .is_aliased = true},
};

// Pairs of outputs and inputs of one type, drawn.
std::vector<std::string> drawn_aliases(const Graph& graph) {
  Random random(graph.nodes().size() * 7 + graph.inputs().size());
  std::vector<std::string> pairs;
  std::vector<uint32_t> inputs(graph.inputs().begin(), graph.inputs().end());
  for (const GraphOutput& output : graph.outputs()) {
    if (inputs.empty() || random.chance(20)) continue;
    auto first = static_cast<size_t>(random.below(static_cast<int64_t>(inputs.size())));
    std::rotate(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(first), inputs.end());
    auto found = std::find_if(inputs.begin(), inputs.end(),
                              [&](uint32_t node) { return graph.node(node).out[0] == graph.type(output.value); });
    if (found == inputs.end()) continue;
    pairs.push_back(output.name + "=" + graph.leaf_name(*found));
    inputs.erase(found);
  }
  return pairs;
}

// Planned at the largest sizes of these runs.
Result<std::shared_ptr<Program>> compiled(const Way& way, const RandomGraph& random, const Meanings& meanings,
                                          const std::shared_ptr<Env>& env) {
  auto weights = std::make_shared<Weights>();
  for (const auto& [name, tensor] : random.params) RLX_TRY(weights->put(name, tensor));
  SymbolSizes upper;
  for (const Meaning* meaning : meanings)
    for (const auto& [symbol, size] : RLX_TRY(bind_sizes(random.graph, meaning->inputs())))
      upper[symbol] = std::max(upper[symbol], size);
  NamedAttrs options = way.options;
  options.emplace_back("bounds", meanings[0]->bounds() == Bounds::kError ? "error" : "clamp");
  for (const auto& [symbol, size] : upper) options.emplace_back("dims." + symbol, size);
  if (way.is_aliased) options.emplace_back("io.alias", drawn_aliases(random.graph));
  // Which of the poor devices, drawn.
  std::string device = way.device == std::string_view("poor")
                           ? format("poor:{}", (random.graph.nodes().size() + weights->count()) % far::kPoorDevices)
                           : way.device;
  return Program::compile(env, random.graph, weights, RLX_TRY(env->find_device(device)), options);
}

std::string check_runs(const Way& way, const RandomGraph& random, const Meanings& meanings, Program& program) {
  // There and back: a run must not depend on what the run before has left.
  std::vector<Meaning*> order(meanings.begin(), meanings.end());
  if (!order.empty()) order.insert(order.end(), std::next(meanings.rbegin()), meanings.rend());
  for (Meaning* meaning : order) {
    auto results = program.run({}, meaning->inputs(), {}, random.graph.outputs().size());
    if (!results.ok() && !way.exact && !meaning->runs_without_subnormals()) continue;
    std::string wrong = !results.ok() ? failed("it does not run", results.status())
                        : way.exact   ? meaning->difference_in_bits(*results)
                                      : meaning->difference(*results);
    if (!wrong.empty()) return wrong + sizes_text(random, *meaning) + "\n" + *program.report("text");
  }
  return "";
}

// Reports also name what is no rule: that a composite became its formula, or ops a region.
bool is_skippable(const std::string& rule) {
  return parse_compile_options({{"passes.skip", std::vector<std::string>{rule}}}).ok();
}

// One of the rules that fired, so that what others make of its absence is seen.
std::optional<Way> without_a_rule(const Way& way, const RandomGraph& random, const Program& program) {
  std::vector<std::string> fired;
  for (const RewriteReport::Line& line : program.compiled_graph().report.lines)
    if (line.reason.empty() && !contains(fired, line.rule) && is_skippable(line.rule)) fired.push_back(line.rule);
  if (fired.empty()) return std::nullopt;
  std::string rule = Random(random.graph.nodes().size()).pick(fired);
  Way without = way;
  without.name += " without " + rule;
  without.options.emplace_back("passes.skip", std::vector<std::string>{rule});
  return without;
}

// "", or how this way is wrong; `next`: a way that follows from it. `is_asked`: else it is for what follows only.
std::string check_way(const Way& way, const RandomGraph& random, const Meanings& meanings,
                      const std::shared_ptr<Env>& env, Tally& tally, bool is_asked, std::optional<Way>& next) {
  auto program = compiled(way, random, meanings, env);
  if (!program.ok()) return is_asked ? failed("it does not compile", program.status()) : "";
  if (std::string wrong = check_report((*program)->compiled_graph().report, tally); !wrong.empty() && is_asked)
    return wrong;
  next = without_a_rule(way, random, **program);
  return is_asked ? check_runs(way, random, meanings, **program) : "";
}

std::string check_programs(const RandomGraph& random, const Meanings& meanings, const std::shared_ptr<Env>& env,
                           const std::string& only, Tally& tally) {
  std::vector<Way> ways(std::begin(kWays), std::end(kWays));
  for (size_t i = 0; i < ways.size(); i++) {
    Way way = ways[i];
    if (!only.starts_with(way.name) && !only.empty()) continue;
    if (way.is_aliased && drawn_aliases(random.graph).empty()) continue;
    std::optional<Way> next;
    std::string wrong =
        guarded([&] { return check_way(way, random, meanings, env, tally, only.empty() || only == way.name, next); });
    if (!wrong.empty()) return way.name + ": " + wrong;
    if (next && i < std::size(kWays) && way.device == std::string_view("cpu") && !way.is_aliased) ways.push_back(*next);
  }
  return "";
}

// Whether a run may succeed that the interpreter refuses: what fails there, or one of several outputs of a node, may be
// needed by no result.
bool may_do_without(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
    bool may_be_left_out = has_bodies(node) || node.out.size() > 1 || graph.info(node).is(kOfSizes);
    bool chooses = node.op == Op::kWhere || node.op == Op::kTrilu;
    return may_be_left_out || chooses || node.op == Op::kGridSample || node.op == Op::kArgReduceWindow;
  });
}

// Runs that the interpreter refuses are not compared, as a program may fail at another node. But it comes back and
// leaves memory as it was; and it does not give results.
std::string check_refused_runs(const RandomGraph& random, const std::shared_ptr<Env>& env) {
  auto weights = std::make_shared<Weights>();
  for (const auto& [name, tensor] : random.params) (void)weights->put(name, tensor);
  SymbolSizes upper;
  for (const std::vector<Tensor>& inputs : random.runs)
    if (auto sizes = bind_sizes(random.graph, inputs); sizes.ok())
      for (const auto& [symbol, size] : *sizes) upper[symbol] = std::max(upper[symbol], size);
  NamedAttrs options;
  for (const auto& [symbol, size] : upper) options.emplace_back("dims." + symbol, size);
  auto program = Program::compile(env, random.graph, weights, *env->find_device("cpu"), options);
  if (!program.ok()) return "";
  for (const std::vector<Tensor>& inputs : random.runs) {
    auto expected = interpret(random.graph, inputs, random.params, {EvalMode::kTyped, Bounds::kError});
    if (expected.ok()) continue;
    auto results = (*program)->run({}, inputs, {}, random.graph.outputs().size());
    bool is_refusal = expected.status().code() == Code::kRange || expected.status().code() == Code::kShape;
    if (results.ok() && is_refusal && !may_do_without(random.graph))
      return failed("it runs, but", expected.status()) + "\n" + *(*program)->report("text");
  }
  return "";
}

// ---- all of it ----

std::string wrong_with(const RandomGraph& random, const std::shared_ptr<Env>& env, Tally& tally,
                       const std::string& only = "") {
  Status status = verify(random.graph);
  std::string wrong = status.ok() ? check_text(random.graph) : failed("verifier", status);
  if (only == "text" || only == "verifier") return wrong;
  tally.graphs++;
  std::vector<Meaning> runs;
  for (size_t run = 0; run < random.runs.size(); run++)
    if (auto meaning = Meaning::of(random, run); meaning.ok()) runs.push_back(std::move(*meaning));
  tally.evaluated += !runs.empty();
  tally.runs += runs.size();
  auto checks_indices = [](const Meaning& meaning) { return meaning.bounds() == Bounds::kError; };
  bool has_refused = runs.size() < random.runs.size() || !std::all_of(runs.begin(), runs.end(), checks_indices);
  if (wrong.empty() && has_refused && (only.empty() || only == "refused"))
    if (std::string bad = guarded([&] { return check_refused_runs(random, env); }); !bad.empty())
      wrong = "refused: " + bad;
  for (Bounds bounds : {Bounds::kError, Bounds::kClamp}) {
    Meanings meanings;
    for (Meaning& meaning : runs)
      if (meaning.bounds() == bounds) meanings.push_back(&meaning);
    if (meanings.empty()) continue;
    if (wrong.empty() && (only.empty() || only == "at sizes"))
      if (std::string bad = guarded([&] { return check_at_sizes(random, meanings); }); !bad.empty())
        wrong = "at sizes: " + bad;
    if (wrong.empty()) wrong = check_families(random, meanings, only, tally);
    if (wrong.empty()) wrong = check_transforms(random, meanings, only, tally);
    if (wrong.empty()) wrong = check_programs(random, meanings, env, only, tally);
  }
  return wrong;
}

std::string kind_of(const std::string& wrong) {
  return wrong.substr(0, wrong.find(':'));
}

}  // namespace

std::string check_graph(const RandomGraph& random, const std::shared_ptr<Env>& env, Tally& tally) {
  std::string wrong = wrong_with(random, env, tally);
  return wrong.empty() ? "" : wrong + "\n" + contents_text(random) + print(random.graph);
}

void note_fired(const Graph& graph, Tally& tally) {
  for (const RuleSet& rules : families()) {
    RewriteReport report;
    (void)rewrite(graph, rules, {.math = Grade::kFast, .report = &report});
    (void)check_report(report, tally);
  }
  for (const Transform& transform : transforms()) {
    RewriteReport report;
    (void)transform.run(graph, Bounds::kError, &report);
    (void)check_report(report, tally);
  }
}

std::string check_rules(const RuleSet& rules, Grade grade, const RandomGraph& random) {
  Tally aside;
  for (size_t run = 0; run < random.runs.size(); run++) {
    auto meaning = Meaning::of(random, run);
    if (!meaning.ok()) continue;
    if (std::string wrong = check_family(rules, grade, random, {&*meaning}, aside); !wrong.empty()) return wrong;
  }
  return "";
}

std::string check_same_meaning(const RandomGraph& random, const Graph& other, Strictness strictness) {
  for (size_t run = 0; run < random.runs.size(); run++) {
    auto meaning = Meaning::of(random, run);
    if (!meaning.ok() || (strictness.with_checks && meaning->bounds() != Bounds::kError)) continue;
    Compared compared = strictness.exact ? Compared::kInBits : Compared::kWithinTolerance;
    if (std::string wrong = difference_of(other, random, *meaning, compared); !wrong.empty()) return wrong;
  }
  return "";
}

std::string check_and_shrink(const RandomGraph& random, const std::shared_ptr<Env>& env, Tally& tally) {
  std::string wrong = wrong_with(random, env, tally);
  if (wrong.empty()) return "";
  Tally aside;
  std::string kind = kind_of(wrong);
  auto fails = [&](const RandomGraph& smaller) { return kind_of(wrong_with(smaller, env, aside, kind)) == kind; };
  RandomGraph smallest = shrunk(random, fails);
  std::string small = check_graph(smallest, env, aside);
  return small.empty() ? "(not twice) " + wrong + "\n" + print(random.graph) : small;
}

std::string check_seed(uint64_t seed, const std::shared_ptr<Env>& env, Tally& tally) {
  tally.seed = seed;
  std::string wrong = check_and_shrink(random_graph(seed, op_table()), env, tally);
  return wrong.empty() ? "" : "seed " + std::to_string(seed) + ": " + wrong;
}

std::string check_varying_of_seed(uint64_t seed, const std::shared_ptr<Env>& env, Tally& tally) {
  tally.seed = seed;
  std::string wrong = check_and_shrink(varying_graph(seed), env, tally);
  return wrong.empty() ? "" : "seed " + std::to_string(seed) + ": " + wrong;
}

}  // namespace rlx::test
