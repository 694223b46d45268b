// What FarRuns asks of machines: to start something, what is sent for it, and the answers.
#include <algorithm>
#include <fstream>
#include <utility>

#include "app/machines/base64.h"
#include "app/machines/followed_run.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t tree_piece = 512 << 10;
constexpr std::size_t most_repeats = 1000;

Json request_of(const FarCommand& command) {
  Json request = {{"name", command.name},
                  {"command", command.command},
                  {"folder", command.folder.empty() ? Json() : Json(command.folder)},
                  {"env", command.environment},
                  {"tree", command.tree.empty() ? Json() : Json("tree.tar.gz")},
                  {"slurm", nullptr}};
  if (command.slurm) {
    const SlurmRequest& slurm = *command.slurm;
    Json asked = Json::object();  // without what the cluster decides
    for (const auto& [name, text] :
         {std::pair{"partition", slurm.partition}, {"account", slurm.account}, {"time", slurm.time}})
      if (!text.empty()) asked[name] = text;
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

}  // namespace

fs::path mirror_folder(RunStore& store, const std::string& uid) {
  return fs::path(store.file().string() + ".machines") / uid;
}

std::vector<std::string> repeats_of(const Json& request) {
  std::vector<std::string> repeats;
  const auto list = request.find("repeats");
  if (list == request.end() || !list->is_array()) return repeats;
  for (const Json& each : *list)
    if (each.is_string() && repeats.size() < most_repeats) repeats.push_back(each.get<std::string>());
  return repeats;
}

std::string asked_of(RunStore& store, const FarPlace& place) {
  const auto far_run = store.machines().far_run(place.far_uid);
  if (!far_run || (far_run->kind != "ladder" && far_run->kind != "sweep")) return "the run";
  return "the whole " + far_run->kind + ", since one program there trains all of its runs";
}

FarRun FarRuns::start(const Machine& machine, const FarCommand& command) {
  return start_repeats(machine, command, 1).front();
}

std::vector<FarRun> FarRuns::start_repeats(const Machine& machine, const FarCommand& command, std::int64_t count) {
  std::vector<FarRun> runs;
  store_.in_one_transaction([&] {
    runs.clear();
    const Json request = request_of(command);
    Json uids = Json::array();
    for (std::int64_t i = 0; i < count; ++i) {
      const std::string number = count > 1 ? " #" + std::to_string(i + 1) : "";
      runs.push_back(store_.machines().add_run({.alias = machine.alias,
                                                .kind = command.kind,
                                                .name = command.name + number,
                                                .request = request.dump(),
                                                .sent = command.sent}));
      uids.push_back(runs.back().uid);
    }
    if (!command.tree.empty()) {  // before another process sees that it is to be sent
      const fs::path folder = mirror_folder(store_, runs.front().uid);
      fs::create_directories(folder);
      fs::copy_file(command.tree, folder / "tree.tar.gz");
    }
    if (count == 1) return;
    for (FarRun& run : runs) {
      Json of_all = request;
      of_all["repeats"] = uids;
      run.request = of_all.dump();
      store_.machines().update(run);
    }
  });
  for (const FarRun& run : runs) follow(run);
  if (Link& to = link(machine); to.is_up()) send_tree(*followed_[runs.front().uid]);
  return runs;
}

std::optional<FarRun> FarRuns::go_on(const Machine& machine, const std::string& kind, const fs::path& tree) {
  for (const FarRun& run : store_.machines().open_runs()) {
    if (run.alias != machine.alias || run.kind != kind) continue;
    if (!run.is_started) {  // whole or not at all, since another process may be reading it
      const fs::path folder = mirror_folder(store_, run.uid);
      fs::create_directories(folder);
      fs::copy_file(tree, folder / "tree.new", fs::copy_options::overwrite_existing);
      fs::rename(folder / "tree.new", folder / "tree.tar.gz");
    }
    Followed& followed = follow(run);
    if (Link& to = link(machine); to.is_up() && !run.is_started) send_tree(followed);
    return run;
  }
  return std::nullopt;
}

FarRun FarRuns::start_again(const std::string& uid, const std::vector<std::string>& command) {
  FarRun run = store_.machines().far_run(uid).value();
  Json request = Json::parse(run.request, nullptr, false);
  if (!request.is_object()) request = Json::object();
  request["number"] = integer_in(request, "number", 1) + 1;
  request["command"] = command;
  request["tree"] = nullptr;  // it is there
  request.erase("repeats");
  run.request = request.dump();
  run.state.clear();
  run.is_started = run.is_over = false;
  store_.machines().update(run);
  ended_.erase(uid);
  Followed& followed = follow(run);
  const auto machine = store_.machines().machine(run.alias);
  if (machine && link(*machine).is_up()) send_tree(followed);
  return run;
}

// Repeats are submitted as the first of them: the others follow once the machine has taken that.
bool FarRuns::may_be_sent(Followed& followed) {
  const std::vector<std::string> repeats = repeats_of(followed.request);
  if (repeats.empty() || repeats.front() == followed.row.uid) return true;
  const auto first = store_.machines().far_run(repeats.front());
  if (!first || first->is_started) return true;
  if (!first->is_over) return false;
  const Json state = Json::parse(first->state, nullptr, false);
  refuse(followed, state.is_object() ? text_in(state, "reason") : "the first repeat could not be started");
  return false;
}

// Piece by piece, then the request itself.
void FarRuns::send_tree(Followed& followed) {
  if (followed.is_sending || !may_be_sent(followed)) return;
  followed.is_sending = true;
  const std::string uid = followed.row.uid;
  const std::vector<std::string> repeats = repeats_of(followed.request);
  const bool is_with_another = !repeats.empty() && repeats.front() != uid;
  if (is_with_another || followed.request.value("tree", Json()).is_null()) return send_start(followed);
  const fs::path tree = followed.folder / "tree.tar.gz";
  const auto send = [this, uid, tree](const auto& self, std::uint64_t at) -> void {
    const auto found = followed_.find(uid);
    if (found == followed_.end()) return;
    std::ifstream file(tree, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    std::string bytes(tree_piece, '\0');
    file.read(bytes.data(), std::ssize(bytes));
    bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
    if (bytes.empty())
      return at == 0 ? refuse(*found->second, "the tree to be sent is gone") : send_start(*found->second);
    const std::uint64_t next = at + bytes.size();
    links_.at(found->second->row.alias)
        ->ask(
            "put", {{"run", uid}, {"name", "tree.tar.gz"}, {"at", at}, {"data", to_base64(bytes)}},
            [this, uid, next, self](const Json&, const std::string& error) {
              const auto still = followed_.find(uid);
              if (still == followed_.end()) return;
              Followed& followed_now = *still->second;
              if (error.empty()) return self(self, next);
              followed_now.is_sending = false;  // when the link is up again, all of it is sent again
              if (links_.at(followed_now.row.alias)->is_up()) refuse(followed_now, error);
            },
            Link::WhenLost::fail);
  };
  send(send, 0);
}

void FarRuns::send_start(Followed& followed) {
  Json request = followed.request;
  request.erase("here");
  request["run"] = followed.row.uid;
  links_.at(followed.row.alias)
      ->ask(
          "start", std::move(request),
          [this, uid = followed.row.uid](const Json& state, const std::string& error) {
            const auto found = followed_.find(uid);
            if (found == followed_.end()) return;
            Followed& started = *found->second;
            started.is_sending = false;
            if (error.ends_with("ask again.")) return;  // another process is just submitting it
            const bool is_up = links_.at(started.row.alias)->is_up();
            if (!error.empty()) return is_up ? refuse(started, error) : void();
            started.row.is_started = true;
            to_follow_.insert(started.row.alias);
            hear_state(started, state);
          },
          Link::WhenLost::fail);
}

// The machine will not run it: nothing was started.
void FarRuns::refuse(Followed& followed, const std::string& why) {
  followed.phase = "refused";
  followed.reason = why;
  followed.row.state = Json{{"phase", "refused"}, {"reason", why}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  ears_.tell(followed.row.alias + " refuses: " + why);
  end(followed);
}

}  // namespace stepladder
