// Looks every quarter of a second at the files that a watched program has open, and follows the stores among them on
// its own thread. Once a store has joined the run, printed steps no longer go to the recorder but are added where the
// store has no value.
#include "app/import/store_watch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <utility>

#include "storage/importers/journal/journal.h"
#include "storage/importers/logs/growing_text.h"
#include "storage/importers/trackers/store_folder.h"
#include "storage/json_values.h"
#include "storage/number_text.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::milliseconds between_polls(250);
constexpr std::chrono::seconds often_at_first(20);  // most stores are opened soon; later one look a second is enough
constexpr std::chrono::milliseconds between_walks(2000);
constexpr std::chrono::seconds longest_held(15);            // counted steps, while a store may still be found
constexpr std::chrono::seconds longest_without_steps(180);  // TensorBoard holds values back for up to 120 s
constexpr std::size_t most_printed = 8'000;
constexpr int most_walked = 3'000;  // entries below one working directory
constexpr std::size_t most_workplaces = 16;
constexpr std::size_t most_variables = 1'000;
constexpr int deepest_walked = 6;

// When the file was made, unix seconds; if the file system doesn't know, when it was written last.
double made_at(const fs::path& file) {
#ifdef STATX_BTIME
  struct statx about = {};
  if (::statx(AT_FDCWD, file.c_str(), 0, STATX_BTIME | STATX_MTIME, &about) != 0) return missing;
  const auto& time = (about.stx_mask & STATX_BTIME) != 0 ? about.stx_btime : about.stx_mtime;
  return static_cast<double>(time.tv_sec) + 1e-9 * time.tv_nsec;
#else
  struct stat about = {};
  return ::stat(file.c_str(), &about) == 0 ? static_cast<double>(about.st_mtime) : missing;
#endif
}

// TensorBoard's own writer doesn't keep its file open, but names it after its process:
// events.out.tfevents.SECONDS.HOST.PID.NUMBER. -1: it doesn't.
std::int64_t writer_in_name(const fs::path& file) {
  const std::string name = file.filename().string();
  const std::size_t number = name.find_last_of('.');
  if (!name.starts_with("events.out.tfevents.") || number == std::string::npos) return -1;
  const std::size_t pid = name.find_last_of('.', number - 1) + 1;
  return parse_number<std::int64_t>(std::string_view(name).substr(pid, number - pid)).value_or(-1);
}

// A file of this user's, and no link to another.
bool is_own_file(const fs::path& file) {
  struct stat about = {};
  return ::lstat(file.c_str(), &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == ::geteuid();
}

// Where Trackio keeps its databases, by the environment that the process was started with.
fs::path trackio_folder(std::int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ");
  std::map<std::string, std::string> values;
  for (std::string entry; std::getline(file, entry, '\0');)
    if (const std::size_t equals = entry.find('='); equals != std::string::npos && values.size() < most_variables)
      values.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  if (const std::string& named = values["TRACKIO_DIR"]; !named.empty()) return named;
  if (const std::string& named = values["HF_HOME"]; !named.empty()) return fs::path(named) / "trackio";
  const std::string& cache = values["XDG_CACHE_HOME"];
  return (cache.empty() ? fs::path(values["HOME"]) / ".cache" : fs::path(cache)) / "huggingface" / "trackio";
}

std::string joined_folder(const fs::path& journal) {
  return "journals " + journal.parent_path().string();
}

}  // namespace

StoreWatch::StoreWatch(fs::path database, const Run& run, Program program, Recorder& recorder,
                       std::function<void(const std::string&)> report)
    : database_(std::move(database)),
      run_(run.id),
      uid_(run.uid),
      program_(program),
      recorder_(recorder),
      report_(std::move(report)),
      name_(run.name),
      joined_(program.has_joined),
      thread_([this] { work(); }) {}

StoreWatch::~StoreWatch() {
  {
    std::lock_guard lock(mutex_);
    finishing_ = given_up_ = true;
  }
  openings_.wake();
  changed_.notify_all();
  thread_.join();
}

void StoreWatch::print(const RunEvent& printed, bool is_counted) {
  std::unique_lock lock(mutex_);
  const bool waits = is_counted && !counted_are_stored_;
  if ((!joined_ && !waits) || run_of(printed) != run_) {
    if (const auto* const step = std::get_if<StepRecord>(&printed);
        step && !joined_ && run_of(printed) == run_ && !is_missing(step->loss) && early_losses_.size() < most_printed)
      early_losses_.push_back(*step);
    return recorder_.post(printed);
  }
  if (waits && printed_.empty() && held_since_ == Clock::time_point{}) held_since_ = Clock::now();
  changed_.wait(lock, [this] { return printed_.size() < most_printed || given_up_; });
  printed_.push_back({printed, is_counted});
}

bool StoreWatch::finish(const std::function<bool()>& gives_up) {
  std::unique_lock lock(mutex_);
  finishing_ = true;
  openings_.wake();
  while (!changed_.wait_for(lock, between_polls, [this] { return done_; }))
    if (gives_up()) given_up_ = true;
  return joined_;
}

void StoreWatch::work() {
  std::string trouble;
  for (bool ends = false; !ends;) {
    const bool was_opened = openings_.wait(between_polls);
    {
      std::lock_guard lock(mutex_);
      ends = finishing_;
      if (given_up_) break;
    }
    try {
      if (!store_) rejoin();
      if (const auto now = Clock::now(); ends || was_opened || now >= next_look_) {
        scan();
        next_look_ = now + (now - begun_ < often_at_first ? between_polls : std::chrono::milliseconds(1000));
      }
      while (poll()) {
        std::lock_guard lock(mutex_);
        if (given_up_) break;
      }
      if (ends) {
        journals_->finish_idle_runs();
        others_->finish_idle_runs(true);
      }
      trouble.clear();
    } catch (const std::runtime_error& error) {  // StorageError
      if (trouble != error.what()) report_(std::string(error.what()) + "; trying again");
      trouble = error.what();
      ends = false;
    }
    if (ends || trouble.empty()) continue;
    std::this_thread::sleep_for(between_polls);
  }
  std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

// Opens the database, and continues with the stores that have joined the run under an earlier tracker.
void StoreWatch::rejoin() {
  auto store = std::make_unique<RunStore>(RunStore::open(database_));
  journals_ = std::make_unique<JournalFollower>(*store, FollowRequest{}, report_);
  others_ = std::make_unique<SourceFollower>(*store, FollowRequest{}, report_);
  // A project may have come from elsewhere with rows that name any file of this user's: only files are read that the
  // program has open, or that this user's tracker has noted.
  const std::vector<std::string> known = store->following().sources_of(run_);
  const std::set<std::string> noted = known.empty() ? std::set<std::string>() : noted_sources(*store);
  const auto open = files_open_for_writing(known.empty() ? std::vector<std::int64_t>() : processes());
  const auto has_open = [&](const fs::path& path) {
    return std::ranges::any_of(open, [&](const auto& each) {
      return each.first == path || each.first.parent_path() == path || each.first == path.string() + "-wal";
    });
  };
  for (const std::string& source : known) {
    join();
    sources_.insert(source);
    const auto journal = JournalFollower::joined_journal(*store, source);
    const bool is_text = source.starts_with("text ");
    const fs::path path = journal ? *journal : is_text ? fs::path(source.substr(5)) : path_of_source(source);
    const std::string joined = journal ? joined_folder(*journal) : source;
    if (!noted.contains(joined) && !has_open(path)) {
      report_(path.string() +
              " isn't read on: the program doesn't have it open, and it wasn't noted on this machine that it had");
      continue;
    }
    joined_sources_.insert(joined);
    if (journal) {
      joined_journals_ = journal->parent_path();
      add_journal(*journal);
    } else if (is_text) {
      others_->add(growing_text(path, growing_text_options()), run_);
    } else {
      std::string unread;
      for (auto& found : search_.find_new(path, unread))
        if (found->source() == source) others_->add(std::move(found), run_);
    }
  }
  store_ = std::move(store);
}

// The sources that this user's tracker has noted.
std::set<std::string> StoreWatch::noted_sources(RunStore& store) const {
  std::set<std::string> sources;
  try {
    const Json noted = Json::parse(store.orders().find(order_kind::watch, uid_).value_or(""), nullptr, false);
    if (!noted.is_array()) return sources;
    for (const Json& each : noted)
      if (each.is_string()) sources.insert(each.get<std::string>());
  } catch (const StorageError& error) {
    report_(error.what());
  }
  return sources;
}

// Notes the source, so that a later tracker continues with it even if the program has ended.
void StoreWatch::note_joined(const std::string& source) {
  if (!joined_sources_.insert(source).second) return;
  try {
    store_->orders().put(order_kind::watch, {{uid_, Json(joined_sources_).dump()}});
  } catch (const StorageError& error) {
    report_(std::string(error.what()) + "; another tracker couldn't go on with " + source);
  }
}

std::vector<std::int64_t> StoreWatch::processes() const {
  if (program_.process.pid <= 0 || !is_alive(program_.process)) return {};
  return with_descendants(program_.process.pid);
}

void StoreWatch::scan() {
  const std::vector<std::int64_t> alive = processes();
  std::vector<std::pair<std::int64_t, fs::path>> open;
  for (const auto& [file, pid] : files_open_for_writing(alive)) open.emplace_back(pid, file);
  std::ranges::sort(open);
  for (const auto& [pid, file] : open)
    if (seen_.insert(file).second) scan_file(file);
  scan_workplaces(alive);
  scan_databases();
}

// What the program's processes don't have open, below their working directories: event files that are named after one
// of them, tables of Lightning's that were made meanwhile (its writer opens them for moments), and databases, which are
// the program's once it is seen to have one open.
void StoreWatch::scan_workplaces(const std::vector<std::int64_t>& processes) {
  for (const std::int64_t pid : processes) {
    std::error_code error;
    if (processes_.insert(pid).second) {
      const fs::path folder = trackio_folder(pid);
      if (folder.is_absolute() && workplaces_.size() < most_workplaces) workplaces_.insert(folder);
    }
    if (fs::path place = fs::read_symlink("/proc/" + std::to_string(pid) + "/cwd", error);
        !error && workplaces_.size() < most_workplaces)
      workplaces_.insert(std::move(place));
  }
  if (!processes.empty() && Clock::now() < next_walk_) return;
  next_walk_ = Clock::now() + (Clock::now() - begun_ < often_at_first ? between_walks / 4 : between_walks);
  for (const fs::path& place : workplaces_) {
    int left = most_walked;
    std::error_code error;
    for (fs::recursive_directory_iterator it(place, fs::directory_options::skip_permission_denied, error), end;
         !error && it != end && left-- > 0; it.increment(error)) {
      const std::string name = it->path().filename().string();
      if (it.depth() >= deepest_walked || name.starts_with('.')) it.disable_recursion_pending();
      const std::string ending = it->path().extension().string();
      const bool is_database = ending == ".db" || ending == ".sqlite" || ending == ".sqlite3";
      const bool is_table =
          name == "metrics.csv" && it->path().parent_path().filename().string().starts_with("version_");
      if (is_table ? has_joined() : !is_database && !processes_.contains(writer_in_name(it->path()))) continue;
      if (!is_own_file(it->path())) continue;
      if (is_database && !databases_.contains(it->path())) openings_.add(it->path());
      if (!is_database && made_at(it->path()) >= program_.started_at - 1 && seen_.insert(it->path()).second)
        scan_file(it->path());
    }
  }
}

void StoreWatch::scan_file(const fs::path& file) {
  std::string name = file.string();
  for (const char* const ending : {"-wal", "-shm", "-journal"})
    if (name.ends_with(ending)) name.resize(name.size() - std::string_view(ending).size());
  if (std::error_code error; fs::equivalent(name, database_, error)) return;
  if (journal_place(file)) {
    add_journal(file);
  } else if (is_event_file_name(file)) {
    add(growing_event_folder(file.parent_path(), program_.started_at));
  } else if (file.extension() == ".wandb") {
    add(growing_wandb_file(file, program_.step_key));
  } else if (is_table_name(file)) {
    if (!(made_at(file) >= program_.started_at - 1)) return;  // it holds others' rows too
    const bool joins = !has_joined() && join();
    if (joins) note_joined("text " + file.string());
    add_to_follower(growing_text(file, growing_text_options()), joins);
  } else {
    databases_.insert(name);
    openings_.remove(name);
  }
}

// A database may get runs at any time, and hold those of other programs.
void StoreWatch::scan_databases() {
  for (const fs::path& file : databases_) {
    std::string unread;
    for (auto& store : search_.find_new(file, unread))
      if (store->began_since(program_.started_at - 1)) add(std::move(store));
  }
}

void StoreWatch::add(std::unique_ptr<GrowingSource> store) {
  if (!sources_.insert(store->source()).second) return;
  const RunId known = Intake(*store_, report_).position(store->source()).run;  // another run's under an earlier tracker
  const bool joins = !has_joined() && (known == 0 || known == run_) && join();
  if (joins) note_joined(store->source());
  add_to_follower(std::move(store), joins);
}

void StoreWatch::add_to_follower(std::unique_ptr<GrowingSource> source, bool joins) {
  if (joins)
    others_->add(std::move(source), run_);
  else
    others_->add(std::move(source), name_);
}

// The journals of one run, one of each rank and attempt, are in one folder.
void StoreWatch::add_journal(const fs::path& file) {
  seen_.insert(file);
  const fs::path folder = file.parent_path();
  if (!has_joined() && join()) joined_journals_ = folder;
  if (folder == joined_journals_) note_joined(joined_folder(file));
  journals_->add(file, folder == joined_journals_ ? std::optional(run_) : std::nullopt);
}

bool StoreWatch::has_joined() {
  std::lock_guard lock(mutex_);
  return joined_;
}

// Waits until everything printed before is stored: a step that is posted after the store's would count as a newer
// attempt. Returns whether the run may be joined.
bool StoreWatch::join() {
  EventRing::Position posted;
  {
    std::lock_guard lock(mutex_);
    if (counted_are_stored_) return false;
    if (joined_) return true;
    joined_ = true;
    posted = recorder_.posted();
  }
  while (!recorder_.flush(between_polls, posted)) {
    std::lock_guard lock(mutex_);
    if (given_up_) break;
  }
  return true;
}

bool StoreWatch::poll() {
  const bool journals = journals_->poll();
  const bool others = others_->poll();
  return store_printed() || journals || others;
}

// Call it with the mutex held. Whether counted steps still wait for a store, or for its steps.
bool StoreWatch::holds_counted() const {
  const auto longest = joined_ ? longest_without_steps : longest_held;
  return !counted_are_stored_ && !finishing_ && printed_.size() < most_printed / 2 &&
         Clock::now() - held_since_ < longest;
}

// Finds out whether the loss that is printed is the store's, rounded, at the first step that both have. Returns whether
// the waiting losses can be stored.
bool StoreWatch::compare_losses() {
  if (losses_.empty()) return false;
  std::map<std::int64_t, double> stored;
  if (printed_loss_ == PrintedLoss::unknown) {
    const auto [first, last] = std::minmax_element(
        losses_.begin(), losses_.end(), [](const StepRecord& a, const StepRecord& b) { return a.step < b.step; });
    const Series known = store_->series(run_, first->step, last->step);
    for (std::size_t i = 0; i < known.size(); ++i)
      if (!is_missing(known.loss[i]) && known.step[i] > printed_until_) stored[known.step[i]] = known.loss[i];
  }
  for (const StepRecord& printed : losses_) {
    if (printed_loss_ != PrintedLoss::unknown) break;
    const auto known = stored.find(printed.step);
    if (known == stored.end()) continue;
    const double loss = known->second;
    const bool is_rounded = std::abs(loss - printed.loss) <= 0.0051 + 0.002 * std::abs(loss);
    printed_loss_ = is_rounded ? PrintedLoss::is_the_stores : PrintedLoss::is_another;
    if (!is_rounded)
      report_("the loss that is printed isn't the one in the store, so run " + std::to_string(run_) +
              " keeps it as the metric \"printed loss\"");
  }
  std::lock_guard lock(mutex_);
  return printed_loss_ != PrintedLoss::unknown || finishing_ || Clock::now() - losses_since_ > longest_held;
}

void StoreWatch::store_losses(Intake& intake) {
  if (printed_loss_ == PrintedLoss::is_another) {
    std::vector<StepRecord> early;
    {
      std::lock_guard lock(mutex_);
      early = early_losses_;
    }
    std::vector<LoggedStep> withdrawn;
    std::vector<MetricPoint> points;
    for (const StepRecord& printed : early) {
      withdrawn.push_back({{.step = printed.step, .loss = printed.loss}});
      points.push_back({printed.step, printed.loss, printed.at});
    }
    intake.add(run_, withdrawn, Merge::withdrawn);
    for (const StepRecord& printed : losses_) points.push_back({printed.step, printed.loss, printed.at});
    intake.add(run_, Metric{.name = "printed loss", .direction = Direction::lower}, points);
  } else {
    std::vector<LoggedStep> steps;
    for (const StepRecord& printed : losses_) {
      steps.push_back({{.step = printed.step, .loss = printed.loss}});
      printed_until_ = std::max(printed_until_, printed.step);
    }
    intake.add(run_, steps, Merge::printed);
  }
}

bool StoreWatch::store_printed() {
  std::vector<RunEvent> events;
  std::size_t taken = 0;
  bool drops = false;
  {
    std::lock_guard lock(mutex_);
    const bool any_counted = !printed_.empty() && printed_.front().is_counted;
    drops = joined_ && any_counted && !counted_are_stored_ && store_->recorded_steps(run_).records > 0;
    if (!any_counted || drops || !holds_counted())
      while (taken < printed_.size() && printed_[taken].is_counted == any_counted)
        events.push_back(printed_[taken++].event);
    counted_are_stored_ |= any_counted && taken > 0 && !drops;
    if (drops || !joined_) {
      if (!drops)  // in their order before those that are posted from now on
        for (const RunEvent& event : events) recorder_.post(event);
      events.clear();
      printed_.erase(printed_.begin(), printed_.begin() + static_cast<std::ptrdiff_t>(std::exchange(taken, 0)));
      changed_.notify_all();
    }
  }
  if (drops && !std::exchange(dropped_counted_, true))
    report_("the output prints no step numbers, so run " + std::to_string(run_) +
            " takes its steps from the store alone");
  Intake intake(*store_, report_);
  std::vector<LoggedStep> steps, times;
  if (losses_.empty()) losses_since_ = Clock::now();
  const std::size_t waited = losses_.size();
  for (const RunEvent& event : events) {
    const auto* const step = std::get_if<StepRecord>(&event);
    if (!step) continue;
    steps.push_back({*step});
    steps.back().record.loss = missing;
    steps.back().record.at = missing;  // a buffered line arrives later than the store's rows of later steps
    if (!is_missing(step->loss)) losses_.push_back(*step);
    if (!is_missing(step->dt_ms)) times.push_back({{.step = step->step, .dt_ms = step->dt_ms}});
  }
  const bool stores_losses = compare_losses();
  if (events.empty() && !stores_losses) return false;
  try {
    store_->in_one_transaction([&] {
      intake.add(run_, steps, Merge::printed);
      // A printed step time was measured, unlike most stores' times.
      if (!journals_->has_joined_times()) intake.add(run_, times, Merge::joined);
      if (stores_losses) store_losses(intake);
      for (const RunEvent& event : events)  // after the steps, whose times they share
        if (const auto* const values = std::get_if<MetricValues>(&event))
          for (const auto& [name, value] : values->values)
            if (!others_->has_joined(name) && !journals_->has_joined(name))
              intake.add(run_, Metric{.name = name}, std::vector<MetricPoint>{{values->step, value, values->at}});
    });
  } catch (...) {
    losses_.resize(waited);  // they are printed again
    throw;
  }
  if (stores_losses) losses_.clear();
  std::lock_guard lock(mutex_);
  if (printed_loss_ != PrintedLoss::unknown) early_losses_.clear();
  printed_.erase(printed_.begin(), printed_.begin() + static_cast<std::ptrdiff_t>(taken));
  changed_.notify_all();
  return true;
}

}  // namespace stepladder
