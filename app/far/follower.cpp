// Sends what followed runs write, from the offsets that the other side asked for: first the journals' new bytes, then
// the state if it has changed. A state that says that a run has ended is sent only after the run's last bytes.
#include "app/far/follower.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <string_view>

#include "app/far/files.h"
#include "storage/base64.h"
#include "storage/checked_text.h"
#include "storage/importers/journal/journal_line.h"
#include "storage/number_text.h"

namespace stepladder::far {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_runs = 10'000;
constexpr std::size_t most_files = 4096;      // of a run
constexpr std::size_t most_entries = 10'000;  // of a folder
constexpr auto listing_interval = 1s;
constexpr auto poll_interval = 100ms;
constexpr auto state_interval = 400ms;
constexpr auto poll_interval_when_over = 5s;
constexpr auto grace = 3s;  // after a run's end, for the last bytes of its other writers
constexpr auto grace_of_tails = 10s;

bool is_plain(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.size() <= 200 &&
         name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-+=@") ==
             std::string::npos;
}

// "rank-3.1.jsonl" -> "rank-3." and 1; 0 for another name.
std::int64_t attempt_in(const std::string& name, std::string& stem) {
  if (!name.starts_with("rank-") || !name.ends_with(".jsonl")) return 0;
  const std::size_t dot = name.find('.');
  if (dot + 1 > name.size() - 6) return 0;
  stem = name.substr(0, dot + 1);
  return parse_number<std::int64_t>(std::string_view(name).substr(dot + 1, name.size() - 6 - (dot + 1))).value_or(0);
}

bool has_later_attempt(const std::map<std::string, JournalTail>& files, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  std::string stem;
  const std::int64_t attempt = attempt_in(path.substr(slash + 1), stem);
  return files.contains(path.substr(0, slash + 1) + stem + std::to_string(attempt + 1) + ".jsonl");
}

void add_journals(int folder, const std::string& prefix, int depth, std::map<std::string, JournalTail>& files) {
  std::string stem;
  for (const std::string& name : names_in(folder, most_entries)) {
    if (!is_plain(name) || files.size() >= most_files) continue;
    if (attempt_in(name, stem) > 0)
      files.try_emplace(prefix + name);
    else if (depth > 0 && name.find(".json") == std::string::npos) {
      if (const Descriptor inner = folder_below(folder, name))
        add_journals(inner.get(), prefix + name + "/", depth - 1, files);
    }
  }
}

}  // namespace

void Follower::follow(const Json& runs) {
  if (!runs.is_object() || runs.size() > most_runs) throw Refusal("'runs' must be an object of runs.");
  std::map<std::string, Followed> wanted;
  for (const auto& [run, files] : runs.items()) {
    if (!Uid::allows(run)) throw Refusal("'run' must be 32 lower-case hexadecimal digits.");
    if (!files.is_object() || files.size() > most_files)
      throw Refusal("'runs' must have an object of offsets for each run.");
    Followed& followed = wanted[run];
    for (const auto& [name, offset] : files.items()) {
      const auto parts = parts_of(name);
      std::string stem;
      if ((parts[0] != "keeper" && parts[0] != "journals") || parts.size() < 2 || attempt_in(parts.back(), stem) == 0)
        throw Refusal("'" + name + "' isn't a journal's name.");
      if (!offset.is_number_unsigned() || offset.get<std::uint64_t>() > INT64_MAX)
        throw Refusal("The offset of '" + name + "' must be a positive integer.");
      followed.files.emplace(name, JournalTail(offset.get<std::uint64_t>()));
    }
  }
  runs_ = std::move(wanted);
}

void Follower::poll(const std::function<bool()>& has_room) {
  const auto now = Clock::now();
  for (auto& [run, followed] : runs_) {
    if (!has_room()) return;
    if (now < followed.next_poll) continue;
    poll_run(run, followed, has_room);
  }
}

void Follower::poll_run(const std::string& run, Followed& followed, const std::function<bool()>& has_room) {
  const auto now = Clock::now();
  Descriptor folder;
  try {
    folder = run_folder(folder_, run);
  } catch (const Refusal& refusal) {
    followed.next_poll = now + poll_interval_when_over;
    if (!followed.is_missing) send_({{"state", {{"run", run}, {"phase", "gone"}, {"reason", refusal.what()}}}});
    followed.is_missing = true;
    return;
  }
  if (now >= followed.next_listing) {
    followed.next_listing = now + listing_interval;
    for (const char* const top : {"keeper", "journals"})
      if (const Descriptor inner = folder_below(folder.get(), top))
        add_journals(inner.get(), std::string(top) + "/", top[0] == 'j' ? 3 : 0, followed.files);
  }
  bool more = false, rests_unsent = false;
  const bool is_over = !followed.is_active && now - followed.over_since > grace;
  for (auto& [name, tail] : followed.files) {
    if (!has_room()) return;
    const Descriptor file = open_below(folder.get(), parts_of(name), O_RDONLY);
    struct stat status = {};
    if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    const std::uint64_t at = tail.offset();
    const std::string bytes = tail.next(file.get(), is_over || has_later_attempt(followed.files, name), now);
    rests_unsent = rests_unsent || tail.offset() < static_cast<std::uint64_t>(status.st_size);
    if (bytes.empty()) continue;
    more = true;
    send_({{"file", {{"run", run}, {"name", name}, {"at", at}, {"data", to_base64(bytes)}}}});
  }
  // A state that says that the run has ended follows its last bytes; bad lines are given some time to become good.
  const bool waits = rests_unsent && !followed.is_active && now - followed.over_since <= grace_of_tails;
  if (!more && !waits && now >= followed.next_state) send_state_if_due(run, folder.get(), followed, now);
  const bool rests = !followed.is_active && now - followed.over_since > grace_of_tails;
  followed.next_poll = more ? now : now + (rests ? Clock::duration(poll_interval_when_over) : poll_interval);
}

void Follower::send_state_if_due(const std::string& run, int run_folder, Followed& followed, Clock::time_point now) {
  followed.next_state = now + state_interval;
  try {
    Json state = state_of(run, run_folder, followed.attempt, job_of_(run, run_folder));
    const bool is_active = may_be_active(state);
    const bool ends = !is_active && followed.is_active;
    followed.is_active = is_active;
    if (ends) {  // it may have begun journals since the last listing: those are sent first
      followed.over_since = now;
      followed.next_listing = followed.next_state = {};
      return;
    }
    Json compared = state;
    compared.erase("last_alive");
    std::string text = as_text(compared);
    if (text == followed.state) return;
    followed.state = std::move(text);
    send_({{"state", std::move(state)}});
  } catch (const Refusal&) {  // the request is damaged: its journals are sent nevertheless
  }
}

namespace {

using namespace std::chrono_literals;

constexpr auto patience = 60s;
constexpr auto try_again = 1s;
constexpr std::size_t small_window = 64 << 10;
constexpr std::size_t large_window = 4 * longest_journal_line;  // in which a good line is looked for behind a bad one

bool is_good(std::string_view line) {
  return line.size() <= longest_journal_line && journal_checksum_holds(line);
}

// The end of the good lines from `begin` on.
std::size_t good_end(std::string_view window, std::size_t begin) {
  for (;;) {
    const std::size_t end = window.find('\n', begin);
    if (end == std::string_view::npos || !is_good(window.substr(begin, end - begin))) return begin;
    begin = end + 1;
  }
}

// The place where a good line begins behind the bad one at `begin`. Zeros that were never filled may be right before
// it.
std::size_t next_good(std::string_view window, std::size_t begin) {
  while (begin < window.size()) {
    const std::size_t end = window.find('\n', begin);
    if (end == std::string_view::npos) break;
    const std::string_view line = window.substr(begin, end - begin);
    if (is_good(line)) return begin;
    const std::size_t zero = line.rfind('\0');
    if (zero != std::string_view::npos && is_good(line.substr(zero + 1))) return begin + zero + 1;
    begin = end + 1;
  }
  return std::string_view::npos;
}

}  // namespace

std::string JournalTail::next(int file, bool writer_has_ended, Clock::time_point now) {
  if (verified_ <= offset_ && (!is_bad_ || now >= next_try_)) verify(file, writer_has_ended, now);
  if (verified_ <= offset_) return "";
  std::string bytes =
      read_at(file, offset_, static_cast<std::size_t>(std::min<std::uint64_t>(verified_ - offset_, most_at_once)));
  offset_ += bytes.size();
  return bytes;
}

void JournalTail::verify(int file, bool writer_has_ended, Clock::time_point now) {
  // The offset may be inside a line, whose checksum needs its beginning.
  std::uint64_t from = offset_;
  if (from > 0 && read_at(file, from - 1, 1) != "\n") {
    const std::uint64_t least = from > longest_journal_line ? from - longest_journal_line : 0;
    const std::string before = read_at(file, least, static_cast<std::size_t>(from - least));
    const std::size_t line_feed = before.rfind('\n');
    from = line_feed != std::string::npos ? least + line_feed + 1 : least;
  }
  std::string window = read_at(file, from, static_cast<std::size_t>(offset_ - from) + most_at_once);
  std::size_t good = good_end(window, 0);
  if (good == 0 && !window.empty() &&
      (window.size() >= most_at_once || writer_has_ended || window.find('\n') != std::string::npos)) {
    window = read_at(file, from, large_window);
    good = good_end(window, 0);
  }
  verified_ = std::max(offset_, from + good);
  is_bad_ = false;
  if (verified_ > offset_ || window.empty()) return;
  const bool is_whole = window.find('\n') != std::string::npos || window.size() > longest_journal_line;
  if (is_whole || writer_has_ended) {
    is_bad_ = true;
    next_try_ = now + try_again;
    if (bad_line_ != from) followed_since_ = {};
    bad_line_ = from;
    give_up(window, static_cast<std::size_t>(offset_ - from), writer_has_ended, now);
  }
}

void JournalTail::give_up(const std::string& window, std::size_t begin, bool writer_has_ended, Clock::time_point now) {
  const std::size_t good = next_good(window, 0);
  const bool is_followed = good != std::string::npos && good > begin;
  if (is_followed && followed_since_ == Clock::time_point()) followed_since_ = now;
  if (!writer_has_ended && !(is_followed && now - followed_since_ >= patience)) return;
  verified_ = bad_line_ + (is_followed ? good : window.size());
}

}  // namespace stepladder::far
