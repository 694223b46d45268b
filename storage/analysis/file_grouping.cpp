// Decides between repeats and rungs: first by named facts, then by tokens per step, last by step times. The first
// difference found is the reason that people read, so the order of the checks is the order of the reasons.
#include "storage/analysis/file_grouping.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "storage/analysis/summary.h"
#include "storage/name_pattern.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

using Json = nlohmann::json;

constexpr double least_share = 0.05;          // of step times; seeds of one script differ by 1 to 2 %
constexpr double quartile_widths = 2;         // that step times must differ by at least
constexpr std::int64_t enough_steps = 5;      // to know how much a file's steps scatter
constexpr double unknown_scatter = 0.1;       // assumed for a file of fewer
constexpr double least_share_of_files = 0.1;  // whose time must differ: one slow file among many is still a repeat
constexpr double same_tokens = 0.02;          // tokens per step may have been inferred from rounded figures
constexpr std::size_t most_values_named = 3;

// Parts of the names of settings that differ between repeats.
constexpr std::array<std::string_view, 10> of_repeats = {"seed",    "run_name", "run_id",  "exp_name", "job",
                                                         "out_dir", "output",   "log_dir", "logdir",   "timestamp"};

// Whether a setting may differ between repeats: the seed, and names of runs, places and times.
bool differs_between_repeats(const std::string& setting) {
  const std::string name = lower_case(setting.substr(setting.rfind('.') + 1));
  static const std::set<std::string> names = {"name", "run", "id", "uuid", "host", "hostname", "port", "date", "time"};
  if (names.contains(name)) return true;
  return std::any_of(of_repeats.begin(), of_repeats.end(),
                     [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

std::string as_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The facts in a file about its run, by name.
std::map<std::string, std::string> facts_of(const Run& run) {
  std::map<std::string, std::string> facts;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) facts[name] = value;
  };
  add("hardware", run.hardware);
  add("device", run.device);
  add("precision", run.precision);
  add("attention kernel", run.attention);
  if (run.params > 0) facts["number of parameters"] = grouped(run.params);
  const Json recipe = Json::parse(run.recipe, nullptr, false);
  if (recipe.is_object()) {
    // A log's stage is a heading in it; a tracker's is the run's name, which no two runs share.
    if (recipe.contains("log_family")) add("stage", run.stage), add("log format", as_text(recipe["log_family"]));
    for (const auto& [name, value] : recipe.items())
      if (!value.is_null() && name != "log_family" && !differs_between_repeats(name))
        facts.try_emplace(name, as_text(value));
  }
  const Json environment = Json::parse(run.environment, nullptr, false);
  if (environment.is_object() && environment.contains("source_hash"))
    facts["source code"] = as_text(environment["source_hash"]);
  return facts;
}

std::optional<std::string> different_fact(std::span<const FileRun> files) {
  std::map<std::string, std::vector<std::string>> values;  // of each fact, each once, in the order of files
  for (const FileRun& file : files) {
    for (auto& [name, value] : facts_of(*file.run)) {
      std::vector<std::string>& known = values[name];
      if (std::find(known.begin(), known.end(), value) == known.end()) known.push_back(value);
    }
  }
  // The hardware and the model are better reasons than a detail of the recipe.
  std::vector<std::string> order = {"hardware",    "device",    "number of parameters", "precision", "stage",
                                    "source code", "log format"};
  const auto named = order.size();  // the rest are settings of the recipe
  for (const auto& [name, known] : values) order.push_back(name);
  for (std::size_t at = 0; at < order.size(); ++at) {
    const std::string& name = order[at];
    const std::vector<std::string>& known = values[name];
    if (known.size() < 2) continue;
    std::string sentence = (at < named ? "the " : "") + name + " differs";
    if (name == "source code") return sentence;
    for (std::size_t i = 0; i < std::min(known.size(), most_values_named); ++i)
      sentence += (i == 0 ? ": " : ", ") + known[i].substr(0, 60);
    return known.size() > most_values_named ? sentence + ", ..." : sentence;
  }
  return std::nullopt;
}

std::optional<std::string> different_tokens(std::span<const FileRun> files) {
  std::int64_t least = 0, most = 0;
  for (const FileRun& file : files) {
    const std::int64_t tokens = file.run->tokens_per_step;
    if (tokens <= 0) continue;
    if (least == 0 || tokens < least) least = tokens;
    most = std::max(most, tokens);
  }
  if (static_cast<double>(most - least) <= same_tokens * static_cast<double>(most)) return std::nullopt;
  return "the number of tokens per step differs: " + grouped(least) + " to " + grouped(most);
}

struct StepTime {
  double ms = missing;       // median
  double scatter = missing;  // the width between the quartiles, of the median
};

std::vector<StepTime> step_times(std::span<const FileRun> files) {
  std::vector<StepTime> times;
  for (const FileRun& file : files) {
    const Summary& summary = *file.summary;
    if (!(summary.dt_ms_median > 0)) continue;
    const std::int64_t steady = summary.steps - summary.warmup_steps - summary.untimed_steps;
    times.push_back({summary.dt_ms_median, steady < enough_steps
                                               ? unknown_scatter
                                               : (summary.dt_ms_p75 - summary.dt_ms_p25) / summary.dt_ms_median});
  }
  return times;
}

double median_member(const std::vector<StepTime>& times, double StepTime::*member) {
  std::vector<double> values;
  for (const StepTime& time : times) values.push_back(time.*member);
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

std::string range_text(const std::vector<StepTime>& times) {
  const auto [least, most] =
      std::minmax_element(times.begin(), times.end(), [](const StepTime& a, const StepTime& b) { return a.ms < b.ms; });
  return figure_text(least->ms) + " to " + figure_text(most->ms) + " ms";
}

}  // namespace

FileGrouping group_files(std::span<const FileRun> files) {
  if (files.size() < 2) return {FilesAre::repeats, "there is one file"};
  if (auto different = different_fact(files)) return {FilesAre::rungs, *different};
  if (auto different = different_tokens(files)) return {FilesAre::rungs, *different};
  const std::vector<StepTime> times = step_times(files);
  if (times.size() < 2) return {FilesAre::repeats, "the files name no difference; they have no step times"};
  const double middle = median_member(times, &StepTime::ms);
  const double scatter = median_member(times, &StepTime::scatter);
  const double least = std::max(least_share, quartile_widths * scatter);
  const auto apart = std::count_if(times.begin(), times.end(), [&](const StepTime& time) {
    return std::max(time.ms, middle) / std::min(time.ms, middle) - 1 > least;
  });
  const std::string within = percent_text(scatter) + " between the quartiles of a file";
  if (apart > 0 && static_cast<double>(apart) >= least_share_of_files * static_cast<double>(times.size()))
    return {FilesAre::rungs, "the median steps take " + range_text(times) + ", with " + within};
  if (apart > 0)
    return {FilesAre::repeats,
            fmt::format("{} of {} files differ in step time; too few to make rungs", apart, times.size())};
  return {FilesAre::repeats,
          "the files name no difference; the median steps take " + range_text(times) + ", with " + within};
}

}  // namespace stepladder
