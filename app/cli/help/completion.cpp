// Completes by CLI11's tree of commands and the metavars of help.h. It must be quick, and never fail: a
// database that can't be read completes no runs.
#include <algorithm>

#include "app/cli/help/arguments.h"
#include "app/cli/help/help.h"
#include "app/cli/subcommand.h"
#include "app/exit_status.h"
#include "app/host/environment.h"
#include "app/launch/ladder_file.h"
#include "app/runs/bin.h"
#include "app/runs/open_store.h"
#include "engine/ladder_presets.h"
#include "engine/recipe.h"
#include "engine/stage.h"
#include "storage/analysis/hardware.h"
#include "storage/errors.h"
#include "storage/speedrun/record_rule.h"

namespace stepladder {
namespace {

constexpr std::size_t most_names = 200;  // newest first

constexpr const char* bash_script =
    R"(# stepladder completion bash > ~/.local/share/bash-completion/completions/stepladder
_stepladder() {
  local IFS=$'\n' word=${COMP_WORDS[COMP_CWORD]} found
  found=$("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1)
  COMPREPLY=()
  if [[ $'\n'$found == *$'\n:files'* ]]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$word"))
    found=${found//:files/}
  fi
  COMPREPLY+=($(compgen -W "$found" -- "$word"))
}
complete -F _stepladder stepladder
)";

constexpr const char* zsh_script = R"(#compdef stepladder
# stepladder completion zsh > ~/.zfunc/_stepladder     (with fpath+=~/.zfunc before compinit)
_stepladder() {
  local -a found
  local line
  for line in "${(@f)$(${words[1]} complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -z $line ]] && continue
    if [[ $line == :files ]]; then _files; else found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}"); fi
  done
  (( $#found )) && _describe stepladder found
}
if [[ $funcstack[1] == _stepladder ]]; then _stepladder "$@"; else compdef _stepladder stepladder; fi
)";

constexpr const char* fish_script = R"(# stepladder completion fish > ~/.config/fish/completions/stepladder.fish
function __stepladder_complete
  set -l words (commandline -opc)
  set -l word (commandline -ct)
  for line in ($words[1] complete -- $words[2..-1] "$word" 2>/dev/null)
    if test "$line" = :files
      __fish_complete_path "$word"
    else
      echo $line
    end
  end
end
complete -c stepladder -f -a '(__stepladder_complete)'
)";

// Items by number, newest first.
template <class Items>
void add_names(std::vector<std::string>& found, Items items) {
  std::ranges::reverse(items);
  if (items.size() > most_names) items.resize(most_names);
  for (const auto& item : items) found.push_back(std::to_string(item.id) + "\t" + item.name);
}

// What a project has of a kind.
void add_stored(std::vector<std::string>& found, const std::string& value, bool is_of_bin, RunStore& store) {
  if (value == "TRACE") return add_names(found, store.traces().list());
  if (value == "MACHINE") {
    for (const Machine& machine : store.machines().machines()) found.push_back(machine.alias.text() + "\t");
    return;
  }
  if (is_of_bin) {
    for (const BinnedRun& binned : runs_in_bin(store))
      found.push_back(std::to_string(binned.run.id) + "\t" + binned.run.name);
    return;
  }
  value == "LADDER" ? add_names(found, store.ladders()) : add_names(found, store.runs());
  found.emplace_back("latest\tthe newest one");
}

// What there is of a kind in every project.
std::vector<std::string> known_names(const std::string& value) {
  std::vector<std::string> names;
  if (value == "MODEL") {
    for (const ModelPreset& preset : model_presets()) names.emplace_back(preset.name);
  } else if (value == "STAGES" || value == "RUNGS") {
    for (const Stage& stage : all_stages()) names.push_back(stage.id);
  } else if (value == "PRESET") {
    names = saved_ladders();
    for (const LadderPreset& preset : ladder_presets()) names.push_back(preset.name);
  } else if (value == "FIELD" || value == "FIELDS") {
    const Json run = run_json({}, {});
    for (const auto& [name, unknown] : run.items()) names.push_back(name);
  } else if (value == "HARDWARE") {
    const HardwareTable table = HardwareTable::load(assets_folder());
    for (const Hardware& row : table.all()) names.push_back(row.name);
  } else if (value == "RULE") {
    std::error_code unreadable;
    for (const std::filesystem::path& folder : {assets_folder() / "rules", user_rules_folder()})
      for (const auto& file : std::filesystem::directory_iterator(folder, unreadable))
        if (file.path().extension() == ".json") names.push_back(file.path().stem().string());
  }
  return names;
}

void add_values(std::vector<std::string>& found, const CLI::Option& option, bool is_of_bin,
                const std::filesystem::path& database) {
  const std::string value = metavar(option);
  for (const std::string& name : known_names(value)) found.push_back(name + "\t");
  if (value == "FILE" || value == "FOLDER" || value == "POOL" || value == "LOG") {
    found.emplace_back(":files");
  } else if (value == "RUN" || value == "LADDER" || value == "RUN@STEP" || value == "TRACE" || value == "MACHINE") {
    try {
      if (auto store = open_to_read(database)) add_stored(found, value, is_of_bin, *store);
    } catch (const StorageError&) {
    }
  } else if (value.find('|') != std::string::npos) {
    for (std::size_t at = 0; at <= value.size();) {
      const std::size_t end = std::min(value.find('|', at), value.size());
      found.push_back(value.substr(at, end - at) + "\t");
      at = end + 1;
    }
  }
}

void add_options(std::vector<std::string>& found, const CLI::App& app) {
  for (const CLI::Option* option : app.get_options())
    if (option->get_group() != hidden_group && !option->get_group().empty() && !option->get_lnames().empty())
      found.push_back("--" + option->get_lnames().front() + "\t" + option->get_description());
}

}  // namespace

std::string completion_script(const std::string& shell) {
  return shell == "bash" ? bash_script : shell == "zsh" ? zsh_script : fish_script;
}

std::vector<std::string> completions(const CLI::App& app, const std::vector<std::string>& words,
                                     const std::filesystem::path& given) {
  std::filesystem::path database = given;
  const CLI::App* at = &app;
  const CLI::Option* pending = nullptr;  // an option whose value is to be completed
  int positions = 0;
  bool is_of_bin = false;
  std::vector<std::string> found;
  const std::string last = words.empty() ? "" : words.back();
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") return {":files"};  // the words of another program
    const bool ends_pending = std::exchange(pending, nullptr) != nullptr;
    if (i > 0 && words[i - 1] == "--db") database = word;
    if (word == "restore" || word == "--restore") is_of_bin = true;
    if (ends_pending) continue;
    if (word.starts_with('-')) {
      const CLI::Option* option = at->get_option_no_throw(word);
      if (!option) option = app.get_option_no_throw(word);
      if (option && option->get_items_expected_min() > 0) pending = option;
    } else if (const CLI::App* command = command_named(*at, {word})) {
      at = command;
      positions = 0;
    } else {
      ++positions;
    }
  }
  if (at->get_name() == "help" && !last.starts_with('-')) {
    at = command_named(app, {words.begin() + 1, words.end() - 1});
    if (!at) return {};
  }
  if (pending) {
    add_values(found, *pending, is_of_bin, database);
  } else if (last.starts_with('-')) {
    add_options(found, *at);
    if (at != &app) add_options(found, app);
  } else {
    for (const CLI::App* command : at->get_subcommands([](const CLI::App*) { return true; }))
      if (help_of(*command)) found.push_back(command->get_name() + "\t" + command->get_description());
    for (const CLI::Option* option : at->get_options()) {
      if (!option->get_positional() || option->get_group() == hidden_group) continue;
      if (positions < option->get_items_expected_max()) {
        add_values(found, *option, is_of_bin, database);
        break;
      }
      positions -= option->get_items_expected_max();
    }
  }
  return found;
}

}  // namespace stepladder
