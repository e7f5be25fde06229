// SPDX-License-Identifier: Apache-2.0
#include "base/os/thread.h"

#include <signal.h>

#include <cfenv>
#include <memory>

namespace rlx {

namespace {

struct Start {
  std::string name;
  std::function<void()> body;
};

void* main_of(void* argument) {
  std::unique_ptr<Start> start(static_cast<Start*>(argument));
  fesetenv(FE_DFL_ENV);  // not the floating-point mode of the thread that started this one
  pthread_setname_np(pthread_self(), start->name.c_str());
  start->body();
  return nullptr;
}

}  // namespace

bool Thread::start(const std::string& name, std::function<void()> body) {
  std::unique_ptr<Start> start(new Start{name, std::move(body)});
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited
  is_started_ = pthread_create(&thread_, nullptr, main_of, start.get()) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (is_started_) (void)start.release();  // the thread owns it
  return is_started_;
}

void Thread::join() {
  pthread_join(thread_, nullptr);
}

void Thread::detach() {
  pthread_detach(thread_);
}

}  // namespace rlx
