#include "app/cli/check_command.h"

#include "app/text/format.h"

namespace stepladder {

std::vector<CheckedRun> check_runs(const std::vector<RunAndSummary>& runs, const PlausibilityContext& context) {
  std::vector<CheckedRun> checked;
  checked.reserve(runs.size());
  for (const auto& [run, summary] : runs) checked.push_back({run, plausibility_of(run, summary, context)});
  return checked;
}

Json check_json(const std::vector<CheckedRun>& runs) {
  Json list = Json::array();
  for (const CheckedRun& checked : runs) {
    Json flags = Json::array();
    for (const Flag& flag : checked.plausibility.flags)
      flags.push_back({{"id", to_string(flag.id)}, {"why", flag_text(flag)}});
    list.push_back({{"id", checked.run.id}, {"name", checked.run.name}, {"flags", flags}});
  }
  return list;
}

std::string check_text(const std::vector<CheckedRun>& runs) {
  std::string text;
  for (const CheckedRun& checked : runs) {
    text += fmt::format("{}  {}{}", checked.run.id, checked.run.name,
                        checked.plausibility.flags.empty() ? ": no flags\n" : "\n");
    for (const Flag& flag : checked.plausibility.flags)
      text += "   " + std::string(to_string(flag.id)) + ": " + flag_text(flag) + "\n";
  }
  return harmless(text);
}

}  // namespace stepladder
