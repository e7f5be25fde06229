/* SPDX-License-Identifier: Apache-2.0
 * Loading the library does nothing to its process: the same threads, floating-point modes, signal mask and handlers,
 * locale, folder, environment and file descriptors as before, and not a byte printed. The same after unloading it.
 *
 * usage: hygiene LIBRARY
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <fenv.h>
#endif

extern char **environ;

struct process {
  char threads[32], modes[64], folder[4096], locale_name[256], files[8192], signals[8192], environment[16384];
};

/* Appends a line about each entry of a folder in /proc/self: its name, and what it links to. */
static void list(const char *path, char *text, size_t capacity) {
  DIR *folder = opendir(path);
  int own = dirfd(folder);
  struct dirent *entry;
  text[0] = 0;
  while ((entry = readdir(folder)) != NULL) {
    char link[512], target[512];
    ssize_t length;
    if (entry->d_name[0] == '.' || atoi(entry->d_name) == own) continue;
    snprintf(link, sizeof link, "%s/%s", path, entry->d_name);
    length = readlink(link, target, sizeof target - 1);
    target[length > 0 ? length : 0] = 0;
    snprintf(text + strlen(text), capacity - strlen(text), "%s %s\n", entry->d_name, target);
  }
  closedir(folder);
}

static unsigned long modes(void) {
#if defined(__x86_64__)
  unsigned short x87;
  __asm__ volatile("fnstcw %0" : "=m"(x87));
  return ((unsigned long)x87 << 32) | (_mm_getcsr() & ~0x3ful); /* without the sticky exception flags */
#else
  return (unsigned long)fegetround();
#endif
}

static int count_lines(const char *text) {
  int lines = 0;
  for (; *text; text++) lines += *text == '\n';
  return lines;
}

static void look(struct process *p) {
  char tasks[4096];
  sigset_t mask;
  int number;
  char **variable;
  memset(p, 0, sizeof *p);
  list("/proc/self/task", tasks, sizeof tasks);
  snprintf(p->threads, sizeof p->threads, "%d threads", count_lines(tasks));
  snprintf(p->modes, sizeof p->modes, "control words %#lx", modes());
  if (!getcwd(p->folder, sizeof p->folder)) exit(2);
  snprintf(p->locale_name, sizeof p->locale_name, "%s", setlocale(LC_ALL, NULL));
  list("/proc/self/fd", p->files, sizeof p->files);
  sigprocmask(SIG_BLOCK, NULL, &mask);
  for (number = 1; number < 65; number++) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) != 0) continue;
    snprintf(p->signals + strlen(p->signals), sizeof p->signals - strlen(p->signals), "%d %d %p %#x\n", number,
             sigismember(&mask, number), *(void **)&action.sa_handler, (unsigned)action.sa_flags);
  }
  for (variable = environ; *variable; variable++)
    snprintf(p->environment + strlen(p->environment), sizeof p->environment - strlen(p->environment), "%s\n",
             *variable);
}

static int failures;
static void same(const char *when, const char *what, const char *before, const char *now) {
  if (strcmp(before, now) == 0) return;
  failures++;
  fprintf(stderr, "FAILED: %s changed %s\n--- before\n%s\n--- after\n%s\n", when, what, before, now);
}

static void compare(const char *when, const struct process *before) {
  static struct process now;
  look(&now);
  same(when, "the number of threads", before->threads, now.threads);
  same(when, "a floating-point mode", before->modes, now.modes);
  same(when, "the folder", before->folder, now.folder);
  same(when, "the locale", before->locale_name, now.locale_name);
  same(when, "the open files", before->files, now.files);
  same(when, "the signal mask or handlers", before->signals, now.signals);
  same(when, "the environment", before->environment, now.environment);
}

int main(int argc, char **argv) {
  static struct process before;
  FILE *printed = tmpfile();
  int saved = dup(2);
  void *library;
  long size;
  if (argc != 2 || !printed) return 2;
  dup2(fileno(printed), 1);
  dup2(fileno(printed), 2);
  look(&before);
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library) compare("dlopen", &before);
  if (library && dlclose(library) == 0) compare("dlclose", &before);
  fflush(NULL);
  size = lseek(fileno(printed), 0, SEEK_END);
  dup2(saved, 2);
  if (!library) return fprintf(stderr, "FAILED to load: %s\n", dlerror()), 1;
  if (size != 0) {
    char text[4096] = "";
    ssize_t length = pread(fileno(printed), text, sizeof text - 1, 0);
    fprintf(stderr, "FAILED: printed while loading, or: %.*s\n", (int)length, text);
    return 1;
  }
  fprintf(stderr, "loading and unloading changed nothing\n");
  return failures != 0;
}
