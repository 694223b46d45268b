// How often verdicts on simulated runs are wrong: coverage, false verdicts and power of storage/analysis/compare.h.
// error_rates [SIMULATIONS]; the table is the same each time.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "storage/analysis/compare.h"
#include "storage/analysis/verdict/picked_best.h"

namespace stepladder {
namespace {

std::mt19937_64 engine(20261125);

double normal(double deviation) {
  return std::normal_distribution<double>(0, deviation)(engine);
}

struct Noise {
  double between = 0.003;  // deviation of a run's logarithm from its program's
  double within = 0.001;   // of a run's median from its own mean
  bool heavy = false;      // Student's t with three degrees of freedom between runs
  double drift = 0;        // per run, of the machine
};

// Runs of one side that a machine measured one after the other; `turn` counts all of them.
struct Side {
  explicit Side(double ms) : ms(ms) {}
  void add(const Noise& noise, int turn) {
    const double off = noise.heavy ? std::student_t_distribution<double>(3)(engine) * noise.between / std::sqrt(3.0)
                                   : normal(noise.between);
    const double median = ms * std::exp(off + normal(noise.within) + noise.drift * turn);
    if (sample.repeats.empty()) {
      sample.steps = {.median = median, .steps = 300, .block = 1, .log_error = noise.within};
      for (int i = 0; i < 100; ++i) sample.steps.log_deviations.push_back(normal(noise.within));
    }
    sample.repeats.push_back(median);
    sample.averaged = sample.repeats.size();
  }
  double figure() const { return median_of(sample.repeats); }
  double ms;
  Sample sample;
};

const RunSpread gpu_prior{.squares = 4 * 0.0013 * 0.0013, .freedom = 4, .from = SpreadFrom::prior};

struct Tally {
  int tried = 0, covered = 0, faster = 0, slower = 0, same = 0, runs = 0;
  void take(const SpeedUp& found, double ratio, std::size_t each) {
    ++tried;
    covered += found.ci95.known() && found.ci95.low <= ratio && found.ci95.high >= ratio ? 1 : 0;
    faster += found.verdict == Verdict::faster ? 1 : 0;
    slower += found.verdict == Verdict::slower ? 1 : 0;
    same += found.verdict == Verdict::same ? 1 : 0;
    runs += static_cast<int>(each);
  }
  void print(const std::string& what) const {
    const auto percent = [&](int count) { return 100.0 * count / tried; };
    std::printf("| %-58s | %5.1f | %5.1f | %5.1f | %5.1f | %4.1f |\n", what.c_str(), percent(covered), percent(faster),
                percent(slower), percent(same), static_cast<double>(runs) / tried);
  }
};

SpeedUp judged(const Side& base, const Side& run, const SpeedUpRules& rules) {
  return judge_speedup(base.figure() / run.figure(), base.sample, run.sample, rules);
}

// Looks once, after `repeats` runs of each side.
void once(const std::string& name, const Noise& noise, int repeats, double gain, int simulations) {
  Tally tally;
  for (int i = 0; i < simulations; ++i) {
    Side base(100 * (1 + gain)), run(100);
    for (int turn = 0; turn < repeats; ++turn) {
      base.add(noise, 2 * turn);
      run.add(noise, 2 * turn + 1);
    }
    tally.take(judged(base, run, {.known = gpu_prior}), 1 + gain, base.sample.averaged);
  }
  tally.print(name);
}

// Looks after each round until the verdict is clear, as `confirm` does.
void until_clear(const std::string& name, const Noise& noise, std::size_t most, double gain, int simulations) {
  const Looks looks(most);
  Tally tally;
  for (int i = 0; i < simulations; ++i) {
    Side base(100 * (1 + gain)), run(100);
    SpeedUp found;
    for (std::size_t round = 1; round <= most; ++round) {
      const int turn = 2 * static_cast<int>(round);
      base.add(noise, turn);
      run.add(noise, turn + 1);
      if (!looks.is_at(round)) continue;
      found = judged(base, run, {.known = gpu_prior, .looks = looks});
      if (found.verdict != Verdict::cannot_tell) break;
    }
    tally.take(found, 1 + gain, base.sample.averaged);
  }
  tally.print(name);
}

// Adds a run to each side, or to the second alone, until the verdict is clear, as "Repeat" does. Pays for each number
// of runs, or looks at will.
enum class Pays { nothing, side_with_fewer, added_side };
void added_until_clear(const Noise& noise, std::size_t first, double gain, Pays pays, bool to_one, int simulations) {
  Tally tally;
  for (int i = 0; i < simulations; ++i) {
    Side base(100 * (1 + gain)), run(100);
    SpeedUp found;
    for (std::size_t each = 1; each <= 10 && found.verdict == Verdict::cannot_tell; ++each) {
      if (!to_one || each <= first) base.add(noise, 0);
      run.add(noise, 0);
      if (each < first) continue;
      SpeedUpRules rules{.known = gpu_prior};
      const std::size_t paid = pays == Pays::added_side ? each : base.sample.averaged;
      if (pays != Pays::nothing && each > first) rules.looks = Looks(paid);
      rules.looks.in_pairs = false;
      found = judged(base, run, rules);
    }
    tally.take(found, 1 + gain, run.sample.averaged);
  }
  const char* const paid[] = {", not paid for", "", ", each paid for"};
  tally.print((to_one ? "added to one, " : "added from ") + std::to_string(first) + " to 10" +
              (to_one || pays == Pays::nothing ? paid[static_cast<int>(pays)] : "") + ", noise " +
              std::to_string(100 * noise.between).substr(0, 3) + " %, gain " + std::to_string(100 * gain).substr(0, 1) +
              " %");
}

// A ladder of equal rungs: how often any of them is told apart from the baseline.
void ladder(const Noise& noise, int rungs, int repeats, int simulations) {
  int wrong = 0;
  for (int i = 0; i < simulations; ++i) {
    Side base(100);
    for (int k = 0; k < repeats; ++k) base.add(noise, 0);
    std::vector<SpeedUp> found;
    for (int rung = 0; rung < rungs; ++rung) {
      Side run(100);
      for (int k = 0; k < repeats; ++k) run.add(noise, 0);
      found.push_back(judged(base, run, {.known = gpu_prior}));
    }
    std::vector<SpeedUp*> family;
    for (SpeedUp& each : found) family.push_back(&each);
    hold_together(family);
    bool any = false;
    for (const SpeedUp& each : found) any |= each.verdict == Verdict::faster || each.verdict == Verdict::slower;
    wrong += any ? 1 : 0;
  }
  std::printf("| ladder of %2d equal rungs, %d runs each, noise %.1f %% | any told apart: %.1f %% |\n", rungs, repeats,
              100 * noise.between, 100.0 * wrong / simulations);
}

// A sweep of equal combinations: how far ahead the best looks, before and after the correction, and how often the
// corrected interval holds the truth.
void sweep(int combinations, int repeats, double noise, int simulations) {
  double lead = 0, corrected = 0;
  int covered = 0;
  for (int i = 0; i < simulations; ++i) {
    std::vector<Candidate> candidates;
    RunSpread spread{.from = SpreadFrom::repeats};
    for (int k = 0; k < combinations; ++k) {
      std::vector<double> values;
      for (int run = 0; run < repeats; ++run) values.push_back(1 + normal(noise));
      double mean = 0;
      for (const double value : values) mean += value / repeats;
      for (const double value : values) spread.squares += (value - mean) * (value - mean);
      spread.freedom += repeats - 1;
      candidates.push_back({mean, values.size()});
    }
    const RunSpread known{.squares = 40 * noise * noise, .freedom = 40, .from = SpreadFrom::prior};
    const PickedBest best = picked_best(candidates, true, repeats > 1 ? spread : known, repeats > 1 ? spread : known);
    lead += (candidates[best.place].mean - 1) / simulations;
    corrected += (best.corrected - 1) / simulations;
    covered += best.ci95.low <= 1 && 1 <= best.ci95.high ? 1 : 0;
  }
  std::printf("| sweep of %2d equal combinations, %d run%s each, noise %.1f %% | %+.2f %% | %+.2f %% | %.1f |\n",
              combinations, repeats, repeats == 1 ? "" : "s", 100 * noise, 100 * lead, 100 * corrected,
              100.0 * covered / simulations);
}

void all(int simulations) {
  std::printf("| case | covered | faster | slower | same | runs each |\n| --- | --- | --- | --- | --- | --- |\n");
  for (const double between : {0.0005, 0.0008, 0.002, 0.0027})
    once("one run, prior, noise " + std::to_string(100 * between).substr(0, 4) + " %", {.between = between}, 1, 0,
         simulations);
  once("one run, prior, noise 0.08 %, gain 2 %", {.between = 0.0008}, 1, 0.02, simulations);
  for (const int repeats : {2, 3, 6, 20})
    for (const double between : {0.003, 0.01, 0.05})
      once(std::to_string(repeats) + " runs, noise " + std::to_string(100 * between).substr(0, 3) + " %",
           {.between = between}, repeats, 0, simulations);
  once("3 runs, noise 0.3 %, gain 2 %", {.between = 0.003}, 3, 0.02, simulations);
  once("6 runs, noise 1 %, t(3) tails", {.between = 0.01, .heavy = true}, 6, 0, simulations);
  for (const std::size_t most : {6, 20})
    for (const double between : {0.003, 0.01, 0.02, 0.05}) {
      const std::string name = "until clear, at most " + std::to_string(most) + ", noise " +
                               std::to_string(100 * between).substr(0, 3) + " %";
      until_clear(name, {.between = between}, most, 0, simulations);
      until_clear(name + ", gain 3 %", {.between = between}, most, 0.03, simulations);
    }
  until_clear("until clear, at most 6, noise 1 %, drift 0.2 % a run", {.between = 0.01, .drift = 0.002}, 6, 0,
              simulations);
  until_clear("until clear, at most 6, noise 1 %, t(3) tails", {.between = 0.01, .heavy = true}, 6, 0, simulations);
  const auto added = [&](Pays pays, bool to_one) {
    for (const std::size_t first : {2, 3})
      for (const double gain : {0.0, 0.03})
        for (const double between : {0.01, 0.05})
          added_until_clear({.between = between}, first, gain, pays, to_one, simulations);
  };
  for (const Pays pays : {Pays::nothing, Pays::side_with_fewer}) added(pays, false);
  for (const Pays pays : {Pays::nothing, Pays::side_with_fewer, Pays::added_side}) added(pays, true);
  std::printf("\n");
  for (const int rungs : {2, 5, 10, 20})
    for (const int repeats : {1, 3}) ladder({.between = repeats == 1 ? 0.0012 : 0.01}, rungs, repeats, simulations);
  std::printf("\n| case | the best's lead | corrected | covered |\n| --- | --- | --- | --- |\n");
  for (const int combinations : {2, 10, 40})
    for (const int repeats : {1, 3}) sweep(combinations, repeats, 0.01, simulations);
}

}  // namespace
}  // namespace stepladder

int main(int count, char** arguments) {
  stepladder::all(count > 1 ? std::atoi(arguments[1]) : 2000);
}
