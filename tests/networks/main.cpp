// SPDX-License-Identifier: Apache-2.0
// Runs published networks through the C API of librlx and through ONNX Runtime, and compares. `./dev models` fetches
// what it needs; what is not there is skipped, or a failure if RLX_REQUIRE_NETWORKS is set.
//
//   networks [--times] [NAME ...]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "networks.h"

namespace networks {

namespace {

namespace fs = std::filesystem;

constexpr int kSkipped = 77;  // as CTest is told

fs::path cache() {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  return (cache && *cache ? fs::path(cache) : fs::path(home ? home : "/") / ".cache") / "rlx";
}

// ONNX Runtime's C library, of whichever release was fetched; empty: of none.
fs::path peer_library() {
  std::error_code none;
  for (const auto& release : fs::directory_iterator(cache(), none)) {
    if (!release.path().filename().string().starts_with("onnxruntime-")) continue;
    for (const auto& file : fs::directory_iterator(release.path() / "onnxruntime/capi", none))
      if (file.path().filename().string().starts_with("libonnxruntime.so.")) return file.path();
  }
  return {};
}

// Without VNNI, ONNX Runtime adds pairs of 8-bit products in 16 bits, which saturate.
bool peer_is_exact() {
  return __builtin_cpu_supports("avx512vnni") || __builtin_cpu_supports("avxvnni");
}

struct Score {
  int networks = 0, failed = 0, skipped = 0, runs = 0;
  std::vector<double> ratios;
};

void play(const Network& network, bool times, Score& score) {
  fs::path path = cache() / network.file;
  if (!fs::exists(path)) {
    std::printf("%s: skipped, %s is not there: ./dev models fetches it\n", network.name, path.c_str());
    score.skipped++;
    return;
  }
  if (network.has_signed_weights && !peer_is_exact()) {
    std::printf("%s: skipped, as ONNX Runtime's sums of signed 8-bit products overflow without VNNI\n", network.name);
    score.skipped++;
    return;
  }
  std::printf("%s\n", network.name);
  Stage stage(path, network.bar, times);
  network.play(stage, cache());
  if (times && stage.ratio() > 0) std::printf("  %-34s %60.2f\n", "in all", stage.ratio());
  score.networks++;
  score.failed += stage.failed() > 0;
  score.runs += stage.runs();
  if (stage.ratio() > 0) score.ratios.push_back(stage.ratio());
}

int conclude(const Score& score) {
  if (!score.ratios.empty()) {
    double sum = 0;
    for (double ratio : score.ratios) sum += std::log(ratio);
    std::printf("\nONNX Runtime's time over ours, optimised, 1 thread: geometric mean %.2f, least %.2f\n",
                std::exp(sum / static_cast<double>(score.ratios.size())),
                *std::min_element(score.ratios.begin(), score.ratios.end()));
  }
  bool must = std::getenv("RLX_REQUIRE_NETWORKS") != nullptr;
  std::printf("\n%d networks, %d runs, %d networks failed, %d skipped\n", score.networks, score.runs, score.failed,
              score.skipped);
  if (score.failed > 0 || (must && score.skipped > 0)) return 1;
  return score.networks > 0 ? 0 : kSkipped;
}

int run(const std::vector<std::string>& arguments) {
  bool times = std::find(arguments.begin(), arguments.end(), "--times") != arguments.end();
  auto wanted = [&](const Network& network) {
    bool any = std::any_of(arguments.begin(), arguments.end(), [](const auto& it) { return it != "--times"; });
    return !any || std::find(arguments.begin(), arguments.end(), network.name) != arguments.end();
  };
  fs::path library = peer_library();
  Score score;
  if (library.empty()) {
    std::printf("ONNX Runtime is not in %s: ./dev models fetches it\n", cache().c_str());
    score.skipped = static_cast<int>(all().size());
    return conclude(score);
  }
  bench::Ort::load(library);
  std::printf("librlx %s beside ONNX Runtime %s, not optimised\n", rlx_version_string(), bench::Ort::version().c_str());
  for (const Network& network : all())
    if (wanted(network)) play(network, times, score);
  return conclude(score);
}

}  // namespace

}  // namespace networks

int main(int argc, char** argv) {
  return networks::run({argv + 1, argv + argc});
}
