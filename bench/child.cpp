// SPDX-License-Identifier: Apache-2.0
// The child works on a thread whose stack is mapped here, above pages that fault. So an overflow differs from any other
// fault, and a pattern shows how much of the stack was used. The parent watches the child's CPU time: while a process
// has a timer of its own, Linux reports its CPU time only in ticks.
#include "child.h"

#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bench {
namespace {

constexpr size_t kGuardBytes = 16 << 20;        // more than any one frame
constexpr rlim_t kMaxMemory = rlim_t{8} << 30;  // other processes need memory too
constexpr double kMaxWaiting = 15;              // ratio of wall time to CPU time beyond which the child is stuck
constexpr unsigned char kUntouched = 0xa5;

struct Note {
  enum Kind : int { kBegan, kTook, kStackUsed, kOverflow } kind;
  Stage stage;
  double value;
};

void send(int pipe, const Note& note) {
  if (write(pipe, &note, sizeof note) != sizeof note) _exit(1);
}

// The stack of the child, for the handler of SIGSEGV.
struct Stack {
  std::byte* guard = nullptr;
  std::byte* low = nullptr;
  size_t bytes = 0;
  int pipe = -1;
};
Stack stack;

void on_fault(int signal_number, siginfo_t* info, void*) {
  auto* at = static_cast<std::byte*>(info->si_addr);
  if (at >= stack.guard && at < stack.low) {
    send(stack.pipe, {Note::kOverflow, {}, 0});
    _exit(1);
  }
  signal(signal_number, SIG_DFL);  // and fault again
}

void watch_stack() {
  constexpr size_t kHandlerBytes = 64 << 10;
  static std::byte handler_stack[kHandlerBytes];
  stack_t alternative{};
  alternative.ss_sp = handler_stack;
  alternative.ss_size = kHandlerBytes;
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
}

void map_stack(size_t bytes, int pipe) {
  void* mapped = mmap(nullptr, kGuardBytes + bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) _exit(1);
  stack = {static_cast<std::byte*>(mapped), static_cast<std::byte*>(mapped) + kGuardBytes, bytes, pipe};
  mprotect(stack.low, bytes, PROT_READ | PROT_WRITE);
  std::memset(stack.low, kUntouched, bytes);
}

size_t stack_used() {
  std::byte* end = stack.low + stack.bytes;
  return end - std::find_if(stack.low, end, [](std::byte b) { return b != std::byte{kUntouched}; });
}

struct Task {
  const std::function<void(Reporter&)>& work;
  Reporter reporter;
};

[[noreturn]] void be_child(int pipe, int errors, size_t stack_bytes, const std::function<void(Reporter&)>& work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(errors, STDERR_FILENO);
  rlimit memory{kMaxMemory, kMaxMemory};
  setrlimit(RLIMIT_AS, &memory);
  mallopt(M_ARENA_MAX, 1);  // use the heap that the main thread would use
  map_stack(stack_bytes, pipe);
  Task task{work, Reporter(pipe)};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack.low, stack_bytes);
  auto body = [](void* argument) -> void* {
    watch_stack();
    Task& mine = *static_cast<Task*>(argument);
    mine.work(mine.reporter);
    return nullptr;
  };
  pthread_t thread;
  if (pthread_create(&thread, &attributes, body, &task) != 0) _exit(1);
  pthread_join(thread, nullptr);
  send(pipe, {Note::kStackUsed, {}, static_cast<double>(stack_used())});
  _exit(0);
}

std::string last_line(int file) {
  char text[512];
  off_t size = lseek(file, 0, SEEK_END);
  ssize_t count = pread(file, text, sizeof text, std::max<off_t>(0, size - static_cast<off_t>(sizeof text)));
  std::string lines(text, std::max<ssize_t>(0, count));
  while (!lines.empty() && lines.back() == '\n') lines.pop_back();
  return lines.substr(lines.rfind('\n') + 1);
}

std::string failure(int status, int errors) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (WIFSIGNALED(status)) return std::string("died: ") + strsignal(WTERMSIG(status));
  std::string line = last_line(errors);
  return line.empty() ? "ended without a word" : line;
}

// The parent's end of the pipe.
class ReportReader {
 public:
  ReportReader(int pipe, pid_t child, double limit_s) : pipe_(pipe), child_(child), limit_ms_(1e3 * limit_s) {}

  // Returns false if no further note will come because the child has ended, or must be ended.
  bool next(Note& note) {
    constexpr int kGlanceMs = 100;
    double begin_ms = used_ms();
    int glances = 0;
    for (pollfd line{pipe_, POLLIN, 0}; poll(&line, 1, kGlanceMs) == 0; ++glances) {
      bool is_over = used_ms() - begin_ms > limit_ms_;
      bool is_stuck = glances * kGlanceMs > kMaxWaiting * limit_ms_;
      if (!is_over && !is_stuck) continue;
      verdict_ = is_stuck ? "stuck" : "> " + std::to_string(static_cast<int>(limit_ms_ / 1e3)) + " s";
      kill(child_, SIGKILL);
      return false;
    }
    return read(pipe_, &note, sizeof note) == sizeof note;
  }
  const std::string& verdict() const { return verdict_; }  // empty if the child ended by itself

 private:
  double used_ms() const {
    clockid_t clock;
    return clock_getcpuclockid(child_, &clock) == 0 ? cpu_ms(clock) : 0;
  }
  int pipe_;
  pid_t child_;
  double limit_ms_;
  std::string verdict_;
};

}  // namespace

const char* name_of(Stage stage) {
  constexpr const char* kNames[kStages] = {"import", "compile", "packing", "loading", "session", "comparison"};
  return kNames[static_cast<int>(stage)];
}

void Reporter::begin(Stage stage) {
  send(pipe_, {Note::kBegan, stage, 0});
}

void Reporter::end(Stage stage, double ms) {
  send(pipe_, {Note::kTook, stage, ms});
}

void Reporter::fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  _exit(1);
}

Outcome in_child(double limit_s, size_t stack_bytes, const std::function<void(Reporter&)>& work) {
  int ends[2];
  int errors = memfd_create("stderr", 0);
  if (errors < 0 || pipe(ends) != 0) std::perror("bench"), std::exit(1);
  std::fflush(nullptr);
  pid_t child = fork();
  if (child < 0) std::perror("bench"), std::exit(1);
  if (child == 0) be_child(ends[1], errors, stack_bytes, work);
  close(ends[1]);
  Outcome outcome;
  ReportReader reader(ends[0], child, limit_s);
  bool overflowed = false;
  for (Note note; reader.next(note);) {
    if (note.kind == Note::kBegan) outcome.at = note.stage;
    if (note.kind == Note::kTook) outcome[note.stage].push_back(note.value);
    if (note.kind == Note::kStackUsed) outcome.stack_bytes = static_cast<size_t>(note.value);
    overflowed |= note.kind == Note::kOverflow;
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::string end = overflowed ? "stack overflow" : failure(status, errors);
  outcome.failure = reader.verdict().empty() ? end : reader.verdict();
  close(ends[0]);
  close(errors);
  return outcome;
}

}  // namespace bench
