/* SPDX-License-Identifier: Apache-2.0
 * The library in the life of a process: opened and closed many times, in a forked child, under signals. Nothing grows,
 * no thread outlives its environment, and none of ours runs code that is no longer there.
 *
 * usage: life LIBRARY
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <rlx.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { kSanitized = 1, kLives = 50 };
#else
enum { kSanitized = 0, kLives = 1000 };
#endif

/* clang-format off */
#define FUNCTIONS(DO) \
  DO(rlx_status_take) DO(rlx_status_code) DO(rlx_attrs_create) DO(rlx_attrs_release) \
  DO(rlx_env_create) DO(rlx_env_release) DO(rlx_graph_create) DO(rlx_graph_release) \
  DO(rlx_graph_input) DO(rlx_graph_unary) DO(rlx_graph_output) DO(rlx_compile) \
  DO(rlx_compiled_release) DO(rlx_compiled_run) DO(rlx_exec_create) DO(rlx_exec_release) \
  DO(rlx_exec_run) DO(rlx_exec_bind) DO(rlx_exec_submit) DO(rlx_exec_cancel) DO(rlx_fence_create) \
  DO(rlx_fence_release) DO(rlx_fence_signal) DO(rlx_fence_wait) DO(rlx_fence_result) \
  DO(rlx_tensor_create) DO(rlx_tensor_release) DO(rlx_model_create) DO(rlx_model_run) \
  DO(rlx_model_release)
/* clang-format on */

#define MEMBER(name) __typeof__(name) *name;
static struct { FUNCTIONS(MEMBER) } lib;

static void fail(const char *what, const char *why) {
  fprintf(stderr, "FAILED: %s: %s\n", what, why);
  exit(1);
}

static void *load(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail("dlopen", dlerror());
#define FIND(name) \
  if ((*(void **)&lib.name = dlsym(library, #name)) == NULL) fail("dlsym", #name);
  FUNCTIONS(FIND)
  return library;
}

/* Fails unless the code is `wanted` or `other`. */
static rlx_code_t check(const char *what, rlx_status_t *status, rlx_code_t wanted, rlx_code_t other) {
  char text[512];
  rlx_code_t code = lib.rlx_status_take(status, text, sizeof text);
  if (code != wanted && code != other) fail(what, code ? text : "no error");
  return code;
}
#define OK(call) check(#call, lib.call, RLX_OK, RLX_OK)
#define FORKED(call) check(#call, lib.call, RLX_E_FORKED, RLX_E_FORKED)

static int entries(const char *path) {
  DIR *folder = opendir(path);
  int count = 0;
  while (readdir(folder)) count++;
  closedir(folder);
  return count;
}

/* y = exp(exp(... x)), large enough to be shared by threads. */
struct life {
  rlx_env_t *env;
  rlx_compiled_t *program;
  rlx_model_t *model;
  rlx_exec_t *exec;
  rlx_tensor_t *x;
};

static void begin(struct life *life, const char *env_options) {
  static const int64_t dims[] = {64, 1024};
  rlx_attrs_t *options;
  rlx_graph_t *graph;
  rlx_value_t y;
  int i;
  OK(rlx_attrs_create(env_options, &options));
  OK(rlx_env_create(options, NULL, &life->env));
  lib.rlx_attrs_release(options);
  OK(rlx_graph_create(life->env, NULL, &graph));
  y = lib.rlx_graph_input(graph, "x", RLX_F32, dims, 2);
  for (i = 0; i < 4; i++) y = lib.rlx_graph_unary(graph, "sin", y);
  lib.rlx_graph_output(graph, "y", y);
  OK(rlx_compile(graph, NULL, NULL, NULL, &life->program));
  OK(rlx_model_create(graph, NULL, NULL, &life->model));
  OK(rlx_exec_create(life->program, NULL, &life->exec));
  OK(rlx_tensor_create(life->env, NULL, RLX_F32, dims, 2, &life->x));
  lib.rlx_graph_release(graph);
}

static void end(struct life *life) {
  lib.rlx_tensor_release(life->x);
  lib.rlx_exec_release(life->exec);
  lib.rlx_model_release(life->model);
  lib.rlx_compiled_release(life->program);
  lib.rlx_env_release(life->env);
}

static void use(const struct life *life) {
  rlx_tensor_t *y;
  rlx_fence_t *done;
  OK(rlx_exec_run(life->exec));
  OK(rlx_compiled_run(life->program, NULL, &life->x, 1, NULL, &y, 1));
  lib.rlx_tensor_release(y);
  OK(rlx_model_run(life->model, NULL, NULL, &life->x, 1, NULL, &y, 1, NULL));
  lib.rlx_tensor_release(y);
  OK(rlx_exec_submit(life->exec, NULL, 0, &done));
  OK(rlx_fence_wait(&done, 1, 1, UINT64_MAX, NULL));
  OK(rlx_fence_result(done, NULL));
  lib.rlx_fence_release(done);
}

/* Runs that nobody waits for, behind a fence that nobody signals where `is_gated`. */
static void leave_in_flight(const struct life *life, int is_gated) {
  rlx_fence_t *gate, *done;
  int i;
  OK(rlx_fence_create(life->env, &gate));
  for (i = 0; i < 3; i++) {
    OK(rlx_exec_submit(life->exec, &gate, (size_t)is_gated, &done));
    lib.rlx_fence_release(done);
  }
  lib.rlx_fence_release(gate);
}

static void one_life(int turn) {
  struct life life;
  begin(&life, turn % 5 == 0 ? "threads=0" : "threads=3");
  use(&life);
  if (turn % 2) leave_in_flight(&life, turn % 4 == 1);
  end(&life);
}

static void check_same(const char *what, int turn, long before, long now, long slack) {
  if (now <= before + slack) return;
  fprintf(stderr, "FAILED: life %d: %ld %s, %ld before\n", turn, now, what, before);
  exit(1);
}

static long heap(void) {
  struct mallinfo2 info = mallinfo2();
  return (long)(info.uordblks + info.hblkhd);
}

/* The kernel lists a thread for a moment after it has been joined. */
static void check_no_threads(const char *what, int turn) {
  enum { kNone = 3 }; /* this one, "." and ".." */
  int i;
  for (i = 0; i < 2000 && entries("/proc/self/task") > kNone; i++) usleep(1000);
  check_same(what, turn, kNone, entries("/proc/self/task"), 0);
}

static void live_often(void) {
  enum { kWarm = 20, kSlack = 32 << 10 };
  long memory = 0, files = 0, turn;
  for (turn = 0; turn < kLives; turn++) {
    one_life((int)turn);
    check_no_threads("threads", (int)turn);
    if (turn == kWarm) memory = heap(), files = entries("/proc/self/fd");
  }
  if (!kSanitized) check_same("bytes", kLives, memory, heap(), kSlack);
  check_same("open files", kLives, files, entries("/proc/self/fd"), 0);
  printf("%d environments: bytes %ld then %ld, files %ld then %d\n", kLives, memory, heap(), files,
         entries("/proc/self/fd"));
}

static void load_often(const char *path) {
  int turn;
  for (turn = 0; turn < kLives; turn++) {
    void *library = load(path);
    one_life(turn);
    if (dlclose(library)) fail("dlclose", dlerror());
    check_no_threads("threads", turn);
  }
  printf("%d times loaded and unloaded, now %s\n", kLives, dlopen(path, RTLD_NOW | RTLD_NOLOAD) ? "there" : "gone");
}

/* ---- fork ---- */

static void in_child(struct life *life, rlx_fence_t *gate, rlx_fence_t *done) {
  rlx_tensor_t *y;
  rlx_fence_t *fence;
  struct life fresh;
  FORKED(rlx_exec_run(life->exec));
  FORKED(rlx_exec_submit(life->exec, NULL, 0, &fence));
  FORKED(rlx_compiled_run(life->program, NULL, &life->x, 1, NULL, &y, 1));
  FORKED(rlx_model_run(life->model, NULL, NULL, &life->x, 1, NULL, &y, 1, NULL));
  FORKED(rlx_fence_wait(&done, 1, 1, UINT64_MAX, NULL));
  FORKED(rlx_fence_signal(gate, NULL));
  FORKED(rlx_fence_create(life->env, &fence));
  lib.rlx_exec_cancel(life->exec);
  begin(&fresh, "threads=3");
  FORKED(rlx_exec_bind(fresh.exec, RLX_INPUT, 0, life->x));
  FORKED(rlx_exec_submit(fresh.exec, &gate, 1, &fence));
  FORKED(rlx_compiled_run(fresh.program, NULL, &life->x, 1, NULL, &y, 1));
  FORKED(rlx_model_run(fresh.model, NULL, NULL, &life->x, 1, NULL, &y, 1, NULL));
  lib.rlx_fence_release(done);
  lib.rlx_fence_release(gate);
  end(life);
  use(&fresh);
  leave_in_flight(&fresh, 1);
  end(&fresh);
  check_no_threads("threads in a child", 0);
  _exit(0);
}

static void fork_often(void) {
  enum { kForks = kSanitized ? 5 : 50 };
  struct life life;
  int turn;
  begin(&life, "threads=3");
  use(&life);
  for (turn = 0; turn < kForks; turn++) {
    rlx_fence_t *gate, *gated, *busy;
    int result;
    pid_t child;
    OK(rlx_fence_create(life.env, &gate));
    OK(rlx_exec_submit(life.exec, NULL, 0, &busy));
    OK(rlx_exec_submit(life.exec, &gate, 1, &gated));
    child = fork();
    if (child == 0) in_child(&life, gate, gated);
    if (waitpid(child, &result, 0) != child || result != 0) fail("fork", "the child has failed");
    OK(rlx_fence_signal(gate, NULL));
    OK(rlx_fence_wait(&gated, 1, 1, UINT64_MAX, NULL));
    OK(rlx_fence_result(gated, NULL));
    lib.rlx_fence_release(gate);
    lib.rlx_fence_release(gated);
    lib.rlx_fence_release(busy);
    OK(rlx_exec_run(life.exec));
  }
  end(&life);
  printf("%d children\n", (int)kForks);
}

/* ---- signals ---- */

static rlx_exec_t *volatile cancelled;
static volatile sig_atomic_t alarms;

static void on_alarm(int number) {
  (void)number;
  alarms++;
  lib.rlx_exec_cancel(cancelled);
}

static void set_alarms(int microseconds) {
  struct itimerval timer;
  memset(&timer, 0, sizeof timer);
  timer.it_interval.tv_usec = timer.it_value.tv_usec = microseconds;
  setitimer(ITIMER_REAL, &timer, NULL);
}

static void cancel_by_signals(void) {
  struct life life;
  struct sigaction action;
  int stopped = 0, finished = 0;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_alarm;
  begin(&life, "threads=3");
  cancelled = life.exec;
  sigaction(SIGALRM, &action, NULL);
  set_alarms(1000);
  while (alarms < 500) {
    rlx_fence_t *done[3];
    rlx_code_t code = check("run", lib.rlx_exec_run(life.exec), RLX_OK, RLX_E_CANCELLED);
    int i;
    code == RLX_OK ? finished++ : stopped++;
    for (i = 0; i < 3; i++) OK(rlx_exec_submit(life.exec, NULL, 0, &done[i]));
    OK(rlx_fence_wait(done, 3, 1, UINT64_MAX, NULL));
    for (i = 0; i < 3; i++) {
      code = lib.rlx_status_take(lib.rlx_fence_result(done[i], NULL), NULL, 0);
      if (code != RLX_OK && code != RLX_E_CANCELLED && code != RLX_E_ABORTED) fail("a cancelled run", "another code");
      code == RLX_OK ? finished++ : stopped++;
      lib.rlx_fence_release(done[i]);
    }
  }
  set_alarms(0);
  OK(rlx_exec_run(life.exec));
  end(&life);
  printf("%d signals: %d runs finished, %d stopped\n", (int)alarms, finished, stopped);
}

int main(int argc, char **argv) {
  void *library;
  if (argc != 2) return 2;
  if (!kSanitized) load_often(argv[1]); /* they do not know of code that is gone */
  library = load(argv[1]);
  fork_often();
  cancel_by_signals();
  live_often();
  return dlclose(library) != 0;
}
