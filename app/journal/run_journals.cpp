// Appends the events of this process's runs to their journals on a thread of its own. Each round takes events from the
// ring, writes them, and releases the ring only when the disk has them; if 64 MiB of lines wait for a refusing disk,
// events wait in the ring, and what doesn't fit there is counted in the journal.
#include "app/journal/run_journals.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "storage/checked_text.h"
#include "storage/database/process.h"
#include "storage/errors.h"
#include "storage/json_values.h"
#include "storage/own_folder.h"
#include "storage/wording.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

using namespace std::chrono_literals;

constexpr auto between_writes = 80ms;
constexpr auto between_syncs = 1s;
constexpr auto between_alive_lines = 10s;
constexpr auto between_retries = 1s;
constexpr auto patience_at_the_end = 10s;
constexpr std::size_t events_at_once = 4096;
constexpr std::size_t most_kept = 64 << 20;  // bytes of lines that the disk may lack; events then wait in the ring
constexpr std::size_t uid_length = 32;
constexpr std::size_t uid_digits = 8;  // in a folder's name
constexpr std::size_t longest_slug = 60;

// A run's name as a folder's: "nano on text.txt: bf16 #2" -> "nano-on-text.txt-bf16-2".
std::string slug_of(const std::string& name) {
  std::string slug;
  for (const char c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_';
    if (plain)
      slug += c;
    else if (!slug.empty() && slug.back() != '-')
      slug += '-';
    if (slug.size() == longest_slug) break;
  }
  while (slug.starts_with('.') || slug.starts_with('-')) slug.erase(0, 1);
  while (slug.ends_with('-')) slug.pop_back();
  return slug.empty() ? "run" : slug;
}

// Empty if the folder has no file `uid`, or it doesn't hold one.
Uid uid_in(const fs::path& folder) {
  const Descriptor opened = open_folder(folder.string());
  const Descriptor file = opened ? open_below(opened.get(), {"uid"}, O_RDONLY) : Descriptor();
  std::string text(uid_length + 1, '\0');
  const ssize_t count = file ? ::pread(file.get(), text.data(), text.size(), 0) : -1;
  return Uid::from(std::string_view(text).substr(0, count < ssize_t{uid_length} ? 0 : uid_length)).value_or(Uid());
}

// Puts the names in the folder on the disk too.
void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

std::string host_name() {
  char name[256] = "";
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

Json first_line(const PlannedRun& planned, const fs::path& folder, int attempt) {
  const ProcessIdentity self = this_process();
  std::error_code ignored;
  return {{"e", "run"},
          {"v", 1},
          {"uid", planned.run.uid},
          {"id", folder.filename().string()},
          {"name", planned.run.name},
          {"attempt", attempt},
          {"rank", 0},
          {"local_rank", 0},
          {"world", 1},
          {"t", unix_now()},
          {"host", host_name()},
          {"pid", self.pid},
          {"pid_start", self.start},
          {"boot", self.boot},
          {"cwd", fs::current_path(ignored).string()},
          {"client", std::string("stepladder ") + STEPLADDER_VERSION},
          {"stepladder", planned.fields()}};
}

}  // namespace

RunJournals::RunJournals(const fs::path& folder) : folder_(fs::absolute(folder).lexically_normal()) {
  if (!make_private_folders(folder_) || ::access(folder_.c_str(), W_OK | X_OK) != 0)
    throw StorageError("journals cannot be written to " + folder_.string() + ": " + std::strerror(errno));
  std::error_code error;
  for (auto it = fs::directory_iterator(folder_, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.size() > uid_digits) folders_.emplace(name.substr(name.size() - uid_digits), it->path());
  }
  writer_ = std::thread([this] { write_until_closed(); });
}

RunJournals::~RunJournals() {
  {
    const MutexLock lock(mutex_);
    closing_ = true;
  }
  ring_.wake();
  writer_.join();
}

// The folder of the run's earlier attempts, or a new one.
fs::path RunJournals::folder_of(const Run& run) {
  const std::optional<Uid> uid = Uid::from(run.uid);
  if (!uid)
    throw StorageError("the journal cannot be created: run " + std::to_string(run.id) +
                       " has a broken uid: " + Uid::refused(run.uid));
  const std::string tag = uid->text().substr(0, uid_digits);
  if (const auto known = folders_.find(tag); known != folders_.end() && uid_in(known->second) == *uid)
    return known->second;
  fs::path folder = folder_ / (slug_of(run.name) + "-" + tag);
  std::error_code error;
  if (fs::exists(folder, error)) folder += "-" + uid->text();
  if (!make_folder_below(open_folder(folder_.string()).get(), folder.filename().string()))
    throw StorageError("the journal cannot be created: " + folder.string() + ": " + std::strerror(errno));
  if (auto file = JournalFile::create(folder / "uid")) {
    file->add(uid->text() + "\n");
    std::string why = file->write();
    if (why.empty()) why = file->sync();
    if (!why.empty()) throw StorageError("the journal cannot be written: " + why);
  }
  sync_folder(folder_);
  return folders_[tag] = folder;
}

void RunJournals::begin(const PlannedRun& planned) {
  const fs::path folder = folder_of(planned.run);
  std::optional<JournalFile> file;
  int attempt = 0;
  while (!file) file = JournalFile::create(folder / ("rank-0." + std::to_string(++attempt) + ".jsonl"));
  file->add(journal_line(first_line(planned, folder, attempt)));
  std::string why = file->write();
  if (why.empty()) why = file->sync();
  if (!why.empty()) throw StorageError("the journal cannot be written: " + why);
  sync_folder(folder);
  file->rest();
  const MutexLock lock(mutex_);
  begun_.emplace_back(planned.run.id, std::move(*file));
}

void RunJournals::post(const RunEvent& event) {
  if (!ring_.post(event)) lose(run_of(event));
}

void RunJournals::lose(RunId run) {
  const MutexLock lock(mutex_);
  ++lost_[run];
}

bool RunJournals::flush(std::chrono::milliseconds patience, const EventRing::Position& until) {
  MutexLock lock(mutex_);
  if (stored_.reaches(until)) return true;
  hurry_ = true;
  lock.unlock();
  ring_.wake();
  lock.lock();
  return on_disk_.wait_for(lock, patience, [&]() REQUIRES(mutex_) { return stored_.reaches(until); });
}

std::string RunJournals::trouble() const {
  const MutexLock lock(mutex_);
  return trouble_;
}

void RunJournals::give_up() {
  const MutexLock lock(mutex_);
  gives_up_ = true;
}

void RunJournals::write_until_closed() {
  writer_thread_.enter();
  synced_at_ = alive_at_ = Clock::now();
  std::optional<Clock::time_point> closing_since;
  while (true) {
    bool hurry = false, gives_up = false;
    {
      const MutexLock lock(mutex_);
      hurry = std::exchange(hurry_, false);
      gives_up = gives_up_;
      if (closing_ && !closing_since) closing_since = Clock::now();
    }
    const EventRing::Position posted = ring_.posted();
    take_events();
    if (Clock::now() - alive_at_ >= between_alive_lines) say_alive();
    if (failing_.empty() || hurry || Clock::now() >= retry_at_)
      write(hurry || closing_since || Clock::now() - synced_at_ >= between_syncs);
    if (kept_bytes() == 0 && ring_.released().reaches(posted)) {
      {
        const MutexLock lock(mutex_);
        stored_ = ring_.released();
      }
      on_disk_.notify_all();
      if (closing_since) return;
    }
    if (closing_since && (gives_up || Clock::now() - *closing_since > patience_at_the_end)) return;
    ring_.wait(between_writes);
  }
}

// Takes the events that wait, unless the memory is full of lines that the disk refuses.
void RunJournals::take_events() {
  const EventRing::Position until = ring_.posted();
  while (!ring_.released().reaches(until) && kept_bytes() < most_kept) {
    ring_.peek(events_, events_at_once);
    take_begun();                 // after the events, since a run is begun before the first of its own
    if (events_.empty()) return;  // a slot is being filled right now
    for (const RunEvent& event : events_) add(event);
    ring_.release();
  }
}

void RunJournals::take_begun() {
  const MutexLock lock(mutex_);
  for (auto& [run, file] : begun_) journals_.emplace(run, Journal{.file = std::move(file)});
  begun_.clear();
}

void RunJournals::add(const RunEvent& event) {
  const auto [begin, end_of_run] = journals_.equal_range(run_of(event));
  const auto found = std::find_if(begin, end_of_run, [](const auto& each) { return !each.second.ended; });
  if (found == end_of_run) return;
  Journal& journal = found->second;
  const auto* end = std::get_if<RunEnded>(&event);
  if (!end) {
    journal.trains = journal.trains || std::holds_alternative<RunStarted>(event);
    journal.file.add(line_of(event));
    return;
  }
  RunEnded last = *end;
  {
    const MutexLock lock(mutex_);
    if (const auto lost = lost_.find(end->run); lost != lost_.end()) {
      journal.file.add(journal_line({{"e", "lost"}, {"n", lost->second}}));
      last.status = RunStatus::failed;
      last.reason = grouped(lost->second) +
                    " of its events are not in its journal, since the disk refused them and memory was full" +
                    (last.reason.empty() ? "" : "; " + last.reason);
      lost_.erase(lost);
    }
  }
  journal.file.add(line_of(last));
  journal.ended = true;
}

void RunJournals::say_alive() {
  alive_at_ = Clock::now();
  take_begun();
  for (auto& [run, journal] : journals_) {
    if (journal.ended || journal.file.kept() > most_kept / 2) continue;
    journal.file.add(journal_line({{"e", "alive"}, {"t", unix_now()}}));
  }
}

void RunJournals::write(bool sync_all) {
  std::string why;
  for (auto it = journals_.begin(); it != journals_.end();) {
    Journal& journal = it->second;
    std::string failed = journal.file.write();
    if (failed.empty() && (sync_all || journal.ended)) failed = journal.file.sync();
    if (!failed.empty()) why = failed;
    if (!journal.trains && journal.file.is_complete()) journal.file.rest();
    it = journal.ended && journal.file.is_complete() ? journals_.erase(it) : std::next(it);
  }
  if (sync_all) synced_at_ = Clock::now();
  if (!why.empty()) retry_at_ = Clock::now() + between_retries;
  publish(why);
}

std::size_t RunJournals::kept_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [run, journal] : journals_) bytes += journal.file.kept();
  return bytes;
}

void RunJournals::publish(const std::string& trouble) {
  if (failing_ == trouble) return;
  failing_ = trouble;
  const MutexLock lock(mutex_);
  trouble_ = trouble;
}

}  // namespace stepladder
