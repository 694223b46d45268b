#include "app/import/store_follower.h"

#include <algorithm>
#include <utility>

#include "app/import/follow_rules.h"
#include "app/import/open_files.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

StoreFollower::StoreFollower(RunStore& store, FollowRequest request, std::function<void(const std::string&)> tell)
    : store_(store), request_(std::move(request)), tell_(std::move(tell)) {}

void StoreFollower::look() {
  for (const fs::path& path : request_.paths) {
    std::string unread;
    for (auto& store : search_.find_new(path, unread)) add(std::move(store));
    std::string& told = unread_[path.string()];
    if (!unread.empty() && unread != told) tell_(unread);
    told = unread;
  }
}

void StoreFollower::add(std::unique_ptr<GrowingStore> store, std::optional<RunId> joined, const std::string& prefix) {
  auto each = std::make_unique<Followed>();
  each->store = std::move(store);
  each->joined = joined;
  each->prefix = prefix;
  followed_.push_back(std::move(each));
}

bool StoreFollower::take_in() {
  find_writers();
  bool more = false;
  for (const auto& each : followed_) {
    try {
      more = take_in(*each) || more;
    } catch (const ImportError& error) {
      const std::string trouble = each->store->path().string() + " " + error.what();
      if (trouble != std::exchange(each->trouble, trouble)) tell_(trouble);
    } catch (const MovedOn&) {
      each->position_known = false;
      more = true;
    }
    settle(*each, false);
  }
  return more;
}

bool StoreFollower::take_in(Followed& each) {
  StorePiece piece;
  const auto now = Clock::now();
  if (now < each.next_look) return false;
  if (each.ended) each.next_look = now + look_again_after(now - each.grown);
  try {
    if (each.store->has_changed()) {
      each.drained = false;
      each.grown = Clock::now();
    }
    const bool impatient = each.stuck_since && Clock::now() - *each.stuck_since > give_up_after;
    if (each.drained && !impatient) return false;
    if (!each.position_known) know_position(each);
    piece = each.store->read(each.from, impatient);
  } catch (const StorageError& error) {  // of the other tracker's database
    throw ImportError(std::string("can't be read now: ") + error.what() + "; trying again");
  }
  if (!piece.replaced.empty()) {
    replace(each, piece.replaced);
    return true;
  }
  const bool moves = piece.end.amount != each.from.amount;
  if (!piece.is_stuck)
    each.stuck_since.reset();
  else if (!each.stuck_since || moves)
    each.stuck_since = Clock::now();
  if (moves || (each.run != 0 && piece.has_ended && !each.ended)) store(each, piece);
  each.drained = !piece.more;
  return piece.more;
}

// Where an earlier reader, or another one, has got to.
void StoreFollower::know_position(Followed& each) {
  const auto stored = store_.following().position(each.store->source());
  each.stored = stored.value_or(FollowedSource{});
  const Json state = Json::parse(each.stored.state, nullptr, false);
  const bool has_state = state.is_object();
  each.from = {.amount = each.stored.bytes, .state = has_state && state.contains("store") ? state["store"] : Json()};
  each.steps = LoggedSteps(has_state && state.contains("steps") ? state["steps"].dump() : "", RepeatedLoss::is_kept);
  each.run = each.stored.run;
  each.anew = false;
  each.position_known = true;
}

void StoreFollower::replace(Followed& each, const std::string& why) {
  tell_(each.store->path().string() + ": " + why + ", so it is read from its start into a new run");
  if (!each.joined)
    if (auto run = store_.run(each.run); run && !is_over(run->status)) {
      run->status = RunStatus::interrupted;
      run->reason = "its store was replaced: " + why;
      run->ended_at = unix_now();
      store_.update_run(*run);
    }
  each.from = {};
  each.steps = LoggedSteps(RepeatedLoss::is_kept);
  each.anew = true;
  each.ended = false;
  each.joined.reset();
}

void StoreFollower::store(Followed& each, StorePiece& piece) {
  LoggedSteps steps = each.steps;
  const RunId before = each.run;
  FollowedSource position;
  double newest_at = each.newest_at;
  std::int64_t values = 0;
  try {
    store_.in_one_transaction([&] {
      if (store_.following().position(each.store->source()).value_or(FollowedSource{}) != each.stored) throw MovedOn();
      if (each.joined)
        each.run = *each.joined;
      else if (each.anew || each.run == 0 || !store_.run(each.run))
        create_run(each, piece);
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
      position = {each.run, piece.end.amount, state.dump(-1, ' ', false, Json::error_handler_t::replace)};
      store_.following().set_position(each.store->source(), position);
    });
  } catch (...) {
    each.run = before;
    throw;
  }
  each.steps = std::move(steps);
  each.stored = std::move(position);
  each.from = std::move(piece.end);
  each.anew = false;
  each.values_read += values;
  each.newest_at = newest_at;
  each.trouble.clear();
  if (before != each.run)
    tell_("run " + std::to_string(each.run) + (each.joined ? " takes in " : " is ") + each.store->path().string());
  each.ended = piece.has_ended && !piece.more;
  if (!each.ended || each.joined) return;
  const Run run = store_.existing_run(each.run);
  store_.summary(run);  // computes and keeps it
  store_.metrics().of_run(run.id);
  tell_("run " + std::to_string(run.id) + " has " + std::string(to_string(run.status)) +
        (run.reason.empty() ? "" : ": " + run.reason));
}

void StoreFollower::create_run(Followed& each, const StorePiece& piece) {
  const std::string own =
      each.prefix.empty()
          ? piece.news.run.name
          : each.prefix + " " + (piece.news.run.title.empty() ? each.store->name() : piece.news.run.title);
  Run run{.name = !request_.name.empty() ? request_.name
                  : own.empty()          ? each.store->name()
                                         : own,
          .status = RunStatus::running,
          .source = "import",
          .source_path = each.store->path().string(),
          .created_at = unix_now()};
  each.run = store_.create_run(run);
}

void StoreFollower::write(Followed& each, StorePiece& piece, LoggedSteps& steps, double& newest_at) {
  const Run before = store_.existing_run(each.run);
  Run run = before;
  std::int64_t tokens_per_sample = 0;
  if (each.joined) {  // the run has a name, an owner and an end of its own
    Run facts;
    facts.recipe = run.recipe;
    facts.environment = run.environment;
    tokens_per_sample = add_facts(piece.news, facts);
    run.recipe = facts.recipe;
    run.environment = facts.environment;
  } else {
    tokens_per_sample = add_facts(piece.news, run);
  }
  Json environment = Json::parse(run.environment, nullptr, false);
  if (!environment.is_object()) environment = Json::object();
  environment["followed_store"] = each.store->format();
  run.environment = environment.dump(-1, ' ', false, Json::error_handler_t::replace);

  LoggedBatch batch = steps.take(tokens_per_sample);
  if (run.tokens_per_step == 0 && !batch.steps.empty()) run.tokens_per_step = batch.steps.front().tokens;
  if (is_missing(run.started_at) && !batch.steps.empty()) run.started_at = batch.steps.front().at;
  write_batch(each, batch);
  if (!each.joined) {
    const bool had_numbers = !batch.metrics.empty();
    if (piece.has_ended && !piece.more) {
      run.status = piece.news.run.status;
      run.reason = piece.news.run.reason;
      if (is_missing(run.ended_at)) run.ended_at = newest_at;
    } else if (is_over(run.status) && had_numbers) {  // it goes on
      run.status = RunStatus::running;
      run.reason.clear();
      run.ended_at = missing;
    }
    if (!is_over(run.status)) store_.following().own(each.run, each.writer ? *each.writer : this_process());
  }
  store_.update_run(run);
}

void StoreFollower::write_batch(const Followed& each, const LoggedBatch& batch) {
  if (each.joined)
    complete_joined(store_, each.run, batch);
  else
    store_steps(store_, each.run, batch);
  for (const auto& [metric, points] : batch.metrics) {
    if (each.joined) joined_metrics_.insert(metric.name);
    store_.metrics().describe(each.run, metric);
    if (!points.empty()) store_.metrics().append(each.run, metric.name, points);
  }
}

// Of each store that may grow, the process that has it open owns its run: when that is gone, every Stepladder sees it.
void StoreFollower::find_writers() {
  const bool any = std::any_of(followed_.begin(), followed_.end(),
                               [](const auto& each) { return !each->ended && !each->joined && each->run != 0; });
  if (!any || Clock::now() - looked_for_writers_ < between_writer_looks) return;
  looked_for_writers_ = Clock::now();
  const auto open = files_open_for_writing(other_own_processes());
  for (const auto& each : followed_) {
    if (each->joined || each->ended || each->run == 0) continue;
    std::int64_t pid = 0;
    for (const fs::path& file : each->store->files())
      if (const auto found = open.find(file); found != open.end()) pid = found->second;
    if (pid == 0 || (each->writer && each->writer->pid == pid && is_alive(*each->writer))) continue;
    each->writer = process_identity(pid);
    if (const auto run = store_.run(each->run); run && !is_over(run->status))
      store_.following().own(each->run, *each->writer);
  }
}

void StoreFollower::settle(bool at_end) {
  if (at_end) looked_for_writers_ = {};
  find_writers();
  for (const auto& each : followed_) settle(*each, at_end);
}

void StoreFollower::settle(Followed& each, bool at_end) {
  if (each.ended || each.joined || each.run == 0 || !each.position_known) return;
  if (each.writer && is_alive(*each.writer)) return;
  const auto quiet = Clock::now() - each.grown;
  if (!at_end && (!each.drained || quiet < (each.writer ? after_the_writer : give_up_after))) return;
  auto run = store_.run(each.run);
  if (!run) return;
  each.ended = true;
  if (is_over(run->status) && run->status != RunStatus::interrupted) return;
  each.store->settle(*run);
  run->reason += (run->reason.empty() ? "" : "; ") + std::string("no process writes it any more");
  run->ended_at = is_missing(each.newest_at) ? unix_now() : each.newest_at;
  store_.update_run(*run);
  store_.summary(*run);  // computes and keeps it
  store_.metrics().of_run(run->id);
  tell_("run " + std::to_string(run->id) + " has " + std::string(to_string(run->status)) + ": " + run->reason);
}

std::vector<FollowedRun> StoreFollower::runs() const {
  std::vector<FollowedRun> runs;
  for (const auto& each : followed_)
    if (each->run != 0)
      runs.push_back({.run = each->run,
                      .folder = each->store->path(),
                      .ranks = 1,
                      .values_read = each->values_read,
                      .format = each->store->format(),
                      .newest_at = each->newest_at,
                      .ended = each->ended});
  return runs;
}

}  // namespace stepladder
