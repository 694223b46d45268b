#include "engine/trainer/cache/kept_choices.h"

#include <cctype>
#include <fstream>
#include <string_view>

#include "engine/trainer/cache/cache_files.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view first_line = "stepladder products 4";
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
  const fs::path folder = cache_folder();
  if (folder.empty()) return {};
  std::string name = "products-";
  for (const char c : machine) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.';
    if (is_plain || !name.ends_with('-'))
      name += is_plain ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : '-';
  }
  return folder / (name.substr(0, 200) + ".tsv");
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
  std::string text = std::string(first_line) + "\n";
  for (const auto& [key, choice] : all) text += key + "\t" + choice.name + "\t" + choice.timings + "\n";
  write_cache_file(file_, text);
}

}  // namespace stepladder
