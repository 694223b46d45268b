// One piece of memory for every buffer of a plan. Uses no torch.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <vector>

namespace stepladder {

// First every buffer is asked for, then all are placed at once, each at the beginning of a line of the cache.
class Arena {
 public:
  Arena() = default;
  ~Arena() {
    if (memory_) munmap(memory_, bytes_);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // `place` must stay where it is until place_all().
  template <class T>
  void want(T*& place, std::int64_t elements) {
    const std::size_t offset = bytes_;
    bytes_ += (static_cast<std::size_t>(elements) * sizeof(T) + line - 1) / line * line;
    placements_.push_back([&place, offset](std::byte* memory) { place = reinterpret_cast<T*>(memory + offset); });
  }

  // The memory is zero. Throws std::bad_alloc.
  void place_all() {
    void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    memory_ = static_cast<std::byte*>(memory);
#ifdef MADV_HUGEPAGE
    madvise(memory_, bytes_, MADV_HUGEPAGE);  // fewer, larger pages; without them everything works, a little slower
#endif
    for (const auto& placement : placements_) placement(memory_);
    placements_.clear();
  }

  std::int64_t bytes() const {
    return static_cast<std::int64_t>(bytes_);
  }

 private:
  static constexpr std::size_t line = 64;
  std::vector<std::function<void(std::byte*)>> placements_;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = line;  // an empty arena is valid too
};

}  // namespace stepladder
