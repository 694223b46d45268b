// Helpers of all commands: validators of options, signals, standard streams, and JSON on stdout. The validators replace
// CLI11's, which accept NaN; a second Ctrl-C ends the process at once.
#include "app/cli/subcommand.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>

#include "app/cli/table.h"
#include "app/cli/terminal/output_options.h"
#include "app/host/environment.h"
#include "app/runs/open_store.h"
#include "app/runs/run_filter.h"
#include "app/text/format.h"
#include "app/text/terminal_text.h"
#include "engine/engine.h"
#include "engine/nearest.h"
#include "storage/analysis/hardware.h"
#include "storage/bounded_text.h"
#include "storage/errors.h"

namespace stepladder {
namespace {

std::atomic<int> interrupts{0};
std::string last_note;  // on stderr, if the command has succeeded
constexpr std::int64_t usual_limit = 30;
constexpr const char* unbounded = "N";  // type of numbers whose highest is of no interest

// A process group's signal may come twice at once (timeout sends it to the child and to its group).
void note_interrupt(int signal) {
  static volatile std::sig_atomic_t first_s = 0;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  if (interrupts++ == 0)
    first_s = static_cast<std::sig_atomic_t>(now.tv_sec);
  else if (now.tv_sec > first_s + 1)
    std::_Exit(128 + signal);
}

// `missing` if it isn't a number.
double number_from(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range && stopped == end) return std::strtod(text.c_str(), nullptr);
  return error == std::errc() && stopped == end ? value : missing;
}

// Replaces CLI11's own checks, which accept NaN and print the largest double with all its digits. `shown` is for
// --help.
CLI::Validator number_within(double low, double high, const std::string& what, const std::string& shown) {
  const auto check = [=](std::string& text) {
    const double value = number_from(text);
    if (value >= low && value <= high) return std::string();
    const bool is_too_large = value > high && shown == unbounded;
    return "must be " +
           (std::isnan(value) ? "a number"
            : is_too_large    ? fmt::format("at most {:g}", high)
                              : what) +
           ", not '" + text + "'";
  };
  return {check, shown};
}

// Fills in the word of the command line that the sentence is about: the argument's, else the longest that it holds,
// which belongs to the option before it.
void name_given_word(const std::string& sentence, ErrorParts& parts) {
  const bool has_argument = !parts.argument.empty();
  std::string option;
  for (const std::string& word : command_words()) {
    if (word == "--") break;
    std::string value = word;
    if (word.size() > 1 && word.front() == '-' && std::isdigit(static_cast<unsigned char>(word[1])) == 0) {
      const std::size_t equals = std::min(word.find('='), word.size());
      option = word.substr(0, equals);
      if (equals == word.size()) continue;
      value = word.substr(equals + 1);
    }
    const bool fits = has_argument ? option == parts.argument
                                   : value.size() > std::max<std::size_t>(2, parts.value.size()) &&
                                         sentence.find(value) != std::string::npos;
    if (fits) {
      parts.value = value;
      if (has_argument) return;
      parts.argument = option;
    }
    option.clear();
  }
}

// The parts of an error that doesn't name them itself, read from its sentence: "--size: '3' is not ...; hint".
ErrorParts parts_of(const std::exception& error, int status) {
  ErrorParts parts;
  if (const auto* usage = dynamic_cast<const UsageError*>(&error)) parts = usage->parts;
  const std::string text = error.what();
  const bool is_absent = text.find("No such file or directory") != text.npos || text.ends_with("does not exist");
  if (parts.code.empty())
    parts.code = dynamic_cast<const FilterError*>(&error)      ? "invalid-filter"
                 : dynamic_cast<const RecipeError*>(&error)    ? "invalid-value"
                 : dynamic_cast<const DamagedFile*>(&error)    ? "damaged-file"
                 : dynamic_cast<const MissingRun*>(&error)     ? "not-found"
                 : dynamic_cast<const MigrationError*>(&error) ? "old-file"
                 : is_absent                                   ? "not-found"
                 : status == exit_usage                        ? "usage"
                                                               : "failed";
  if (parts.argument.empty() && text.starts_with("--")) parts.argument = text.substr(0, text.find_first_of(":= "));
  if (parts.value.empty()) name_given_word(text, parts);
  if (parts.code == "usage" && !parts.argument.empty()) parts.code = "invalid-value";
  return parts;
}

// The line of --json: what is empty is null; the hint is what follows the sentence's first semicolon.
Json error_json(std::string sentence, ErrorParts parts) {
  const std::size_t semicolon = sentence.find("; ");
  if (parts.hint.empty() && semicolon != std::string::npos) parts.hint = sentence.substr(semicolon + 2);
  if (!parts.hint.empty() && sentence.ends_with("; " + parts.hint))
    sentence.resize(sentence.size() - parts.hint.size() - 2);
  return {{"error",
           {{"code", parts.code},
            {"argument", text_or_null(parts.argument)},
            {"value", text_or_null(parts.value)},
            {"message", sentence},
            {"hint", text_or_null(parts.hint)}}}};
}

}  // namespace

CLI::App* add_with_json(CLI::App& app, CommonOptions& common, const char* name, const char* what) {
  CLI::App* command = app.add_subcommand(name, what);
  command->add_flag("--json", common.json, "Print JSON");
  return command;
}

CLI::Validator positive_count() {
  const auto check = [](std::string& text) -> std::string {
    const double value = number_from(text);
    if (!(value >= 1 && value < 0x1p53 && value == std::floor(value)))
      return "must be a whole number of at least 1, not '" + text + "'";
    text = std::to_string(static_cast<std::int64_t>(value));
    return {};
  };
  return {check, "POSITIVE"};
}

CLI::Validator positive_number() {
  using Limits = std::numeric_limits<double>;
  return number_within(Limits::min(), Limits::max(), "greater than 0", "POSITIVE");
}

CLI::Validator between(double low, double high) {
  constexpr double no_bound = 1e9;
  const std::string range =
      high < no_bound ? fmt::format("{:g} to {:g}", low, high) : fmt::format("at least {:g}", low);
  return number_within(low, high, range, high < no_bound ? range : unbounded);
}

std::optional<RunStore> open_to_list(const CommonOptions& common) {
  std::optional<RunStore> store = open_to_read(common.database);
  if (store) return store;
  require_named_database(common);
  if (const char* file = std::getenv("STEPLADDER_DB"); file && *file)
    last_note = harmless(file) + ", which STEPLADDER_DB names, does not exist yet";
  return std::nullopt;
}

CLI::Option* Limit::add_to(CLI::App& command, const std::string& what) {
  return command
      .add_option("--limit", most_, what + fmt::format("; 0: all (default: {} on a terminal, else all)", usual_limit))
      ->check(between(0, 1e15));
}

std::size_t Limit::of(std::size_t all, const CommonOptions& common) const {
  const bool has_usual = !most_ && !common.json && ::isatty(STDOUT_FILENO) == 1;
  const auto most = static_cast<std::size_t>(has_usual ? usual_limit : most_.value_or(0));
  return most == 0 ? all : std::min(all, most);
}

void Limit::note_left_out(std::size_t count, const char* what) {
  if (count > 0) last_note = plural(static_cast<std::int64_t>(count), what) + ": --limit 0 shows all";
}

void require_named_database(const CommonOptions& common) {
  if (common.database_is_named && !std::filesystem::exists(common.database))
    throw NotFound(
        common.database.string() + " does not exist",
        {.argument = "--db", .value = common.database.string(), .hint = "no run has been recorded there yet"});
}

void add_force(CLI::App& command, bool& forces) {
  command.add_flag("--force", forces, "Overwrite a file that is there");
}

void keep_existing(const std::filesystem::path& out, bool forces) {
  std::error_code unknown;
  if (forces || !std::filesystem::is_regular_file(out, unknown)) return;
  if (std::filesystem::file_size(out, unknown) == 0) return;  // made for it, as mktemp does
  if (::isatty(STDIN_FILENO) == 1 && agrees("Overwrite " + harmless(out.string()) + "?")) return;
  throw UsageError(
      out.string() + " is there already",
      {.code = "file-exists", .argument = "--out", .value = out.string(), .hint = "--force overwrites it"});
}

bool agrees(const std::string& question) {
  std::cerr << question << " [y/N] " << std::flush;
  pollfd in{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  constexpr int look_again_ms = 100;  // a signal may come just before poll() begins to wait
  for (int ready = 0; ready == 0 || (ready < 0 && errno == EINTR); ready = ::poll(&in, 1, look_again_ms))
    if (interrupted()) {
      std::cerr << "\n";
      throw Interrupted();
    }
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes" || answer == "Y";
}

CLI::Validator one_of(std::vector<std::string> values) {
  std::string list;
  for (const std::string& value : values) list += (list.empty() ? "" : "|") + value;
  const auto check = [values = std::move(values)](std::string& text) -> std::string {
    if (std::ranges::find(values, text) != values.end()) return {};
    const std::string meant = nearest_name(text, values);
    return fmt::format("'{}' is not one of {}{}", bounded(text, longest_name), fmt::join(values, ", "),
                       meant.empty() ? "" : " (did you mean " + meant + "?)");
  };
  return {check, list};
}

CLI::Validator percent(double unit, double low, double high) {
  const auto check = [=](std::string& text) -> std::string {
    std::string bare = text.substr(0, text.find_last_not_of("% ") + 1);
    const double value = number_from(bare) * (bare == text ? 1 : 0.01 / unit);
    if (bare == text && unit == 1 && value >= 0.5)
      return fmt::format("'{}' may be a percentage or a share: write {}%, or a share below 0.5", text, text);
    if (!(value * unit >= low / 100 && value * unit <= high / 100))
      return fmt::format("must be a percentage from {:g}% to {:g}%, not '{}'", low, high, text);
    text = fmt::format("{}", value);
    return {};
  };
  return {check, "PERCENT"};
}

void add_import_options(CLI::App& command, ImportOptions& options) {
  command.add_option("--tokens-per-step", options.tokens_per_step, "Batch x sequence x accumulated batches x devices")
      ->transform(positive_count());
  command.add_option("--params", options.params, "Number of model parameters")->transform(positive_count());
  command.add_option("--step-key", options.step_key, "Logged number that is the step (W&B, Trackio)")
      ->check(short_name());
  command.add_option("--gpu", options.hardware, "Hardware that it ran on")->check(short_name());
}

void add_when_quiet(CLI::App& command, QuietPatience& patience) {
  command.add_flag_callback(
      "--when-quiet", [&patience] { patience = until_quiet; },
      "Wait before each run until other programs leave it the cores that it needs");
}

void add_adopt(CLI::App& command, bool& adopts) {
  command.add_flag(
      "--adopt", adopts,
      "Train it although it wasn't launched here: the project came from elsewhere, was moved or copied, or "
      "is from an earlier version");
}

CLI::Validator short_name() {
  const auto check = [](std::string& text) -> std::string {
    if (text.size() <= longest_name) return {};
    return "must have at most " + grouped(longest_name) + " bytes, not " + grouped(std::ssize(text));
  };
  return {check, "TEXT"};
}

CLI::Validator new_name() {
  const auto check = [](std::string& text) -> std::string {
    if (const std::string problem = short_name()(text); !problem.empty() || text.empty()) return problem;
    if (text.find_first_not_of(" \t\n") == std::string::npos) return "the name is blank";
    if (text != "latest" && text.find_first_not_of("0123456789-") != std::string::npos) return {};
    return "'" + text + "' can't be a name: numbers, ranges and `latest` are other ways to name a run";
  };
  return {check, "TEXT"};
}

std::string unknown_hardware(const std::string& gpu) {
  if (gpu.empty()) return {};
  const HardwareTable table = HardwareTable::load(assets_folder());
  if (table.find(gpu)) return {};
  std::vector<std::string> known;
  for (const Hardware& row : table.all()) {
    known.push_back(row.name);
    known.insert(known.end(), row.aliases.begin(), row.aliases.end());
  }
  const std::string meant = nearest_name(gpu, known);
  return "the hardware table has no '" + bounded(gpu, longest_name) + "'" +
         (meant.empty() ? "" : " (did you mean " + meant + "?)") +
         ", so the runs get no MFU and are not checked against a peak; the known names are in " +
         (assets_folder() / "hardware.csv").string() + ", and you can add yours to " +
         HardwareTable::user_file().string();
}

void print(const Json& json) {
  std::cout << harmless_json(json.dump(2, ' ', false, Json::error_handler_t::replace)) << "\n";
}

void print_line(const Json& json, std::ostream& out) {
  out << harmless_json(json.dump(-1, ' ', false, Json::error_handler_t::replace)) << "\n";
}

int report_error(const std::exception& error, int status) {
  end_output();
  std::string sentence = bounded(error_text(error), longest_line);
  const auto* damaged = dynamic_cast<const DamagedFile*>(&error);
  if (damaged) sentence += "; " + rescue_hint(damaged->file);
  if (errors_are_json())
    print_line(error_json(sentence, parts_of(error, status)), std::cerr);
  else
    std::cerr << "stepladder: " << sentence << "\n";
  return status;
}

int report_error(const std::string& sentence) {
  return report_error(std::runtime_error(sentence), exit_failed);
}

bool errors_are_json() {
  const std::vector<std::string>& words = command_words();
  const auto end = std::ranges::find(words, "--");  // what follows is another program's
  return std::any_of(words.begin(), end,
                     [](const std::string& word) { return word == "--json" || word == "--ndjson"; });
}

std::string rescue_hint(const std::filesystem::path& damaged) {
  return "`stepladder doctor --rescue OUT --db " + bounded(damaged.string(), longest_line) +
         "` saves what can be read of a project";
}

void open_standard_streams() {
  // Opened for the wrong direction, so that using them fails, as in gnulib's stdopen.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    [[maybe_unused]] const int opened = ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int close_output(int status) {
  end_output();
  if (!last_note.empty()) std::cerr << notes_text("stepladder: " + last_note);
  errno = 0;
  if (std::cout.flush()) return status;
  const int cause = errno;
  pollfd out{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&out, 1, 0) == 1 && (out.revents & POLLERR)) return status;  // the reader has exited: `| head`
  report_error("standard output cannot be written" + (cause ? ": " + std::string(std::strerror(cause)) : ""));
  return status == exit_done ? exit_failed : status;
}

void keep_off_database(const std::filesystem::path& out, const std::filesystem::path& database,
                       const std::string& option) {
  namespace fs = std::filesystem;
  std::error_code unknown;
  const fs::path target = fs::weakly_canonical(out, unknown);
  for (const std::string part : {"", "-wal", "-shm", "-journal"}) {
    const fs::path file = database.string() + part;
    if (target != fs::weakly_canonical(file, unknown) && !fs::equivalent(out, file, unknown)) continue;
    throw UsageError(option + ": " + out.string() +
                     (part.empty() ? " is the database itself" : " belongs to the database"));
  }
}

DeviceReport probe_machine() {
  return Engine([](const RunEvent&) {}).probe().get();
}

void catch_signals() {
  std::signal(SIGINT, note_interrupt);
  std::signal(SIGTERM, note_interrupt);
  // A process of the same run, or a reader of our output, may exit without ending this process.
  std::signal(SIGPIPE, SIG_IGN);
}

bool interrupted() {
  return interrupts > 0;
}

}  // namespace stepladder
