// Reads and checks a checkpoint's state.json and checksums.txt. checksums.txt lists the files in the order of
// `saved_files`; a checkpoint without it is an old one and passes. Any unexpected content throws DataError, since the
// folder may be damaged or made by another program.
#include "engine/files/checkpoint_folder.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/files/files.h"
#include "storage/number_text.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view step_prefix = "step-";
constexpr std::int64_t longest_text_file = 16 << 20;  // far more than state.json and checksums.txt need
constexpr std::array saved_files = {checkpoint_weights, checkpoint_optimizer, checkpoint_config, checkpoint_state};

std::string text_of_file(const fs::path& path) {
  const InputFile file(path);
  if (file.size_bytes() > longest_text_file) throw DataError(path.string() + " isn't part of a checkpoint: too large");
  std::string text(static_cast<std::size_t>(file.size_bytes()), ' ');
  file.read(0, text.data(), file.size_bytes());
  return text;
}

// "8f3a21bc 12345 model.safetensors"
std::string checksum_line(const fs::path& folder, const char* name) {
  const InputFile file(folder / name);
  std::vector<unsigned char> piece(1 << 20);
  uLong crc = ::crc32_z(0, nullptr, 0);
  for (std::int64_t at = 0; at < file.size_bytes();) {
    const std::int64_t bytes = std::min<std::int64_t>(std::ssize(piece), file.size_bytes() - at);
    file.read(at, piece.data(), bytes);
    crc = ::crc32_z(crc, piece.data(), static_cast<z_size_t>(bytes));
    at += bytes;
  }
  char text[48];
  std::snprintf(text, sizeof text, "%08lx %lld ", crc, static_cast<long long>(file.size_bytes()));
  return text + std::string(name) + "\n";
}

CheckpointState parsed_state(const fs::path& folder) {
  const fs::path file = folder / checkpoint_state;
  const auto json = nlohmann::json::parse(text_of_file(file), nullptr, false);
  const auto number = [&](const char* name) {
    const auto member = json.find(name);
    if (member == json.end() || !member->is_number_integer())
      throw DataError(file.string() + " has no " + name + ": it is cut short or isn't part of a checkpoint");
    return member->get<std::int64_t>();
  };
  if (!json.is_object() || !json.contains("recipe"))
    throw DataError(file.string() + " is cut short or isn't part of a checkpoint");
  const auto uid = json.find("uid");
  return {.step = number("step"),
          .optimizer_steps = number("optimizer_steps"),
          .recipe = json["recipe"].dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
          .uid = uid != json.end() && uid->is_string() ? uid->get<std::string>() : ""};
}

// The lines of checksums.txt in the order of saved_files; empty for an old checkpoint, which has no checksums.
std::vector<std::string> stored_lines(const fs::path& folder) {
  const fs::path file = folder / checkpoint_checksums;
  std::error_code error;
  if (!fs::exists(fs::symlink_status(file, error))) {
    if (parsed_state(folder).uid.empty()) return {};
    throw DataError(folder.string() + " is damaged: " + checkpoint_checksums + " is missing");
  }
  const std::string text = text_of_file(file);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  if (lines.size() != saved_files.size()) throw DataError(file.string() + " is damaged");
  return lines;
}

void require_as_saved(const fs::path& folder, const char* name, const std::string& stored) {
  const std::string found = checksum_line(folder, name);
  if (found == stored) return;
  const auto plain = [](const std::string& line) { return line.substr(0, line.find('\n')); };
  throw DataError((folder / name).string() + " is damaged: checksum and size are now \"" + plain(found) +
                  "\", and were \"" + plain(stored) + "\" when it was saved");
}

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  char text[32];
  std::snprintf(text, sizeof text, "step-%08lld", static_cast<long long>(step));
  return text;
}

std::optional<std::int64_t> step_of_checkpoint(const std::string& name) {
  if (!name.starts_with(step_prefix)) return std::nullopt;
  const auto step = parse_number<std::int64_t>(std::string_view(name).substr(step_prefix.size()));
  return step && *step >= 0 ? step : std::nullopt;
}

CheckpointState read_checkpoint_state(const fs::path& folder) {
  return parsed_state(folder);
}

std::string to_json(const CheckpointState& state) {
  nlohmann::ordered_json json = {{"step", state.step}, {"optimizer_steps", state.optimizer_steps}};
  if (!state.uid.empty()) json["uid"] = state.uid;
  json["recipe"] = nlohmann::ordered_json::parse(state.recipe);
  return json.dump(2) + "\n";
}

std::string checkpoint_checksums_of(const fs::path& folder) {
  std::string text;
  for (const char* name : saved_files) text += checksum_line(folder, name);
  return text;
}

void verify_checkpoint(const fs::path& folder) {
  const std::vector<std::string> stored = stored_lines(folder);
  for (std::size_t i = 0; i < stored.size(); ++i) require_as_saved(folder, saved_files[i], stored[i]);
}

CheckpointState verified_state(const fs::path& folder) {
  const std::vector<std::string> stored = stored_lines(folder);
  if (!stored.empty()) require_as_saved(folder, checkpoint_state, stored.back());
  return parsed_state(folder);
}

}  // namespace stepladder
