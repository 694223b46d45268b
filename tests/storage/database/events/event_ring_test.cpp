#include "storage/database/events/event_ring.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "../../temporary_folder.h"

namespace stepladder {
namespace {

using namespace std::chrono_literals;

StepRecord step_of(RunId run, std::int64_t step) {
  return {.run = run, .step = step, .loss = 1.0 / static_cast<double>(step), .at = static_cast<double>(step)};
}

std::int64_t number(const RunEvent& event) {
  if (const auto* step = std::get_if<StepRecord>(&event)) return step->step;
  return -run_of(event);
}

std::vector<std::int64_t> numbers(const std::vector<RunEvent>& events) {
  std::vector<std::int64_t> numbers;
  for (const RunEvent& event : events) numbers.push_back(number(event));
  return numbers;
}

std::string bytes_of(const std::filesystem::path& file) {
  std::ostringstream bytes;
  bytes << std::ifstream(file, std::ios::binary).rdbuf();
  return bytes.str();
}

TEST(EventRing, keeps_what_was_peeked_until_it_is_released) {
  EventRing ring;
  for (int step = 1; step <= 5; ++step) ring.post(step_of(1, step));
  std::vector<RunEvent> events;
  ring.peek(events, 3);
  EXPECT_EQ(numbers(events), (std::vector<std::int64_t>{1, 2, 3}));
  ring.peek(events, 3);
  EXPECT_EQ(numbers(events), (std::vector<std::int64_t>{1, 2, 3}));
  ring.release();
  EXPECT_EQ(ring.size(), 2u);
  EXPECT_EQ(numbers(ring.drain()), (std::vector<std::int64_t>{4, 5}));
  EXPECT_TRUE(ring.released().reaches(ring.posted()));
  EXPECT_TRUE(ring.drain().empty());
}

TEST(EventRing, other_events_keep_their_place_and_their_content) {
  EventRing ring;
  ring.post(step_of(1, 1));
  ring.post(RunEvent(RunEnded{.run = 9, .reason = "why"}));
  ring.post(RunEvent(step_of(1, 2)));
  const std::vector<RunEvent> events = ring.drain();
  EXPECT_EQ(numbers(events), (std::vector<std::int64_t>{1, -9, 2}));
  EXPECT_EQ(std::get<RunEnded>(events[1]).reason, "why");
}

TEST(EventRing, keeps_the_order_when_the_slots_are_full) {
  EventRing ring;
  constexpr std::int64_t count = 3 * EventRing::slot_count;
  std::int64_t posted = 0;
  std::int64_t read = 0;
  std::vector<RunEvent> events;
  const auto read_some = [&] {
    ring.peek(events, 1000);
    for (const RunEvent& event : events) ASSERT_EQ(number(event), ++read);
    ring.release();
  };
  while (posted < count) {
    ASSERT_TRUE(ring.post(step_of(1, ++posted)));
    if (posted % 3 == 0 && posted > 20'000) read_some();
  }
  while (ring.size() > 0) read_some();
  EXPECT_EQ(read, count);
  EXPECT_TRUE(ring.released().reaches(ring.posted()));
}

TEST(EventRing, each_thread_is_read_in_its_order) {
  constexpr int threads = 3;
  constexpr std::int64_t steps = 30'000;
  EventRing ring;
  std::vector<std::thread> posters;
  for (int run = 1; run <= threads; ++run)
    posters.emplace_back([&ring, run] {
      for (std::int64_t step = 1; step <= steps; ++step) {
        if (step % 100 == 0)
          ring.post(RunEvent(TextSample{.run = run, .step = step, .text = std::to_string(step)}));
        else
          ring.post(step_of(run, step));
      }
    });
  std::vector<std::int64_t> last(threads + 1);
  for (std::int64_t read = 0; read < threads * steps;) {
    for (const RunEvent& event : ring.drain()) {
      const auto* text = std::get_if<TextSample>(&event);
      const std::int64_t step = text ? text->step : std::get<StepRecord>(event).step;
      if (text) {
        ASSERT_EQ(text->text, std::to_string(step));
      }
      ASSERT_EQ(step, ++last[static_cast<std::size_t>(run_of(event))]);
      ++read;
    }
  }
  for (std::thread& poster : posters) poster.join();
}

TEST(EventRing, refuses_events_beyond_its_bytes) {
  EventRing ring;
  const ConsoleText text{.run = 1, .text = std::string(16 << 20, 'x')};
  int taken = 0;
  while (taken < 100 && ring.post(RunEvent(text))) ++taken;
  EXPECT_EQ(taken, 15);
  EXPECT_TRUE(ring.post(step_of(1, 1))) << "the slots have room";
  ring.drain();
  EXPECT_TRUE(ring.post(RunEvent(text)));
}

TEST(EventRing, steps_wake_only_a_reader_that_waits_for_anything) {
  EventRing ring;
  ring.post(step_of(1, 1));
  const auto begun = std::chrono::steady_clock::now();
  ring.wait(30ms);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 30ms);
  ring.drain();
  for (const bool is_step : {true, false}) {
    std::thread poster([&] {
      std::this_thread::sleep_for(20ms);
      is_step ? ring.post(step_of(1, 2)) : ring.post(RunEvent(RunEnded{.run = 1}));
    });
    ring.wait(1min, true);
    poster.join();
    EXPECT_EQ(ring.drain().size(), 1u);
  }
  ring.post(RunEvent(RunStarted{.run = 1}));
  ring.wait(1min);
  ring.drain();
  for (std::size_t i = 0; i < EventRing::slot_count; ++i) ring.post(step_of(1, 1));
  ring.wait(1min);  // half full
}

TEST(EventRing, is_the_owners_own_file_and_goes_with_the_last_event) {
  TemporaryFolder folder;
  const EventOrigin origin = origin_of_this_process(folder / "a.db");
  std::filesystem::path file;
  {
    EventRing ring(origin, folder.path());
    file = ring.file();
    struct stat status {};
    ASSERT_EQ(stat(file.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    ring.post(step_of(1, 1));
    ring.drain();
  }
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(EventRing, leaves_its_steps_behind) {
  TemporaryFolder folder;
  const EventOrigin origin = origin_of_this_process(folder / "a.db");
  std::filesystem::path file;
  constexpr std::int64_t first = EventRing::slot_count - 2;  // the slots are used a second time
  {
    EventRing ring(origin, folder.path());
    file = ring.file();
    for (std::int64_t step = 1; step < first; ++step) ring.post(step_of(1, step));
    ring.drain();
    for (std::int64_t step = first; step < first + 5; ++step) ring.post(step_of(1, step));
    ring.post(RunEvent(RunEnded{.run = 1}));
  }
  const auto content = EventRing::content_of(bytes_of(file));
  ASSERT_TRUE(content);
  EXPECT_EQ(content->origin.database, origin.database);
  EXPECT_EQ(content->origin.process.pid, origin.process.pid);
  EXPECT_EQ(numbers(content->steps), (std::vector<std::int64_t>{first, first + 1, first + 2, first + 3, first + 4}));
  EXPECT_EQ(std::get<StepRecord>(content->steps[4]).loss, 1.0 / static_cast<double>(first + 4));
}

TEST(EventRing, does_without_a_shared_file_where_there_is_no_room) {
  TemporaryFolder folder;
  const EventOrigin origin = origin_of_this_process(folder / "a.db");
  EventRing nowhere(origin, folder / "missing");
  EXPECT_TRUE(nowhere.file().empty());
  nowhere.post(step_of(1, 1));
  EXPECT_EQ(nowhere.drain().size(), 1u);
}

TEST(EventRing, takes_no_damaged_file_for_a_ring) {
  TemporaryFolder folder;
  std::filesystem::path file;
  {
    EventRing ring(origin_of_this_process(folder / "a.db"), folder.path());
    file = ring.file();
    for (int step = 1; step <= 10; ++step) ring.post(step_of(1, step));
  }
  const std::string whole = bytes_of(file);
  EXPECT_FALSE(EventRing::content_of(""));
  EXPECT_FALSE(EventRing::content_of(whole.substr(0, whole.size() - 1)));
  for (std::size_t byte = 0; byte < 5000; ++byte) {
    std::string changed = whole;
    changed[byte] = static_cast<char>(changed[byte] ^ 0x80);
    const auto content = EventRing::content_of(changed);  // must not crash, nor find more than there was
    if (content) {
      EXPECT_LE(content->steps.size(), 10u);
    }
  }
}

}  // namespace
}  // namespace stepladder
