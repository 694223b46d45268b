#include "app/import/spool.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/exit_status.h"
#include "storage/errors.h"
#include "storage/own_folder.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t freed_at_once = 16 << 20;  // a hole costs a system call
constexpr std::int64_t page = 4096;

fs::path folder_of(const fs::path& database) {
  return fs::path(database.string() + ".watch");
}

fs::path file_of(const fs::path& database, std::int64_t run, const char* ending) {
  return folder_of(database) / ("run-" + std::to_string(run) + ending);
}

[[noreturn]] void fail(const fs::path& file, const char* what) {
  throw StorageError(file.string() + " cannot be " + what + ": " + std::strerror(errno));
}

int open_file(const fs::path& file, int flags) {
  return ::open(file.c_str(), flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
}

std::string json_of(const ImportOptions& options) {
  return nlohmann::json{{"tokens_per_step", options.tokens_per_step},
                        {"params", options.params},
                        {"hardware", options.hardware},
                        {"format", options.format}}
      .dump();
}

// The run of "run-12.state".
std::optional<std::int64_t> run_of(const fs::path& file) {
  const std::string name = file.filename().string();
  if (!name.starts_with("run-") || !name.ends_with(".state")) return std::nullopt;
  std::int64_t run = 0;
  const auto [end, error] = std::from_chars(name.data() + 4, name.data() + name.size(), run);
  return error == std::errc() && *end == '.' ? std::optional(run) : std::nullopt;
}

std::vector<std::int64_t> runs_with_files(const fs::path& database) {
  std::vector<std::int64_t> runs;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder_of(database), error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    if (const auto run = run_of(entry->path())) runs.push_back(*run);
  std::sort(runs.begin(), runs.end());
  return runs;
}

// Files of processes that hadn't got a number for their run yet.
std::vector<std::pair<fs::path, std::int64_t>> unnamed_files(const fs::path& database) {
  std::vector<std::pair<fs::path, std::int64_t>> files;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder_of(database), error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    if (const std::string name = entry->path().filename().string(); name.starts_with("new-"))
      files.emplace_back(entry->path(), std::strtoll(name.c_str() + 4, nullptr, 10));
  return files;
}

}  // namespace

void SharedIdentity::set(const ProcessIdentity& process) {
  pid = process.pid;
  start = process.start;
  std::strncpy(boot, process.boot.c_str(), sizeof boot - 1);
}

Spool::Spool(const fs::path& database, const ImportOptions& options) {
  const fs::path folder = folder_of(database);
  if (!make_own_folder(folder) && errno != ELOOP && errno != ENOTDIR && errno != EPERM) fail(folder, "created");
  if (!open_own_folder(folder))
    throw StorageError(folder.string() +
                       " is needed for the program's output, but it isn't a folder of yours; remove it");
  const std::string name = "new-" + std::to_string(::getpid());
  out_ = folder / (name + ".out");
  state_file_ = folder / (name + ".state");
  for (const fs::path& file : {out_, state_file_}) ::unlink(file.c_str());  // of an earlier process with this number
  output_ = open_file(out_, O_CREAT | O_EXCL | O_APPEND);
  if (output_ < 0) fail(out_, "created");
  const int state = open_file(state_file_, O_CREAT | O_EXCL);
  if (state < 0) fail(state_file_, "created");
  // Allocated now: on a full disk a later write to mapped memory would kill the process.
  if (const int error = ::posix_fallocate(state, 0, sizeof(SpoolState)); error != 0) {
    errno = error;
    ::close(state);
    remove();
    fail(state_file_, "created");
  }
  map_state(state);
  ::close(state);
  new (state_) SpoolState();
  state_->format = SpoolState::current_format;
  const std::string text = json_of(options);
  if (text.size() >= sizeof state_->options) throw UsageError("--gpu and --as are too long");
  std::memcpy(state_->options, text.c_str(), text.size() + 1);
}

Spool::~Spool() {
  if (state_) ::munmap(state_, sizeof(SpoolState));
  for (const int descriptor : {output_, held_})
    if (descriptor >= 0) ::close(descriptor);
}

Spool::Spool(Spool&& other) noexcept
    : out_(std::move(other.out_)),
      state_file_(std::move(other.state_file_)),
      output_(std::exchange(other.output_, -1)),
      held_(std::exchange(other.held_, -1)),
      state_(std::exchange(other.state_, nullptr)) {}

std::optional<Spool> Spool::open(const fs::path& database, std::int64_t run) {
  Spool spool;
  spool.out_ = file_of(database, run, ".out");
  spool.state_file_ = file_of(database, run, ".state");
  spool.held_ = open_file(spool.state_file_, 0);
  if (spool.held_ < 0 && errno == ENOENT) return std::nullopt;
  if (spool.held_ < 0) fail(spool.state_file_, "opened");
  if (::flock(spool.held_, LOCK_EX | LOCK_NB) != 0)
    throw UsageError("the output of run " + std::to_string(run) + " is being recorded by another process");
  struct stat facts = {};
  if (::fstat(spool.held_, &facts) != 0 || facts.st_size < static_cast<off_t>(sizeof(SpoolState)))
    throw StorageError(spool.state_file_.string() + " is damaged; `stepladder import " + spool.out_.string() +
                       "` reads the output as a log");
  spool.map_state(spool.held_);
  if (spool.state_->format != SpoolState::current_format)
    throw StorageError(spool.state_file_.string() + " was written by another version of Stepladder; import " +
                       spool.out_.string() + " as a log");
  spool.output_ = open_file(spool.out_, O_APPEND);
  if (spool.output_ < 0) fail(spool.out_, "opened");
  return spool;
}

void Spool::map_state(int descriptor) {
  void* memory = ::mmap(nullptr, sizeof(SpoolState), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) fail(state_file_, "mapped");
  state_ = static_cast<SpoolState*>(memory);
}

void Spool::belongs_to(std::int64_t run) {
  const fs::path folder = out_.parent_path();
  const fs::path out = folder / ("run-" + std::to_string(run) + ".out");
  const fs::path state = folder / ("run-" + std::to_string(run) + ".state");
  if (::rename(out_.c_str(), out.c_str()) != 0) fail(out, "created");
  if (::rename(state_file_.c_str(), state.c_str()) != 0) fail(state, "created");
  out_ = out;
  state_file_ = state;
  // Not the descriptor that the keeper has inherited, since that would hold the lock as well.
  held_ = open_file(state_file_, 0);
  if (held_ < 0 || ::flock(held_, LOCK_EX | LOCK_NB) != 0) fail(state_file_, "locked");
}

std::int64_t Spool::size() const {
  struct stat facts = {};
  return ::fstat(output_, &facts) == 0 ? facts.st_size : 0;
}

ImportOptions Spool::options() const {
  const nlohmann::json json =
      nlohmann::json::parse(std::string(state_->options, ::strnlen(state_->options, sizeof state_->options)), nullptr,
                            /*allow_exceptions=*/false);
  ImportOptions options;
  if (!json.is_object()) return options;
  options.tokens_per_step = json.value("tokens_per_step", std::int64_t{0});
  options.params = json.value("params", std::int64_t{0});
  options.hardware = json.value("hardware", std::string());
  options.format = json.value("format", std::string());
  return options;
}

void Spool::free_until(std::int64_t end) {
  end = end / page * page;
  const std::int64_t begin = std::max(head, state_->freed.load());
  if (end < kept_whole || end - begin < freed_at_once) return;
  state_->freed = end;  // first, so that nobody takes a hole for the program's output
  ::fallocate(output_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, end - begin);  // else the file grows
}

void Spool::remove() {
  for (const fs::path& file : {state_file_, out_}) ::unlink(file.c_str());
  ::rmdir(out_.parent_path().c_str());  // if it is empty
}

std::vector<UnreadOutput> unread_outputs(const fs::path& database) {
  std::vector<UnreadOutput> unread;
  for (const std::int64_t run : runs_with_files(database)) {
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
  for (const auto& [file, process] : unnamed_files(database))
    if (!is_alive({.pid = process})) ::unlink(file.c_str());
  for (const UnreadOutput& output : unread_outputs(database)) {
    if (output.goes_on || exists(output.run)) continue;
    if (auto spool = Spool::open(database, output.run)) spool->remove();
  }
}

}  // namespace stepladder
