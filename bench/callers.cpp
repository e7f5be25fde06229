// SPDX-License-Identifier: Apache-2.0
// Several threads run one program of all-MiniLM-L6-v2 at once, on 1 x 16 tokens. Prints runs per second of librlx, of
// librlx with one thread per caller, and of ONNX Runtime with one session, measured in turns.
//
//   bench_callers MODEL.onnx libonnxruntime.so [THREADS [TURNS [SECONDS]]]
#include "callers.h"
#include "minilm_model.h"

namespace bench {
namespace {

constexpr int64_t kLength = 16;

void bench_callers(const char* path, int threads, int turns, double seconds) {
  Batch batch = make_batch(1, kLength);
  Env shared = make_env(threads, Pin::kNo), alone = make_env(1, Pin::kNo);
  Executable program(shared.get(), path, 1, kLength), each(alone.get(), path, 1, kLength);
  Ort session(path, threads);
  std::printf("%-8s %-28s %-28s %-28s\n", "callers", "librlx [quartiles]", "one thread each", "ONNX Runtime");
  for (int callers : {1, 2, 4, 8}) {
    auto ours = callers_of(program, callers, [&](Executable& run) { run.bind(batch); });
    auto single = callers_of(each, callers, [&](Executable& run) { run.bind(batch); });
    auto peer = callers_of(session, callers, [&](Ort& run) { bind(run, batch); });
    std::vector<double> rates[3];
    for (int turn = 0; turn < turns; turn++) {
      rates[0].push_back(rate(ours, seconds));
      rates[1].push_back(rate(single, seconds));
      rates[2].push_back(rate(peer, seconds));
    }
    assert_equal("1 x 16", ours.back()->output(), peer.back()->output(0));
    std::printf("%-8d", callers);
    for (auto& samples : rates) {
      Spread s = spread(samples);
      std::printf(" %8.1f [%.1f, %.1f]   ", s.median, s.low, s.high);
    }
    std::printf("  %.2fx\n", spread(rates[0]).median / spread(rates[2]).median);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s MODEL.onnx libonnxruntime.so [THREADS [TURNS [SECONDS]]]\n", argv[0]);
    return 2;
  }
  int threads = argc > 3 ? std::max(1, std::atoi(argv[3])) : 2, turns = argc > 4 ? std::max(1, std::atoi(argv[4])) : 5;
  bench::Ort::load(argv[2]);
  std::printf("%s; librlx %s, ONNX Runtime %s\nruns per second, 1 x 16 tokens, %d threads\n", bench::cpu_name().c_str(),
              rlx_version_string(), bench::Ort::version().c_str(), threads);
  bench::bench_callers(argv[1], threads, turns, argc > 5 ? std::atof(argv[5]) : 1);
}
