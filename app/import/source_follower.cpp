// Reads each source piece by piece and gives the pieces to Intake. Finds out which process writes a source, so that a
// run ends when that is gone.
#include "app/import/source_follower.h"

#include <algorithm>
#include <utility>

#include "app/import/open_files.h"
#include "engine/stage.h"
#include "storage/json_values.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

// The facts that a log or a table gives.
void add_facts(const Run& from, Run& run) {
  for (std::string Run::*text :
       {&Run::stage, &Run::title, &Run::changed, &Run::device, &Run::hardware, &Run::precision, &Run::recipe})
    if (!(from.*text).empty()) run.*text = from.*text;
  for (std::int64_t Run::*count : {&Run::planned_steps, &Run::tokens_per_step, &Run::params})
    if (from.*count > 0) run.*count = from.*count;
  if (!is_missing(from.model_flops_per_token)) run.model_flops_per_token = from.model_flops_per_token;
  if (from.printed.known()) run.printed = from.printed;
}

void name_format(Run& run, const std::string& format) {
  Json environment = object_in(run.environment);
  environment["followed_store"] = format;
  run.environment = json_text(environment);
}

}  // namespace

ImportOptions growing_text_options() {
  return {.known_stages = &known_stages()};
}

SourceFollower::SourceFollower(RunStore& store, FollowRequest request, std::function<void(const std::string&)> report)
    : store_(store),
      request_(std::move(request)),
      intake_(store, std::move(report)),
      search_(growing_text_options(), request_.step_key) {}

void SourceFollower::scan() {
  for (const fs::path& path : request_.paths) {
    std::string unread;
    for (auto& source : search_.find_new(path, unread)) add(std::move(source));
    std::string& reported = unread_[path.string()];
    if (!unread.empty() && unread != reported) intake_.report(unread);
    reported = unread;
  }
}

void SourceFollower::add(std::unique_ptr<GrowingSource> source, const std::string& prefix) {
  auto each = std::make_unique<Followed>();
  each->prefix = prefix;
  add(std::move(source), std::move(each));
}

void SourceFollower::add(std::unique_ptr<GrowingSource> source, RunId joined, Merge merge) {
  auto each = std::make_unique<Followed>();
  each->joined = joined;
  each->merge = merge;
  add(std::move(source), std::move(each));
}

void SourceFollower::add(std::unique_ptr<GrowingSource> source, std::unique_ptr<Followed> followed) {
  if (!known_.insert(source->source()).second) return;
  followed->source = std::move(source);
  followed_.push_back(std::move(followed));
}

bool SourceFollower::poll() {
  find_writers();
  bool more = false;
  for (const auto& each : followed_) {
    try {
      more = poll(*each) || more;
    } catch (const ImportError& error) {
      const std::string trouble = each->source->path().string() + " " + error.what();
      if (trouble != std::exchange(each->trouble, trouble)) intake_.report(trouble);
    } catch (const PositionConflict&) {
      each->position_known = false;
      more = true;
    }
    finish_if_idle(*each, false);
  }
  return more;
}

bool SourceFollower::poll(Followed& each) {
  SourcePiece piece;
  const auto now = Clock::now();
  if (now < each.next_look) return false;
  if (each.ended) each.next_look = now + look_again_after(now - each.grown);
  try {
    if (each.source->has_changed()) {
      each.drained = false;
      each.grown = Clock::now();
    }
    const bool impatient = each.stuck_since && Clock::now() - *each.stuck_since > give_up_after;
    if (each.drained && !impatient) return false;
    if (!each.position_known) {
      if (has_more_before(each)) return false;
      load_position(each);
    }
    if (was_imported(each)) {
      each.drained = true;
      return false;
    }
    piece = each.source->read(each.from, impatient);
  } catch (const StorageError& error) {  // of the other tracker's database
    throw ImportError(std::string("can't be read now: ") + error.what() + "; trying again");
  }
  if (!piece.replaced.empty()) {
    replace(each, piece.replaced);
    return true;
  }
  const bool moves = piece.end != each.from;
  if (!piece.is_stuck)
    each.stuck_since.reset();
  else if (!each.stuck_since || moves)
    each.stuck_since = Clock::now();
  if (moves || (each.run != 0 && piece.has_ended && !each.ended)) store(each, piece);
  each.drained = !piece.more;
  return piece.more;
}

// Where an earlier reader, or another one, has got to.
void SourceFollower::load_position(Followed& each) {
  each.stored = intake_.position(each.source->source());
  const Json state = Json::parse(each.stored.state, nullptr, false);
  const auto part = [&](const char* name) { return field_in(state, name); };
  // Earlier versions kept a log's state without a name of its own.
  each.from = {.amount = each.stored.bytes, .state = part("events").is_null() ? part("store") : state};
  each.steps = LoggedSteps(part("steps").is_null() ? "" : part("steps").dump(), RepeatedLoss::is_kept);
  each.run = each.stored.run;
  each.starts_new_run = false;
  each.position_known = true;
  if (each.run != 0 || each.merge != Merge::own) return;
  const std::string before = each.source->continues();
  if (before.empty()) return;
  const FollowedSource earlier = intake_.position(before);
  // A watched run has facts and an end of its own.
  const auto run = store_.run(earlier.run);
  if (!run || run->source_path != path_of_source(before).string()) return;
  const Json known = Json::parse(earlier.state, nullptr, false);
  each.run = earlier.run;
  if (known.is_object() && known.contains("steps"))
    each.steps = LoggedSteps(known["steps"].dump(), RepeatedLoss::is_kept);
}

// Whether the source whose run this one goes on with isn't read to its end yet.
bool SourceFollower::has_more_before(const Followed& each) {
  if (each.merge != Merge::own || intake_.position(each.source->source()).run != 0) return false;
  const std::string before = each.source->continues();
  return !before.empty() && std::ranges::any_of(followed_, [&](const auto& other) {
    return other->source->source() == before && !other->drained && other->trouble.empty();
  });
}

// Whether the run is all that is known of its file or store, which is on this machine.
bool SourceFollower::is_alone(const Followed& each) const {
  return !request_.is_far && std::ranges::none_of(followed_, [&](const auto& other) {
    return other.get() != &each && other->source->path() == each.source->path();
  });
}

// Whether `import` has read all of the source, as it is now. Says so.
bool SourceFollower::was_imported(Followed& each) {
  if (each.run != 0 || each.joined || each.merge != Merge::own || each.starts_new_run || request_.is_far) return false;
  if (!contents_) contents_ = imported_contents(store_);
  const std::vector<RunId>* runs = runs_at(*contents_, each.source->path());
  const std::vector<fs::path> files = each.source->files();
  if (!runs && files.size() == 1) runs = runs_at(*contents_, files.front());
  // What was followed from here before is no import: a database may have runs beside those that are stored.
  const auto is_followed = [&](RunId run) {
    return std::ranges::any_of(store_.following().sources_of(run), [&](const std::string& source) {
      return path_of_source(source) == each.source->path();
    });
  };
  each.is_imported = runs && std::ranges::none_of(*runs, is_followed);
  if (!each.is_imported) return false;
  has_imported_ = true;
  intake_.report(in_project_text(each.source->path().string(), *runs));
  return true;
}

void SourceFollower::replace(Followed& each, const std::string& why) {
  intake_.report(each.source->path().string() + ": " + why + ", so it is read from its start into a new run");
  if (each.merge == Merge::own) intake_.end(each.run, RunStatus::interrupted, "its source was replaced: " + why);
  each.from = {};
  each.steps = LoggedSteps(RepeatedLoss::is_kept);
  each.ended = each.drained = false;
  each.next_look = {};
  if (each.merge == Merge::printed) return;  // a copied output is of one run, whatever happens to it
  each.starts_new_run = true;
  each.joined.reset();
  each.merge = Merge::own;
}

void SourceFollower::store(Followed& each, SourcePiece& piece) {
  LoggedSteps steps = each.steps;
  const RunId before = each.run;
  const bool started_new_run = each.starts_new_run;
  double newest_at = each.newest_at;
  std::int64_t values = std::ssize(piece.events);
  try {
    each.stored = intake_.take(each.source->source(), each.stored, [&] {
      if (each.joined) each.run = *each.joined;
      if (piece.restarts) steps.begin_attempt();
      piece.news.metrics.take_points([&](const std::string& name, std::span<const MetricPoint> points) {
        values += std::ssize(points);
        for (const MetricPoint& point : points) {
          steps.add(name, point.step, point.value, point.at);
          if (!is_missing(point.at) && !(point.at <= newest_at)) newest_at = point.at;
        }
      });
      write(each, piece, steps, newest_at);
      const Json state = {{"steps", Json::parse(steps.state())}, {"store", piece.end.state}};
      return FollowedSource{each.run, piece.end.amount, json_text(state)};
    });
  } catch (...) {
    each.run = before;
    each.starts_new_run = started_new_run;
    throw;
  }
  each.steps = std::move(steps);
  each.from = std::move(piece.end);
  each.starts_new_run = false;
  each.values_read += values;
  each.newest_at = newest_at;
  each.trouble.clear();
  if (before != each.run && each.merge != Merge::printed)
    intake_.report("run " + std::to_string(each.run) + (each.joined ? " takes in " : " is ") +
                   each.source->path().string());
  each.ended = piece.has_ended && !piece.more;
  if (!each.ended || each.joined) return;
  if (each.merge == Merge::own && is_alone(each)) {
    Run run = store_.existing_run(each.run);
    keep_content(run, each.source->path());
    store_.update_run(run);
  }
  intake_.finish(each.run);
}

void SourceFollower::begin_run(Followed& each, const std::string& own_name) {
  const Run run{.name = !request_.name.empty() ? request_.name
                        : own_name.empty()     ? each.source->name()
                                               : own_name,
                .created_at = unix_now()};
  each.run = intake_.begin(run, each.source->path());
}

// A log's or table's first run may be known; every later one ends the one before it.
void SourceFollower::begin_run_of_text(Followed& each, const RunBegins& begins) {
  const bool is_known = begins.is_first && each.run != 0 && !each.starts_new_run && store_.run(each.run).has_value();
  if (each.merge == Merge::own && !is_known) {
    if (each.run != 0 && !each.starts_new_run) intake_.end(each.run, RunStatus::finished, "");
    begin_run(each, each.prefix);
    each.starts_new_run = false;
  }
  if (each.merge == Merge::joined) return;
  Run run = store_.existing_run(each.run);
  add_facts(begins.run, run);
  if (each.merge == Merge::own) {
    if (is_missing(run.started_at)) run.started_at = unix_now();
    name_format(run, each.source->format());
  }
  store_.update_run(run);
}

void SourceFollower::write(Followed& each, SourcePiece& piece, LoggedSteps& steps, double& newest_at) {
  const bool is_own = each.merge == Merge::own;
  const bool is_text = !piece.events.empty();
  if (is_text) {
    write_events(each, piece.events);
    if (each.run == 0) return;
  } else if (is_own && (each.starts_new_run || each.run == 0 || !store_.run(each.run))) {
    const Run& news = piece.news.run;
    begin_run(each, each.prefix.empty() ? news.name
                                        : each.prefix + " " + (news.title.empty() ? each.source->name() : news.title));
  }
  Run run = store_.existing_run(each.run);
  bool had_numbers = is_text;
  if (!is_text) {
    Run facts = run;
    const std::int64_t tokens_per_sample = add_facts(piece.news, facts);
    if (is_own) {
      run = facts;
    } else {  // it has a name, an owner and an end of its own
      run.recipe = facts.recipe;
      run.environment = facts.environment;
    }
    name_format(run, each.source->format());
    const LoggedBatch batch = steps.take(tokens_per_sample);
    // The configuration's, else that of the steps as long as they agree.
    if (run.tokens_per_step == 0 || run.tokens_per_step == each.steps.tokens_per_step())
      run.tokens_per_step = steps.tokens_per_step();
    if (is_missing(run.started_at) && !batch.steps.empty()) run.started_at = batch.steps.front().at;
    intake_.add(each.run, batch, each.merge);
    for (const auto& [metric, points] : batch.metrics) {
      if (each.joined) joined_metrics_.insert(metric.name);
      intake_.add(each.run, metric, points);
    }
    had_numbers = !batch.metrics.empty();
  }
  if (is_own) {
    if (piece.has_ended && !piece.more) {
      run.status = piece.news.run.status;
      run.reason = piece.news.run.reason;
      if (is_missing(run.ended_at)) run.ended_at = newest_at;
    } else if (is_over(run.status) && had_numbers) {
      Intake::resume(run);
    }
    if (!is_over(run.status)) store_.following().own(each.run, each.writer ? *each.writer : this_process());
  }
  store_.update_run(run);
}

void SourceFollower::write_events(Followed& each, const std::vector<SourceEvent>& events) {
  std::vector<LoggedStep> waiting;
  const auto write_waiting = [&] {  // in their order; points share their steps' times
    if (!waiting.empty()) intake_.add(each.run, waiting, each.merge);
    waiting.clear();
  };
  for (const SourceEvent& event : events) {
    if (const auto* step = std::get_if<LoggedStep>(&event)) {
      waiting.push_back(*step);
      continue;
    }
    write_waiting();
    if (const auto* begins = std::get_if<RunBegins>(&event)) {
      begin_run_of_text(each, *begins);
    } else if (const auto* logged = std::get_if<LoggedPoints>(&event)) {
      if (each.joined) joined_metrics_.insert(logged->metric.name);
      intake_.add(each.run, logged->metric, logged->points);
    } else if (each.merge != Merge::joined) {
      Run run = store_.existing_run(each.run);
      add_facts(std::get<RunFacts>(event).run, run);
      store_.update_run(run);
    }
  }
  write_waiting();
}

// Of each source that may grow, the process that has it open owns its run: when that is gone, every Stepladder sees it.
void SourceFollower::find_writers() {
  const bool any = std::ranges::any_of(followed_, [](const auto& each) { return !each->ended && !each->joined; });
  if (!any || Clock::now() - looked_for_writers_ < between_writer_looks) return;
  looked_for_writers_ = Clock::now();
  const auto open = files_open_for_writing(other_own_processes());
  for (const auto& each : followed_) {
    if (each->joined || each->ended) continue;
    std::int64_t pid = 0;
    for (const fs::path& file : each->source->files())
      if (const auto found = open.find(file); found != open.end()) pid = found->second;
    if (pid == 0 || (each->writer && each->writer->pid == pid && is_alive(*each->writer))) continue;
    each->writer = process_identity(pid);
    if (const auto run = store_.run(each->run); run && !is_over(run->status))
      store_.following().own(each->run, *each->writer);
  }
}

void SourceFollower::finish_idle_runs(bool at_end) {
  if (at_end) looked_for_writers_ = {};
  find_writers();
  for (const auto& each : followed_) {
    const bool was_known = each->position_known;
    finish_if_idle(*each, at_end);
    if (!at_end || !was_known || each->position_known) continue;
    load_position(*each);  // another reader was quicker; nobody asks again
    finish_if_idle(*each, at_end);
  }
}

void SourceFollower::finish_if_idle(Followed& each, bool at_end) {
  if (each.ended || !each.position_known || (each.joined && !at_end)) return;
  if (each.writer && is_alive(*each.writer)) return;
  const auto quiet = Clock::now() - each.grown;
  if (each.is_imported) return;
  if (!at_end && (!each.drained || quiet < (each.writer ? after_the_writer : give_up_after))) return;
  if (!store_rest(each)) return;
  each.ended = true;
  const bool is_written_elsewhere = std::ranges::any_of(
      followed_, [&](const auto& other) { return other.get() != &each && other->run == each.run && !other->ended; });
  if (is_written_elsewhere) return;  // in another file, whose end is the run's
  const auto known = each.joined || each.run == 0 ? std::nullopt : store_.run(each.run);
  if (!known || (is_over(known->status) && known->status != RunStatus::interrupted)) return;
  Run run = *known;
  each.source->finish_idle(run);
  run.reason += (run.reason.empty() ? "" : "; ") + std::string("no process writes it any more");
  run.ended_at = is_missing(each.newest_at) ? unix_now() : each.newest_at;
  if (is_alone(each)) keep_content(run, each.source->path());
  store_.update_run(run);
  intake_.finish(run.id);
}

// Stores what the source has held back. False if that has to be tried again.
bool SourceFollower::store_rest(Followed& each) {
  try {
    while (!each.drained && poll(each)) {
    }
    SourcePiece rest = each.source->finish(each.from);
    if (!rest.replaced.empty()) {
      replace(each, rest.replaced);
      while (poll(each)) {
      }
      rest = each.source->finish(each.from);
    }
    if (rest.replaced.empty() && rest.end != each.from) store(each, rest);
    return true;
  } catch (const ImportError& error) {
    if (each.joined) return true;
    const std::string trouble = each.source->path().string() + " " + error.what();
    if (trouble != std::exchange(each.trouble, trouble)) intake_.report(trouble);
    return true;
  } catch (const PositionConflict&) {
    each.position_known = false;
    return false;
  }
}

std::vector<FollowedRun> SourceFollower::runs() const {
  std::vector<FollowedRun> runs;
  for (const auto& each : followed_)
    if (each->run != 0)
      runs.push_back({.run = each->run,
                      .folder = each->source->path(),
                      .ranks = 1,
                      .values_read = each->values_read,
                      .format = each->source->format(),
                      .newest_at = each->newest_at,
                      .ended = each->ended});
  return runs;
}

}  // namespace stepladder
