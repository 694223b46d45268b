// The requests of FarRuns to machines: it starts programs, sends their files, and handles the answers.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "app/machines/followed_run.h"
#include "app/machines/output_file.h"
#include "app/text/secrets.h"
#include "storage/base64.h"
#include "storage/json_values.h"
#include "storage/regular_file.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t tree_piece = 512 << 10;
constexpr std::size_t most_repeats = 1000;
constexpr const char* tree_name = "tree.tar.gz";
constexpr const char* tree_part = "tree.new";

Json request_of(const FarCommand& command) {
  Json request = {{"name", command.name},
                  {"command", command.command},
                  {"folder", command.folder.empty() ? Json() : Json(command.folder)},
                  {"env", command.environment},
                  {"tree", command.tree.empty() ? Json() : Json(tree_name)},
                  {"slurm", nullptr}};
  if (command.slurm) {
    const SlurmRequest& slurm = *command.slurm;
    Json asked = Json::object();  // without what the cluster decides
    for (const auto& [name, text] :
         {std::pair{"partition", slurm.partition}, {"account", slurm.account}, {"time", slurm.time}})
      if (!text.empty()) asked[name] = text.text();
    if (slurm.gpus > 0) asked["gpus"] = slurm.gpus;
    if (command.at_once > 0) asked["at_once"] = command.at_once;
    // Ladders and sweeps start the processes of each run themselves, on one node.
    if (command.kind == "watch" || command.kind == "train") {
      const std::int64_t each = slurm.tasks_per_node > 0 ? slurm.tasks_per_node : slurm.nodes > 1 ? slurm.gpus : 0;
      if (slurm.nodes > 0) asked["nodes"] = slurm.nodes;
      if (each > 0) asked["tasks_per_node"] = each;
    }
    request["slurm"] = std::move(asked);
  }
  const ImportOptions& options = command.options;
  request["here"] = {{"tokens_per_step", options.tokens_per_step},  // for this side; the far one skips it
                     {"params", options.params},
                     {"hardware", options.hardware}};
  return request;
}

// The part of a request that the project keeps for its readers.
std::string shown(Json request) {
  if (request.contains("command"))
    request["command"] = each_without_secrets(request["command"].get<std::vector<std::string>>());
  for (auto& [name, value] : request["env"].items()) {
    const std::string pair = each_without_secrets({name + "=" + value.get<std::string>()}).front();
    value = pair.starts_with(name + "=") ? pair.substr(name.size() + 1) : "***";
  }
  return json_text(request);
}

// Copies whole or not at all, since another process may be reading the copy.
void copy_tree(RunStore& store, const Uid& uid, const fs::path& tree) {
  constexpr std::size_t at_once = 1 << 20;
  const Descriptor copy =
      open_mirrored(mirrors_folder(store), fs::path(uid.text()) / tree_part, O_WRONLY | O_CREAT | O_TRUNC);
  const RegularFile file(tree);
  if (!file) throw std::runtime_error(tree.string() + " " + file.why());
  std::string bytes;
  for (std::int64_t at = 0; !(bytes = file.read_at(at, at_once)).empty(); at += std::ssize(bytes))
    if (!write_at(copy.get(), static_cast<std::uint64_t>(at), bytes))
      throw std::runtime_error(tree.string() + " can't be copied: " + std::strerror(errno));
  const Descriptor mirrors = open_own_folder(mirrors_folder(store));
  const Descriptor folder = folder_below(mirrors.get(), uid.text());
  if (::renameat(folder.get(), tree_part, folder.get(), tree_name) != 0)
    throw std::runtime_error(tree.string() + " can't be copied: " + std::strerror(errno));
}

}  // namespace

std::vector<Uid> repeats_of(const Json& request) {
  std::vector<Uid> repeats;
  const auto list = request.find("repeats");
  if (list == request.end() || !list->is_array()) return repeats;
  for (const Json& each : *list)
    if (const auto uid = Uid::from(each.is_string() ? each.get<std::string>() : "");
        uid && repeats.size() < most_repeats)
      repeats.push_back(*uid);
  return repeats;
}

std::string asked_of(RunStore& store, const FarPlace& place) {
  const auto uid = Uid::from(place.far_uid);
  const auto far_run = uid ? store.machines().far_run(*uid) : std::nullopt;
  if (!far_run || (far_run->kind != "ladder" && far_run->kind != "sweep")) return "the run";
  return "the whole " + far_run->kind + ", since one program there trains all of its runs";
}

FarRun FarRuns::start(const Machine& machine, const FarCommand& command) {
  return start_repeats(machine, command, 1).front();
}

std::vector<FarRun> FarRuns::start_repeats(const Machine& machine, const FarCommand& command, std::int64_t count) {
  Json request = request_of(command);
  std::vector<FarRun> runs;
  Json uids = Json::array();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string number = count > 1 ? " #" + std::to_string(i + 1) : "";
    runs.push_back({.uid = count == 1 && command.uid ? *command.uid : new_uid(),
                    .alias = machine.alias,
                    .kind = command.kind,
                    .name = command.name + number,
                    .sent = command.sent});
    uids.push_back(runs.back().uid.text());
  }
  if (count > 1) request["repeats"] = uids;
  for (FarRun& run : runs) {
    run.request = request.dump();
    run.shown = shown(request);
  }
  // Copied before another process sees that it is to be sent.
  if (!command.tree.empty()) copy_tree(store_, runs.front().uid, command.tree);
  runs = store_.machines().add_runs(std::move(runs));
  for (const FarRun& run : runs) follow(run);
  if (Link& to = link(machine); to.is_up()) send_tree(*followed_[runs.front().uid.text()]);
  return runs;
}

std::optional<FarRun> FarRuns::follow_open(const Machine& machine, const std::string& kind, const fs::path& tree) {
  for (const FarRun& run : store_.machines().open_runs()) {
    if (run.alias != machine.alias || run.kind != kind) continue;
    if (!run.is_started) copy_tree(store_, run.uid, tree);
    Followed& followed = follow(run);
    if (Link& to = link(machine); to.is_up() && !run.is_started) send_tree(followed);
    return run;
  }
  return std::nullopt;
}

FarRun FarRuns::restart(const Uid& uid, const std::vector<std::string>& command) {
  FarRun run = store_.machines().far_run(uid).value();
  Json request = object_in(run.request);
  request["number"] = integer_in(request, "number", 1) + 1;
  request["command"] = command;
  request["tree"] = nullptr;  // it is there
  request.erase("repeats");
  run.request = request.dump();
  run.shown = shown(request);
  run.state.clear();
  run.is_started = run.is_over = false;
  store_.machines().update(run);
  ended_.erase(uid.text());
  Followed& followed = follow(run);
  const auto machine = store_.machines().machine(run.alias);
  if (machine && link(*machine).is_up()) send_tree(followed);
  return run;
}

// Repeats are submitted as the first of them: the others follow once the machine has accepted that one.
bool FarRuns::may_be_sent(Followed& followed) {
  const std::vector<Uid> repeats = repeats_of(followed.request);
  if (repeats.empty() || repeats.front() == followed.row.uid) return true;
  const auto first = store_.machines().far_run(repeats.front());
  if (!first || first->is_started) return true;
  if (!first->is_over) return false;
  const Json state = Json::parse(first->state, nullptr, false);
  refuse(followed, state.is_object() ? text_in(state, "reason") : "the first repeat could not be started");
  return false;
}

// Sends the tree piece by piece, then the request itself.
void FarRuns::send_tree(Followed& followed) {
  if (followed.is_sending || !may_be_sent(followed)) return;
  followed.is_sending = true;
  const Uid uid = followed.row.uid;
  const std::vector<Uid> repeats = repeats_of(followed.request);
  const bool is_with_another = !repeats.empty() && repeats.front() != uid;
  if (is_with_another || followed.request.value("tree", Json()).is_null()) return send_start(followed);
  const auto send = [this, uid](const auto& self, std::uint64_t at) -> void {
    const auto found = followed_.find(uid.text());
    if (found == followed_.end()) return;
    std::string bytes;
    if (const Descriptor tree = open_own_file(mirrors_folder(store_), fs::path(uid.text()) / tree_name, O_RDONLY))
      bytes = read_at(tree.get(), at, tree_piece);
    if (bytes.empty())
      return at == 0 ? refuse(*found->second, "the tree to be sent is gone") : send_start(*found->second);
    const std::uint64_t next = at + bytes.size();
    links_.at(found->second->row.alias.text())
        ->ask(
            "put", {{"run", uid.text()}, {"name", tree_name}, {"at", at}, {"data", to_base64(bytes)}},
            [this, uid, next, self](const Json&, const std::string& error) {
              const auto still = followed_.find(uid.text());
              if (still == followed_.end()) return;
              Followed& followed_now = *still->second;
              if (error.empty()) return self(self, next);
              followed_now.is_sending = false;  // when the link is up again, all of it is sent again
              if (links_.at(followed_now.row.alias.text())->is_up()) refuse(followed_now, error);
            },
            Link::WhenLost::fail);
  };
  send(send, 0);
}

void FarRuns::send_start(Followed& followed) {
  Json request = followed.request;
  request.erase("here");
  request["run"] = followed.row.uid.text();
  links_.at(followed.row.alias.text())
      ->ask(
          "start", std::move(request),
          [this, uid = followed.row.uid.text()](const Json& state, const std::string& error) {
            const auto found = followed_.find(uid);
            if (found == followed_.end()) return;
            Followed& started = *found->second;
            started.is_sending = false;
            if (error.ends_with("ask again.")) return;  // another process is just submitting it
            const bool is_up = links_.at(started.row.alias.text())->is_up();
            if (!error.empty()) return is_up ? refuse(started, error) : void();
            started.row.is_started = true;
            to_follow_.insert(started.row.alias.text());
            on_state(started, state);
          },
          Link::WhenLost::fail);
}

// Ends a run that the machine refuses: nothing was started.
void FarRuns::refuse(Followed& followed, const std::string& why) {
  followed.phase = "refused";
  followed.reason = why;
  followed.row.state = Json{{"phase", "refused"}, {"reason", why}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  callbacks_.report(followed.row.alias.text() + " refuses: " + why);
  end(followed);
}

}  // namespace stepladder
