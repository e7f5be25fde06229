// SPDX-License-Identifier: Apache-2.0
// Timing on a shared machine: medians with quartiles. Two programs are measured in turns (A B A B ...), so that other
// load affects both alike.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace bench {

inline double now_ms() {
  auto since_start = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(since_start).count();
}

template <class Work>
double time_ms(Work&& work) {
  double start = now_ms();
  work();
  return now_ms() - start;
}

struct Spread {
  double low = 0, median = 0, high = 0;  // the three quartiles
};

inline Spread spread(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  auto at = [&](size_t quarter) { return samples[(samples.size() - 1) * quarter / 4]; };
  return {at(1), at(2), at(3)};
}

struct Duel {
  Spread ours, peer;
  double ratio() const { return peer.median / ours.median; }  // above 1: we are faster
};

struct Turns {
  int count;
  int pause_ms;  // before each turn, so that the other's threads have come to rest
};

// Each turn begins with a run that is not counted: it loads the weights into the caches again.
template <class Ours, class Peer>
Duel duel(const Turns& turns, int runs_per_turn, Ours&& ours, Peer&& peer) {
  std::vector<double> ours_ms, peer_ms;
  auto take_turn = [&](auto& work, std::vector<double>& samples) {
    std::this_thread::sleep_for(std::chrono::milliseconds(turns.pause_ms));
    work();
    for (int i = 0; i < runs_per_turn; ++i) samples.push_back(time_ms(work));
  };
  for (int turn = 0; turn < turns.count; ++turn) {
    take_turn(ours, ours_ms);
    take_turn(peer, peer_ms);
  }
  return {spread(std::move(ours_ms)), spread(std::move(peer_ms))};
}

inline void print_duel(const std::string& work, const Duel& duel, const char* unit, double scale = 1) {
  auto show = [&](const Spread& s) {
    std::printf("  %9.3f [%.3f, %.3f]", s.median * scale, s.low * scale, s.high * scale);
  };
  std::printf("%-22s", work.c_str());
  show(duel.ours);
  show(duel.peer);
  std::printf("  %s  %.2fx\n", unit, duel.ratio());
}

inline std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "an unnamed CPU";
}

}  // namespace bench
