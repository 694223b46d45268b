// Averages the samples of the machine over each step and decides whether others took what the run needed. A sample is
// the mean since the previous one; after a gap longer than longest_gap_s it counts for the usual half second only.
// Summaries, and quiet.h before a run starts, ask the same question here.
#include "storage/contention.h"

#include <algorithm>
#include <cmath>

#include "storage/wording.h"

namespace stepladder {
namespace {

// Two samples of one process are never further apart, even on a busy machine; a resumed run's may be.
constexpr double longest_gap_s = 10;
constexpr double usual_gap_s = 0.5;
constexpr double worth_naming = 0.05;  // cores

bool knows_cores(const Contention& contention) {
  return !is_missing(contention.other_cores) && contention.cores > 0 && contention.needed_cores > 0;
}

bool lacks_gpu(const Contention& contention) {
  return !is_missing(contention.other_gpu_load) && contention.other_gpu_load > undisturbed_share;
}

int needed_cores(const Contention& contention) {
  return std::min(contention.needed_cores, contention.cores);
}

bool lacks_cores(const Contention& contention) {
  return knows_cores(contention) && lacking_cores(contention) > undisturbed_share * needed_cores(contention);
}

// A weighted mean of the known values.
struct Mean {
  double sum = 0, weight = 0;
  void add(double value, double seconds) {
    if (is_missing(value)) return;
    sum += value * seconds;
    weight += seconds;
  }
  double over(double seconds) const { return weight > 0 && 2 * weight >= seconds ? sum / weight : missing; }
};

}  // namespace

bool is_known(const Contention& contention) {
  return knows_cores(contention) || !is_missing(contention.other_gpu_load);
}

double lacking_cores(const Contention& contention) {
  if (!knows_cores(contention)) return missing;
  return std::max(0.0, needed_cores(contention) - std::max(0.0, contention.cores - contention.other_cores));
}

bool is_disturbed(const Contention& contention) {
  return lacks_cores(contention) || lacks_gpu(contention);
}

std::string contention_text(const Contention& contention, const std::string& when) {
  if (lacks_gpu(contention) && !lacks_cores(contention))
    return "others used " + percent_text(contention.other_gpu_load) + " of its GPU" + when;
  if (!knows_cores(contention)) return "";
  const double left = std::max(0.0, contention.cores - contention.other_cores);
  const std::string own = contention.program_cores >= worth_naming
                              ? " (" + decimals(contention.program_cores, 1) + " by this window or terminal)"
                              : "";
  return fmt::format("others used {} of {}{}{}, which left {} for its {}", decimals(contention.other_cores, 1),
                     plural(contention.cores, "core"), own, when, decimals(left, 1),
                     plural(contention.needed_cores, "thread"));
}

// Reads the samples up to the one that covers `at`.
ContentionOfSteps::ContentionOfSteps(std::span<const SystemMetrics> samples)
    : next_([samples](SystemMetrics& sample) mutable {
        if (samples.empty()) return false;
        sample = samples.front();
        samples = samples.subspan(1);
        return true;
      }) {}

void ContentionOfSteps::read_until(double at) {
  SystemMetrics sample;
  while (!done_ && !(last_at_ >= at)) {
    done_ = !next_(sample);
    if (done_ || !std::isfinite(sample.at)) continue;
    const double gap = sample.at - last_at_;  // NaN before the first
    const double covered = gap > 0 && gap < longest_gap_s ? gap : usual_gap_s;
    intervals_.push_back({sample.at - covered, sample.at, sample.contention});
    last_at_ = sample.at;
  }
}

Contention ContentionOfSteps::during(double at, double dt_ms) {
  if (!std::isfinite(at) || !std::isfinite(dt_ms) || dt_ms <= 0) return {};
  const double seconds = dt_ms / 1000, from = at - seconds;
  read_until(at);
  while (!intervals_.empty() && intervals_.front().to <= from) intervals_.pop_front();
  Contention found;
  Mean cores, program_cores, gpu_load;
  for (const Interval& each : intervals_) {
    const double overlap = std::min(at, each.to) - std::max(from, each.from);
    if (overlap <= 0) continue;
    cores.add(each.contention.other_cores, overlap);
    program_cores.add(each.contention.program_cores, overlap);
    gpu_load.add(each.contention.other_gpu_load, overlap);
    found.cores = each.contention.cores;
    found.needed_cores = each.contention.needed_cores;
  }
  found.other_cores = cores.over(seconds);
  found.program_cores = program_cores.over(seconds);
  found.other_gpu_load = gpu_load.over(seconds);
  return found;
}

}  // namespace stepladder
