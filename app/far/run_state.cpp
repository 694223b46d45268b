// Derives a run's phase from its folder, this machine's processes and Slurm. A journal's line names a process by pid,
// start time and boot, never by pid alone. Of a keeper on another machine only the journal's age is known, so after a
// silent minute the phase is `unknown`.
#include "app/far/run_state.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "app/far/machine.h"
#include "storage/database/process.h"
#include "storage/importers/journal/journal_line.h"
#include "storage/json_values.h"

namespace stepladder::far {
namespace {

constexpr std::size_t head_size = 256 << 10;
constexpr std::size_t tail_size = 64 << 10;
constexpr double fresh_s = 60;  // since the last line of a keeper elsewhere; also for a keeper to begin

Json event_in(std::string_view line) {
  if (!journal_checksum_holds(line)) return nullptr;
  try {
    return parse_object(line.substr(0, line.size() - journal_checksum_size));
  } catch (const Refusal&) {
    return nullptr;
  }
}

Json number(const Json& object, const char* name) {
  const Json found = field_in(object, name);
  return found.is_number() ? found : Json(nullptr);
}

// The last whole event; null if there is none in these bytes.
Json last_event(std::string_view bytes, bool from_the_start) {
  std::size_t end = bytes.rfind('\n');
  while (end != std::string_view::npos) {
    const std::size_t before = end == 0 ? std::string_view::npos : bytes.rfind('\n', end - 1);
    if (before == std::string_view::npos && !from_the_start) return nullptr;
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    if (Json event = event_in(bytes.substr(begin, end - begin)); !event.is_null()) return event;
    end = before;
  }
  return nullptr;
}

bool claimed_by_the_living(int run_folder, std::int64_t request) {
  const Descriptor keeper = folder_below(run_folder, "keeper");
  const auto claim = keeper ? read_below(keeper.get(), "claim-" + std::to_string(request) + ".0", 4096) : std::nullopt;
  if (!claim) return false;
  const Json identity = Json::parse(*claim, nullptr, false);
  return identity.is_object() && is_here(identity) && lives(identity, identity);
}

double age_of_request(int run_folder, std::int64_t number) {
  const Descriptor file = open_below(run_folder, {numbered("request", number, ".json")}, O_RDONLY);
  struct stat status = {};
  return file && ::fstat(file.get(), &status) == 0 ? now() - static_cast<double>(status.st_mtime) : INFINITY;
}

struct Phase {
  const char* name;
  std::string reason;
};

Phase phase_of_job(const Attempt& attempt, const Job& job, bool began, double request_age) {
  if (job.id.empty() && !began && request_age < fresh_s) return {"starting", ""};
  const bool fresh = began && now() - attempt.changed_at() < fresh_s;
  // Lines that the keeper wrote after Slurm was asked count more.
  if (job.is_queued() && (!began || job.asked_at > attempt.changed_at() + 1)) return {"queued", job.reason};
  if (began && attempt.has_ended()) return {"ended", ""};
  if (job.is_over()) return {"gone", "Slurm says that job " + job.id + " is " + job.state + "."};
  if (began && (fresh || !job.state.empty())) return {attempt.program().empty() ? "starting" : "running", ""};
  if (!job.state.empty()) return {"starting", ""};
  if (!job.id.empty() && !job.was_asked && !began) return {"queued", ""};
  if (job.id.empty() && !began) return {"unknown", "The connection broke while the job was submitted."};
  return {"unknown", job.reason.empty() ? "Slurm can't say what became of the job." : job.reason};
}

Phase phase_of_process(int run_folder, Attempt& attempt, std::int64_t request, bool began) {
  if (!began && claimed_by_the_living(run_folder, request)) return {"starting", ""};
  if (!began && age_of_request(run_folder, request) < fresh_s) return {"starting", ""};
  if (!began) return {"gone", "The program was never started, since the connection broke first."};
  if (attempt.has_ended()) return {"ended", ""};
  if (!is_here(attempt.first())) {
    const std::string host = text_in(attempt.first(), "host");
    if (host == host_name()) return {"gone", "The machine was restarted."};
    if (now() - attempt.changed_at() < fresh_s) return {attempt.program().empty() ? "starting" : "running", ""};
    return {"unknown",
            "It was started on " + host + " and has said nothing for a minute; this is " + host_name() + "."};
  }
  if (lives(attempt.first(), attempt.first())) return {attempt.program().empty() ? "starting" : "running", ""};
  attempt.read(run_folder);  // it may have ended in the meantime
  if (attempt.has_ended()) return {"ended", ""};
  if (lives(attempt.first(), attempt.program()))
    return {"running", "Its keeper was killed: no output and no end will arrive."};
  return {"gone", "Its keeper was killed."};
}

}  // namespace

bool Job::is_queued() const {
  return state == "PENDING" || state == "REQUEUED" || state == "REQUEUE_HOLD" || state == "REQUEUE_FED" ||
         state == "SPECIAL_EXIT" || state == "CONFIGURING";
}

bool Job::is_over() const {
  constexpr std::string_view over[] = {"BOOT_FAIL", "CANCELLED",     "COMPLETED", "DEADLINE", "FAILED",
                                       "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED",  "TIMEOUT"};
  return std::find(std::begin(over), std::end(over), state) != std::end(over);
}

void Attempt::read(int run_folder) {
  const auto attempts = attempts_in(run_folder);
  if (attempts.empty()) return;
  if (attempts.back() != number_) *this = Attempt();
  number_ = attempts.back();
  const Descriptor file = open_below(run_folder, {"keeper", attempt_journal(number_)}, O_RDONLY);
  struct stat status = {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  changed_at_ = static_cast<double>(status.st_mtime);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size == size_) return;
  size_ = size;
  if (first_.empty() || program_.empty()) {
    const std::string head = read_at(file.get(), 0, head_size);
    for (std::size_t begin = 0, end = 0; (end = head.find('\n', begin)) != std::string::npos; begin = end + 1) {
      Json event = event_in(std::string_view(head).substr(begin, end - begin));
      if (event.is_null()) continue;
      if (text_in(event, "e") == "run")
        first_ = std::move(event);
      else if (text_in(event, "e") == "program")
        program_ = std::move(event);
    }
  }
  // Zeros, or a long line, may be at its end.
  for (std::uint64_t wanted = tail_size; wanted <= 4u << 20; wanted *= 8) {
    const std::uint64_t begin = size > wanted ? size - wanted : 0;
    Json event = last_event(read_at(file.get(), begin, std::min(size, wanted)), begin == 0);
    if (!event.is_null()) {
      last_ = std::move(event);
      return;
    }
    if (begin == 0) return;
  }
}

bool is_here(const Json& first_line) {
  return text_in(first_line, "boot") == this_process().boot && text_in(first_line, "host") == host_name();
}

bool lives(const Json& first_line, const Json& process) {
  // A number without its start may be any process of this user's by now.
  const std::int64_t pid = integer_in(process, "pid"), start = integer_in(process, "pid_start");
  return pid > 1 && pid <= std::numeric_limits<pid_t>::max() && start > 0 &&
         is_alive({.pid = pid, .start = start, .boot = text_in(first_line, "boot")});
}

Json state_of(const std::string& run, int run_folder, Attempt& attempt, const Job* job) {
  const std::int64_t latest = latest_request(run_folder);
  const auto request = latest > 0 ? read_request(run_folder, latest) : std::nullopt;
  if (!request) throw Refusal("The folder of run " + run + " has no request.");
  attempt.read(run_folder);
  // The journal may be that of an earlier request.
  const bool began =
      attempt.number() > 0 && (attempt.first().empty() || integer_in(attempt.first(), "request") >= latest);
  const Phase phase = request->slurm
                          ? phase_of_job(attempt, job ? *job : Job(), began, age_of_request(run_folder, latest))
                          : phase_of_process(run_folder, attempt, latest, began);
  const Json none = Json::object();
  const Json& first = began ? attempt.first() : none;
  const Json& last = began ? attempt.last() : none;
  const bool ended = std::string_view(phase.name) == "ended";
  Json state = {{"run", run},
                {"name", request->name},
                {"number", latest},
                {"attempt", began ? attempt.number() : 0},
                {"phase", phase.name},
                {"pid", began && integer_in(attempt.program(), "pid") > 0 ? Json(integer_in(attempt.program(), "pid"))
                                                                          : Json(nullptr)},
                {"host", first.contains("host") ? Json(text_in(first, "host")) : Json(nullptr)},
                {"started_at", number(first, "t")},
                {"ended_at", ended ? number(last, "t") : Json(nullptr)},
                {"status", ended ? Json(text_in(last, "status")) : Json(nullptr)},
                {"code", ended ? number(last, "code") : Json(nullptr)},
                {"reason", ended ? text_in(last, "reason") : phase.reason},
                {"last_alive", number(last, "t")},
                {"paused", last.contains("paused") && last["paused"] == true},
                {"job", nullptr}};
  if (job && !job->id.empty())
    state["job"] = {{"id", job->id}, {"state", job->state}, {"reason", job->reason}, {"nodes", job->nodes}};
  return state;
}

bool may_be_active(const Json& state) {
  const std::string phase = text_in(state, "phase");
  return phase != "ended" && phase != "gone";
}

}  // namespace stepladder::far
