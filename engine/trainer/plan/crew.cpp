#include "engine/trainer/plan/crew.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stepladder {
namespace {

// About as long as a short phase takes. A thread that waits longer gives its
// core to others.
constexpr int spins = 2'000;

void breathe() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

template <class Condition>
void wait_until(const Condition& condition) {
  for (int i = 0; i < spins; ++i) {
    if (condition()) return;
    breathe();
  }
  while (!condition()) std::this_thread::yield();
}

}  // namespace

Crew::Crew(int workers) : workers_(workers) {
  for (int worker = 1; worker < workers; ++worker) threads_.emplace_back([this, worker] { serve(worker); });
}

Crew::~Crew() {
  ending_ = true;
  ++round_;
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Crew::run(std::span<const Phase> phases) {
  if (phases.size() > capacity_) {
    counters_ = std::make_unique<Counter[]>(phases.size());
    capacity_ = phases.size();
  }
  for (std::size_t i = 0; i < phases.size(); ++i) {
    counters_[i].next = 0;
    counters_[i].done = 0;
  }
  phases_ = phases;
  if (!threads_.empty()) {
    open_ = true;
    ++round_;
    round_.notify_all();
  }
  take_part(0);
  // A thread that arrives now finds the round closed; one that is inside has seen all phases end, or will.
  open_ = false;
  wait_until([this] { return inside_.load() == 0; });
}

void Crew::serve(int worker) {
  std::uint32_t seen = 0;
  while (true) {
    for (int i = 0; i < spins && round_.load(std::memory_order_acquire) == seen; ++i) breathe();
    round_.wait(seen);
    seen = round_;
    if (ending_) return;
    ++inside_;
    if (open_) take_part(worker);
    --inside_;
  }
}

void Crew::take_part(int worker) {
  for (std::size_t i = 0; i < phases_.size(); ++i) {
    const Phase& phase = phases_[i];
    Counter& counter = counters_[i];
    while (true) {
      const std::int64_t task = counter.next.fetch_add(1, std::memory_order_relaxed);
      if (task >= phase.tasks) break;
      phase.work(task, worker);
      counter.done.fetch_add(1, std::memory_order_release);
    }
    wait_until([&] { return counter.done.load(std::memory_order_acquire) >= phase.tasks; });
  }
}

}  // namespace stepladder
