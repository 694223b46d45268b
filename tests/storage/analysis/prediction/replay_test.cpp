// Small steps whose new lengths follow from their tasks by hand. Times in microseconds.
#include "storage/analysis/prediction/replay.h"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

constexpr std::int64_t us = 1'000;

ReplayTask task(std::uint32_t lane, std::int64_t start, std::int64_t duration, OperatorKind kind,
                std::uint32_t launched_by = ReplayTask::none) {
  return {.start_ns = start * us, .duration_ns = duration * us, .lane = lane, .kind = kind, .launched_by = launched_by};
}

double played_us(const Replay& replay, OperatorKind kind, double factor) {
  ReplayChange change = replay.no_change();
  for (std::size_t i = 0; i < change.factors.size(); ++i)
    if (replay.step().tasks[i].kind == kind) change.factors[i] = factor;
  return replay.length_ns(change) / us;
}

constexpr auto products = OperatorKind::products, gelu = OperatorKind::gelu,
               communication = OperatorKind::communication, between = OperatorKind::between;

TEST(Replay, of_one_thread_adds_up_what_is_left) {
  const Replay replay({.tasks = {task(0, 0, 100, products), task(0, 100, 50, gelu), task(0, 160, 40, products)},
                       .on_gpu = {false},
                       .length_ns = 210 * us});
  EXPECT_DOUBLE_EQ(replay.length_ns(replay.no_change()), 210 * us);
  EXPECT_DOUBLE_EQ(played_us(replay, gelu, 0), 160);
  EXPECT_DOUBLE_EQ(played_us(replay, products, 0.5), 140);
  EXPECT_DOUBLE_EQ(played_us(replay, products, 2), 350);
}

TEST(Replay, of_two_threads_waits_for_the_slower_one) {
  // Both work until a meeting; then the main thread goes on.
  ReplayTask wait = task(0, 100, 100, between);
  wait.is_outside_operators = true;
  const Replay replay({.tasks = {task(0, 0, 100, products), wait, task(0, 200, 50, products), task(1, 0, 200, gelu)},
                       .on_gpu = {false, false},
                       .length_ns = 250 * us});
  EXPECT_DOUBLE_EQ(replay.length_ns(replay.no_change()), 250 * us);
  EXPECT_DOUBLE_EQ(played_us(replay, gelu, 0.75), 200);
  EXPECT_DOUBLE_EQ(played_us(replay, gelu, 2), 450);
}

// A thread (lane 2) that is far ahead launches two kernels of stream 0 and a collective of stream 1, for which the
// second kernel waits.
ReplayStep overlapped() {
  return {.tasks = {task(2, -1000, 10, between), task(2, -990, 10, between), task(2, -980, 10, between),
                    task(0, 0, 300, products, 0), task(1, 0, 500, communication, 1), task(0, 500, 400, gelu, 2)},
          .on_gpu = {true, true, false},
          .length_ns = 900 * us,
          .main_thread = 2,
          .thread_end_ns = -970 * us};
}

TEST(Replay, work_that_communication_hides_buys_nothing) {
  const Replay replay(overlapped());
  EXPECT_DOUBLE_EQ(replay.length_ns(replay.no_change()), 900 * us);
  EXPECT_DOUBLE_EQ(played_us(replay, products, 0), 900);
  EXPECT_DOUBLE_EQ(played_us(replay, gelu, 0.5), 700);
  EXPECT_DOUBLE_EQ(played_us(replay, communication, 0), 700);  // the products are exposed then
  EXPECT_DOUBLE_EQ(played_us(replay, products, 2), 1000);      // longer than what hid it
  EXPECT_DOUBLE_EQ(played_us(replay, communication, 2), 1400);
}

// A thread (lane 1) that needs 100 us for each launch, of kernels that take 20.
ReplayStep launch_bound() {
  ReplayStep step{.on_gpu = {true, false}, .length_ns = 400 * us, .main_thread = 1, .thread_end_ns = 390 * us};
  for (int i = 0; i < 4; ++i) step.tasks.push_back(task(1, -10 + 100 * i, 100, between));
  for (std::uint32_t i = 0; i < 4; ++i) step.tasks.push_back(task(0, 100 * i, 20, products, i));
  return step;
}

TEST(Replay, a_slow_thread_sets_the_pace_of_short_kernels) {
  const Replay replay(launch_bound());
  EXPECT_DOUBLE_EQ(replay.length_ns(replay.no_change()), 400 * us);
  EXPECT_NEAR(played_us(replay, products, 0), 400, 1);
  EXPECT_NEAR(played_us(replay, between, 0.5), 200, 1);
  EXPECT_NEAR(played_us(replay, between, 2), 800, 1);
  EXPECT_NEAR(played_us(replay, between, 0), 80, 10);     // the kernels alone, with a launch's latency
  EXPECT_NEAR(played_us(replay, products, 10), 800, 10);  // now the kernels do
}

TEST(Replay, a_thread_that_waits_for_the_gpu_waits_less) {
  // It launches, waits for the kernel, and works 100 us before the next step.
  ReplayTask wait = task(1, 0, 210, between);
  wait.own_ns = 5 * us;
  const Replay replay(
      {.tasks = {task(1, -10, 10, between), wait, task(1, 210, 90, between), task(0, 0, 200, products, 0)},
       .on_gpu = {true, false},
       .length_ns = 310 * us,
       .main_thread = 1,
       .thread_end_ns = 300 * us});
  EXPECT_DOUBLE_EQ(replay.length_ns(replay.no_change()), 310 * us);
  EXPECT_NEAR(played_us(replay, products, 0.5), 210, 1);
  EXPECT_NEAR(played_us(replay, products, 2), 510, 1);
}

TEST(Replay, everything_twice_as_long_takes_twice_as_long) {
  for (const ReplayStep& step : {overlapped(), launch_bound()}) {
    const Replay replay(step);
    ReplayChange change = replay.no_change();
    change.factors.assign(change.factors.size(), 2);
    change.thread_gaps = change.gpu_gaps = 2;
    EXPECT_NEAR(replay.length_ns(change), 2.0 * static_cast<double>(step.length_ns), 20 * us);
  }
}

TEST(Replay, of_nothing_is_as_long_as_before) {
  const Replay empty({.length_ns = 5 * us, .main_thread = ReplayTask::none});
  EXPECT_DOUBLE_EQ(empty.length_ns(empty.no_change()), 5 * us);
  // Clocks that disagree: a kernel before its launch, a thread that isn't known.
  const Replay strange({.tasks = {task(0, 0, 10, products, 1), task(1, 100, 10, between)},
                        .on_gpu = {true, false},
                        .length_ns = 200 * us,
                        .main_thread = ReplayTask::none});
  EXPECT_DOUBLE_EQ(strange.length_ns(strange.no_change()), 200 * us);
}

}  // namespace
}  // namespace stepladder
