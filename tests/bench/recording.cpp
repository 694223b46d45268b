// Measures what keeping a step costs:
//   build/recording_bench FOLDER [STEPS AT 50 MS] [STEPS IN A BUSY LOOP]
// Times one post on the posting thread, while the writer waits between its commits, then the CPU time of the writer and
// the posts together, the bytes of the write-ahead log, and the bytes of the file, each per step. FOLDER must be on a
// disk, since commits wait for it.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "storage/database/recorder.h"

namespace {
using namespace stepladder;
using Clock = std::chrono::steady_clock;

// Of all threads but this one.
double cpu_us_of_others() {
  const auto used = [](int whose) {
    rusage usage{};
    getrusage(whose, &usage);
    const auto us = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
    };
    return us(usage.ru_utime) + us(usage.ru_stime);
  };
  return used(RUSAGE_SELF) - used(RUSAGE_THREAD);
}

// Reading the clock twice, which each time below includes: dearer after a sleep, when it is in no cache.
double ns_of_the_clock(std::chrono::milliseconds pace) {
  std::vector<double> all;
  for (int i = 0; i < (pace.count() > 0 ? 101 : 1001); ++i) {
    if (pace.count() > 0) std::this_thread::sleep_for(pace);
    const auto begun = Clock::now();
    all.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begun).count());
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

// As training produces them: all numbers differ, and there are five parts.
StepRecord step_of(RunId run, std::int64_t step) {
  const double x = static_cast<double>(step);
  return {.run = run,
          .step = step,
          .loss = 3 + std::sin(x) / 7,
          .dt_ms = 50 + std::cos(x),
          .tokens = 524'288,
          .lr = 6e-4 * (1 + std::cos(x / 1e5)) / 2,
          .grad_norm = 1 + std::sin(x * 3) / 3,
          .at = unix_now(),
          .parts = {1 + std::sin(x), 15 + std::cos(x), 28 + std::sin(x), 4 + std::cos(x), missing}};
}

double bytes_of(const std::filesystem::path& file) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(file, error);
  return error ? 0 : static_cast<double>(bytes);
}

void measure(const std::filesystem::path& folder, const char* name, std::int64_t steps,
             std::chrono::milliseconds pace) {
  const double clock_ns = ns_of_the_clock(pace);
  const std::filesystem::path file = folder / (std::string(name) + ".db");
  std::filesystem::path log = file;
  log += "-wal";
  for (const auto& old : {file, log}) std::filesystem::remove(old);
  const RunId run = RunStore::open(file).create_run({.name = name});
  const double before_file = bytes_of(file);
  std::vector<double> posts_ns;
  posts_ns.reserve(static_cast<std::size_t>(steps));
  double cpu = 0;
  double log_bytes = 0;
  {
    Recorder recorder(file, [](const std::string& why) { std::fprintf(stderr, "%s\n", why.c_str()); });
    recorder.post(RunStarted{.run = run, .at = unix_now()});
    recorder.flush();
    const double log_before = bytes_of(log);
    const double cpu_before = cpu_us_of_others();
    for (std::int64_t step = 1; step <= steps; ++step) {
      if (pace.count() > 0) std::this_thread::sleep_for(pace);
      const StepRecord record = step_of(run, step);
      const auto begun = Clock::now();
      recorder.post(record);
      posts_ns.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begun).count());
    }
    recorder.flush(std::chrono::minutes(1));
    cpu = cpu_us_of_others() - cpu_before;
    for (const double ns : posts_ns) cpu += (ns - clock_ns) / 1e3;
    log_bytes = bytes_of(log) - log_before;
  }
  std::sort(posts_ns.begin(), posts_ns.end());
  const auto at = [&](double share) {
    return posts_ns[static_cast<std::size_t>(share * static_cast<double>(steps - 1))] / 1e3;
  };
  const double count = static_cast<double>(steps);
  std::printf(
      "%-10s %9lld steps  post p50 %.2f p99 %.2f max %.1f us (%.2f are the clock's)  CPU %.2f us  log %.0f bytes%s  "
      "file %.1f bytes\n",
      name, static_cast<long long>(steps), at(0.5), at(0.99), at(1), clock_ns / 1e3, cpu / count, log_bytes / count,
      pace.count() > 0 ? "" : " (reused)", (bytes_of(file) - before_file) / count);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: recording_bench FOLDER [STEPS AT 50 MS] [STEPS IN A BUSY LOOP]\n");
    return 2;
  }
  using std::chrono::milliseconds;
  const std::filesystem::path folder = argv[1];
  const std::int64_t paced = argc > 2 ? std::atoll(argv[2]) : 1200;
  const std::int64_t busy = argc > 3 ? std::atoll(argv[3]) : 1'000'000;
  measure(folder, "50 ms", paced, milliseconds(50));
  measure(folder, "busy loop", busy, milliseconds(0));
}
