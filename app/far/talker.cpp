// The talker's loop and its answers to requests (docs/far.md). One thread polls and nothing may block it: programs run
// as children, and answers follow when they end. A request may arrive twice after a lost link, so each one either
// repeats its answer or refuses.
#include "app/far/talker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "app/far/machine.h"
#include "storage/checked_text.h"

namespace stepladder::far {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_waiting = 4 << 20;   // to be sent; then no more files are read
constexpr std::size_t most_answers = 16 << 20;  // then no more requests are read
constexpr auto alive_interval = 5s;
constexpr auto last_patience = 15s;  // with what is under way when the input has ended
constexpr auto keeper_patience = 30s;
constexpr auto gpu_patience = 10s;
constexpr std::int64_t most_states = 500;  // in an answer
constexpr std::size_t most_run_folders = 100'000;

struct SignalName {
  const char* name;
  int to_keeper;
  int to_program;
};
constexpr SignalName signal_names[] = {{"stop", SIGINT, SIGINT},
                                       {"terminate", SIGTERM, SIGTERM},
                                       {"kill", SIGQUIT, SIGKILL},
                                       {"pause", SIGTSTP, SIGSTOP},
                                       {"continue", SIGCONT, SIGCONT}};

const SignalName& signal_named(const std::string& name) {
  for (const SignalName& signal : signal_names)
    if (name == signal.name) return signal;
  throw Refusal("'signal' must be stop, terminate, kill, pause or continue.");
}

void set_blocking(int descriptor, bool blocking) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags >= 0) ::fcntl(descriptor, F_SETFL, blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

// The error that a keeper reported on its pipe; empty: none.
std::string keeper_error(const Outcome& outcome) {
  if (!outcome.started) return outcome.errors;
  if (!outcome.in_time) return "The keeper did not answer in time.";
  if (outcome.output.empty()) return "";  // another keeper has the run
  const Json answer = Json::parse(outcome.output, nullptr, false);
  if (!answer.is_object()) return "The keeper's answer can't be read.";
  return text_field(answer, "error", "");
}

volatile std::sig_atomic_t is_asked_to_end = 0;

}  // namespace

Talker::Talker(std::string folder, std::chrono::seconds silence)
    : folder_(std::move(folder)),
      silence_(silence),
      jobs_(folder_, children_),
      follower_(
          folder_, [this](const Json& line) { send(line); },
          [this](const std::string& run, int run_folder) { return jobs_.job_of(run, run_folder); }) {}

int Talker::run() {
  ::signal(SIGPIPE, SIG_IGN);
  // An end that is asked for lets ~Children kill the programs that are awaited. Without SA_RESTART: poll returns.
  struct sigaction asked_end = {};
  asked_end.sa_handler = [](int) { is_asked_to_end = 1; };
  for (const int signal : {SIGTERM, SIGHUP, SIGINT}) ::sigaction(signal, &asked_end, nullptr);
  set_blocking(STDIN_FILENO, false);
  set_blocking(STDOUT_FILENO, false);
  send({{"stepladder-far", 1}, {"version", STEPLADDER_VERSION}});
  remove_forgotten();
  auto last_moment = Clock::time_point::max();
  while (is_asked_to_end == 0 && !output_is_gone_ && Clock::now() - last_line_ < silence_ &&
         Clock::now() < last_moment) {
    std::vector<pollfd> polled;
    if (!input_has_ended_ && output_.size() < most_answers)
      polled.push_back({.fd = STDIN_FILENO, .events = POLLIN, .revents = 0});
    polled.push_back({.fd = STDOUT_FILENO, .events = static_cast<short>(output_.empty() ? 0 : POLLOUT), .revents = 0});
    children_.add_to(polled);
    ::poll(polled.data(), polled.size(), follower_.is_idle() && children_.is_idle() ? 1000 : 50);
    for (const pollfd& polled_end : polled)
      if (polled_end.fd == STDOUT_FILENO && (polled_end.revents & (POLLERR | POLLNVAL)) != 0) output_is_gone_ = true;
    if (!input_has_ended_) read_input();
    children_.handle();
    jobs_.poll();
    if (!input_has_ended_) follower_.poll([this] { return output_.size() < most_waiting; });
    if (Clock::now() >= next_alive_ && output_.size() < most_waiting) {
      send({{"alive", now()}});
      next_alive_ = Clock::now() + alive_interval;
    }
    write_output();
    if (input_has_ended_ && children_.is_idle() && output_.empty()) break;
    if (input_has_ended_ && last_moment == Clock::time_point::max()) last_moment = Clock::now() + last_patience;
  }
  set_blocking(STDIN_FILENO, true);
  set_blocking(STDOUT_FILENO, true);
  return 0;
}

void Talker::read_input() {
  char piece[64 * 1024];
  for (int i = 0; i < 16 && output_.size() < most_answers; ++i) {
    const ssize_t count = ::read(STDIN_FILENO, piece, sizeof piece);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
      input_has_ended_ = true;
      return;
    }
    input_.append(piece, static_cast<std::size_t>(count));
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = input_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      last_line_ = Clock::now();
      if (!skips_line_) handle_line(std::string_view(input_).substr(begin, end - begin));
      skips_line_ = false;
    }
    input_.erase(0, begin);
    if (input_.size() <= longest_line) continue;
    if (!skips_line_) refuse(nullptr, "A line has more than 1 MiB.");
    skips_line_ = true;
    input_.clear();
  }
}

void Talker::write_output() {
  std::size_t sent = 0;
  while (sent < output_.size()) {
    const ssize_t count = ::write(STDOUT_FILENO, output_.data() + sent, output_.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count <= 0) {
      output_is_gone_ = true;
      break;
    }
    sent += static_cast<std::size_t>(count);
  }
  output_.erase(0, sent);
}

void Talker::send(const Json& line) {
  output_ += as_text(line);
  output_ += '\n';
}

void Talker::answer(const Json& id, const Json& ok) {
  send({{"id", id}, {"ok", ok}});
}

void Talker::refuse(const Json& id, const std::string& sentence) {
  if (id.is_null())
    send({{"error", sentence}});
  else
    send({{"id", id}, {"error", sentence}});
}

void Talker::handle_line(std::string_view line) {
  if (line.size() > longest_line) return refuse(nullptr, "A line has more than 1 MiB.");
  Json id = nullptr;
  try {
    const Json request = parse_object(line);
    id = integer_field(request, "id", 0, INT64_MAX);
    handle(id, text_field(request, "do"), request);
  } catch (const std::exception& error) {
    refuse(id, error.what());
  }
}

void Talker::handle(const Json& id, const std::string& what, const Json& request) {
  if (what == "ping") return answer(id, Json::object());
  if (what == "hello") {
    if (integer_field(request, "version", 1, 1'000'000) > 1)
      throw Refusal("This far program speaks version 1 only; it must be replaced.");
    return answer(id, hello(folder_));
  }
  if (what == "report") return report(id);
  if (what == "stepladder") return installed(id, request);
  if (what == "slurm") return jobs_.describe([this, id](const Json& found) { answer(id, found); });
  if (what == "runs") return answer(id, runs(request));
  if (what == "put") return answer(id, put(request));
  if (what == "start") return start(id, request);
  if (what == "follow") {
    const auto found = request.find("runs");
    follower_.follow(found == request.end() ? Json() : *found);
    return answer(id, Json::object());
  }
  if (what == "state") return answer(id, state(text_field(request, "run")));
  if (what == "signal") return signal(id, request);
  if (what == "forget") return forget(id, request);
  throw Refusal("This far program doesn't know '" + what.substr(0, 100) + "'.");
}

void Talker::report(const Json& id) {
  Json found = load_report(folder_);
  children_.start(gpu_question(), gpu_patience, [this, id, found](const Outcome& outcome) mutable {
    found["gpus"] = outcome.succeeded() ? gpus_in(outcome.output) : Json::array();
    found["gpu_reason"] =
        outcome.succeeded() ? found["gpus"].empty() ? "nvidia-smi lists no GPU." : "" : outcome.sentence("nvidia-smi");
    ask_about_logout(id, std::move(found));
  });
}

// Asks once, since only an administrator changes it.
void Talker::ask_about_logout(const Json& id, Json found) {
  if (logout_) {
    found["logout"] = *logout_;
    return answer(id, found);
  }
  children_.start(logout_question(), gpu_patience, [this, id, found](const Outcome& outcome) mutable {
    logout_ = logout_in(outcome.output);
    found["logout"] = *logout_;
    answer(id, found);
  });
}

// Reports the Stepladder that trains here: the one that a login shell would find, or that `machines setup` has
// installed.
void Talker::installed(const Json& id, const Json& request) {
  const std::string program = text_field(request, "program", "stepladder");
  if (const std::string why = MachineProgram::refused(program); !why.empty())
    throw Refusal("'program' can't be started: " + why + ".");
  const std::string script = "PATH=\"$HOME/.local/bin:$1/venv/bin:$PATH\"; exec \"$0\" --version";
  children_.start({"/bin/sh", "-c", script, program, folder_}, gpu_patience, [this, id](const Outcome& outcome) {
    const std::string said = outcome.succeeded() ? outcome.output.substr(0, outcome.output.find('\n')) : "";
    const std::string begin = "stepladder ";
    const bool is_ours = said.rfind(begin, 0) == 0;
    answer(id, {{"version", is_ours ? Json(said.substr(begin.size())) : Json()},
                {"reason", is_ours ? "" : outcome.sentence("stepladder")}});
  });
}

// Lists runs in the order of their UUIDs, beginning after `after`.
Json Talker::runs(const Json& request) {
  const std::string after = text_field(request, "after", "");
  const std::int64_t most = integer_field(request, "most", 1, most_states, most_states);
  Json states = Json::array();
  bool more = false;
  const Descriptor top = open_folder(folder_);
  const Descriptor all = top ? folder_below(top.get(), "runs") : Descriptor();
  if (all)
    for (const std::string& run : names_in(all.get(), most_run_folders)) {
      if (!Uid::allows(run) || run <= after) continue;
      more = static_cast<std::int64_t>(states.size()) >= most;
      if (more) break;
      try {
        states.push_back(state(run));
      } catch (const Refusal&) {  // files were sent, but it wasn't started
      }
    }
  return {{"runs", states}, {"more", more}};
}

Json Talker::state(const std::string& run) {
  const Descriptor folder = run_folder(folder_, run);
  return state_of(run, folder.get(), attempts_[run], jobs_.job_of(run, folder.get()));
}

Json Talker::put(const Json& request) {
  const std::string run = text_field(request, "run");
  const auto parts = parts_of(text_field(request, "name"));
  const Descriptor folder = run_folder(folder_, run, true);
  const Descriptor files = make_folder_below(folder.get(), "files");
  if (!files) throw refused("files", "cannot be made", errno);
  const std::string shown = "files/" + parts.back();
  const Descriptor file = open_below(files.get(), parts, O_WRONLY | O_CREAT, true);
  struct stat status = {};
  if (!file || ::fstat(file.get(), &status) != 0) throw refused(shown, "cannot be opened", errno);
  if (!S_ISREG(status.st_mode)) throw Refusal(shown + " isn't a file.");
  const std::int64_t at = integer_field(request, "at", 0, INT64_MAX / 2, status.st_size);
  if (at != 0 && at != status.st_size)
    throw Refusal(shown + " has " + std::to_string(status.st_size) + " bytes; 'at' must be that, or 0 to begin anew.");
  const std::string bytes = bytes_field(request, "data");
  if (at < status.st_size && ::ftruncate(file.get(), at) != 0) throw refused(shown, "cannot be written", errno);
  if (!write_at(file.get(), static_cast<std::uint64_t>(at), bytes)) {
    const int error = errno;
    [[maybe_unused]] const int cut = ::ftruncate(file.get(), at);
    throw refused(shown, "cannot be written", error);
  }
  return {{"size", at + static_cast<std::int64_t>(bytes.size())}};
}

void Talker::start(const Json& id, const Json& json) {
  const Request request = request_in(json);
  const Descriptor folder = run_folder(folder_, request.run, true);
  const std::int64_t latest = latest_request(folder.get());
  if (request.number < latest) return answer(id, state(request.run));
  if (request.number > latest + 1)
    throw Refusal("The run was started " + std::to_string(latest) + " times; 'number' must be at most one more.");
  if (latest > 0 && request.number > latest && may_be_active(state(request.run)))
    throw Refusal("The run hasn't ended yet, so it can't be started again.");
  if (request.number > latest) write_request(request);
  // Another talker may have been first: its request counts.
  const auto stored = read_request(folder.get(), request.number);
  if (!stored) throw Refusal("The request can't be read back.");
  if (!stored->slurm) return start_keeper_for(id, *stored, folder.get());
  // All repeats are submitted as the first of them.
  const auto submitted = stored->leader() == stored->run
                             ? stored
                             : read_request(run_folder(folder_, stored->leader()).get(), stored->number);
  if (!submitted) throw Refusal("The request of the first repeat can't be read.");
  jobs_.submit(path_of(submitted->run), *submitted, [this, id, run = stored->run](const std::string& error) {
    try {
      if (error.empty()) return answer(id, state(run));
      refuse(id, error);
    } catch (const Refusal& refusal) {
      refuse(id, refusal.what());
    }
  });
}

// Writes the requests of all repeats before one of them is submitted. A request that exists already is kept.
void Talker::write_request(const Request& request) {
  const Descriptor leader = run_folder(folder_, request.leader(), true);
  const Descriptor files = request.tree.empty() ? Descriptor() : folder_below(leader.get(), "files");
  if (!request.tree.empty() && (!files || !open_below(files.get(), parts_of(request.tree), O_RDONLY)))
    throw Refusal("files/" + request.tree + " was not sent.");
  Request each = request;
  for (const std::string& run : request.repeats) {
    if (run == request.run) continue;
    each.run = run;
    create_once(run_folder(folder_, run, true).get(), numbered("request", 1, ".json"), as_text(as_json(each)));
  }
  create_once(run_folder(folder_, request.run).get(), numbered("request", request.number, ".json"),
              as_text(as_json(request)));
}

void Talker::start_keeper_for(const Json& id, const Request& request, int run_folder) {
  const Descriptor keeper = folder_below(run_folder, "keeper");
  if (keeper && open_below(keeper.get(), {"claim-" + std::to_string(request.number) + ".0"}, O_RDONLY))
    return answer(id, state(request.run));
  children_.start_self({"keep", path_of(request.run), "--request", std::to_string(request.number)}, keeper_patience,
                       [this, id, run = request.run](const Outcome& outcome) {
                         try {
                           const std::string error = keeper_error(outcome);
                           if (error.empty()) return answer(id, state(run));
                           refuse(id, error);
                         } catch (const Refusal& refusal) {
                           refuse(id, refusal.what());
                         }
                       });
}

void Talker::signal(const Json& id, const Json& request) {
  const std::string run = text_field(request, "run");
  const SignalName& signal = signal_named(text_field(request, "signal"));
  const Descriptor folder = run_folder(folder_, run);
  const Job* const job = jobs_.job_of(run, folder.get());
  const Json found = state_of(run, folder.get(), attempts_[run], job);
  if (!may_be_active(found)) return answer(id, found);
  if (job) {
    return jobs_.signal(*job, signal.name, found["phase"] == "queued", [this, id, run](const std::string& error) {
      try {
        if (!error.empty()) return refuse(id, error);
        answer(id, state(run));
      } catch (const Refusal& refusal) {
        refuse(id, refusal.what());
      }
    });
  }
  if (!signal_process(signal.name, folder.get(), found)) {
    const Descriptor control = make_folder_below(folder.get(), "control");
    if (!control) throw refused("control", "cannot be made", errno);
    std::int64_t wish = 1;
    while (!create_once(control.get(), control_name(latest_request(folder.get()), wish), signal.name)) ++wish;
  }
  answer(id, state(run));
}

// Signals the keeper or, if it was killed, its program. Returns false if they aren't on this machine.
bool Talker::signal_process(const std::string& name, int run_folder, const Json& found) {
  Attempt& attempt = attempts_[text_field(found, "run")];
  attempt.read(run_folder);
  if (integer_field(found, "attempt", 0, INT64_MAX) == 0 || !is_here(attempt.first())) return false;
  const SignalName& signal = signal_named(name);
  if (lives(attempt.first(), attempt.first()))
    return ::kill(static_cast<pid_t>(attempt.first()["pid"].get<std::int64_t>()), signal.to_keeper) == 0;
  if (lives(attempt.first(), attempt.program()))
    ::kill(-static_cast<pid_t>(attempt.program()["pid"].get<std::int64_t>()), signal.to_program);
  return true;
}

void Talker::forget(const Json& id, const Json& request) {
  const std::string run = text_field(request, "run");
  const Descriptor folder = run_folder(folder_, run);
  if (latest_request(folder.get()) > 0) {
    const Json found = state(run);
    const auto force = request.find("force");
    const bool forced = force != request.end() && *force == true && found["phase"] == "unknown";
    if (may_be_active(found) && !forced) throw Refusal("The run hasn't ended, so it is kept.");
    const auto first = read_request(folder.get(), 1);
    if (first && first->leader() == run)  // the others' output and code are in its folder
      for (const std::string& repeat : first->repeats)
        if (repeat != run && open_folder(path_of(repeat)) && may_be_active(state(repeat)))
          throw Refusal("Its repeat " + repeat + " hasn't ended, so it is kept.");
  }
  const Descriptor all = open_folder(folder_ + "/runs");
  if (!all || ::renameat(all.get(), run.c_str(), all.get(), (".forgotten-" + run).c_str()) != 0)
    throw refused("The run's folder", "cannot be removed", errno);
  attempts_.erase(run);
  remove_forgotten();
  answer(id, Json::object());
}

// Removes forgotten runs in another process, since a folder may have many files.
void Talker::remove_forgotten() {
  const Descriptor all = open_folder(folder_ + "/runs");
  if (!all) return;
  const auto names = names_in(all.get(), most_run_folders);
  const bool any = std::ranges::any_of(names, [](const auto& name) { return name.starts_with(".forgotten-"); });
  if (!any) return;
  children_.start({own_program(), "remove-forgotten", folder_}, 600s, [](const Outcome&) {});
}

}  // namespace stepladder::far
