// Submits jobs exactly once and knows their states. Before sbatch it takes a lock in the run's folder and searches
// squeue for the job's name, since an earlier talker may have been cut off after sbatch. A state comes from squeue,
// then scontrol, then sacct, and a final one is stored in the folder.
#include "app/far/slurm_jobs.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "app/far/machine.h"
#include "storage/database/process.h"

namespace stepladder::far {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 30s;
constexpr auto submit_patience = 120s;
constexpr auto ask_interval = 30s;
constexpr auto least_interval = 2s;       // between two questions, when a job is new
constexpr auto detail_interval = 600s;    // between two questions for a job that Slurm has forgotten
constexpr std::size_t most_details = 16;  // at once
constexpr double stale_lock_s = 180;      // of a talker on another machine

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 20 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "1234", or "1234_5" for an array's fifth task.
bool is_job_id(const std::string& text) {
  const std::size_t task = text.find('_');
  return is_number(text.substr(0, task)) && (task == std::string::npos || is_number(text.substr(task + 1)));
}

std::string first_word(const std::string& text) {
  return text.substr(0, text.find_first_of(" \t\r\n"));
}

// The value of "JobState=RUNNING" in what scontrol prints on one line.
std::string value_in(const std::string& line, const std::string& name) {
  const std::size_t at = (" " + line).find(" " + name + "=");
  return at == std::string::npos ? "" : first_word(line.substr(at + name.size() + 1));
}

std::string job_name(const Request& request) {
  return "stepladder-" + request.run + "-" + std::to_string(request.number);
}

std::string for_shell(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::vector<std::string> sbatch_command(const std::string& path, const Request& request) {
  const SlurmWish& wish = *request.slurm;
  std::string output = path;
  for (std::size_t at = 0; (at = output.find('%', at)) != std::string::npos; at += 2) output.insert(at, "%");
  std::vector<std::string> command = {"sbatch",
                                      "--parsable",
                                      "--job-name=" + job_name(request),
                                      "--output=" + output + "/slurm-%j.out",
                                      "--open-mode=append",
                                      "--chdir=" + path,
                                      "--nodes=" + std::to_string(wish.nodes),
                                      "--ntasks-per-node=" + std::to_string(wish.tasks_per_node)};
  if (wish.signal_s > 0) command.push_back("--signal=B:USR1@" + std::to_string(wish.signal_s));
  if (!wish.partition.empty()) command.push_back("--partition=" + wish.partition);
  if (!wish.account.empty()) command.push_back("--account=" + wish.account);
  if (!wish.time.empty()) command.push_back("--time=" + wish.time);
  if (!wish.gpus.empty() && wish.gpus != "0") command.push_back("--gres=gpu:" + wish.gpus);
  if (!request.repeats.empty())
    command.push_back("--array=1-" + std::to_string(request.repeats.size()) +
                      (wish.at_once > 0 ? "%" + std::to_string(wish.at_once) : ""));
  command.push_back(path + "/" + numbered("job", request.number, ".sh"));
  return command;
}

// The script that the job runs: it starts the keeper of its run or, as a task of an array, of one of the repeats.
std::string script_of(const std::string& path, const Request& request) {
  std::string script = "#!/bin/sh\n";
  std::string folder = for_shell(path);
  if (!request.repeats.empty()) {
    script += "case \"$SLURM_ARRAY_TASK_ID\" in\n";
    std::size_t task = 0;
    for (const std::string& run : request.repeats) script += std::to_string(++task) + ") run=" + run + ";;\n";
    script += "esac\n";
    folder = for_shell(path.substr(0, path.rfind('/') + 1)) + "\"$run\"";
  }
  return script + "exec " + for_shell(own_program()) + " keep " + folder + " --request " +
         std::to_string(request.number) + "\n";
}

// Lists every job of the user whose name is ours, one a line and each task of an array by itself; and counts the jobs
// of all users by partition and state, in awk, since a cluster may have many thousand.
std::vector<std::string> queue_question(bool of_all_users) {
  const std::string user = std::to_string(::getuid());
  const std::string question =
      "{ squeue --noheader --array $2 '--format=%i|%T|%N|%P|%U|%j|%r'; echo \"end|$?\"; } | awk -F'|' -v me=\"$1\" '"
      "$1 == \"end\" { status = $2; next } "
      "$5 == me && index($6, \"stepladder-\") == 1 { print \"job|\" $0 } "
      "{ count[$4 \"|\" $2]++ } "
      "END { for (key in count) if (++n <= 5000) print \"count|\" key \"|\" count[key]; exit status }'";
  return {"/bin/sh", "-c", question, "sh", user, of_all_users ? "" : "--user=" + user};
}

const char* slurm_signal(const std::string& name) {
  if (name == "stop") return "--signal=INT";
  if (name == "terminate") return "--signal=TERM";
  if (name == "kill") return "--signal=QUIT";  // for the keeper: it kills the program and writes the end
  return name == "pause" ? "--signal=TSTP" : "--signal=CONT";
}

Json identity() {
  const ProcessIdentity self = this_process();
  return {{"t", now()}, {"host", host_name()}, {"pid", self.pid}, {"pid_start", self.start}, {"boot", self.boot}};
}

// True if the talker that holds this lock is still submitting.
bool is_held(const std::string& lock) {
  const Json holder = Json::parse(lock, nullptr, false);
  if (!holder.is_object()) return false;
  try {
    if (is_here(holder)) return lives(holder, holder);
    const auto time = holder.find("t");
    return time != holder.end() && time->is_number() && now() - time->get<double>() < stale_lock_s;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

struct SlurmJobs::Submission {
  std::string path;
  Request request;
  Descriptor folder;
  std::string lock;
  Done done;
};

const Job* SlurmJobs::job_of(const std::string& run, int run_folder) {
  const std::int64_t number = latest_request(run_folder);
  Known& known = known_[run];
  if (known.number != number) known = {.number = number};
  if (!known.has_folder_entry) {
    const auto text = read_below(run_folder, numbered("job", number, ".json"), 4096);
    if (!text) return nullptr;
    const Json job = Json::parse(*text, nullptr, false);
    if (!job.is_object() || !is_job_id(text_field(job, "id", ""))) return nullptr;
    known.has_folder_entry = true;
    known.job.id = text_field(job, "id");
    if (const auto over = read_below(run_folder, numbered("job-end", number, ".json"), 4096)) {
      const Json end = Json::parse(*over, nullptr, false);
      if (end.is_object()) {
        known.job.state = text_field(end, "state", "");
        known.job.reason = text_field(end, "reason", "");
        known.job.nodes = text_field(end, "nodes", "");
        known.job.was_asked = true;
      }
    }
    is_new_ = is_new_ || !known.job.is_over();
  }
  return &known.job;
}

void SlurmJobs::submit(const std::string& path, const Request& request, Done done) {
  auto submission = std::make_shared<Submission>();
  submission->path = path;
  submission->request = request;
  submission->folder = open_folder(path);
  submission->lock = numbered("submitting", request.number, "");
  submission->done = std::move(done);
  const int folder = submission->folder.get();
  if (open_below(folder, {numbered("job", request.number, ".json")}, O_RDONLY)) return submission->done("");
  if (!create_once(folder, submission->lock, as_text(identity()))) {
    const auto holder = read_below(folder, submission->lock, 4096);
    if (holder && is_held(*holder)) return submission->done("Another connection is submitting this run; ask again.");
    // Its talker was cut off, perhaps between sbatch and the file with the job's number.
    replace(folder, submission->lock, as_text(identity()));
  }
  find_by_name(submission);
}

void SlurmJobs::find_by_name(std::shared_ptr<Submission> submission) {
  children_.start({"squeue", "--noheader", "--states=all", "--user=" + std::to_string(::getuid()),
                   "--name=" + job_name(submission->request), "--format=%F"},
                  patience, [this, submission](const Outcome& outcome) {
                    if (!outcome.succeeded()) return finish(submission, outcome.sentence("squeue"));
                    const std::string id = first_word(outcome.output);
                    if (is_number(id)) return store_number(submission, id);
                    submit_now(submission);
                  });
}

void SlurmJobs::submit_now(std::shared_ptr<Submission> submission) {
  const Request& request = submission->request;
  try {
    replace(submission->folder.get(), numbered("job", request.number, ".sh"), script_of(submission->path, request));
  } catch (const Refusal& refusal) {
    return finish(submission, refusal.what());
  }
  children_.start(sbatch_command(submission->path, request), submit_patience,
                  [this, submission](const Outcome& outcome) {
                    const std::string id = outcome.output.substr(0, outcome.output.find_first_of(";\n"));
                    if (!outcome.succeeded() || !is_number(id)) return finish(submission, outcome.sentence("sbatch"));
                    store_number(submission, id);
                  });
}

void SlurmJobs::store_number(const std::shared_ptr<Submission>& submission, const std::string& id) {
  const Request& request = submission->request;
  try {
    // The file of the first repeat says that all have theirs.
    for (std::size_t task = request.repeats.size(); task > 1; --task)
      create_once(run_folder(folder_, request.repeats[task - 1]).get(), "job.json",
                  as_text({{"id", id + "_" + std::to_string(task)}, {"t", now()}}));
    create_once(submission->folder.get(), numbered("job", request.number, ".json"),
                as_text({{"id", request.repeats.empty() ? id : id + "_1"}, {"t", now()}}));
    finish(submission, "");
  } catch (const Refusal& refusal) {
    finish(submission, refusal.what());
  }
}

void SlurmJobs::finish(const std::shared_ptr<Submission>& submission, const std::string& error) {
  ::unlinkat(submission->folder.get(), submission->lock.c_str(), 0);
  submission->done(error);
}

void SlurmJobs::signal(const Job& job, const std::string& name, bool is_queued, Done done) {
  const bool ends = name == "stop" || name == "terminate" || name == "kill";
  if (!ends && is_queued) return done("Job " + job.id + " is queued, so it can't be paused.");
  is_new_ = true;
  const std::vector<std::string> signal = {"scancel", slurm_signal(name), "--batch", job.id};
  if (!is_queued) {
    children_.start(signal, patience,
                    [done](const Outcome& outcome) { done(outcome.succeeded() ? "" : outcome.sentence("scancel")); });
    return;
  }
  // The job may have begun since Slurm was asked: then it gets the signal and isn't cancelled without one.
  children_.start({"scancel", "--state=PENDING", job.id}, patience, [this, signal, done](const Outcome& cancelled) {
    if (!cancelled.succeeded()) return done(cancelled.sentence("scancel"));
    children_.start(signal, patience, [done](const Outcome&) { done(""); });  // refused if it was cancelled
  });
}

void SlurmJobs::poll() {
  if (asks_) return;
  const auto since = Clock::now() - last_ask_;
  const bool is_soon = is_new_ || cluster_.awaits_queue();
  if (last_ask_ != Clock::time_point() && since < (is_soon ? Clock::duration(least_interval) : ask_interval)) return;
  const bool any = std::ranges::any_of(known_, [](const auto& entry) {
    return entry.second.has_folder_entry && !entry.second.job.is_over() && Clock::now() >= entry.second.next_detail;
  });
  const bool of_all_users = cluster_.is_asked();
  if (!any && !of_all_users) return;
  asks_ = true;
  is_new_ = false;
  last_ask_ = Clock::now();
  children_.start(queue_question(of_all_users), patience, [this, of_all_users](const Outcome& outcome) {
    on_queue(outcome);
    if (of_all_users) cluster_.on_queue(outcome);
  });
}

void SlurmJobs::on_queue(const Outcome& outcome) {
  asks_ = false;
  std::map<std::string, std::vector<std::string>> lines;
  for (const std::string& line : split(outcome.output, '\n')) {
    auto fields = split(line, '|');
    if (fields[0] != "job") continue;
    fields.resize(8);  // as queue_question writes them
    lines[fields[1]] = {fields[1], fields[2], fields[3], fields[7]};
  }
  std::size_t details = 0;
  for (auto& [run, known] : known_) {
    if (!known.has_folder_entry || known.job.is_over()) continue;
    const auto found = lines.find(known.job.id);
    if (!outcome.succeeded()) {
      known.job.state.clear();
      known.job.reason = outcome.sentence("squeue");
      known.job.was_asked = true;
    } else if (found != lines.end()) {
      set_state(run, found->second[1], found->second[3] == "None" ? "" : found->second[3], found->second[2]);
    } else if (Clock::now() >= known.next_detail && details++ < most_details) {
      ask_details(run);
    }
  }
}

void SlurmJobs::set_state(const std::string& run, const std::string& state, const std::string& reason,
                          const std::string& nodes) {
  const auto found = known_.find(run);
  if (found == known_.end()) return;
  Job& job = found->second.job;
  job.state = state;
  job.reason = reason;
  job.nodes = nodes;
  job.was_asked = true;
  job.asked_at = now();
  if (!job.is_over()) return;
  // Slurm forgets a job minutes after its end.
  try {
    const Descriptor folder = run_folder(folder_, run);
    create_once(folder.get(), numbered("job-end", found->second.number, ".json"),
                as_text({{"state", state}, {"reason", reason}, {"nodes", nodes}}));
  } catch (const Refusal&) {  // a full disk: this talker knows it nevertheless
  }
}

void SlurmJobs::ask_details(const std::string& run) {
  children_.start({"scontrol", "show", "job", "--oneliner", known_[run].job.id}, patience,
                  [this, run](const Outcome& outcome) { on_details(run, outcome); });
}

void SlurmJobs::on_details(const std::string& run, const Outcome& outcome) {
  const std::string state = value_in(outcome.output, "JobState");
  if (!outcome.succeeded() || state.empty()) return ask_accounting(run);
  const std::string reason = value_in(outcome.output, "Reason");
  const std::string nodes = value_in(outcome.output, "NodeList");
  set_state(run, state, reason == "None" ? "" : reason, nodes == "(null)" ? "" : nodes);
}

void SlurmJobs::ask_accounting(const std::string& run) {
  children_.start({"sacct", "--noheader", "--parsable2", "--allocations", "--jobs=" + known_[run].job.id,
                   "--format=State,NodeList"},
                  patience, [this, run](const Outcome& outcome) {
                    const auto fields = split(outcome.output.substr(0, outcome.output.find('\n')), '|');
                    // "CANCELLED by 1000"
                    if (outcome.succeeded() && fields.size() == 2)
                      return set_state(run, first_word(fields[0]), "", fields[1] == "None assigned" ? "" : fields[1]);
                    known_[run].next_detail = Clock::now() + detail_interval;
                    set_state(run, "", "Slurm has forgotten the job, and its accounting is off.", "");
                  });
}

}  // namespace stepladder::far
