// Decides between repeats and rungs: first by named facts, then by tokens per step, last by step times. The first
// difference found is the reason that people read, so the order of the checks is the order of the reasons.
#include "storage/analysis/file_grouping.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>

#include "storage/analysis/summary.h"
#include "storage/by_enum.h"
#include "storage/json_values.h"
#include "storage/name_pattern.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

using SortedJson = nlohmann::json;

constexpr double least_share = 0.05;          // of step times; seeds of one script differ by 1 to 2 %
constexpr double least_if_alike = 0.25;       // the same where all files print the same configuration
constexpr double quartile_widths = 2;         // that step times must differ by at least
constexpr std::int64_t enough_steps = 5;      // to know how much a file's steps scatter
constexpr double unknown_scatter = 0.1;       // assumed for a file of fewer
constexpr double least_share_of_files = 0.1;  // whose time must differ: one slow file among many is still a repeat
constexpr double same_tokens = 0.02;          // tokens per step may have been inferred from rounded figures
constexpr std::size_t most_values_named = 3;
const std::string unnamed("\0", 1);  // no value of a setting

// The facts that aren't settings of the recipe, the best reasons first.
constexpr std::array<std::string_view, 8> outside_the_recipe = {"log format",           "hardware",        "device",
                                                                "number of parameters", "precision",       "stage",
                                                                "source code",          "attention kernel"};

// Parts of the names of settings that differ between repeats.
constexpr std::array<std::string_view, 10> of_repeats = {"seed",    "run_name", "run_id",  "exp_name", "job",
                                                         "out_dir", "output",   "log_dir", "logdir",   "timestamp"};

std::string as_text(const SortedJson& value) {
  return value.is_string() ? value.get<std::string>() : json_text(value);
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
  const SortedJson recipe = SortedJson::parse(run.recipe, nullptr, false);
  if (recipe.is_object()) {
    // A log's stage is a heading in it; a tracker's is the run's name, which no two runs share.
    if (recipe.contains("log_family")) add("stage", run.stage), add("log format", as_text(recipe["log_family"]));
    for (const auto& [name, value] : recipe.items())
      if (!value.is_null() && name != "log_family" && !differs_between_repeats(name))
        facts.try_emplace(name, as_text(value));
  }
  const SortedJson environment = SortedJson::parse(run.environment, nullptr, false);
  if (environment.is_object() && environment.contains("source_hash"))
    facts["source code"] = as_text(environment["source_hash"]);
  return facts;
}

using Facts = std::map<std::string, std::string>;

// The facts of which the files name at least two values: the hardware and the model first, as the better reasons.
struct Differences {
  std::vector<std::string> names;
  std::map<std::string, std::vector<std::string>> values;  // of each, in the order of files
  std::size_t outside_recipe = 0;                          // of the names, the first
};

Differences differences_of(const std::vector<Facts>& files) {
  std::map<std::string, std::vector<std::string>> values;
  for (const Facts& facts : files) {
    for (const auto& [name, value] : facts) {
      std::vector<std::string>& known = values[name];
      if (std::ranges::find(known, value) == known.end()) known.push_back(value);
    }
  }
  std::vector<std::string> order(outside_the_recipe.begin(), outside_the_recipe.end());
  for (const auto& [name, known] : values)
    if (std::ranges::find(order, name) == order.end()) order.push_back(name);
  Differences found;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (values[order[i]].size() < 2) continue;
    found.names.push_back(order[i]);
    found.values[order[i]] = values[order[i]];
    if (i < outside_the_recipe.size()) ++found.outside_recipe;
  }
  return found;
}

// "8, 16, 128, ..."
std::string list_of(std::vector<std::string> values) {
  std::ranges::sort(values, value_before);
  std::string list;
  for (std::size_t i = 0; i < std::min(values.size(), most_values_named); ++i)
    list += (i == 0 ? "" : ", ") + values[i].substr(0, 60);
  return values.size() > most_values_named ? list + ", ..." : list;
}

// "the hardware differs: NVIDIA A100, NVIDIA H100"
std::string reason_of(const Differences& found) {
  const std::string& name = found.names.front();
  const std::string sentence = (found.outside_recipe > 0 ? "the " : "") + name + " differs";
  return name == "source code" ? sentence : sentence + ": " + list_of(found.values.at(name));
}

// Whether the rungs have no better name than what differs: a stage names its rung, and a hash of source code nothing.
bool may_name_rungs(const Differences& found) {
  return std::ranges::none_of(found.names,
                              [](const std::string& name) { return name == "stage" || name == "source code"; });
}

std::string title_of(const Differences& found, const Facts& facts) {
  std::string title;
  for (const std::string& name : found.names) {
    const auto value = facts.find(name);
    const bool is_said = name == "dtype" && found.values.contains("precision");
    if (value != facts.end() && !is_said)
      title += (title.empty() ? "" : ", ") + name + " " + value->second.substr(0, 60);
  }
  return title;
}

// The places of a sweep's rungs in the order of their values, so that it doesn't depend on the files' names.
std::vector<std::size_t> order_of(const std::vector<std::vector<std::string>>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return std::ranges::lexicographical_compare(values[a], values[b], value_before);
  });
  return order;
}

// Gives files with equal values of what differs the same rung, and the rungs these values as titles.
void group_by(const Differences& found, const std::vector<Facts>& files, FileGrouping& grouping) {
  std::vector<std::vector<std::string>> rungs;  // the values of each
  std::vector<std::string> titles;
  std::vector<std::size_t> rung_of;  // of each file
  for (const Facts& facts : files) {
    std::vector<std::string> values;
    for (const std::string& name : found.names) values.push_back(facts.contains(name) ? facts.at(name) : unnamed);
    const auto known = std::ranges::find(rungs, values);
    rung_of.push_back(static_cast<std::size_t>(known - rungs.begin()));
    if (known != rungs.end()) continue;
    rungs.push_back(std::move(values));
    titles.push_back(title_of(found, facts));
  }
  grouping.is_sweep = found.outside_recipe == 0;
  std::vector<std::size_t> order(rungs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (grouping.is_sweep) order = order_of(rungs);
  std::vector<int> place(rungs.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = static_cast<int>(i);
    if (may_name_rungs(found)) grouping.titles.push_back(std::move(titles[order[i]]));
  }
  for (const std::size_t rung : rung_of) grouping.rung.push_back(place[rung]);
  if (!grouping.is_sweep || found.names.size() < 2) return;
  std::string over;
  for (const std::string& name : found.names) over += (over.empty() ? "" : ", ") + name;
  grouping.reason += "; a sweep over " + over;
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

// Phases of one training start where the last has ended: one program on the same data doesn't start at a third of the
// loss.
std::optional<std::string> different_starts(std::span<const FileRun> files) {
  double least = missing, most = missing;
  for (const FileRun& file : files) {
    const double loss = file.summary->loss_first;
    if (!std::isfinite(loss) || !(loss > 0) || file.summary->first_step > 1) continue;
    least = is_missing(least) ? loss : std::min(least, loss);
    most = is_missing(most) ? loss : std::max(most, loss);
  }
  if (is_missing(least) || least > most / 3) return std::nullopt;
  return "the first losses are " + figure_text(least) + " to " + figure_text(most) + ", so data or weights differ";
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
  std::ranges::sort(values);
  return values[(values.size() - 1) / 2];
}

std::string range_text(const std::vector<StepTime>& times) {
  const auto [least, most] =
      std::minmax_element(times.begin(), times.end(), [](const StepTime& a, const StepTime& b) { return a.ms < b.ms; });
  return figure_text(least->ms) + " to " + figure_text(most->ms) + " ms";
}

}  // namespace

std::vector<std::string> swept_settings(std::span<const Run* const> runs) {
  if (std::ranges::any_of(runs, [](const Run* run) { return run->source == "launched" || run->title.empty(); }))
    return {};
  std::vector<Facts> facts;
  for (const Run* run : runs) {
    facts.push_back(facts_of(*run));
    facts.back().erase("stage");  // the import has named those without one
  }
  const Differences found = differences_of(facts);
  if (found.names.empty() || found.outside_recipe > 0) return {};
  for (std::size_t i = 0; i < facts.size(); ++i)
    if (runs[i]->title != title_of(found, facts[i])) return {};
  return found.names;
}

std::string differences_text(std::span<const Run* const> runs) {
  std::vector<Facts> facts;
  for (const Run* run : runs) {
    facts.push_back(facts_of(*run));
    facts.back().erase("stage");
  }
  const Differences found = differences_of(facts);
  std::string text;
  for (const std::string& name : found.names)
    text += (text.empty() ? "" : "; ") + name + (name == "source code" ? "" : " " + list_of(found.values.at(name)));
  return text;
}

bool differs_between_repeats(const std::string& setting) {
  const std::string name = lower_case(setting.substr(setting.rfind('.') + 1));
  static const std::set<std::string> names = {"name", "run", "id", "uuid", "host", "hostname", "port", "date", "time"};
  if (names.contains(name)) return true;
  return std::ranges::any_of(of_repeats, [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

std::string_view to_string(FilesAre files) {
  return by_enum<FilesAre>("detect", "repeats", "rungs", "apart")[files];
}

FileGrouping group_files(std::span<const FileRun> files) {
  const auto each_a_rung = [&](std::string reason) {
    FileGrouping grouping{FilesAre::rungs, std::move(reason)};
    for (std::size_t i = 0; i < files.size(); ++i) grouping.rung.push_back(static_cast<int>(i));
    return grouping;
  };
  const auto repeats = [&](std::string reason) {
    return FileGrouping{FilesAre::repeats, std::move(reason), std::vector<int>(files.size(), 0)};
  };
  if (files.size() < 2) return repeats("there is one file");
  std::vector<Facts> facts;
  const auto configured = std::ranges::count_if(
      files, [](const FileRun& file) { return !file.run->recipe.empty() && file.run->recipe != "{}"; });
  const bool any_configuration = configured > 0, all_configured = configured == std::ssize(files);
  for (const FileRun& file : files) facts.push_back(facts_of(*file.run));
  const Differences found = differences_of(facts);
  if (!found.names.empty() && found.names.front() == "log format")
    return {FilesAre::apart, reason_of(found), each_a_rung("").rung};
  if (!found.names.empty()) {
    FileGrouping grouping{FilesAre::rungs, reason_of(found)};
    group_by(found, facts, grouping);
    return grouping;
  }
  if (auto different = different_starts(files)) return {FilesAre::apart, *different, each_a_rung("").rung};
  if (auto different = different_tokens(files)) return each_a_rung(*different);
  const bool are_named = std::ranges::all_of(files, &FileRun::has_own_name);
  if (are_named && !any_configuration) return each_a_rung("each has a name and no configuration");
  if (are_named) return repeats("the configurations are the same but for seeds and names");
  const std::vector<StepTime> times = step_times(files);
  const std::string alike = all_configured ? "the configurations are the same but for seeds and names"
                            : any_configuration
                                ? fmt::format("the files name no difference, but {} of {} print no configuration",
                                              std::ssize(files) - configured, files.size())
                                : "the files name no difference";
  if (times.size() < 2) return repeats(alike + "; they have no step times");
  const double middle = median_member(times, &StepTime::ms);
  const double scatter = median_member(times, &StepTime::scatter);
  const double least = std::max(all_configured ? least_if_alike : least_share, quartile_widths * scatter);
  const auto apart = std::ranges::count_if(
      times, [&](const StepTime& time) { return std::max(time.ms, middle) / std::min(time.ms, middle) - 1 > least; });
  const std::string within = percent_text(scatter) + " between the quartiles of a file";
  if (apart > 0 && static_cast<double>(apart) >= least_share_of_files * static_cast<double>(times.size()))
    return each_a_rung("the median steps take " + range_text(times) + ", with " + within);
  if (apart > 0)
    return repeats(fmt::format("{} of {} files differ in step time; too few to make rungs", apart, times.size()));
  return repeats(alike + "; the median steps take " + range_text(times) + ", with " + within);
}

}  // namespace stepladder
