// SPDX-License-Identifier: Apache-2.0
// Runs work in a child process, because it may take for ever, use all memory, or end its process. The child reports
// what it has done so far. Times are CPU times of all threads together, so that they are comparable on a shared
// machine.
#pragma once

#include <cstddef>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

namespace bench {

enum class Stage : int { kImport, kCompile, kPacking, kLoading, kSession, kComparison };
constexpr int kStages = 6;
constexpr bool is_of_peer(Stage stage) {
  return stage == Stage::kLoading || stage == Stage::kSession;
}
const char* name_of(Stage stage);

inline double cpu_ms(clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
  timespec now{};
  clock_gettime(clock, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

// The child's end of the pipe.
class Reporter {
 public:
  explicit Reporter(int pipe) : pipe_(pipe) {}
  template <class Work>
  void time(Stage stage, Work&& work) {
    begin(stage);
    double start = cpu_ms();
    work();
    end(stage, cpu_ms() - start);
  }
  [[noreturn]] void fail(const std::string& why);

 private:
  void begin(Stage stage);
  void end(Stage stage, double ms);
  int pipe_;
};

struct Outcome {
  std::vector<double> ms[kStages];
  std::string failure;        // empty if the work ended normally
  Stage at = Stage::kImport;  // the last stage that began
  size_t stack_bytes = 0;     // used
  std::vector<double>& operator[](Stage stage) { return ms[static_cast<int>(stage)]; }
  const std::vector<double>& operator[](Stage stage) const { return ms[static_cast<int>(stage)]; }
};

// No stage may take longer than limit_s seconds. If `work` fails, its output to stderr is the failure.
Outcome in_child(double limit_s, size_t stack_bytes, const std::function<void(Reporter&)>& work);

}  // namespace bench
