// Measures how long creating and opening a file with huge series takes:
//   build/overview_bench make FILE RUNS STEPS      build/overview_bench open FILE
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>

#include "storage/database/database.h"
#include "storage/database/run_store.h"

namespace {
using namespace stepladder;

double cpu_ms() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  return ms(used.ru_utime) + ms(used.ru_stime);
}

double peak_mb() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) / 1024;
}

template <class Work>
void timed(const char* what, Work&& work) {
  const double cpu = cpu_ms();
  const auto began = std::chrono::steady_clock::now();
  const auto found = static_cast<double>(work());
  const double wall = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
  std::printf("%-58s %10.1f ms CPU %10.1f ms wall  (%.0f)  peak %.0f MB\n", what, cpu_ms() - cpu, wall, found,
              peak_mb());
  std::fflush(stdout);
}

double megabytes(const std::filesystem::path& file) {
  return static_cast<double>(std::filesystem::file_size(file)) / 1e6;
}

// A cheap generator (Vigna's SplitMix64) so that the file dominates the measurement.
double noise(std::uint64_t i) {
  std::uint64_t z = i * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

void make(const std::filesystem::path& file, std::int64_t runs, std::int64_t steps) {
  RunStore store = RunStore::open(file);
  timed("steps written", [&] {
    std::vector<StepRecord> records;
    for (std::int64_t r = 0; r < runs; ++r) {
      store.in_one_transaction([&] {
        const RunId id = store.create_run(
            {.name = "run " + std::to_string(r), .status = RunStatus::finished, .tokens_per_step = 524'288});
        for (std::int64_t first = 1; first <= steps; first += 4096) {
          records.clear();
          for (std::int64_t i = first; i <= std::min(steps, first + 4095); ++i) {
            const auto at = static_cast<std::uint64_t>(r * steps + i);
            const double falling = 3 + 8 / std::sqrt(static_cast<double>(i)) + 0.05 * noise(3 * at);
            records.push_back({.step = i,
                               .loss = i == steps / 2 ? 1000 : falling,
                               .val_loss = i % 1000 == 0 ? falling : missing,
                               .dt_ms = 330 + 5 * noise(3 * at + 1),
                               .tokens = 524'288,
                               .lr = 6e-4 * (1 - 0.9 * static_cast<double>(i) / static_cast<double>(steps)),
                               .grad_norm = 0.3 + 0.1 * noise(3 * at + 2)});
          }
          store.append_steps(id, records);
        }
      });
    }
    return runs * steps;
  });
  Database(file, Database::Mode::read_write).execute("PRAGMA wal_checkpoint(TRUNCATE)");
  const double before = megabytes(file);
  timed("summaries and overviews made", [&] { return store.runs_with_summaries().size(); });
  Database(file, Database::Mode::read_write).execute("PRAGMA wal_checkpoint(TRUNCATE)");
  std::printf("%.1f MB of steps, and %.1f MB (%.1f %%) of summaries and overviews\n", before, megabytes(file) - before,
              100 * (megabytes(file) - before) / before);
}

void open(const std::filesystem::path& file) {
  RunStore store = RunStore::open(file);
  std::vector<RunAndSummary> runs;
  timed("all runs with their summaries", [&] { return (runs = store.runs_with_summaries()).size(); });
  std::vector<Overview> losses;
  timed("the loss of all runs at a glance (buckets)", [&] {
    std::size_t buckets = 0;
    for (const RunAndSummary& run : runs) {
      losses.push_back(store.overview(run.run.id, Quantity::loss));
      buckets += losses.back().buckets.size();
    }
    return buckets;
  });
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto& buckets = losses[i].buckets;
    if (std::none_of(buckets.begin(), buckets.end(), [](const Bucket& bucket) { return bucket.max >= 1000; }))
      throw std::runtime_error("the spike of " + runs[i].run.name + " is not in its overview");
  }
  const Run& run = runs.back().run;
  const std::int64_t steps = runs.back().summary.steps;
  for (const Quantity quantity : step_quantities)
    timed(("one run, " + std::string(to_string(quantity)) + " (buckets)").c_str(),
          [&] { return store.overview(run.id, quantity).buckets.size(); });
  for (const std::int64_t part : {2, 10, 100, 1000}) {
    const std::int64_t first = steps / 3;
    timed(("zoom to 1/" + std::to_string(part) + " for 1600 columns (buckets)").c_str(),
          [&] { return store.overview(run.id, Quantity::loss, first, first + steps / part, 1600).buckets.size(); });
  }
  for (const std::int64_t count : {1000, 5000, 10'000})
    timed(("true records of " + std::to_string(count) + " steps in the middle").c_str(),
          [&] { return store.series(run.id, steps / 2, steps / 2 + count - 1).size(); });
}

}  // namespace

int main(int count, char** words) {
  try {
    if (count == 5 && std::strcmp(words[1], "make") == 0) {
      make(words[2], std::atoll(words[3]), std::atoll(words[4]));
    } else if (count == 3 && std::strcmp(words[1], "open") == 0) {
      open(words[2]);
    } else {
      std::fprintf(stderr, "overview_bench make FILE RUNS STEPS | open FILE\n");
      return 2;
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
