#include "engine/files/checkpoint_folder.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view prefix = "step-";

std::optional<std::int64_t> step_of(const std::string& name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  std::int64_t step = 0;
  const char* const end = name.data() + name.size();
  const auto [stopped, error] = std::from_chars(name.data() + prefix.size(), end, step);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return step;
}

}  // namespace

fs::path run_checkpoint_folder(const fs::path& database, std::int64_t run) {
  return fs::absolute(database.string() + ".checkpoints") / ("run-" + std::to_string(run));
}

std::vector<Checkpoint> checkpoints_in(const fs::path& run_folder) {
  std::vector<Checkpoint> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(run_folder, error)) {
    const auto step = step_of(entry.path().filename().string());
    if (step && entry.is_directory()) found.push_back({*step, entry.path()});
  }
  std::sort(found.begin(), found.end(), [](const Checkpoint& a, const Checkpoint& b) { return a.step < b.step; });
  return found;
}

Checkpoint find_checkpoint(const fs::path& database, std::int64_t run, std::optional<std::int64_t> step) {
  const fs::path folder = run_checkpoint_folder(database, run);
  const std::vector<Checkpoint> saved = checkpoints_in(folder);
  const std::string name = "run " + std::to_string(run);
  if (saved.empty()) throw DataError(name + " has no checkpoint in " + folder.string());
  if (!step) return saved.back();
  std::string steps;
  for (const Checkpoint& checkpoint : saved) {
    if (checkpoint.step == *step) return checkpoint;
    steps += (steps.empty() ? "" : ", ") + std::to_string(checkpoint.step);
  }
  throw DataError(name + " has no checkpoint of step " + std::to_string(*step) + "; it has: " + steps);
}

std::string checkpoint_name(std::int64_t step) {
  char text[32];
  std::snprintf(text, sizeof text, "step-%08lld", static_cast<long long>(step));
  return text;
}

CheckpointState read_checkpoint_state(const fs::path& folder) {
  const fs::path file = folder / checkpoint_state;
  std::ifstream in(file, std::ios::binary);
  if (!in) throw DataError(file.string() + " cannot be read: it isn't a checkpoint, or part of it is missing");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const auto number = [&](const char* name) {
    const auto member = json.find(name);
    if (member == json.end() || !member->is_number_integer()) {
      throw DataError(file.string() + " has no " + name + ": it is cut short or isn't part of a checkpoint");
    }
    return member->get<std::int64_t>();
  };
  if (!json.is_object() || !json.contains("recipe")) {
    throw DataError(file.string() + " is cut short or isn't part of a checkpoint");
  }
  return {.step = number("step"), .optimizer_steps = number("optimizer_steps"), .recipe = json["recipe"].dump()};
}

std::string to_json(const CheckpointState& state) {
  const nlohmann::ordered_json json = {{"step", state.step},
                                       {"optimizer_steps", state.optimizer_steps},
                                       {"recipe", nlohmann::ordered_json::parse(state.recipe)}};
  return json.dump(2) + "\n";
}

void prune_checkpoints(const fs::path& run_folder, int keep) {
  std::error_code error;
  const std::vector<Checkpoint> found = checkpoints_in(run_folder);
  const auto stays = keep == 0 ? found.size() : static_cast<std::size_t>(keep);
  for (std::size_t i = 0; i + stays < found.size(); ++i) fs::remove_all(found[i].folder, error);
  for (const fs::directory_entry& entry : fs::directory_iterator(run_folder, error)) {
    if (entry.path().extension() == ".part") fs::remove_all(entry.path(), error);
  }
}

}  // namespace stepladder
