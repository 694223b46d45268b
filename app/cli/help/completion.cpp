// Completes by CLI11's tree of commands and the metavars of command_help.h. It must be quick, and never fail: a
// database that can't be read completes no runs.
#include "app/cli/help/completion.h"

#include <algorithm>

#include "app/cli/help/arguments.h"
#include "app/cli/help/command_help.h"
#include "app/cli/subcommand.h"
#include "app/exit_status.h"
#include "app/runs/open_store.h"
#include "storage/errors.h"

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

// Runs or ladders by number, newest first.
template <class Items>
void add_names(std::vector<std::string>& found, Items items) {
  std::reverse(items.begin(), items.end());
  if (items.size() > most_names) items.resize(most_names);
  for (const auto& item : items) found.push_back(std::to_string(item.id) + "\t" + item.name);
  found.emplace_back("latest\tthe newest one");
}

void add_values(std::vector<std::string>& found, const CLI::Option& option, const std::filesystem::path& database) {
  const std::string value = metavar(option);
  if (value == "FILE" || value == "FOLDER" || value == "POOL") {
    found.emplace_back(":files");
  } else if (value == "RUN" || value == "LADDER" || value == "RUN@STEP") {
    try {
      if (auto store = open_to_read(database))
        value == "LADDER" ? add_names(found, store->ladders()) : add_names(found, store->runs());
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
  std::vector<std::string> found;
  const std::string last = words.empty() ? "" : words.back();
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") return {":files"};  // the words of another program
    const bool ends_pending = std::exchange(pending, nullptr) != nullptr;
    if (i > 0 && words[i - 1] == "--db") database = word;
    if (ends_pending) continue;
    if (word.starts_with('-')) {
      const CLI::Option* option = at->get_option_no_throw(word);
      if (!option) option = app.get_option_no_throw(word);
      if (option && option->get_items_expected_min() > 0) pending = option;
    } else if (const CLI::App* command = command_named(*at, {word})) {
      at = command;
    }
  }
  if (pending) {
    add_values(found, *pending, database);
  } else if (last.starts_with('-')) {
    add_options(found, *at);
    if (at != &app) add_options(found, app);
  } else {
    for (const CLI::App* command : at->get_subcommands([](const CLI::App*) { return true; }))
      if (help_of(*command)) found.push_back(command->get_name() + "\t" + command->get_description());
    for (const CLI::Option* option : at->get_options())
      if (option->get_positional() && option->get_group() != hidden_group) add_values(found, *option, database);
  }
  return found;
}

}  // namespace stepladder
