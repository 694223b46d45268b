// A queue of run events between threads: many may post, one reads. A post takes a fraction of a microsecond, without
// lock, system call or wake-up. The ring can be in shared memory, so that the steps in it outlive a killed process.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "storage/database/events/event_origin.h"
#include "storage/records.h"
#include "storage/thread_safety.h"

namespace stepladder {

inline const std::filesystem::path shared_memory_folder = "/dev/shm";

// The events that a killed process left in a ring.
struct RingContent {
  EventOrigin origin;
  std::vector<RunEvent> steps;  // in the order of posting; other events were in the process's own memory
};

class EventRing {
 public:
  static constexpr std::size_t slot_count = 16'384;
  static constexpr std::size_t most_bytes_elsewhere = 256 << 20;  // of events that don't fit into the slots

  // A ring in this process's own memory.
  EventRing();
  // A ring in a file in shared memory, which only this user may read; in own memory if that is impossible or full.
  explicit EventRing(const EventOrigin& origin, const std::filesystem::path& folder = shared_memory_folder);

  // The reading thread. Keeps the shared file if there are events that nobody has released.
  ~EventRing();
  EventRing(const EventRing&) = delete;
  EventRing& operator=(const EventRing&) = delete;

  // Any thread; never waits for the reader. A thread's events, and those that it knows to be posted before, are read in
  // this order. Where the slots are full, and for events other than steps, allocates. Returns false, and keeps nothing,
  // if the events outside the slots already take most_bytes_elsewhere.
  bool post(const StepRecord& step) {
    std::uint64_t position = 0;
    if (!claim(position)) [[unlikely]]
      return post_behind_slots(step);
    Slot& slot = slots_[position % slot_count];
    slot.kind = step_inline;
    std::memcpy(slot.step, &step, sizeof step);
    publish(position);
    return true;
  }
  bool post(const RunEvent& event);

  // The position up to which events have been posted, or read. Any thread.
  struct Position {
    std::uint64_t in_slots = 0;
    std::uint64_t elsewhere = 0;
    bool reaches(const Position& other) const { return in_slots >= other.in_slots && elsewhere >= other.elsewhere; }
  };
  Position posted() const;
  std::size_t size() const;  // posted and not released; any thread

  // --- The reading thread

  // Replaces `events` by the oldest `most` of them, which stay in the ring until they are released.
  void peek(std::vector<RunEvent>& events, std::size_t most);
  void release();  // what the last peek returned
  Position released() const { return released_; }
  std::vector<RunEvent> drain();  // everything, released

  // Waits until something other than a step, a machine's state or console text is posted, the ring is half full, `wake`
  // is called, or `patience` is over. Steps alone wake the reader only if the ring was empty and `any` is set.
  template <class Duration>
  void wait(Duration patience, bool any = false) {
    MutexLock lock(mutex_);
    if (any) {
      sleeps_until_any_.store(true);
      // A post claims its slot before it looks at the flag, so either it is seen here or the post sees the flag.
      if (size() > 0) woken_ = true;
    }
    arrived_.wait_for(lock, patience, [this]() REQUIRES(mutex_) { return woken_; });
    sleeps_until_any_.store(false);
    woken_ = false;
  }
  void wake();  // any thread

  // The content of a ring's file. Any bytes may be passed; nullopt if they aren't a ring of this version.
  static std::optional<RingContent> content_of(std::string_view bytes);

  const std::filesystem::path& file() const { return file_; }  // of the shared memory; empty: own memory

 private:
  // `sequence` is one more than the position that the slot was last filled for.
  enum SlotKind : std::uint32_t { step_inline = 1, event_elsewhere = 2 };
  struct Slot {
    std::atomic<std::uint64_t> sequence;
    std::uint32_t kind;
    std::uint32_t unused;
    union {
      RunEvent* event;
      std::byte step[sizeof(StepRecord)];
    };
  };
  struct Head;
  void map(int descriptor);
  bool claim(std::uint64_t& position) {
    if (overflow_count_.load(std::memory_order_acquire) > 0) return false;
    position = posted_.load(std::memory_order_relaxed);
    do {
      if (position >= free_until_.load(std::memory_order_acquire)) return false;
    } while (!posted_.compare_exchange_weak(position, position + 1));
    return true;
  }
  void publish(std::uint64_t position) {
    slots_[position % slot_count].sequence.store(position + 1, std::memory_order_release);
    if (sleeps_until_any_.load() || (position + 1) % (slot_count / 2) == 0) [[unlikely]]
      wake();
  }
  [[gnu::cold, gnu::noinline]] bool post_behind_slots(const StepRecord& step) {
    return post_behind_slots(RunEvent(step));
  }
  bool post_behind_slots(const RunEvent& event);

  // All that a post of a step reads, in one cache line, since a training leaves nothing in the cache. It only writes to
  // its slot, so it needn't wait until that is in the cache.
  alignas(64) Slot* slots_ = nullptr;
  std::atomic<std::uint64_t> posted_ = 0;               // the next position to claim
  std::atomic<std::uint64_t> free_until_ = slot_count;  // positions below may be claimed
  std::atomic<std::size_t> overflow_count_ = 0;         // of overflow_; later posts go behind those that found no slot
  std::atomic<bool> sleeps_until_any_ = false;

  alignas(64) std::atomic<std::size_t> bytes_elsewhere_ = 0;
  std::filesystem::path file_;
  int descriptor_ = -1;  // locked while this process lives
  std::byte* memory_ = nullptr;
  Head* head_ = nullptr;
  Position released_;  // of the reading thread
  std::size_t peeked_in_slots_ = 0;
  std::size_t peeked_elsewhere_ = 0;

  mutable Mutex mutex_;
  std::condition_variable_any arrived_;
  bool woken_ GUARDED_BY(mutex_) = false;
  std::deque<RunEvent> overflow_ GUARDED_BY(mutex_);
  std::uint64_t posted_elsewhere_ GUARDED_BY(mutex_) = 0;
};

}  // namespace stepladder
