// SPDX-License-Identifier: Apache-2.0
// The queue and its threads live in `Shared`, which outlives the queue's handle while anything refers to it. A
// submission counts its open fences; whoever signals the last one puts it into the queue.
#include "runtime/queue.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "base/exception.h"
#include "base/once.h"
#include "base/os/thread.h"

namespace rlx {

namespace {

struct Submission {
  Submission(std::shared_ptr<Run> what, const RunScope& how, std::span<const Fence> after, const Fence& fence)
      : run(std::move(what)), scope(how), before(after.begin(), after.end()), done(fence), open(after.size() + 1) {}

  std::shared_ptr<Run> run;
  RunScope scope;
  std::vector<Fence> before;
  Fence done;
  std::atomic<size_t> open;               // fences that are not done, plus one while `submit` runs
  std::atomic<bool> has_failed{false};    // one of the fences
  std::atomic<bool> is_submitted{false};  // `submit` is over
  std::atomic<bool> is_queued{false};     // at most once
  std::atomic<bool> is_abandoned{false};  // `submit` has failed
  std::shared_ptr<Submission> next;       // link of the queue, so that queueing cannot fail

  Status result() const {
    if (is_abandoned) return {};
    if (scope.cancel.is_set()) return cancelled();
    for (const Fence& fence : before)
      if (Status status = fence.result(); !status.ok())
        return status.code() == Code::kAborted  // of the first that failed: a chain of runs says it once
                   ? status
                   : Status(Code::kAborted,
                            "work that this run waited for has failed: " + std::string(status.message()));
    return run->execute_on_bound(scope);
  }

  void execute() noexcept {
    Status status;
    try {
      status = result();
    } catch (...) {
      status = from_exception("a run");
    }
    if (!is_abandoned) run->written.clear();
    run = nullptr;  // before the fence is signalled: then the caller may release everything
    before.clear();
    done.signal(std::move(status));
  }
};

}  // namespace

class RunQueue::Shared : public Helper, public std::enable_shared_from_this<Shared> {
 public:
  explicit Shared(const ThreadPool* pool) : pool_(pool) {}

  bool help(Time time) override {
    std::shared_ptr<Submission> first;
    {
      std::lock_guard lock(mutex_);
      bool is_last = idle_ == 0 && is_on_thread();  // whoever else might take a run may be held up as this one is
      if (time == Time::kUnlimited || threads_.empty() || is_last) first = take();
    }
    if (!first) return false;
    execute(std::move(first));
    return true;
  }
  int spin() const override {
    std::lock_guard lock(mutex_);
    return spin_;
  }
  void join(const std::shared_ptr<FenceWaiter>& waiter) override {
    std::lock_guard lock(mutex_);
    waiters_.push_back(waiter);
  }
  void leave(const std::shared_ptr<FenceWaiter>& waiter) override {
    std::lock_guard lock(mutex_);
    std::erase(waiters_, waiter);
  }

  // Called on the thread that signals the last fence.
  void add(std::shared_ptr<Submission> ready) noexcept {
    std::lock_guard lock(mutex_);
    std::shared_ptr<Submission>& place = first_ ? last_->next : first_;
    last_ = ready.get();
    place = std::move(ready);
    queued_++;
    if (queued_ > idle_ && threads_.size() < most_) start();
    changed_.notify_one();
    finishing_.notify_all();
    for (const auto& waiter : waiters_) waiter->notify();
  }

  void count_submitted() {
    std::lock_guard lock(mutex_);
    unfinished_++;
  }
  void finish() {
    if (InRun::is_of(this)) return;
    std::unique_lock lock(mutex_);
    while (unfinished_ > 0) {
      if (auto taken = take()) {
        lock.unlock();
        execute(std::move(taken));
        lock.lock();
      } else {
        finishing_.wait(lock);
      }
    }
  }
  void stop() {
    if (getpid() != process_) return;  // a forked child has none of these threads
    std::vector<Thread> threads;
    {
      std::lock_guard lock(mutex_);
      is_stopping_ = true;
      threads.swap(threads_);
    }
    changed_.notify_all();
    for (Thread& thread : threads) thread.is_current() ? thread.detach() : thread.join();
  }
  bool has_threads() const { return pool_ != nullptr; }
  // Reads the topology of the machine once, when the first run is submitted.
  void prepare() {
    counted_.call([this] {
      size_t most = pool_ ? static_cast<size_t>(pool_->workers()) : 0;
      int spin = pool_ ? pool_->spin() : 0;
      std::lock_guard lock(mutex_);
      most_ = most;
      spin_ = spin;
    });
  }

 private:
  bool is_on_thread() const { return std::ranges::any_of(threads_, &Thread::is_current); }

  std::shared_ptr<Submission> take() {
    std::shared_ptr<Submission> taken = std::move(first_);
    if (!taken) return nullptr;
    first_ = std::move(taken->next);
    queued_--;
    return taken;
  }

  // Releases what the run held before it counts as ended.
  void execute(std::shared_ptr<Submission> taken) noexcept {
    {
      InRun in_run(this);
      taken->execute();
      taken = nullptr;
    }
    std::lock_guard lock(mutex_);
    unfinished_--;
    finishing_.notify_all();
  }

  // If there is no memory or no thread left, the waiting threads do the work.
  void start() noexcept try {
    Thread thread;
    std::string name = format("rlx-run-{}", threads_.size());
    threads_.reserve(threads_.size() + 1);  // a thread that has started must get into the list
    if (thread.start(name, [self = shared_from_this()] { self->serve(); })) threads_.push_back(thread);
  } catch (const std::bad_alloc&) {}

  void serve() {
    std::unique_lock lock(mutex_);
    while (!is_stopping_) {
      if (auto taken = take()) {
        lock.unlock();
        execute(std::move(taken));
        lock.lock();
        continue;
      }
      idle_++;
      changed_.wait(lock);
      idle_--;
    }
  }

  const ThreadPool* const pool_;  // used only by `prepare`, so not after the env is gone
  Once counted_;
  const pid_t process_ = getpid();
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_, finishing_;
  std::shared_ptr<Submission> first_;
  Submission* last_ = nullptr;
  size_t most_ = 0;
  int spin_ = 0;
  std::vector<Thread> threads_;
  size_t queued_ = 0, idle_ = 0;
  size_t unfinished_ = 0;  // runs that were submitted and have not ended
  bool is_stopping_ = false;
  std::vector<std::shared_ptr<FenceWaiter>> waiters_;
};

thread_local const RunQueue::InRun* RunQueue::InRun::innermost_ = nullptr;

bool RunQueue::InRun::is_of(const Shared* queue) {
  const InRun* at = innermost_;
  while (at && at->queue_ != queue) at = at->around_;
  return at != nullptr;
}

RunQueue::RunQueue(const ThreadPool* pool) : shared_(std::make_shared<Shared>(pool)) {}

RunQueue::~RunQueue() {
  shared_->stop();
}

void RunQueue::finish() {
  shared_->finish();
}

std::shared_ptr<Helper> RunQueue::helper() const {
  return shared_;
}

bool RunQueue::has_threads() const {
  return shared_->has_threads();
}

Fence RunQueue::submit(std::shared_ptr<Run> run, const RunScope& scope, std::span<const Fence> before) {
  shared_->prepare();
  Fence done(shared_);
  auto submission = std::make_shared<Submission>(std::move(run), scope, before, done);
  auto note_result = [shared = shared_, submission](const Status& result) {
    if (!result.ok()) submission->has_failed = true;
    bool is_last = submission->open.fetch_sub(1) == 1;
    bool ends_now = submission->is_submitted && submission->has_failed;
    if ((is_last || ends_now) && !submission->is_queued.exchange(true)) shared->add(submission);
  };
  shared_->count_submitted();
  // After an exception the run ends when those fences are done that already refer to it: `note_result` stands in for
  // the others, and for this call.
  size_t registered = 0;
  try {
    for (; registered < before.size(); registered++) before[registered].then(note_result);
  } catch (...) {
    submission->is_abandoned = true;
    for (; registered <= before.size(); registered++) note_result({});
    throw;
  }
  submission->is_submitted = true;
  note_result({});
  if (!has_threads())
    while (!done.is_done() && shared_->help(Helper::Time::kUnlimited)) {}
  return done;
}

}  // namespace rlx
