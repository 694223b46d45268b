// Collects the facts of one run from its journals' events, kind by kind (`take`); numbers go to LoggedSteps. Rank 0
// decides names, status and end. Everything that a script may write without limit has a cap here, and unknown kinds are
// counted, not refused.
#include "storage/importers/journal/journal_run.h"

#include <algorithm>

#include "storage/importers/importer.h"
#include "storage/importers/journal/run_events.h"
#include "storage/importers/trackers/foreign_run.h"
#include "storage/name_pattern.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

constexpr std::int64_t newest_format = 1;
constexpr std::size_t most_descriptions = 10'000;
constexpr std::size_t most_kinds = 100;
constexpr std::size_t longest_metric_name = 1000;
constexpr std::size_t longest_count = 2000;  // of the values that aren't kept

// The header's fields that are stored in the environment.
constexpr const char* environment_fields[] = {"project", "id",       "host", "argv", "cwd",   "python",
                                              "torch",   "os",       "cpus", "git",  "world", "client",
                                              "group",   "job_type", "tags", "job",  "nodes"};

std::string dumped(const Json& value) {
  return value.empty() ? "" : json_text(value);
}

Sync sync_named(const std::string& text) {
  if (text == "event") return Sync::event;
  if (text == "device") return Sync::device;
  return text == "none" ? Sync::none : Sync::unknown;
}

std::string rank_name(std::int64_t rank, const std::string& name) {
  return "rank/" + std::to_string(rank) + "/" + name;
}

// {"Image": {"samples": 3}} -> "3 Image (samples)"
std::string counted(const Json& skipped) {
  std::string text;
  for (const auto& [kind, names] : skipped.items()) {
    if (!names.is_object()) continue;
    std::int64_t count = 0;
    std::vector<std::string> named;
    for (const auto& [name, times] : names.items()) {
      count += times.is_number_integer() ? times.get<std::int64_t>() : 0;
      named.push_back(name);
    }
    text += (text.empty() ? "" : "; ") + std::to_string(count) + " " + kind + " (" + short_list(named, 3) + ")";
  }
  return text;
}

}  // namespace

std::optional<JournalHeader> journal_header(const JournalEvent& event) {
  if (event.kind != "run") return std::nullopt;
  const Json& from = event.fields;
  if (const std::int64_t format = integer_in(from, "v"); format > newest_format)
    throw ImportError("is a journal of format " + std::to_string(format) +
                      ", which a newer version of Stepladder wrote; this version reads format " +
                      std::to_string(newest_format));
  JournalHeader header{.uid = text_in(from, "uid"),
                       .id = text_in(from, "id"),
                       .name = text_in(from, "name"),
                       .attempt = std::max<std::int64_t>(1, integer_in(from, "attempt")),
                       .rank = std::max<std::int64_t>(0, integer_in(from, "rank")),
                       .world = integer_in(from, "world"),
                       .started_at = number_in(from, "t"),
                       .pid = integer_in(from, "pid"),
                       .pid_start = integer_in(from, "pid_start"),
                       .boot = text_in(from, "boot")};
  header.world = std::max(header.world, header.rank + 1);
  return header;
}

JournalRun::JournalRun(Run known)
    : run_(std::move(known)), recipe_(object_in(run_.recipe)), environment_(object_in(run_.environment)) {
  if (run_.status == RunStatus::queued) run_.status = RunStatus::running;
  ended_ = is_over(run_.status) && run_.status != RunStatus::interrupted;
}

void JournalRun::take(const JournalEvent& event, const JournalHeader& header, LoggedSteps& steps) {
  const auto values = event.fields.find("v");
  const bool has_values = values != event.fields.end() && values->is_object();
  if (event.kind == "log") {
    if (!has_values) return;
    const std::int64_t step = integer_in(event.fields, "s", -1);
    const double at = number_in(event.fields, "t");
    for (const auto& [name, value] : values->items()) {
      double number = 0;
      if (name.empty() || name.size() > longest_metric_name || !number_of(value, number)) continue;
      if (header.rank == 0 && name == "dt_ms" && steps.has_timed_steps()) continue;  // it timed its steps itself
      steps.add(header.rank == 0 ? name : rank_name(header.rank, name), step, number, at);
    }
  } else if (event.kind == "step") {
    take_step(event, header, steps);
  } else if (event.kind == "run") {
    take_header(event, header);
  } else if (event.kind == "config") {
    if (!has_values) return;
    for (const auto& [name, value] : values->items())
      if (recipe_.contains(name) || recipe_.size() < most_settings) recipe_[name] = value;
    changed_ = true;
  } else if (event.kind == "env" || event.kind == "summary") {
    if (!has_values) return;
    for (const auto& [name, value] : values->items())
      if (event.kind == "env")
        put(name.c_str(), value);
      else
        put_summary(name, value);
    if (header.rank == 0 && run_.device.empty()) run_.device = text_in(environment_, "device");
    if (header.rank == 0 && run_.hardware.empty()) run_.hardware = text_in(environment_, "gpu");
    changed_ = true;
  } else if (event.kind == "skipped") {
    if (has_values) put("not_kept", *values);
  } else if (event.kind == "lost") {
    put("lost_calls", integer_in(event.fields, "n"));
  } else if (event.kind == "metric") {
    take_metric(event.fields);
  } else if (event.kind == "text" || event.kind == "alert") {
    take_text(event);
  } else if (event.kind == "out") {
    outputs_.push_back({.at = number_in(event.fields, "t"), .text = bytes_of_text(text_in(event.fields, "b"))});
  } else if (event.kind == "end") {
    take_end(event, header);
  } else if (event.kind != "alive" && (unknown_kinds_.contains(event.kind) || unknown_kinds_.size() < most_kinds)) {
    ++unknown_kinds_[event.kind];
  }
}

void JournalRun::put(const char* name, const Json& value) {
  if (environment_.size() >= most_settings && !environment_.contains(name)) return;
  environment_[name] = value;
  changed_ = true;
}

void JournalRun::put_summary(const std::string& name, const Json& value) {
  Json& summary = environment_["summary"];
  if (!summary.is_object()) summary = Json::object();
  if (summary.size() < most_settings || summary.contains(name)) summary[name] = value;
}

// Rank 0 names the run; a new attempt opens it again.
void JournalRun::take_header(const JournalEvent& event, const JournalHeader& header) {
  if (header.rank == 0 || run_.title.empty()) {
    run_.title = run_.stage = header.name.empty() ? header.id : header.name;
    for (const char* const field : environment_fields)
      if (const auto found = event.fields.find(field); found != event.fields.end()) put(field, *found);
    if (const std::string notes = text_in(event.fields, "notes"); !notes.empty()) put("notes", notes);
  }
  if (is_missing(run_.started_at) || header.started_at < run_.started_at) run_.started_at = header.started_at;
  if (is_missing(run_.created_at)) run_.created_at = run_.started_at;
  if (header.rank == 0 && header.attempt > 1) {
    ended_ = false;
    run_.status = RunStatus::running;
    run_.reason.clear();
    run_.ended_at = missing;
  }
  changed_ = true;
}

void JournalRun::take_end(const JournalEvent& event, const JournalHeader& header) {
  auto [end, reason] = journal_end(event.fields);
  if (header.rank == 0 && (!ended_ || run_.status != RunStatus::failed)) {
    run_.status = end;
    run_.reason = std::move(reason);
    run_.ended_at = number_in(event.fields, "t");
  } else if (header.rank > 0 && end == RunStatus::failed) {
    run_.reason = "rank " + std::to_string(header.rank) + ": " + reason;
    if (ended_) run_.status = end;
  }
  if (header.rank == 0) ended_ = true;
  changed_ = true;
}

void JournalRun::take_step(const JournalEvent& event, const JournalHeader& header, LoggedSteps& steps) {
  const double ms = number_in(event.fields, "ms");
  if (is_missing(ms)) return;
  const std::int64_t step = integer_in(event.fields, "s", -1);
  const double at = number_in(event.fields, "t");
  if (header.world > 1) steps.add(rank_name(header.rank, "dt_ms"), step, ms, at);
  if (header.rank > 0) return;
  if (const auto values = event.fields.find("v"); values != event.fields.end() && values->is_object()) {
    for (const auto& [name, value] : values->items()) {
      double number = 0;
      if (!name.empty() && name.size() <= longest_metric_name && number_of(value, number))
        steps.add(name, step, number, at);
    }
  }
  steps.add_timed(step, ms, std::clamp<std::int64_t>(integer_in(event.fields, "n"), 0, 1'000'000'000'000'000), at);
  const Sync sync = sync_named(text_in(event.fields, "y"));
  if (sync == run_.sync || sync == Sync::unknown) return;
  // Of two ways of synchronising, the less reliable one counts: they are in that order.
  run_.sync = run_.sync == Sync::unknown ? sync : std::max(run_.sync, sync);
  changed_ = true;
}

void JournalRun::take_metric(const Json& fields) {
  Metric metric{.name = text_in(fields, "name"),
                .unit = text_in(fields, "unit").substr(0, 100),
                .section = text_in(fields, "group").substr(0, longest_metric_name)};
  const std::string better = text_in(fields, "better");
  if (better == "lower") metric.direction = Direction::lower;
  if (better == "higher") metric.direction = Direction::higher;
  if (metric.name.empty() || metric.name.size() > longest_metric_name) return;
  if (described_.contains(metric.name) || described_.size() < most_descriptions)
    described_[metric.name] = std::move(metric);
}

void JournalRun::take_text(const JournalEvent& event) {
  const std::string name = text_in(event.fields, event.kind == "alert" ? "title" : "name");
  ++texts_seen_;
  texts_.push_back({.step = std::max<std::int64_t>(0, integer_in(event.fields, "s")),
                    .at = number_in(event.fields, "t"),
                    .text = name + ": " + text_in(event.fields, "text")});
}

Run JournalRun::run() const {
  Run run = run_;
  fill_from_config(recipe_, run);
  run.environment = dumped(environment_);
  return run;
}

std::int64_t JournalRun::tokens_per_sample() const {
  Run ignored;
  return fill_from_config(recipe_, ignored);
}

void JournalRun::describe(LoggedBatch& batch) const {
  if (described_.empty()) return;
  for (LoggedBatch::Values& values : batch.metrics) {
    Metric& metric = values.metric;
    for (const auto& [pattern, said] : described_) {
      if (pattern != metric.name && !matches_pattern(pattern, metric.name)) continue;
      if (!said.unit.empty()) metric.unit = said.unit;
      if (!said.section.empty()) metric.section = said.section;
      if (said.direction != Direction::unknown) metric.direction = said.direction;
    }
  }
}

Json JournalRun::descriptions() const {
  Json all = Json::array();
  for (const auto& [name, metric] : described_)
    all.push_back({{"name", name},
                   {"unit", metric.unit},
                   {"better", std::string(to_string(metric.direction))},
                   {"group", metric.section}});
  return all;
}

void JournalRun::take_descriptions(const Json& descriptions) {
  if (!descriptions.is_array()) return;
  for (const Json& fields : descriptions)
    if (fields.is_object()) take_metric(fields);
}

std::vector<std::string> JournalRun::notes() const {
  std::vector<std::string> notes;
  if (const auto found = environment_.find("not_kept"); found != environment_.end() && found->is_object())
    notes.push_back("the script logged values that a journal doesn't keep: " +
                    counted(*found).substr(0, longest_count));
  if (const std::int64_t lost = integer_in(environment_, "lost_calls"); lost > 0)
    notes.push_back(plural(static_cast<std::uint64_t>(lost), "log call was", "log calls were") +
                    " lost, since the journal could not be written");
  for (const auto& [kind, count] : unknown_kinds_)
    notes.push_back("left out " + plural(count, "event") +
                    " of a kind that this version doesn't know: " + short_list({kind}));
  return notes;
}

}  // namespace stepladder
