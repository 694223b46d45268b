// The lock-free ring between the training thread and its readers. A poster claims a position, fills the slot, then
// publishes its sequence; the reader frees slots only after `release`. The head is read by other processes after a
// crash, so its layout and ring_magic change together.
#include "storage/database/events/event_ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::array<char, 8> ring_magic{'S', 'L', 'R', 'I', 'N', 'G', 0, 1};
constexpr std::size_t head_bytes = 4096;

std::size_t bytes_of(const RunEvent& event) {
  struct Count {
    std::size_t operator()(const RunStarted& each) const { return each.recipe.size(); }
    std::size_t operator()(const RunEnded& each) const { return each.reason.size(); }
    std::size_t operator()(const TextSample& each) const { return each.text.size(); }
    std::size_t operator()(const ConsoleText& each) const { return each.text.size(); }
    std::size_t operator()(const StepProfile& each) const { return each.operators.size() * sizeof(OperatorTime); }
    std::size_t operator()(const StepRecord&) const { return 0; }
    std::size_t operator()(const SystemMetrics&) const { return 0; }
    std::size_t operator()(const CheckpointSaved&) const { return 0; }
    std::size_t operator()(const MetricValues& each) const { return each.values.size() * sizeof each.values.front(); }
  };
  return sizeof event + std::visit(Count(), event);
}

// Whether the event need not wake the reader at once.
bool is_quiet(const RunEvent& event) {
  return std::holds_alternative<StepRecord>(event) || std::holds_alternative<SystemMetrics>(event) ||
         std::holds_alternative<ConsoleText>(event) || std::holds_alternative<MetricValues>(event);
}

}  // namespace

struct EventRing::Head {
  std::array<char, 8> magic;
  std::uint64_t slot_count;
  std::uint64_t slot_bytes;
  std::uint64_t step_bytes;
  std::uint64_t origin_bytes;
  std::array<char, 2048> origin;
  std::atomic<std::uint64_t> read;  // the first position that isn't released
};

EventRing::EventRing() {
  map(-1);
}

EventRing::EventRing(const EventOrigin& origin, const fs::path& folder) {
  const std::string bytes = to_bytes(origin);
  const fs::path file = folder / ("stepladder-" + std::to_string(::geteuid()) + "-" + unique_file_stem());
  int descriptor = -1;
  if (bytes.size() <= sizeof(Head::origin))
    descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  // Its memory is reserved now: a write into a full volume would end the process.
  const auto size = static_cast<off_t>(head_bytes + slot_count * sizeof(Slot));
  if (descriptor >= 0 && (!lock_alone(descriptor) || ::posix_fallocate(descriptor, 0, size) != 0)) {
    ::unlink(file.c_str());
    ::close(std::exchange(descriptor, -1));
  }
  map(descriptor);
  if (descriptor_ < 0) {
    if (descriptor >= 0) ::unlink(file.c_str());
    return;
  }
  file_ = file;
  std::memcpy(head_->origin.data(), bytes.data(), bytes.size());
  head_->origin_bytes = bytes.size();
  head_->magic = ring_magic;  // last: without it nobody reads the file
}

void EventRing::map(int descriptor) {
  static_assert(sizeof(Slot) == 128 && sizeof(Head) <= head_bytes);
  static_assert(std::is_trivially_copyable_v<StepRecord> && std::atomic<std::uint64_t>::is_always_lock_free);
  const std::size_t size = head_bytes + slot_count * sizeof(Slot);
  void* memory = MAP_FAILED;
  if (descriptor >= 0) {
    memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0);
    if (memory == MAP_FAILED)
      ::close(descriptor);
    else
      descriptor_ = descriptor;
  }
  if (memory == MAP_FAILED) memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<std::byte*>(memory);
  head_ = new (memory_) Head{.slot_count = slot_count, .slot_bytes = sizeof(Slot), .step_bytes = sizeof(StepRecord)};
  slots_ = reinterpret_cast<Slot*>(memory_ + head_bytes);
  for (std::size_t i = 0; i < slot_count; ++i) (new (&slots_[i]) Slot)->sequence.store(0, std::memory_order_relaxed);
}

EventRing::~EventRing() {
  const bool is_empty = size() == 0;
  for (std::uint64_t position = released_.in_slots; position < posted_; ++position) {
    const Slot& slot = slots_[position % slot_count];
    if (slot.sequence.load(std::memory_order_acquire) == position + 1 && slot.kind == event_elsewhere)
      delete slot.event;
  }
  ::munmap(memory_, head_bytes + slot_count * sizeof(Slot));
  if (is_empty && !file_.empty()) ::unlink(file_.c_str());
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool EventRing::post(const RunEvent& event) {
  if (const auto* step = std::get_if<StepRecord>(&event)) return post(*step);
  const std::size_t bytes = bytes_of(event);
  if (bytes_elsewhere_.load(std::memory_order_relaxed) + bytes > most_bytes_elsewhere) return false;
  auto copy = std::make_unique<RunEvent>(event);
  std::uint64_t position = 0;
  if (!claim(position)) return post_behind_slots(event);
  bytes_elsewhere_ += bytes;
  Slot& slot = slots_[position % slot_count];
  slot.kind = event_elsewhere;
  slot.event = copy.release();
  publish(position);
  if (!is_quiet(event)) wake();
  return true;
}

bool EventRing::post_behind_slots(const RunEvent& event) {
  const std::size_t bytes = bytes_of(event);
  bool is_first = false;
  {
    const MutexLock lock(mutex_);
    if (bytes_elsewhere_.load(std::memory_order_relaxed) + bytes > most_bytes_elsewhere) return false;
    bytes_elsewhere_ += bytes;
    overflow_.push_back(event);
    ++posted_elsewhere_;
    is_first = overflow_count_.fetch_add(1, std::memory_order_release) == 0;
  }
  if (is_first || !is_quiet(event)) wake();
  return true;
}

EventRing::Position EventRing::posted() const {
  const MutexLock lock(mutex_);
  return {.in_slots = posted_.load(), .elsewhere = posted_elsewhere_};
}

std::size_t EventRing::size() const {
  const std::uint64_t released = free_until_.load() - slot_count;  // first: the other one only grows
  return static_cast<std::size_t>(posted_.load() - released) + overflow_count_.load();
}

void EventRing::peek(std::vector<RunEvent>& events, std::size_t most) {
  events.clear();
  std::uint64_t position = released_.in_slots;
  for (; events.size() < most; ++position) {
    const Slot& slot = slots_[position % slot_count];
    if (slot.sequence.load(std::memory_order_acquire) != position + 1) break;
    if (slot.kind == event_elsewhere) {
      events.push_back(*slot.event);
    } else {
      StepRecord step;
      std::memcpy(&step, slot.step, sizeof step);
      events.emplace_back(step);
    }
  }
  peeked_in_slots_ = events.size();
  peeked_elsewhere_ = 0;
  if (events.size() == most || overflow_count_.load(std::memory_order_acquire) == 0) return;
  const MutexLock lock(mutex_);
  // A slot that is claimed and not filled yet may be older than what is in the overflow.
  if (posted_.load() != position) return;
  for (; events.size() < most && peeked_elsewhere_ < overflow_.size(); ++peeked_elsewhere_)
    events.push_back(overflow_[peeked_elsewhere_]);
}

void EventRing::release() {
  std::size_t freed = 0;
  for (std::size_t i = 0; i < peeked_in_slots_; ++i) {
    Slot& slot = slots_[released_.in_slots % slot_count];
    if (slot.kind == event_elsewhere) {
      freed += bytes_of(*slot.event);
      delete slot.event;
    }
    ++released_.in_slots;
  }
  head_->read.store(released_.in_slots);  // before a slot is filled again
  free_until_.store(released_.in_slots + slot_count, std::memory_order_release);
  if (peeked_elsewhere_ > 0) {
    const MutexLock lock(mutex_);
    for (std::size_t i = 0; i < peeked_elsewhere_; ++i) {
      freed += bytes_of(overflow_.front());
      overflow_.pop_front();
    }
    released_.elsewhere += peeked_elsewhere_;
    overflow_count_.fetch_sub(peeked_elsewhere_, std::memory_order_release);
  }
  bytes_elsewhere_ -= freed;
  peeked_in_slots_ = peeked_elsewhere_ = 0;
}

std::vector<RunEvent> EventRing::drain() {
  std::vector<RunEvent> events;
  if (size() == 0) return events;
  peek(events, std::numeric_limits<std::size_t>::max());
  release();
  return events;
}

void EventRing::wake() {
  {
    const MutexLock lock(mutex_);
    woken_ = true;
  }
  arrived_.notify_one();
}

std::optional<RingContent> EventRing::content_of(std::string_view bytes) {
  if (bytes.size() != head_bytes + slot_count * sizeof(Slot)) return std::nullopt;
  const auto number_at = [&](std::size_t offset) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  };
  const std::uint64_t origin_bytes = number_at(offsetof(Head, origin_bytes));
  if (bytes.substr(0, ring_magic.size()) != std::string_view(ring_magic.data(), ring_magic.size()) ||
      number_at(offsetof(Head, slot_count)) != slot_count || number_at(offsetof(Head, slot_bytes)) != sizeof(Slot) ||
      number_at(offsetof(Head, step_bytes)) != sizeof(StepRecord) || origin_bytes > sizeof(Head::origin))
    return std::nullopt;
  std::optional<EventOrigin> origin = origin_from(bytes.substr(offsetof(Head, origin), origin_bytes));
  if (!origin) return std::nullopt;
  RingContent content{.origin = std::move(*origin)};
  const std::uint64_t first = number_at(offsetof(Head, read));
  for (std::uint64_t position = first; position != first + slot_count; ++position) {
    const std::size_t slot = head_bytes + position % slot_count * sizeof(Slot);
    std::uint32_t kind = 0;
    std::memcpy(&kind, bytes.data() + slot + offsetof(Slot, kind), sizeof kind);
    if (number_at(slot + offsetof(Slot, sequence)) != position + 1 || kind != step_inline) continue;
    StepRecord step;
    std::memcpy(&step, bytes.data() + slot + offsetof(Slot, step), sizeof step);
    content.steps.emplace_back(step);
  }
  return content;
}

}  // namespace stepladder
