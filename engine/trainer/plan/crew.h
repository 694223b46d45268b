// The threads of a planned step. They take its phases one after the other, and
// each phase's tasks from a common counter: a thread that the system has taken
// off its core delays only the task that it holds. Uses no torch.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

namespace stepladder {

// Tasks of a phase run in any order and at the same time; all have ended when
// the next phase begins. They must not throw. Workers count from 0, the thread
// that calls Crew::run.
struct Phase {
  std::int64_t tasks = 0;
  std::function<void(std::int64_t task, int worker)> work;
};

class Crew {
 public:
  explicit Crew(int workers);  // starts workers - 1 threads
  ~Crew();                     // ends them
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int workers() const { return workers_; }

  // Runs all phases and returns when the last task has ended. The calling
  // thread works too. Not reentrant.
  void run(std::span<const Phase> phases);

 private:
  // Counters have cache lines of their own, since all threads write them.
  struct alignas(64) Counter {
    std::atomic<std::int64_t> next{0};
    alignas(64) std::atomic<std::int64_t> done{0};
  };

  void serve(int worker);
  void take_part(int worker);

  const int workers_;
  std::span<const Phase> phases_;        // while open
  std::unique_ptr<Counter[]> counters_;  // of each phase
  std::size_t capacity_ = 0;
  std::atomic<std::uint32_t> round_{0};  // changes when there is work, or when the threads are to end
  std::atomic<bool> open_{false};        // whether threads may enter the round
  std::atomic<int> inside_{0};           // threads that may read phases_
  std::atomic<bool> ending_{false};
  std::vector<std::thread> threads_;
};

}  // namespace stepladder
