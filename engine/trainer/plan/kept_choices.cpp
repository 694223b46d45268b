#include "engine/trainer/plan/kept_choices.h"

#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <string_view>

namespace stepladder {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view first_line = "stepladder products 1";
constexpr std::size_t most_bytes = 1 << 20;  // of a file that is read; a model has a dozen lines

std::map<std::string, KeptChoice> read_choices(const fs::path& file) {
  std::map<std::string, KeptChoice> choices;
  std::ifstream stream(file, std::ios::binary);
  std::string text(most_bytes, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  bool is_first = true;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;  // half of a line
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (is_first && line != first_line) return {};
    is_first = false;
    const std::size_t one = line.find('\t'), two = one == std::string::npos ? one : line.find('\t', one + 1);
    if (two == std::string::npos || line.find('\t', two + 1) != std::string::npos) continue;
    choices[line.substr(0, one)] = {line.substr(one + 1, two - one - 1), line.substr(two + 1)};
  }
  return choices;
}

}  // namespace

fs::path kept_choices_file(const std::string& machine) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value ? value : "");
  };
  const fs::path cache = variable("XDG_CACHE_HOME"), home = variable("HOME");
  if (!cache.is_absolute() && !home.is_absolute()) return {};
  std::string name = "products-";
  for (const char c : machine) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.';
    if (is_plain || !name.ends_with('-'))
      name += is_plain ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : '-';
  }
  return (cache.is_absolute() ? cache : home / ".cache") / "stepladder" / (name.substr(0, 200) + ".tsv");
}

KeptChoices::KeptChoices(fs::path file) : file_(std::move(file)) {
  if (!file_.empty()) choices_ = read_choices(file_);
}

const KeptChoice* KeptChoices::find(const std::string& key) const {
  const auto found = choices_.find(key);
  return found == choices_.end() ? nullptr : &found->second;
}

void KeptChoices::keep(const std::string& key, const KeptChoice& choice) {
  choices_[key] = new_[key] = choice;
}

void KeptChoices::save() {
  if (file_.empty() || new_.empty()) return;
  std::map<std::string, KeptChoice> all = read_choices(file_);
  for (const auto& [key, choice] : new_) all[key] = choice;
  new_.clear();
  std::error_code error;
  fs::create_directories(file_.parent_path(), error);
  const fs::path temporary = file_.string() + "." + std::to_string(::getpid());
  std::ofstream stream(temporary, std::ios::binary);
  stream << first_line << '\n';
  for (const auto& [key, choice] : all) stream << key << '\t' << choice.name << '\t' << choice.timings << '\n';
  stream.close();
  if (stream) fs::rename(temporary, file_, error);
  if (!stream || error) fs::remove(temporary, error);
}

}  // namespace stepladder
