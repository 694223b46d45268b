// Reads and writes the requests in a run's folder. A request comes over the link and ends in commands of this user, so
// every field is checked here: names of runs, paths, variables, and the options that sbatch gets.
#include "app/far/run_folder.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "storage/checked_text.h"
#include "storage/importers/journal/journal_line.h"
#include "storage/number_text.h"

namespace stepladder::far {
namespace {

constexpr std::size_t longest_request = 2 << 20;
constexpr std::int64_t most_requests = 10'000;
constexpr std::size_t most_journals = 10'000;
constexpr std::size_t most_repeats = 1000;  // of an array; Slurm's own default is 1001

const Json& field(const Json& json, const char* name) {
  static const Json null;
  const auto found = json.find(name);
  return found == json.end() ? null : *found;
}

std::string without_zero(std::string text, const char* name) {
  if (text.find('\0') != std::string::npos) throw Refusal(std::string("'") + name + "' has a zero byte.");
  return text;
}

std::vector<std::string> texts(const Json& json, const char* name) {
  const Json& list = field(json, name);
  if (!list.is_array()) throw Refusal(std::string("'") + name + "' must be a list of texts.");
  std::vector<std::string> result;
  for (const Json& entry : list) {
    if (!entry.is_string()) throw Refusal(std::string("'") + name + "' must be a list of texts.");
    result.push_back(without_zero(entry.get<std::string>(), name));
  }
  return result;
}

bool is_variable(const std::string& name) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
  return !name.empty() && name.find_first_not_of(letters) == std::string::npos && !(name[0] >= '0' && name[0] <= '9');
}

std::map<std::string, std::string> environment_in(const Json& json) {
  std::map<std::string, std::string> environment;
  const Json& object = field(json, "env");
  if (object.is_null()) return environment;
  if (!object.is_object()) throw Refusal("'env' must be an object of texts.");
  for (const auto& [name, value] : object.items()) {
    if (!is_variable(name) || !value.is_string()) throw Refusal("'env' must be an object of variables and texts.");
    environment[name] = without_zero(value.get<std::string>(), "env");
  }
  return environment;
}

// The value of an option of sbatch.
std::string slurm_word(const Json& json, const char* name) {
  std::string word = text_field(json, name, "");
  if (const std::string why = SlurmWord::refused(word); !why.empty())
    throw Refusal(std::string("'") + name + "' can't be given to sbatch: " + why + ".");
  return word;
}

std::string slurm_time(const Json& json) {
  std::string time = slurm_word(json, "time");
  const bool is_span = time.size() <= 32 && time.find_first_not_of("0123456789:-") == std::string::npos;
  if (!is_span && time != "infinite" && time != "unlimited")
    throw Refusal("'time' must be a time limit as sbatch takes it, such as 30, 02:00:00 or 1-12:00:00.");
  return time;
}

// "4", or "a100:4". A comma would ask for something else, too.
std::string slurm_gpus(const Json& json) {
  const Json& gpus = field(json, "gpus");
  std::string word = gpus.is_number_integer() ? gpus.dump() : slurm_word(json, "gpus");
  if (word.starts_with('-') || word.find(',') != std::string::npos)
    throw Refusal("'gpus' must be a number, or a type and a number, such as a100:4.");
  return word;
}

SlurmWish slurm_in(const Json& json) {
  if (!json.is_object()) throw Refusal("'slurm' must be an object.");
  SlurmWish wish;
  wish.partition = slurm_word(json, "partition");
  wish.account = slurm_word(json, "account");
  wish.time = slurm_time(json);
  wish.gpus = slurm_gpus(json);
  wish.nodes = integer_field(json, "nodes", 1, 100'000, 1);
  wish.tasks_per_node = integer_field(json, "tasks_per_node", 1, 10'000, 1);
  wish.signal_s = integer_field(json, "signal_s", 0, 65'535, 120);
  wish.at_once = integer_field(json, "at_once", 0, 100'000, 0);
  // sbatch has options that run a command or write a file.
  if (const Json& options = field(json, "options"); !options.empty())
    throw Refusal("'options' of sbatch aren't taken; only what 'slurm' has fields for.");
  return wish;
}

Json slurm_json(const SlurmWish& wish) {
  return {{"partition", wish.partition}, {"account", wish.account}, {"time", wish.time},
          {"gpus", wish.gpus},           {"nodes", wish.nodes},     {"tasks_per_node", wish.tasks_per_node},
          {"signal_s", wish.signal_s},   {"at_once", wish.at_once}};
}

std::vector<std::string> repeats_in(const Json& json, const Request& request) {
  if (field(json, "repeats").is_null()) return {};
  std::vector<std::string> repeats = texts(json, "repeats");
  if (repeats.empty()) return repeats;
  if (!request.slurm) throw Refusal("'repeats' are an array of Slurm's: 'slurm' is missing.");
  if (request.number != 1) throw Refusal("'repeats' are started once; each of them is started again by itself.");
  if (repeats.size() > most_repeats)
    throw Refusal("'repeats' has more than " + std::to_string(most_repeats) + " runs.");
  if (!std::ranges::all_of(repeats, Uid::allows))
    throw Refusal("'repeats' must be a list of UUIDs of 32 lower-case hexadecimal digits.");
  if (std::set(repeats.begin(), repeats.end()).size() != repeats.size()) throw Refusal("'repeats' names a run twice.");
  if (std::ranges::find(repeats, request.run) == repeats.end()) throw Refusal("'repeats' doesn't name 'run'.");
  return repeats;
}

}  // namespace

Request request_in(const Json& json) {
  Request request;
  request.run = text_field(json, "run");
  if (!Uid::allows(request.run)) throw Refusal("'run' must be 32 lower-case hexadecimal digits.");
  request.number = integer_field(json, "number", 1, most_requests, 1);
  request.name = text_field(json, "name", "");
  request.command = texts(json, "command");
  if (request.command.empty() || request.command[0].empty()) throw Refusal("'command' is empty.");
  request.folder = without_zero(text_field(json, "folder", ""), "folder");
  if (!request.folder.empty() && request.folder[0] != '/' && request.folder != "~" && !request.folder.starts_with("~/"))
    throw Refusal("'folder' must begin with '/' or '~/'.");
  request.environment = environment_in(json);
  request.tree = text_field(json, "tree", "");
  if (!request.tree.empty()) parts_of(request.tree);
  if (!field(json, "slurm").is_null()) request.slurm = slurm_in(field(json, "slurm"));
  request.repeats = repeats_in(json, request);
  return request;
}

Json as_json(const Request& request) {
  Json environment = Json::object();
  for (const auto& [name, value] : request.environment) environment[name] = value;
  return {{"run", request.run},        {"number", request.number},
          {"name", request.name},      {"command", request.command},
          {"folder", request.folder},  {"env", environment},
          {"tree", request.tree},      {"slurm", request.slurm ? slurm_json(*request.slurm) : Json(nullptr)},
          {"repeats", request.repeats}};
}

Descriptor run_folder(const std::string& folder, const std::string& run, bool make) {
  if (!Uid::allows(run)) throw Refusal("'run' must be 32 lower-case hexadecimal digits.");
  const Descriptor top = make ? make_folder(folder) : open_folder(folder);
  const Descriptor runs = !top   ? Descriptor()
                          : make ? make_folder_below(top.get(), "runs")
                                 : folder_below(top.get(), "runs");
  Descriptor found = !runs ? Descriptor() : make ? make_folder_below(runs.get(), run) : folder_below(runs.get(), run);
  if (!found && !make) throw Refusal("There is no run " + run + " in " + folder + ".");
  if (!found) throw refused(folder + "/runs/" + run, "cannot be made", errno);
  return found;
}

std::string numbered(const std::string& stem, std::int64_t number, const std::string& ending) {
  return number <= 1 ? stem + ending : stem + "." + std::to_string(number) + ending;
}

std::int64_t latest_request(int run_folder) {
  std::int64_t latest = 0;
  while (latest < most_requests && open_below(run_folder, {numbered("request", latest + 1, ".json")}, O_RDONLY))
    ++latest;
  return latest;
}

std::optional<Request> read_request(int run_folder, std::int64_t number) {
  const auto text = read_below(run_folder, numbered("request", number, ".json"), longest_request);
  if (!text) return std::nullopt;
  return request_in(parse_object(*text));
}

std::vector<std::int64_t> attempts_in(int run_folder) {
  std::vector<std::int64_t> attempts;
  const Descriptor keeper = folder_below(run_folder, "keeper");
  if (!keeper) return attempts;
  for (const std::string& name : names_in(keeper.get(), most_journals)) {
    if (!name.starts_with("rank-0.") || !name.ends_with(".jsonl")) continue;
    const std::size_t begin = std::strlen("rank-0.");
    const std::size_t size = name.size() - begin;
    const auto attempt = parse_number<std::int64_t>(std::string_view(name).substr(begin, size - std::strlen(".jsonl")));
    if (attempt && *attempt > 0 && attempt_journal(*attempt) == name) attempts.push_back(*attempt);
  }
  std::ranges::sort(attempts);
  return attempts;
}

std::string attempt_journal(std::int64_t attempt) {
  return "rank-0." + std::to_string(attempt) + ".jsonl";
}

std::string control_name(std::int64_t request, std::int64_t wish) {
  return std::to_string(request) + "." + std::to_string(wish);
}

}  // namespace stepladder::far
