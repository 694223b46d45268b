// Connects through ssh, sends the far program if it is missing or has another checksum, then exchanges lines of JSON.
// Output before the random mark is the login's own and is ignored. A fault is hopeless (it needs a user: tried once a
// minute), garbled (answers that are not ours: ever more rarely) or passing (soon).
#include "app/machines/link.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>
#include <stdexcept>
#include <utility>

#include "app/process/run_program.h"
#include "app/text/format.h"
#include "storage/importers/journal/journal_line.h"
#include "storage/importers/journal/journal_reader.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

using Seconds = std::chrono::seconds;

constexpr int protocol = 1;
constexpr std::size_t longest_talk_line = 1 << 20;
constexpr std::size_t longest_noise = 1 << 20;  // that a login may print
constexpr Seconds time_to_connect(120);         // a person may have to touch a key
constexpr Seconds time_to_send(600);
constexpr Seconds between_pings(5);
constexpr Seconds silence(25);
constexpr Seconds longest_wait(60);
constexpr Seconds longest_wait_if_garbled(15 * 60);
constexpr Seconds time_to_answer(10 * 60);  // also a busy cluster's sbatch
// A connection that was up so long was a good one: the next waits are short again.
constexpr Seconds steady(30);
constexpr Seconds steady_if_garbled(15 * 60);

// The script runs under the user's login shell: in single quotes it means the same to sh, csh and fish.
std::string quoted(const std::string& script) {
  return "exec /bin/sh -c '" + script + "'";
}

std::string folder_there(const Machine& machine) {
  const std::string& folder = machine.folder.text();  // its rule allows nothing that a shell expands in double quotes
  if (folder.empty()) return "$HOME/.stepladder";
  if (folder.starts_with("~/")) return "$HOME" + folder.substr(1);
  return folder;
}

// Sets d (the folder), p (the program) and the function h (a file's SHA-256).
std::string beginning(const Machine& machine, const FarProgram& program) {
  return "d=\"" + folder_there(machine) + "\"; p=\"$d/bin/stepladder-far-" + program.sha256 +
         "\"; h() { { sha256sum \"$1\" || shasum -a 256 \"$1\" || openssl dgst -sha256 -r \"$1\"; } 2>/dev/null | cut "
         "-c1-64; }; ";
}

// A condition for `if`: stores in p what `reader` reads, whole or not at all; t is the file meanwhile.
std::string storing(const std::string& reader, const FarProgram& program) {
  return "t=\"$d/bin/new.$$\"; if ( umask 077; mkdir -p \"$d/bin\" && " + reader +
         " > \"$t\" && test \"$(h \"$t\")\" = " + program.sha256 + " && chmod 700 \"$t\" && mv \"$t\" \"$p\" )";
}

std::string bytes_of(const FarProgram& program) {
  std::ifstream file(program.file, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string random_mark() {
  std::random_device random;
  std::string mark = "stepladder-";
  for (int i = 0; i < 4; ++i) mark += std::to_string(random() % 1'000'000'000);
  return mark;
}

// The last line that isn't empty.
std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \r\n\t.");  // it becomes a part of a sentence
  if (end == std::string::npos) return {};
  const std::size_t begin = text.find_last_of("\r\n", end);
  return harmless(
      text.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin == std::string::npos ? -1 : begin)));
}

}  // namespace

FarProgram far_program() {
  std::error_code error;
  const char* given = std::getenv("STEPLADDER_FAR");
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  const fs::path file = given && *given ? fs::path(given) : own.parent_path() / "stepladder-far";
  if (!fs::is_regular_file(file, error))
    throw std::runtime_error(file.string() +
                             " is missing, which Stepladder sends to other machines; build the target "
                             "stepladder-far, or set STEPLADDER_FAR");
  std::string output;
  try {
    output = output_of({"sha256sum", "--", file.string()});
  } catch (const std::exception& failure) {
    throw std::runtime_error("the checksum of " + file.string() + " can't be computed: " + failure.what());
  }
  if (output.size() < 64) throw std::runtime_error("the checksum of " + file.string() + " can't be computed");
  utsname system{};
  ::uname(&system);
  return {.file = file,
          .sha256 = output.substr(0, 64),
          .platform = std::string(system.sysname) + " " + system.machine,
          .bytes = fs::file_size(file)};
}

Link::Link(Machine machine, FarProgram program, Callbacks callbacks, SshAsks asks)
    : machine_(std::move(machine)),
      program_(std::move(program)),
      callbacks_(std::move(callbacks)),
      asks_(std::move(asks)) {}

std::vector<std::string> Link::command(const std::string& script) const {
  if (machine_.is_local) return {"/bin/sh", "-c", script};
  const char* ssh = std::getenv("STEPLADDER_SSH");
  std::vector<std::string> words = {
      ssh && *ssh ? ssh : "ssh", "-T", "-a", "-x", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=5", "-o",
      "ServerAliveCountMax=3"};
  const bool can_ask = asks_.on_terminal || !asks_.environment.empty() || std::getenv("SSH_ASKPASS");
  if (!can_ask || asks_nothing_) words.insert(words.end(), {"-o", "BatchMode=yes"});
  words.insert(words.end(), {"--", machine_.alias.text(), quoted(script)});
  return words;
}

// A machine without ssh must not hand it to the programs that it runs.
std::vector<std::string> Link::environment() const {
  return machine_.is_local ? std::vector<std::string>() : asks_.environment;
}

void Link::connect() {
  mark_ = random_mark();
  is_marked_ = false;
  input_.clear();
  const std::string script =
      "echo; echo " + mark_ + " begin $(uname -s) $(uname -m); " + beginning(machine_, program_) +
      "if test -f \"$p\"; then s=$(h \"$p\"); if test \"$s\" = " + program_.sha256 +
      "; then exec \"$p\" talk --folder \"$d\"; fi; if test -z \"$s\"; then echo " + mark_ +
      " unverified; exit 0; fi; fi; echo " + mark_ + " need; " + (only_looks_ ? "exit 0; " : "") +
      storing("head -c " + std::to_string(program_.bytes), program_) +
      "; then exec \"$p\" talk --folder \"$d\"; else rm -f \"$t\"; echo " + mark_ + " unsent; fi";
  try {
    child_ = std::make_unique<PipedProcess>(command(script), asks_.on_terminal, environment());
  } catch (const std::exception& error) {
    return lose(error.what());
  }
  state_ = State::connecting;
  began_ = last_heard_ = Clock::now();
}

// Sends it through the existing connection, since ssh may ask for a code at each.
void Link::send_program_here() {
  child_->write(bytes_of(program_));
  state_ = State::sending;
  began_ = Clock::now();
}

// Sends it through a connection of its own, until the end of the file: no tool there has to count bytes.
void Link::send_program() {
  mark_ = random_mark();
  is_marked_ = false;
  input_.clear();
  const std::string script = "echo; " + beginning(machine_, program_) + storing("cat", program_) + "; then echo " +
                             mark_ + " stored; else rm -f \"$t\"; echo " + mark_ + " failed; fi";
  try {
    child_ = std::make_unique<PipedProcess>(command(script), asks_.on_terminal, environment());
  } catch (const std::exception& error) {
    return lose(error.what());
  }
  child_->write(bytes_of(program_));
  child_->close_input();
  state_ = State::sending;
  sent_program_ = true;
  began_ = Clock::now();
}

void Link::poll() {
  const auto now = Clock::now();
  if (state_ == State::waiting) {
    if (now >= next_try_) connect();
    return;
  }
  read_lines();
  if (!child_) return;
  if (child_->has_ended()) return lose(words_of_failure());
  if (state_ == State::connecting && now - began_ > time_to_connect) return lose("it didn't answer within two minutes");
  if (state_ == State::sending && now - began_ > time_to_send)
    return lose("the far program could not be sent in ten minutes");
  if (state_ != State::up) return;
  if (now - last_heard_ > silence) return lose("it hasn't answered for " + std::to_string(silence.count()) + " s");
  for (const auto& [id, question] : questions_)
    if (question.is_sent && now - question.sent_at > time_to_answer)
      return lose_garbled("no answer to a question in ten minutes");
  if (now - pinged_ < between_pings) return;
  pinged_ = now;
  ask(
      "ping", Json::object(), [](const Json&, const std::string&) {}, WhenLost::fail);
}

void Link::add_to(std::vector<pollfd>& waiting) const {
  if (child_) child_->add_to(waiting);
}

void Link::read_lines() {
  std::string read;
  child_->poll(read);
  if (!read.empty()) last_heard_ = Clock::now();
  input_ += read;
  std::size_t begin = 0;
  const PipedProcess* const child = child_.get();
  for (std::size_t end; (end = input_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    std::string line = input_.substr(begin, end - begin);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    handle_line(line);
    if (child_.get() != child) return;  // lost, or another one was started
  }
  input_.erase(0, begin);
  if (is_marked_ && input_.size() > longest_talk_line) return lose_garbled("a line of more than 1 MiB");
  if (!is_marked_ && input_.size() > longest_noise) lose("its login prints more than 1 MiB before anything starts");
}

void Link::handle_line(std::string_view line) {
  if (line.starts_with(mark_ + " ")) return handle_mark(line.substr(mark_.size() + 1));
  if (!is_marked_) return;
  if (line.empty()) return;
  if (nests_deep(line, deepest_journal_json)) return lose_garbled("a line that is nested too deep");
  const Json json = Json::parse(line.begin(), line.end(), nullptr, false);
  if (!json.is_object()) {
    if (state_ == State::up) lose_garbled(harmless(std::string(line.substr(0, 80))));
    return;
  }
  handle_json(json);
}

void Link::handle_mark(std::string_view words) {
  if (words.starts_with("begin ")) {
    is_marked_ = true;
    const std::string platform(words.substr(6));
    if (platform == program_.platform) return;
    return lose(
        "it is a machine of another kind (" + harmless(platform) + ", the far program here is for " +
            program_.platform +
            "); build it there: cmake -S . -B build -DSTEPLADDER_TRAINER=OFF "
            "-DSTEPLADDER_DESKTOP=OFF && cmake --build build --target stepladder-far; copy the file here and set "
            "STEPLADDER_FAR to it",
        Fault::hopeless);
  }
  if (words == "need") {
    lacks_program_ = only_looks_;
    if (only_looks_)
      return lose("it answers, and Stepladder has installed nothing there yet: `machines check " +
                      machine_.alias.text() + "` does",
                  Fault::hopeless);
    if (sent_program_) return lose("the far program was sent, but is not there or was changed", Fault::hopeless);
    return send_program_here();
  }
  if (words == "unsent") return send_program();
  if (words == "stored") return connect();
  if (words == "failed")
    return lose("the far program can't be stored there: " + last_line(child_->errors()), Fault::hopeless);
  if (words == "unverified")
    return lose("the far program can't be verified there: it has none of sha256sum, shasum and openssl",
                Fault::hopeless);
}

void Link::handle_json(const Json& line) {
  if (line.contains("stepladder-far")) return begin_talk(line);
  if (state_ != State::up && !line.contains("id")) return;
  if (!line.contains("id")) return callbacks_.on_line(line);
  const auto question = questions_.find(integer_in(line, "id"));
  if (question == questions_.end()) return;
  const Answer answer = std::move(question->second.answer);
  questions_.erase(question);
  if (is_up()) is_garbled_ = false;
  const auto ok = line.find("ok");
  const std::string error = text_in(line, "error");
  if (ok != line.end() && ok->is_object()) return answer(*ok, "");
  answer(Json::object(), error.empty() ? "the far program gave no answer" : harmless(error));
}

void Link::begin_talk(const Json& greeting) {
  if (state_ != State::connecting && state_ != State::sending) return;
  if (integer_in(greeting, "stepladder-far") != protocol)
    return lose("the far program there speaks another version of our protocol", Fault::hopeless);
  Question hello{.request = {{"do", "hello"}, {"version", protocol}}, .answer = {}, .when_lost = WhenLost::fail};
  hello.answer = [this](const Json& ok, const std::string& error) {
    if (!error.empty()) return lose(error, Fault::hopeless);
    hello_ = ok;
    state_ = State::up;
    lost_at_ = missing;
    why_.clear();
    is_hopeless_ = sent_program_ = false;  // is_garbled_ waits for an answer to more than the greeting
    pinged_ = up_since_ = Clock::now();
    callbacks_.on_up();
    for (auto& [id, question] : questions_)
      if (!question.is_sent) send(id, question);
  };
  const std::int64_t id = ++last_id_;
  send(id, questions_.emplace(id, std::move(hello)).first->second);
}

void Link::ask(std::string_view verb, Json fields, Answer answer, WhenLost when_lost) {
  Json request = {{"do", verb}};
  request.update(fields);
  const std::int64_t id = ++last_id_;
  Question& question = questions_.emplace(id, Question{std::move(request), std::move(answer), when_lost}).first->second;
  if (is_up()) send(id, question);
}

void Link::send(std::int64_t id, Question& question) {
  question.is_sent = true;
  question.sent_at = Clock::now();
  Json request = {{"id", id}};
  request.update(question.request);
  child_->write(request.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n");
}

// ssh's own sentence explains most, so it is preferred.
std::string Link::words_of_failure() const {
  const std::string said = last_line(child_->errors());
  if (child_->exit_status() == 255) return said.empty() ? "ssh could not connect" : said;
  if (state_ == State::up) return "the connection ended" + (said.empty() ? "" : ": " + said);
  return "the far program could not be started there" + (said.empty() ? "" : ": " + said);
}

// Waits longer for a machine that sends rubbish, which would do so again at once.
Link::Clock::duration Link::wait_after(Fault fault) const {
  if (fault == Fault::hopeless) return longest_wait;
  const Seconds wait = Seconds(1) * (1 << std::clamp(failures_ - 1, 0, 10));
  return std::min(wait, fault == Fault::garbled ? longest_wait_if_garbled : longest_wait);
}

void Link::lose_garbled(const std::string& what) {
  lose("its answers aren't Stepladder's (" + what + ")", Fault::garbled);
}

void Link::lose(const std::string& why, Fault fault) {
  const Seconds good = fault == Fault::garbled ? steady_if_garbled : steady;
  if (is_up() && Clock::now() - up_since_ > good) failures_ = 0;
  ++failures_;
  if (is_missing(lost_at_)) lost_at_ = unix_now();
  why_ = why;
  is_hopeless_ = fault == Fault::hopeless;
  is_garbled_ = fault == Fault::garbled;
  state_ = State::waiting;
  sent_program_ = false;
  child_.reset();
  input_.clear();
  next_try_ = Clock::now() + wait_after(fault);
  std::vector<Answer> failed;
  for (auto question = questions_.begin(); question != questions_.end();) {
    const bool again = question->second.when_lost == WhenLost::again;
    question->second.is_sent = false;
    if (!again && question->second.answer) failed.push_back(std::move(question->second.answer));
    question = again ? std::next(question) : questions_.erase(question);
  }
  for (const Answer& answer : failed) answer(Json::object(), why);
}

}  // namespace stepladder
