// Writes a claim as a folder, in two parts below, files and texts, with its figures at the end. It is built beside its
// name and renamed when complete. Logs are copied unchanged with their checksums; every flag must be explained.
#include "app/record/submission.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "app/exit_status.h"
#include "app/figures/export.h"
#include "app/host/held_folder.h"
#include "app/text/format.h"
#include "app/text/text_table.h"
#include "engine/files/files.h"
#include "storage/by_enum.h"
#include "storage/checksum.h"
#include "storage/content_hash.h"
#include "storage/errors.h"
#include "storage/regular_file.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

std::string metric_name(const Submission& it) {
  return it.rule ? it.rule->metric : "val_loss";
}

std::string interval_words(const Interval& interval, int digits) {
  return interval.known() ? decimals(interval.low, digits) + " to " + decimals(interval.high, digits) : "-";
}

// --- files -----------------------------------------------------------------------------------------------------------

struct CopiedLog {
  std::string name;  // within the submission
  fs::path from;
  std::string content_hash;  // of what was judged
  bool counts = true;
};

// The logs of a pool, those that don't count included. Logs of one name get a number. A file without training steps is
// somebody's other file, and stays out.
std::vector<CopiedLog> logs_of(const RecordPool& pool, const std::string& folder) {
  std::vector<CopiedLog> logs;
  std::set<std::string> taken;
  const auto add = [&](const std::string& file, const std::string& content_hash, bool counts) {
    std::error_code error;
    if (!fs::is_regular_file(file, error)) throw NotFound(file + " has no log; a submission is made of logs");
    const fs::path path(file);
    std::string name = path.filename().string();
    for (int k = 2; !taken.insert(name).second; ++k)
      name = fmt::format("{}-{}{}", path.stem().string(), k, path.extension().string());
    logs.push_back({folder + "/" + name, path, content_hash, counts});
  };
  for (const SpeedrunLog& log : pool.logs) add(log.file, log.content_hash, true);
  for (const ExcludedLog& log : pool.excluded)
    if (log.has_steps) add(log.file, log.content_hash, false);
  return logs;
}

// Copies the bytes, and returns the log's entry in the list of files.
Json copy_log(const CopiedLog& log, const fs::path& to) {
  const RegularFile in(log.from);
  if (!in.why().empty()) throw StorageError(log.from.string() + " " + in.why());
  const auto size = static_cast<std::size_t>(in.size());
  const std::string bytes = in.read_at(0, size);
  if (bytes.size() != size) throw StorageError(log.from.string() + " cannot be read");
  ContentHash hash;
  hash.take(bytes);
  if (hash.text() != log.content_hash)
    throw StorageError(log.from.string() + " isn't the file that was judged: it has changed since; call it again");
  write_whole(to / log.name, bytes);
  return {{"file", log.name},
          {"bytes", bytes.size()},
          {"crc32", fmt::format("{:08x}", crc32(bytes))},
          {"counts", log.counts}};
}

// --- texts -----------------------------------------------------------------------------------------------------------

std::string verdict_line(const Submission& it) {
  return record_words[it.claim.verdict] + (": " + it.claim.reason) + ".";
}

std::string row(const std::string& what, const std::string& ours, const std::string& theirs) {
  return "| " + what + " | " + ours + " | " + theirs + " |\n";
}

std::string summary_table(const Submission& it) {
  const RecordClaim& claim = it.claim;
  const bool with = it.baseline != nullptr;
  const auto theirs = [&](const std::string& text) { return with ? text : std::string("-"); };
  std::string text = "| | this | baseline |\n| --- | ---: | ---: |\n";
  text += row("runs", std::to_string(claim.metric.n), theirs(std::to_string(claim.baseline_metric.n)));
  text +=
      row("mean " + metric_name(it), decimals(claim.metric.mean, 5), theirs(decimals(claim.baseline_metric.mean, 5)));
  text += row("standard deviation", decimals(claim.metric.std, 5), theirs(decimals(claim.baseline_metric.std, 5)));
  text += row("95 % interval of the mean", interval_words(claim.metric_ci95, 5),
              theirs(interval_words(mean_interval(claim.baseline_metric), 5)));
  if (!is_missing(claim.p)) text += row("p", significant(claim.p, 3), "");
  text += row("mean time, s", decimals(claim.time_s.mean, 3), theirs(decimals(claim.baseline_time_s.mean, 3)));
  text += row("median time, s", decimals(claim.time_s.median, 3), theirs(decimals(claim.baseline_time_s.median, 3)));
  text += row("range of times, s", decimals(claim.time_s.low, 3) + " to " + decimals(claim.time_s.high, 3),
              theirs(decimals(claim.baseline_time_s.low, 3) + " to " + decimals(claim.baseline_time_s.high, 3)));
  if (!is_missing(claim.speedup))
    text += row("speed-up", decimals(claim.speedup, 4) + " (" + interval_words(claim.speedup_ci95, 4) + ")", "1");
  return text;
}

std::string runs_table(const Submission& it, const std::vector<CopiedLog>& logs) {
  std::string text = "| log | steps | " + metric_name(it) + " | time, s |\n| --- | ---: | ---: | ---: |\n";
  for (std::size_t i = 0; i < it.pool.logs.size(); ++i) {
    const SpeedrunLog& log = it.pool.logs[i];
    text += fmt::format("| {} | {} | {} | {} |\n", markdown_cell(logs[i].name), log.final.step,
                        decimals(log.final.value, 5), decimals(log.final.time_ms / 1e3, 3));
  }
  return text;
}

std::string flags_text(const Submission& it) {
  if (it.claim.flags.empty()) return "None.\n";
  std::string text;
  for (const RecordFlag& flag : it.claim.flags)
    text += "- **" + flag.id + "**: " + markdown_cell(flag.why) +
            "\n  - Explained: " + markdown_cell(it.explanations.at(flag.id)) + "\n";
  return text;
}

std::string excluded_text(const Submission& it) {
  std::string text;
  for (const ExcludedLog& log : it.claim.excluded)
    text += "- " + markdown_cell(fs::path(log.file).filename().string() + " " + log.why) + "\n";
  return text.empty() ? "None.\n" : text;
}

std::string command_line(const Submission& it) {
  std::string text = "stepladder record logs";
  if (it.baseline) text += " --against baseline";
  if (it.rule) text += " --rule " + it.rule->name;
  if (it.options.plan > 0) text += fmt::format(" --plan {}", it.options.plan);
  if (it.options.systems_only) text += " --systems-only";
  return text;
}

std::string readme(const Submission& it, const std::vector<CopiedLog>& logs) {
  std::string text =
      "# " + (it.rule ? markdown_cell(it.rule->title) : std::string("Runs")) + "\n\n" + verdict_line(it) + "\n\n";
  text += summary_table(it) + "\n![Final values](figures/losses.svg)\n\n";
  text += "## Runs\n" + runs_table(it, logs) + "\n## Flags\n" + flags_text(it) + "\n## Logs that don't count\n" +
          excluded_text(it);
  text += "\n## Check it\n```sh\n" + command_line(it) +
          "\n```\nThe logs are unchanged; `submission.json` has their sizes and "
          "checksums, and `statistics.md` the arithmetic.\n";
  return text;
}

std::string test_text(const Submission& it) {
  const RecordClaim& claim = it.claim;
  const RecordRule& rule = *it.rule;
  const auto n = static_cast<double>(claim.metric.n);
  const std::string mean = decimals(claim.metric.mean, 6), std = decimals(claim.metric.std, 6);
  switch (rule.test) {
    case RecordTest::none:
      return "The rule asks for the mean alone: " + mean + " against " + decimals(rule.target, 6) + ".\n";
    case RecordTest::t:
      return "One-sided t test of the mean against the target, with n - 1 = " + significant(n - 1, 3) +
             " degrees of freedom:\n\n    t = (mean - target) / (s / sqrt(n)) = (" + mean + " - " +
             decimals(rule.target, 6) + ") / (" + std + " / sqrt(" + significant(n, 3) +
             ")) = " + decimals((claim.metric.mean - rule.target) / (claim.metric.std / std::sqrt(n)), 4) +
             "\n    p = " + significant(claim.p, 3) + ", asked for: below " + significant(rule.alpha, 3) + "\n";
    case RecordTest::z:
      if (!is_missing(rule.margin))
        return fmt::format("The rule asks for |target - mean| x sqrt(n) >= {}:\n\n    |{} - {}| x sqrt({}) = {}\n",
                           significant(rule.margin, 3), decimals(rule.target, 6), mean, significant(n, 3),
                           decimals(std::abs(rule.target - claim.metric.mean) * std::sqrt(n), 6));
      return "One-sided z test with the known standard deviation " + significant(rule.sigma, 3) +
             ":\n\n    p = " + significant(claim.p, 3) + ", asked for: below " + significant(rule.alpha, 3) + "\n";
    case RecordTest::welch:
      return "Welch's one-sided t test against the baseline's mean " + decimals(claim.baseline_metric.mean, 6) +
             " less a margin of " + significant(is_missing(rule.margin) ? 0 : rule.margin, 3) +
             ":\n\n    p = " + significant(claim.p, 3) + ", asked for: below " + significant(rule.alpha, 3) + "\n";
  }
  return {};
}

std::string statistics(const Submission& it) {
  const RecordClaim& claim = it.claim;
  std::string text = "# Statistics\n\n";
  text += fmt::format(
      "n = {}, mean = {}, s = {} (divides by n - 1). 95 % interval of the mean by Student's t: {}.\n\n## Test\n",
      claim.metric.n, decimals(claim.metric.mean, 6), decimals(claim.metric.std, 6),
      interval_words(claim.metric_ci95, 6));
  text += it.rule ? test_text(it) : "No rule was given, so nothing is tested.\n";
  if (it.options.plan > 0) text += fmt::format("\n{} runs were fixed beforehand.\n", it.options.plan);
  if (claim.needed_n > 0)
    text += fmt::format("\nWith this mean and spread, {} runs pass with a probability of {} %.\n", claim.needed_n,
                        significant(100 * it.options.power, 3));
  text += "\n## Speed-up\n";
  text += is_missing(claim.speedup)
              ? "Not known: there is no timed baseline.\n"
              : "mean time of the baseline / mean time = " + decimals(claim.baseline_time_s.mean, 4) + " / " +
                    decimals(claim.time_s.mean, 4) + " = " + decimals(claim.speedup, 5) + ", 95 % interval " +
                    interval_words(claim.speedup_ci95, 5) +
                    " (Welch's, for the difference of the logarithms of both means).\n";
  if (it.rule)
    text += "\n## Rule\n" + markdown_cell(it.rule->title) + ": " + it.rule->source + ", as of " + it.rule->date + ".\n";
  return text;
}

Json submission_json(const Submission& it, const Json& files) {
  Json explanations = Json::object();
  for (const auto& [id, text] : it.explanations) explanations[id] = text;
  return {{"version", 1},
          {"claim", it.claim_json},
          {"plan", it.options.plan > 0 ? Json(it.options.plan) : Json()},
          {"systems_only", it.options.systems_only},
          {"explanations", explanations},
          {"rule_source", it.rule ? Json(it.rule->source) : Json()},
          {"rule_date", it.rule ? Json(it.rule->date) : Json()},
          {"check", command_line(it)},
          {"files", files}};
}

void check_explanations(const Submission& it) {
  const std::vector<std::string> open = unexplained_flags(it);
  if (!open.empty()) {
    std::string text;
    for (const RecordFlag& flag : it.claim.flags)
      if (std::ranges::find(open, flag.id) != open.end()) text += "\n  " + flag.id + ": " + flag.why;
    throw UsageError("a flag isn't explained; `--explain " + open.front() +
                     "=TEXT` prints the explanation in the submission" + text);
  }
  for (const auto& [id, text] : it.explanations)
    if (std::ranges::none_of(it.claim.flags, [&, &named = id](const auto& flag) { return flag.id == named; }))
      throw UsageError("--explain " + id + ": the runs have no such flag");
}

std::vector<double> numbers_up_to(std::size_t n) {
  std::vector<double> numbers(n);
  for (std::size_t i = 0; i < n; ++i) numbers[i] = static_cast<double>(i + 1);
  return numbers;
}

std::vector<ArrivedRun> arrived(const Submission& it) {
  return runs_as_they_arrived(it.pool, it.baseline, it.rule.value_or(RecordRule{}));
}

void add_rule_line(const Submission& it, Figure& figure) {
  if (it.rule) figure.caption.push_back(it.rule->title + ", rule of " + it.rule->date);
}

}  // namespace

std::vector<std::string> unexplained_flags(const Submission& it) {
  std::vector<std::string> open;
  for (const RecordFlag& flag : it.claim.flags)
    if (!it.explanations.contains(flag.id) && std::ranges::find(open, flag.id) == open.end()) open.push_back(flag.id);
  return open;
}

Figure figure_of_losses(const Submission& it) {
  const std::vector<ArrivedRun> runs = arrived(it);
  Figure figure{
      .title = "Final " + metric_name(it) + " of each run",
      .subtitle = fmt::format("mean {}, n = {}", decimals(it.claim.metric.mean, 5), runs.size()),
      .caption = {"Each dot is the last scheduled evaluation of one run; the band is the 95 % interval of the mean."},
      .x = {.label = "run, in order of date"},
      .y = {.label = metric_name(it)}};
  FigureCurve dots{.label = "runs", .x = numbers_up_to(runs.size()), .is_dotted = true};
  for (const ArrivedRun& run : runs) dots.y.push_back(run.value);
  figure.curves.push_back(std::move(dots));
  if (it.claim.metric_ci95.known())
    figure.bands.push_back({it.claim.metric_ci95.low, it.claim.metric_ci95.high, "95 % interval of the mean"});
  if (it.rule && !is_missing(it.rule->target)) figure.marks.push_back({it.rule->target, "target"});
  add_rule_line(it, figure);
  return figure;
}

Figure figure_of_p(const Submission& it) {
  const std::vector<ArrivedRun> runs = arrived(it);
  Figure figure{
      .title = "p as runs arrive",
      .subtitle = "",
      .caption = {"p of the first k runs. Adding runs until p is low passes more null results than the level says."},
      .x = {.label = "runs"},
      .y = {.label = "p", .is_log = true}};
  FigureCurve curve{.label = "p"};
  for (std::size_t k = 0; k < runs.size(); ++k) {
    if (is_missing(runs[k].p) || !(runs[k].p > 0)) continue;
    curve.x.push_back(static_cast<double>(k + 1));
    curve.y.push_back(runs[k].p);
  }
  if (!curve.x.empty()) figure.curves.push_back(std::move(curve));
  if (it.rule && !is_missing(it.rule->alpha)) figure.marks.push_back({it.rule->alpha, "level"});
  add_rule_line(it, figure);
  return figure;
}

Figure figure_of_times(const Submission& it) {
  Figure figure{.title = "Time of each run",
                .subtitle = is_missing(it.claim.speedup) ? ""
                                                         : "speed-up " + decimals(it.claim.speedup, 4) + " (" +
                                                               interval_words(it.claim.speedup_ci95, 4) + ")",
                .caption = {"By the logs' own clock at the last scheduled evaluation."},
                .x = {.label = "run"},
                .y = {.label = "time, s"}};
  const auto add = [&](const RecordPool& pool, const char* label, int style) {
    const std::vector<double> times = final_times_s(pool);
    if (times.empty()) return;
    figure.curves.push_back(
        {.label = label, .x = numbers_up_to(times.size()), .y = times, .style = style, .is_dotted = true});
  };
  if (it.baseline) add(*it.baseline, "baseline", 0);
  add(it.pool, "this", 1);
  return figure;
}

void write_submission(const fs::path& folder, const Submission& it) {
  check_explanations(it);
  std::error_code error;
  if (fs::exists(fs::symlink_status(folder, error))) throw UsageError(folder.string() + " exists already");
  const std::vector<CopiedLog> logs = logs_of(it.pool, "logs");
  std::vector<CopiedLog> theirs;
  if (it.baseline) theirs = logs_of(*it.baseline, "baseline");
  const fs::path whole = fs::absolute(folder).lexically_normal();
  const fs::path part = (whole.has_filename() ? whole : whole.parent_path()).string() + ".part";
  if (fs::exists(fs::symlink_status(part, error)))
    throw UsageError(part.string() + " is there, perhaps of an export that was cut off; remove it, and call it again");
  for (const char* inside : {"logs", "figures"}) make_folder(part / inside);
  if (it.baseline) make_folder(part / "baseline");
  Json files = Json::array();
  for (const CopiedLog& log : logs) files.push_back(copy_log(log, part));
  for (const CopiedLog& log : theirs) files.push_back(copy_log(log, part));
  export_figure(figure_of_losses(it), part / "figures" / "losses.svg");
  for (const auto& [figure, name] : {std::pair(figure_of_p(it), "p.svg"), std::pair(figure_of_times(it), "times.svg")})
    if (!figure.curves.empty()) export_figure(figure, part / "figures" / name);
  write_whole(part / "README.md", readme(it, logs));
  write_whole(part / "statistics.md", statistics(it));
  write_whole(part / "submission.json",
              submission_json(it, files).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  fs::rename(part, whole.has_filename() ? whole : whole.parent_path(), error);
  if (error) throw StorageError(folder.string() + " cannot be made: " + error.message());
}

}  // namespace stepladder
