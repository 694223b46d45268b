// The files of a watched program's output: made under a temporary name before the program starts, then named after its
// run. A lock on the state's file shows that a tracker is there. The files may come from elsewhere with a project, so
// each is opened only if it is this user's regular file.
#include "app/import/spool.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/exit_status.h"
#include "storage/errors.h"
#include "storage/importers/journal/journal_reader.h"
#include "storage/number_text.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t freed_at_once = 16 << 20;  // a hole costs a system call
constexpr std::int64_t page = 4096;

fs::path folder_of(const fs::path& database) {
  return fs::path(database.string() + ".watch");
}

constexpr const char* output_ending = ".out";
constexpr const char* state_ending = ".state";
constexpr std::size_t most_files = 100'000;

std::string name_of(std::int64_t run) {
  return "run-" + std::to_string(run);
}

std::string json_of(const ImportOptions& options) {
  return nlohmann::json{{"tokens_per_step", options.tokens_per_step},
                        {"params", options.params},
                        {"hardware", options.hardware},
                        {"step_key", options.step_key},
                        {"format", options.format}}
      .dump();
}

// 12 of "run-12.state".
std::optional<std::int64_t> number_in(const std::string& name, std::string_view begin, std::string_view ending) {
  if (!name.starts_with(begin) || !name.ends_with(ending)) return std::nullopt;
  const std::string_view digits(name.begin() + std::ssize(begin), name.end() - std::ssize(ending));
  const auto number = parse_number<std::int64_t>(digits);
  return number && *number > 0 ? number : std::nullopt;
}

std::vector<std::int64_t> numbers_in(const fs::path& database, std::string_view begin, std::string_view ending) {
  std::vector<std::int64_t> numbers;
  const Descriptor folder = open_own_folder(folder_of(database));
  if (!folder) return numbers;
  for (const std::string& name : names_in(folder.get(), most_files))
    if (const auto number = number_in(name, begin, ending)) numbers.push_back(*number);
  std::ranges::sort(numbers);
  return numbers;
}

bool has_open(std::int64_t pid, int file) {
  struct stat ours = {};
  if (::fstat(file, &ours) != 0) return false;
  std::error_code error;
  const fs::path folder = "/proc/" + std::to_string(pid) + "/fd";
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    struct stat theirs = {};
    if (::stat(it->path().c_str(), &theirs) == 0 && theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino)
      return true;
  }
  return false;
}

}  // namespace

void SharedIdentity::set(const ProcessIdentity& process) {
  pid = process.pid;
  start = process.start;
  std::strncpy(boot, process.boot.c_str(), sizeof boot - 1);
}

Spool::Spool(const fs::path& database, Name name) : path_(folder_of(database)), name_(std::move(name.text)) {}

void Spool::fail(const char* ending, const char* what) const {
  throw StorageError((path_ / (name_ + ending)).string() + " cannot be " + what + ": " + std::strerror(errno));
}

Descriptor Spool::open_part(const char* ending, int flags) const {
  return own_regular(open_below(folder_.get(), {name_ + ending}, flags | O_RDWR));
}

Spool::Spool(const fs::path& database, const ImportOptions& options)
    : Spool(database, Name{"new-" + std::to_string(::getpid())}) {
  folder_ = make_own_folder(path_);
  if (!folder_ && (errno == ELOOP || errno == EPERM || errno == ENOTDIR))
    throw StorageError(path_.string() +
                       " is needed for the program's output, but it isn't a folder of yours; remove it");
  if (!folder_) throw StorageError(path_.string() + " cannot be created: " + std::strerror(errno));
  remove_files();  // of an earlier process with this number
  output_ = open_part(output_ending, O_CREAT | O_EXCL | O_APPEND);
  if (!output_) fail(output_ending, "created");
  const Descriptor state = open_part(state_ending, O_CREAT | O_EXCL);
  if (!state) fail(state_ending, "created");
  // Allocated now: on a full disk a later write to mapped memory would kill the process.
  if (const int error = ::posix_fallocate(state.get(), 0, sizeof(SpoolState)); error != 0) {
    remove();
    errno = error;
    fail(state_ending, "created");
  }
  map_state(state.get());
  new (state_) SpoolState();
  state_->format = SpoolState::current_format;
  const std::string text = json_of(options);
  if (text.size() >= sizeof state_->options) throw UsageError("--gpu and --as are too long");
  std::memcpy(state_->options, text.c_str(), text.size() + 1);
}

Spool::~Spool() {
  if (state_) ::munmap(state_, sizeof(SpoolState));
}

Spool::Spool(Spool&& other) noexcept
    : path_(std::move(other.path_)),
      name_(std::move(other.name_)),
      folder_(std::move(other.folder_)),
      output_(std::move(other.output_)),
      held_(std::move(other.held_)),
      state_(std::exchange(other.state_, nullptr)) {}

std::optional<Spool> Spool::open(const fs::path& database, std::int64_t run) {
  Spool spool(database, Name{name_of(run)});
  spool.folder_ = open_own_folder(spool.path_);
  if (!spool.folder_ && errno == ENOENT) return std::nullopt;
  if (!spool.folder_) throw StorageError(spool.path_.string() + " isn't a folder of yours");
  spool.held_ = spool.open_part(state_ending, 0);
  if (!spool.held_ && errno == ENOENT) return std::nullopt;
  if (!spool.held_) spool.fail(state_ending, "opened");
  if (::flock(spool.held_.get(), LOCK_EX | LOCK_NB) != 0)
    throw UsageError("the output of run " + std::to_string(run) + " is being recorded by another process");
  const std::string output = (spool.path_ / (spool.name_ + output_ending)).string();
  const std::string advice = "; `stepladder import " + output + "` reads the output as a log";
  const std::string state = (spool.path_ / (spool.name_ + state_ending)).string();
  struct stat facts = {};
  if (::fstat(spool.held_.get(), &facts) != 0 || facts.st_size < static_cast<off_t>(sizeof(SpoolState)))
    throw StorageError(state + " is damaged" + advice);
  spool.map_state(spool.held_.get());
  if (spool.state_->format != SpoolState::current_format)
    throw StorageError(state + " was written by another version of Stepladder" + advice);
  spool.output_ = spool.open_part(output_ending, O_APPEND);
  if (!spool.output_) spool.fail(output_ending, "opened");
  const ProcessIdentity keeper = spool.state_->keeper.get();
  if (is_alive(keeper) && !has_open(keeper.pid, spool.output()))
    throw StorageError(state + " names process " + std::to_string(keeper.pid) + ", which doesn't write this output" +
                       advice);
  return spool;
}

void Spool::map_state(int descriptor) {
  void* memory = ::mmap(nullptr, sizeof(SpoolState), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) fail(state_ending, "mapped");
  state_ = static_cast<SpoolState*>(memory);
}

void Spool::belongs_to(std::int64_t run) {
  const std::string name = name_of(run);
  for (const char* const ending : {output_ending, state_ending})
    if (::renameat(folder_.get(), (name_ + ending).c_str(), folder_.get(), (name + ending).c_str()) != 0)
      fail(ending, "named after its run");
  name_ = name;
  // Not the descriptor that the keeper has inherited, since that would hold the lock as well.
  held_ = open_part(state_ending, 0);
  if (!held_ || ::flock(held_.get(), LOCK_EX | LOCK_NB) != 0) fail(state_ending, "locked");
}

std::int64_t Spool::size() const {
  struct stat facts = {};
  return ::fstat(output(), &facts) == 0 ? facts.st_size : 0;
}

ImportOptions Spool::options() const {
  const auto json =
      nlohmann::ordered_json::parse(std::string(state_->options, ::strnlen(state_->options, sizeof state_->options)),
                                    nullptr, /*allow_exceptions=*/false);
  ImportOptions options;
  if (!json.is_object()) return options;
  options.tokens_per_step = integer_in(json, "tokens_per_step");
  options.params = integer_in(json, "params");
  options.hardware = text_in(json, "hardware");
  options.step_key = text_in(json, "step_key");
  options.format = text_in(json, "format");
  return options;
}

void Spool::free_until(std::int64_t end) {
  end = end / page * page;
  const std::int64_t begin = std::max(head, state_->freed.load());
  if (end < kept_whole || end - begin < freed_at_once) return;
  state_->freed = end;  // first, so that nobody takes a hole for the program's output
  ::fallocate(output(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, end - begin);  // else the file grows
}

void Spool::remove_files() const {
  for (const char* const ending : {state_ending, output_ending}) ::unlinkat(folder_.get(), (name_ + ending).c_str(), 0);
}

void Spool::remove() {
  remove_files();
  ::rmdir(path_.c_str());  // if it is empty
}

std::vector<UnreadOutput> unread_outputs(const fs::path& database) {
  std::vector<UnreadOutput> unread;
  for (const std::int64_t run : numbers_in(database, "run-", state_ending)) {
    try {
      if (const auto spool = Spool::open(database, run))
        unread.push_back({run, !spool->state().ended && is_alive(spool->state().keeper.get())});
    } catch (const UsageError&) {  // its tracker is there
    } catch (const StorageError&) {
    }
  }
  return unread;
}

void remove_unread_outputs(const fs::path& database, const std::function<bool(std::int64_t)>& exists) {
  // Removes the files of processes that had no number for their run yet.
  for (const char* const ending : {state_ending, output_ending})
    for (const std::int64_t process : numbers_in(database, "new-", ending))
      if (const Descriptor folder = open_own_folder(folder_of(database));
          folder && !is_alive(process_identity(process)))
        ::unlinkat(folder.get(), ("new-" + std::to_string(process) + ending).c_str(), 0);
  for (const UnreadOutput& output : unread_outputs(database)) {
    if (output.is_running || exists(output.run)) continue;
    if (auto spool = Spool::open(database, output.run)) spool->remove();
  }
}

}  // namespace stepladder
