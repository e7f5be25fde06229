// SPDX-License-Identifier: Apache-2.0
// Measures compile time on graphs that are each hard in one way. Beside it stand the limits that the library sets
// itself, and the time in which ONNX Runtime makes a session of the same bytes. Every graph has a process of its own,
// where the two take turns: a graph that takes for ever, or ends its process, only loses its own row.
//
//   bench_compile MODEL.onnx libonnxruntime.so [RUNS [PART_OF_A_NAME]]
#include <rlx.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "compile_once.h"
#include "ort.h"
#include "table.h"

namespace bench {
namespace {

constexpr double kLimitSeconds = 20;  // of a stage; no turn begins later
constexpr size_t kUsualStack = 8 << 20;
constexpr double kMaxExponent = 1.1;

// ---- what is measured ----

struct Row {
  std::string name;
  Stage stage;
  Target ms;
};

struct Job {
  std::function<Model()> make;
  Weights weights;
  std::vector<Row> rows;
};

struct Size {
  int64_t nodes;
  Target ms;
};

constexpr Size kChains[] = {{1000, {5, 2}}, {3162, {}}, {10000, {60, 25}}, {31623, {}}, {100000, {700, 300}}};

Job chain_job(const Size& size) {
  std::string name = "chain of " + with_commas(size.nodes) + " unary nodes";
  return {[=] { return chain(size.nodes); }, Weights::kAtCompile, {{name, Stage::kCompile, size.ms}}};
}

std::vector<Job> other_jobs(const std::string& minilm) {
  constexpr auto kAtCompile = Weights::kAtCompile, kAfterwards = Weights::kAfterwards;
  constexpr auto kImport = Stage::kImport, kCompile = Stage::kCompile, kPacking = Stage::kPacking;
  auto file = [=] { return Model{minilm, {}, "dims.batch_size=1 dims.sequence_length=128", 0, {}}; };
  std::string layers = "decoder, 24 layers, " + with_commas(decoder(24).nodes) + " nodes: ";
  return {
      {[] { return softmaxes(1000, 400); }, kAtCompile, {{"1,000 softmaxes under 400 symbols", kCompile, {60, 25}}}},
      {[] { return params(10000); }, kAtCompile, {{"10,000 params, each used once", kCompile, {60, 30}}}},
      {[] { return levels(40, true); }, kAtCompile, {{"40 levels of sin + cos, on a param", kCompile, {5, 1}}}},
      {[] { return levels(40, false); }, kAtCompile, {{"40 levels of sin + cos, on an input", kCompile, {5, 1}}}},
      {[] { return decoder(24); },
       kAfterwards,
       {{layers + "import", kImport, {}},
        {layers + "passes + plan", kCompile, {120, 60}},
        {layers + "packing", kPacking, {}}}},
      {file,
       kAfterwards,
       {{"MiniLM: import", kImport, {5, 3}},
        {"MiniLM: passes + plan", kCompile, {25, 12}},
        {"MiniLM: packing", kPacking, {30, 15}}}},
  };
}

// ---- measuring ----

enum Sides { kOurs = 1, kPeer = 2, kBoth = 3 };

struct Measured {
  Outcome ours, peer;
};

// The peer is loaded only in children: it makes a thread, and a process with threads must not fork.
struct Setup {
  std::string peer_library, minilm;
  int runs;
};

Outcome take_turns(const Model& model, Weights weights, int sides, const Setup& setup) {
  return in_child(kLimitSeconds, kUsualStack, [&](Reporter& reporter) {
    Env env = make_env();
    if (sides & kPeer) reporter.time(Stage::kLoading, [&] { Ort::load(setup.peer_library); });
    double start = cpu_ms();
    for (int turn = 0; turn <= setup.runs && cpu_ms() - start < 1e3 * kLimitSeconds; ++turn) {
      if (sides & kOurs) compile_once(reporter, env.get(), model, weights);
      if (sides & kPeer) session_once(reporter, model);
    }
    if (sides == kBoth && !model.feeds.empty()) assert_equal_outputs(reporter, env.get(), model);
  });
}

// If one of the two libraries ends the process, the turns of the other are lost. So the other runs once more, alone.
Measured measure(const Job& job, const Setup& setup) {
  Model model = job.make();
  Outcome both = take_turns(model, job.weights, kBoth, setup);
  if (both.failure.empty() || both.at == Stage::kComparison) return {both, both};
  if (is_of_peer(both.at)) return {take_turns(model, job.weights, kOurs, setup), both};
  return {both, take_turns(model, job.weights, kPeer, setup)};
}

// The first turn finds caches and heap cold. It counts only if it is the only one.
std::vector<double> counted(std::vector<double> samples) {
  if (samples.size() > 1) samples.erase(samples.begin());
  return samples;
}

double median_ms(const Outcome& outcome, Stage stage) {
  return outcome.failure.empty() && !outcome[stage].empty() ? spread(counted(outcome[stage])).median : kUnknown;
}

double total_ms(const Outcome& outcome) {
  double packing = outcome[Stage::kPacking].empty() ? 0 : median_ms(outcome, Stage::kPacking);
  return median_ms(outcome, Stage::kImport) + median_ms(outcome, Stage::kCompile) + packing;
}

// ---- rows ----

std::string failure(const Outcome& outcome) {
  return outcome.failure + (is_of_peer(outcome.at) ? "" : std::string(" in ") + name_of(outcome.at));
}

std::string times(const Outcome& outcome, Stage stage) {
  if (!outcome.failure.empty()) return failure(outcome);
  std::vector<double> samples = counted(outcome[stage]);
  if (samples.empty()) return "-";
  if (samples.size() == 1) return figure(samples[0]) + " (one turn)";
  return figure(spread(samples));
}

// The peer's time is in the last row of a job, beside all stages together.
Measured run(const Job& job, const Setup& setup, Table& table) {
  Measured measured = measure(job, setup);
  const Outcome& ours = measured.ours;
  double total = total_ms(ours);
  for (const Row& row : job.rows) {
    Line line{row.name, times(ours, row.stage), median_ms(ours, row.stage), row.ms};
    line.first = ours[row.stage].empty() ? "-" : figure(ours[row.stage][0]);
    if (&row == &job.rows.back()) {
      line.in_all = figure(total);
      line.peer = times(measured.peer, Stage::kSession);
      line.ratio = figure(median_ms(measured.peer, Stage::kSession) / total);
    }
    table.print(line);
  }
  return measured;
}

void run_chains(const Setup& setup, Table& table) {
  std::vector<Point> ours, peer;
  for (const Size& size : kChains) {
    Measured measured = run(chain_job(size), setup, table);
    ours.push_back({static_cast<double>(size.nodes), median_ms(measured.ours, Stage::kCompile)});
    peer.push_back({static_cast<double>(size.nodes), median_ms(measured.peer, Stage::kSession)});
  }
  for (size_t i = 0; i < ours.size(); ++i) {
    auto us_a_node = [](const Point& point) { return figure(1e3 * point.ms / point.size); };
    Line line{"  microseconds a node, " + with_commas(kChains[i].nodes), us_a_node(ours[i])};
    line.peer = us_a_node(peer[i]);
    table.print(line);
  }
  double ends = exponent(ours.front(), ours.back()), fitted = fitted_exponent(ours);
  Line line{"  exponent of growth, 1,000 to 100,000", figure(ends), ends, {kMaxExponent, kMaxExponent}};
  line.peer = figure(exponent(peer.front(), peer.back()));
  table.print(line);
  line = {"  exponent fitted over the sizes that compiled", figure(fitted)};
  line.peer = figure(fitted_exponent(peer));
  table.print(line);
}

// Import, compile and release on a thread with a small stack.
void run_stack(int64_t nodes, const Setup& setup, Table& table) {
  constexpr size_t kMust = 256, kStretch = 64;  // KB
  Model model = chain(nodes);
  auto once = [&](int side) {
    return in_child(kLimitSeconds, kMust << 10, [&](Reporter& reporter) {
      if (side == kOurs) compile_once(reporter, make_env().get(), model, Weights::kAtCompile);
      if (side == kPeer) Ort::load(setup.peer_library), session_once(reporter, model);
    });
  };
  auto kilobytes = [](const Outcome& outcome) { return static_cast<double>(outcome.stack_bytes) / 1024; };
  auto text = [&](const Outcome& outcome) {
    return outcome.failure.empty() ? figure(kilobytes(outcome)) + " KB used" : failure(outcome);
  };
  Outcome ours = once(kOurs), peer = once(kPeer);
  Line line{"stack of 256 KB, chain of " + with_commas(nodes), text(ours)};
  line.target = {kMust, kStretch};
  if (ours.failure.empty()) line.value = kilobytes(ours);
  line.peer = text(peer);
  table.print(line);
}

void print_title(const Setup& setup) {
  Outcome outcome = in_child(kLimitSeconds, kUsualStack, [&](Reporter&) {
    Ort::load(setup.peer_library);
    std::printf("%s; librlx %s, ONNX Runtime %s\n", cpu_name().c_str(), rlx_version_string(), Ort::version().c_str());
    std::fflush(stdout);
  });
  if (!outcome.failure.empty()) std::fprintf(stderr, "%s\n", outcome.failure.c_str()), std::exit(1);
  std::printf(
      "Milliseconds of CPU time on one thread; medians of %d turns in alternation, fewer where they take %.0f s.\n"
      "first: the turn before these, in a new process. in all: import + compile + packing, as the peer's.\n"
      "ratio above 1: librlx is faster.\n\n",
      setup.runs, kLimitSeconds);
}

void run_all(const Setup& setup, const std::string& part) {
  Table table;
  auto is_wanted = [&](const std::string& name) { return name.find(part) != name.npos; };
  Table::print_heading();
  if (is_wanted("chain")) run_chains(setup, table);
  for (const Job& job : other_jobs(setup.minilm)) {
    if (is_wanted(job.rows[0].name)) run(job, setup, table);
  }
  if (is_wanted("stack")) run_stack(100'000, setup, table), run_stack(1'000'000, setup, table);
  table.print_count();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s MODEL.onnx libonnxruntime.so [RUNS [PART_OF_A_NAME]]\n", argv[0]);
    return 2;
  }
  const bench::Setup setup{argv[2], argv[1], argc > 3 ? std::max(1, std::atoi(argv[3])) : 9};
  bench::print_title(setup);
  bench::run_all(setup, argc > 4 ? argv[4] : "");
}
