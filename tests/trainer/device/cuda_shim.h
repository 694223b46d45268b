// Runs the text of engine/kernels/*.cu on a CPU: each of a block's threads is a fibre, blocks run one after the other.
// A fibre runs until it meets a barrier or a shuffle, so a kernel that forgets a barrier reads what another thread has
// not written yet; blocks run with their threads in ascending and descending order to find such places.
//
// Include this first, then the kernels in a namespace of their own: HALF chooses their type.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace cuda_shim {

struct Dim {
  unsigned x = 1, y = 1, z = 1;
};

// One launch. Not for several threads of the host at once: shared memory is static.
class Launch {
 public:
  Launch(Dim grid, unsigned threads, std::size_t shared_bytes, bool descending)
      : grid_(grid), threads_(threads), descending_(descending), shared_(shared_bytes / 16 + 1) {
    if (threads == 0 || threads > 1024) throw std::invalid_argument("a block has 1 to 1024 threads");
  }

  void run(const std::function<void()>& kernel) {
    Launch* const outer = std::exchange(current(), this);
    kernel_ = &kernel;
    fibres_.resize(threads_);
    for (block_.y = 0; block_.y < grid_.y; ++block_.y)
      for (block_.x = 0; block_.x < grid_.x; ++block_.x) run_block();
    current() = outer;
  }

  static Launch*& current() {
    static Launch* launch = nullptr;
    return launch;
  }

  Dim thread() const { return {running_, 0, 0}; }
  Dim block() const { return {block_.x, block_.y, 0}; }
  Dim block_size() const { return {threads_, 1, 1}; }
  Dim grid() const { return grid_; }
  void* shared() { return shared_.data(); }

  void meet_block() { yield(State::at_block); }

  float exchange(float value, unsigned with) {
    if (threads_ % 32 != 0) throw std::logic_error("a shuffle of half a warp");
    const unsigned me = running_;
    Fibre& own = fibres_[me];
    const unsigned parity = own.shuffles++ % 2;
    own.offered[parity] = value;
    yield(State::at_warp);
    return fibres_[me / 32 * 32 + ((me % 32) ^ with)].offered[parity];
  }

 private:
  enum class State { ready, at_warp, at_block, done };
  // A fibre begins by its context; from then on jumps are enough, which cost no system call.
  struct Fibre {
    ucontext_t context{};
    jmp_buf resume{};
    bool begun = false;
    State state = State::ready;
    unsigned shuffles = 0;
    std::array<float, 2> offered{};
  };
  struct alignas(16) Sixteen {
    char bytes[16];
  };

  static constexpr std::size_t stack_bytes = 48 << 10;
  static char* stack(unsigned thread) {
    static std::vector<std::unique_ptr<char[]>> stacks;  // for all launches
    while (stacks.size() <= thread) stacks.push_back(std::make_unique_for_overwrite<char[]>(stack_bytes));
    return stacks[thread].get();
  }

  static void enter() {
    Launch* const launch = current();
    (*launch->kernel_)();
    launch->fibres_[launch->running_].state = State::done;
    ::_longjmp(launch->scheduler_, 1);
  }

  void yield(State why) {
    Fibre& fibre = fibres_[running_];
    fibre.state = why;
    if (::_setjmp(fibre.resume) == 0) ::_longjmp(scheduler_, 1);
  }

  // Until the fibre yields or ends.
  void resume(Fibre& fibre) {
    if (::_setjmp(scheduler_) != 0) return;
    if (fibre.begun) ::_longjmp(fibre.resume, 1);
    fibre.begun = true;
    ::setcontext(&fibre.context);
  }

  void run_block() {
    std::memset(shared_.data(), 0xff, shared_.size() * sizeof(Sixteen));  // NaN until somebody writes it
    for (unsigned thread = 0; thread < threads_; ++thread) {
      Fibre& fibre = fibres_[thread];
      ::getcontext(&fibre.context);
      fibre.context.uc_stack.ss_sp = stack(thread);
      fibre.context.uc_stack.ss_size = stack_bytes;
      fibre.context.uc_link = nullptr;  // `enter` never returns
      fibre.state = State::ready;
      fibre.shuffles = 0;
      fibre.begun = false;
      ::makecontext(&fibre.context, &Launch::enter, 0);
    }
    for (;;) {
      bool ran = false;
      for (unsigned warp = 0; warp * 32 < threads_; ++warp)
        ran |= run_warp(descending_ ? (threads_ - 1) / 32 - warp : warp);
      if (ran) continue;
      if (count(State::done, 0, threads_) == threads_) return;
      // CUDA counts only threads that still run at a barrier; here all must meet, which is stricter.
      if (count(State::at_block, 0, threads_) != threads_) throw std::logic_error("threads wait at different barriers");
      for (Fibre& fibre : fibres_) fibre.state = State::ready;
    }
  }

  // Runs its ready threads until none is left; false if there was none.
  bool run_warp(unsigned warp) {
    const unsigned first = warp * 32, last = std::min(threads_, first + 32);
    bool ran = false;
    for (;;) {
      for (unsigned i = first; i < last; ++i) {
        const unsigned thread = descending_ ? last - 1 - (i - first) : i;
        if (fibres_[thread].state != State::ready) continue;
        running_ = thread;
        resume(fibres_[thread]);
        ran = true;
      }
      const unsigned waiting = count(State::at_warp, first, last);
      if (waiting == 0) return ran;
      if (waiting != last - first) throw std::logic_error("a shuffle that not all threads of the warp reach");
      for (unsigned i = first; i < last; ++i) fibres_[i].state = State::ready;
    }
  }

  unsigned count(State state, unsigned first, unsigned last) const {
    unsigned found = 0;
    for (unsigned i = first; i < last; ++i) found += fibres_[i].state == state ? 1 : 0;
    return found;
  }

  const Dim grid_;
  const unsigned threads_;
  const bool descending_;
  std::vector<Sixteen> shared_;
  std::vector<Fibre> fibres_;
  const std::function<void()>* kernel_ = nullptr;
  jmp_buf scheduler_{};
  Dim block_;
  unsigned running_ = 0;
};

}  // namespace cuda_shim

#define CUDA_SHIM
#define KERNEL [[maybe_unused]] static void
#define __device__ [[maybe_unused]]
#define __launch_bounds__(threads)
#define __shared__ static  // one block runs at a time
#define DYNAMIC_SHARED(type, name) type* const name = static_cast<type*>(cuda_shim::Launch::current()->shared())
#define threadIdx (cuda_shim::Launch::current()->thread())
#define blockIdx (cuda_shim::Launch::current()->block())
#define blockDim (cuda_shim::Launch::current()->block_size())
#define gridDim (cuda_shim::Launch::current()->grid())

#define __expf(x) std::exp(x)  // the C library declares a function of that name

inline void __syncthreads() {
  cuda_shim::Launch::current()->meet_block();
}
inline float __shfl_xor_sync(unsigned, float value, int with) {
  return cuda_shim::Launch::current()->exchange(value, static_cast<unsigned>(with));
}
inline float __uint_as_float(unsigned bits) {
  return std::bit_cast<float>(bits);
}
inline unsigned __float_as_uint(float value) {
  return std::bit_cast<unsigned>(value);
}
inline float rsqrtf(float x) {
  return 1.0F / std::sqrt(x);
}
