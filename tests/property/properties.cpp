// SPDX-License-Identifier: Apache-2.0
#include "properties.h"

#include <chrono>

#include "ir/text.h"
#include "ir/verify.h"
#include "meaning.h"
#include "runtime/program.h"
#include "tests/support/transforms.h"

namespace rlx::test {

namespace {

std::string failed(std::string_view what, const Status& status) {
  return std::string(what) + ": " + std::string(status.message());
}

// ---- text ----

std::string check_text(const Graph& graph) {
  std::string text = print(graph);
  auto again = parse(text, graph.table());
  if (!again.ok()) return failed("what is printed does not parse", again.status());
  if (print(*again) != text) return "printed again it is\n" + print(*again);
  bool same = equal(std::make_shared<const Graph>(graph), std::make_shared<const Graph>(*again));
  return same ? "" : "what is parsed is not what was printed";
}

// ---- transforms ----

std::string check_transform(const Transform& transform, const RandomGraph& before, Meaning& meaning) {
  auto after = transform.run(before.graph, meaning.bounds());
  if (!after.ok()) return failed("it fails", after.status());
  if (Status status = verify(*after); !status.ok()) return failed("it gives no valid graph", status) + print(*after);
  EvalOptions options{transform.exact() ? EvalMode::kTyped : EvalMode::kOracle, meaning.bounds()};
  auto again = interpret(*after, before.inputs, before.params, options);
  if (!again.ok()) return failed("its graph does not run", again.status()) + "\n" + print(*after);
  std::string wrong = transform.exact() ? meaning.difference_in_bits(*again) : meaning.difference(*again);
  return wrong.empty() ? "" : wrong + "\n" + print(*after);
}

std::string check_transforms(const RandomGraph& random, Meaning& meaning) {
  for (const Transform& transform : transforms())
    if (std::string wrong = check_transform(transform, random, meaning); !wrong.empty())
      return std::string(transform.name) + ": " + wrong;
  return "";
}

// ---- programs ----

struct Way {
  const char* device;
  NamedAttrs options;
  bool exact;  // every bit is that of typed evaluation
};

// Plans, views and memory are judged by the bits of the reference kernels; native ones by what they may round.
const Way kWays[] = {
    {"cpu", {{"math", "strict"}, {"dispatch", "reference"}}, true},
    {"cpu", {}, false},
    {"reference", {}, false},
};

Result<Results> run_compiled(const Way& way, const RandomGraph& random, Bounds bounds,
                             const std::shared_ptr<Env>& env) {
  auto weights = std::make_shared<Weights>();
  for (const auto& [name, tensor] : random.params) RLX_TRY(weights->put(name, tensor));
  NamedAttrs options = way.options;
  options.emplace_back("bounds", bounds == Bounds::kError ? "error" : "clamp");
  for (const auto& [symbol, size] : RLX_TRY(bind_sizes(random.graph, random.inputs)))
    options.emplace_back("dims." + symbol, size);
  Device* device = RLX_TRY(env->find_device(way.device));
  auto program = RLX_TRY(Program::compile(env, random.graph, weights, device, options));
  return program->run({}, random.inputs, {}, random.graph.outputs().size());
}

std::string check_programs(const RandomGraph& random, Meaning& meaning, const std::shared_ptr<Env>& env) {
  for (const Way& way : kWays) {
    auto results = run_compiled(way, random, meaning.bounds(), env);
    std::string wrong = !results.ok() ? failed("it does not run", results.status())
                        : way.exact   ? meaning.difference_in_bits(*results)
                                      : meaning.difference(*results);
    if (!wrong.empty()) return std::string(way.device) + (way.exact ? ", reference kernels: " : ": ") + wrong;
  }
  return "";
}

}  // namespace

std::string check_graph(const RandomGraph& random, const std::shared_ptr<Env>& env, Tally& tally) {
  Status status = verify(random.graph);
  std::string wrong = status.ok() ? check_text(random.graph) : failed("verifier", status);
  tally.graphs++;
  if (auto meaning = Meaning::of(random); meaning.ok()) {
    tally.evaluated++;
    if (wrong.empty()) wrong = check_transforms(random, *meaning);
    if (wrong.empty()) wrong = check_programs(random, *meaning, env);
  }
  return wrong.empty() ? "" : wrong + "\n" + print(random.graph);
}

std::string check_random_graphs(uint64_t seed, double seconds, Tally& tally) {
  using Clock = std::chrono::steady_clock;
  auto env = Env::create({.threads = 2});
  if (!env.ok()) return failed("no env", env.status());
  auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (std::string wrong; Clock::now() < end; seed++) {
    tally.seed = seed;
    wrong = check_graph(random_graph(seed, op_table()), *env, tally);
    if (!wrong.empty()) return "seed " + std::to_string(seed) + ": " + wrong;
  }
  return "";
}

}  // namespace rlx::test
