// Reads rule files strictly: an unknown key, a value out of range or a missing companion is an error that names the
// key, since a misspelt rule would judge wrongly. A new key is read in read_record_rule and described in
// docs/record.md.
#include "storage/speedrun/record_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "storage/analysis/hardware.h"
#include "storage/errors.h"
#include "storage/regular_file.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;
using SortedJson = nlohmann::json;

constexpr std::uintmax_t largest_rule = 64 << 10;

// Takes the keys of one file, each at most once; finish() refuses those that nobody asked for.
class RuleReader {
 public:
  RuleReader(const fs::path& file, const SortedJson& json) : file_(file), json_(json) {}

  std::string text(const char* key, bool required) {
    const SortedJson* value = find(key, required);
    if (!value) return {};
    if (!value->is_string() || (required && value->get_ref<const std::string&>().empty())) fail(key, "must be a text");
    return value->get<std::string>();
  }

  bool flag(const char* key) {
    const SortedJson* value = find(key, false);
    if (value && !value->is_boolean()) fail(key, "must be true or false");
    return value && value->get<bool>();
  }

  double number(const char* key, double low, double high) {
    const SortedJson* value = find(key, false);
    if (!value) return missing;
    const double it = value->is_number() ? value->get<double>() : missing;
    if (!(it > low && it < high))
      fail(key, std::isinf(high) ? (std::isinf(low) ? "must be a number" : "must be a number greater than 0")
                                 : "must be a number between 0 and 1");
    return it;
  }

  template <std::size_t count>
  std::size_t choice(const char* key, const std::array<const char*, count>& words) {
    const std::string word = text(key, true);
    const auto found = std::ranges::find(words, word);
    if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
    fail(key, fmt::format("must be one of {}", fmt::join(words, ", ")));
  }

  void ignore(const char* key) { asked_.insert(key); }

  void finish() {
    for (const auto& [key, value] : json_.items())
      if (!asked_.contains(key)) fail(key.substr(0, 100).c_str(), "is not a key of a rule");
  }

  [[noreturn]] void fail(const char* key, const std::string& what) const {
    throw RuleError(file_.string() + ": \"" + key + "\" " + what);
  }

 private:
  const SortedJson* find(const char* key, bool required) {
    asked_.insert(key);
    const auto found = json_.find(key);
    if (found == json_.end() || found->is_null()) {
      if (required) fail(key, "is missing");
      return nullptr;
    }
    return &*found;
  }

  const fs::path& file_;
  const SortedJson& json_;
  std::set<std::string, std::less<>> asked_;
};

SortedJson parse(const fs::path& file) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  RegularFile in(file);
  if (error || !in) throw RuleError(file.string() + " cannot be read");
  if (size > largest_rule) throw RuleError(file.string() + " is larger than 64 KiB, so it isn't a rule");
  const std::string text(std::istreambuf_iterator<char>(in), {});
  try {
    SortedJson json = SortedJson::parse(text);
    if (!json.is_object()) throw RuleError(file.string() + ":1: a rule must be a JSON object");
    return json;
  } catch (const SortedJson::parse_error& error_in_text) {
    throw RuleError(file.string() + ":" + std::to_string(line_at(text, error_in_text.byte)) + ": this isn't JSON");
  }
}

void check_together(const RecordRule& rule, const RuleReader& reader) {
  const bool needs_alpha = rule.test == RecordTest::t || rule.test == RecordTest::welch ||
                           (rule.test == RecordTest::z && is_missing(rule.margin));
  if (needs_alpha && is_missing(rule.alpha)) reader.fail("alpha", "is missing; the test needs a level");
  if (rule.test != RecordTest::welch && is_missing(rule.target)) reader.fail("target", "is missing");
  if (rule.test == RecordTest::z && is_missing(rule.sigma) && is_missing(rule.margin))
    reader.fail("sigma", "is missing; a z test needs it or \"margin\"");
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end; it.increment(ignored))
    if (it->path().extension() == ".json") names.push_back(it->path().stem().string());
  return names;
}

}  // namespace

RecordRule read_record_rule(const fs::path& file) {
  const SortedJson json = parse(file);
  RuleReader reader(file, json);
  RecordRule rule;
  rule.name = file.stem().string();
  rule.title = reader.text("title", true);
  constexpr std::array metrics{"val_loss", "val_bpb", "core_metric"};
  rule.metric = metrics[reader.choice("metric", metrics)];
  rule.lower_wins = reader.choice("direction", std::array{"lower", "higher"}) == 0;
  rule.target = reader.number("target", -INFINITY, INFINITY);
  rule.test = static_cast<RecordTest>(reader.choice("test", std::array{"none", "t", "z", "welch"}));
  rule.alpha = reader.number("alpha", 0, 1);
  rule.sigma = reader.number("sigma", 0, INFINITY);
  rule.margin = reader.number("margin", 0, INFINITY);
  rule.faster_than_baseline = reader.flag("faster_than_baseline");
  rule.same_hardware = reader.flag("same_hardware");
  rule.systems_only_waiver = reader.flag("systems_only_waiver");
  rule.source_in_log = reader.flag("source_in_log");
  rule.time_limit_s = reader.number("time_limit_s", 0, INFINITY);
  if (const double tokens = reader.number("val_tokens", 0, 1e15); tokens > 0)
    rule.val_tokens = static_cast<std::int64_t>(tokens);
  rule.final_line = reader.text("final_line", false);
  rule.source = reader.text("source", true);
  rule.date = reader.text("date", true);
  reader.ignore("notes");
  reader.finish();
  check_together(rule, reader);
  return rule;
}

fs::path user_rules_folder() {
  return HardwareTable::user_file().parent_path() / "rules";
}

RecordRule find_record_rule(const std::string& name, const fs::path& assets_folder) {
  std::vector<std::string> known;
  for (const fs::path& folder : {user_rules_folder(), assets_folder / "rules"}) {
    const std::vector<std::string> names = names_in(folder);
    if (std::ranges::find(names, name) != names.end()) {
      RecordRule rule = read_record_rule(folder / (name + ".json"));
      std::error_code error;
      rule.overrides_built_in =
          folder == user_rules_folder() && fs::exists(assets_folder / "rules" / (name + ".json"), error);
      return rule;
    }
    known.insert(known.end(), names.begin(), names.end());
  }
  std::ranges::sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  throw UnknownRule(fmt::format("there is no rule '{}'; there are {}, and you can add your own to {}",
                                name.substr(0, 100), fmt::join(known, ", "), user_rules_folder().string()));
}

const RecordRule* nearest_rule(std::span<const RecordRule> rules, const std::string& metric, double mean) {
  constexpr double near_enough = 0.02;  // of the target
  const RecordRule* nearest = nullptr;
  bool is_alone = true;
  const auto far = [&](const RecordRule& rule) { return std::fabs(mean / rule.target - 1); };
  for (const RecordRule& rule : rules) {
    if (rule.metric != metric || !(far(rule) <= near_enough)) continue;
    if (nearest && far(rule) > far(*nearest)) continue;
    is_alone = !nearest || far(rule) < far(*nearest);
    nearest = &rule;
  }
  return is_alone ? nearest : nullptr;
}

}  // namespace stepladder
