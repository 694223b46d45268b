// Walks the words of a command line along CLI11's tree of commands, so that the first wrong word is the one that is
// named: CLI11 itself reports what is left over in the end, without a suggestion.
#include "app/cli/help/arguments.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "app/cli/help/help.h"
#include "engine/nearest.h"
#include "storage/bounded_text.h"
#include "storage/number_text.h"

namespace stepladder {
namespace {

// The old and the short spellings of commands, in words of today's.
constexpr std::pair<std::string_view, std::string_view> spellings[] = {
    {"list", "runs"},
    {"ls", "runs"},
    {"verify", "confirm"},
    {"continue", "unpause"},
    {"gate", "record gate"},
    {"claim", "record"},
    {"profile operators", "operators"},
    {"resume ladder", "ladder --continue"},
    {"resume", "train --resume"},
    {"ladder list", "ladders"},
    {"machines list", "machines"},
    {"bin list", "bin"},
    {"bin empty", "bin --empty"},
};

// What people try first, and the command that does it.
constexpr std::pair<std::string_view, std::string_view> other_words[] = {
    {"rm", "delete"},    {"del", "delete"},    {"remove", "delete"},    {"trash", "bin"}, {"undelete", "restore"},
    {"tag", "edit"},     {"note", "edit"},     {"rename", "edit"},      {"ps", "runs"},   {"history", "runs"},
    {"diff", "compare"}, {"info", "show"},     {"cat", "show"},         {"run", "train"}, {"status", "runs"},
    {"bench", "ladder"}, {"load", "import"},   {"benchmark", "ladder"}, {"kill", "stop"}, {"gpu", "doctor"},
    {"plot", "export"},  {"report", "export"},
};

// Options that other programs have for what one of the command's own does.
constexpr std::pair<std::string_view, std::string_view> other_options[] = {
    {"vary", "over"}, {"grid", "over"}, {"param", "over"}, {"params", "over"}, {"sweep", "over"}};

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream in{std::string(text)};
  return {std::istream_iterator<std::string>(in), {}};
}

std::string in_quotes(const std::string& word) {
  return "'" + bounded(word, longest_name) + "'";
}

std::string help_hint(const CLI::App& command) {
  const std::string path = command_path(command);
  return "`stepladder " + path + (path.empty() ? "" : " ") + "--help` lists the " +
         (path.empty() ? "commands" : "options");
}

bool is_number(const std::string& word) {
  return parse_number<double>(word).has_value();
}

// `record bisect` was a command; git does it now.
[[noreturn]] void refuse_bisect() {
  throw UsageError(
      "git bisect finds the commit, with record gate as its judge",
      {.code = "unknown-command",
       .argument = "bisect",
       .hint = "after `git bisect start BAD GOOD`: git bisect run sh -c 'stepladder record gate --against GOOD -- "
               "COMMAND; case $? in 0) exit 0;; 10|13) exit 1;; 1|11) exit 125;; *) exit 255;; esac'"});
}

// The command that a mistyped word, or one of other programs, means; else empty.
std::string near_command(const CLI::App& at, const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::App* command : at.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_group().empty()) continue;
    known.push_back(command->get_name());
    known.insert(known.end(), command->get_aliases().begin(), command->get_aliases().end());
  }
  for (const auto& [other, command] : other_words)
    if (!at.get_parent() && word == other && std::ranges::find(known, command) != known.end())
      return std::string(command);
  return nearest_name(word, known);
}

// For a word behind a command: the command that it may be meant for, "show" of `runs show 3`.
std::string hint_for_word(const CLI::App& root, const CLI::App& at, const std::string& word) {
  const std::string path = command_path(at);
  const bool has_show = command_named(at, {"show"}) && (word == "latest" || is_number(word));
  if (has_show) return "did you mean `" + path + " show " + word + "`?";
  const std::string one = path.substr(0, path.find_last_not_of('s') + 1);
  if (command_named(root, {one, word})) return "did you mean `" + one + " " + word + "`?";
  return command_named(root, {word}) ? "did you mean `" + word + "`?" : help_hint(at);
}

}  // namespace

const CLI::App& root_of(const CLI::App& command) {
  return command.get_parent() ? root_of(*command.get_parent()) : command;
}

void refuse_command(const CLI::App& at, const std::string& word) {
  const std::string path = command_path(at);
  const std::string meant = near_command(at, word);
  throw UsageError(in_quotes(word) + " is not a command" + (path.empty() ? "" : " of `stepladder " + path + "`"),
                   {.code = "unknown-command",
                    .argument = path.empty() ? "command" : path,
                    .value = word,
                    .hint = meant.empty() ? hint_for_word(root_of(at), at, word) : "did you mean " + meant + "?"});
}

namespace {

// For an option that only other commands have, also if it is mistyped: their names.
std::string hint_to_owner(const CLI::App& root, const CLI::App& at, const std::string& option) {
  std::string owners;
  std::vector<std::string> known;
  for (const CLI::App* command : root.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_group().empty()) continue;
    if (command->get_option_no_throw("--" + option)) owners += (owners.empty() ? "" : ", ") + command->get_name();
    for (const CLI::Option* each : command->get_options())
      known.insert(known.end(), each->get_lnames().begin(), each->get_lnames().end());
  }
  if (!owners.empty()) return "it is an option of: " + owners;
  const std::string meant = nearest_name(option, known);
  return meant.empty() ? help_hint(at) : "did you mean --" + meant + "? " + hint_to_owner(root, at, meant);
}

[[noreturn]] void refuse_option(const CLI::App& root, const CLI::App& at, const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::App* app : {&at, &root})
    for (const CLI::Option* option : app->get_options())
      for (const std::string& name : option->get_lnames()) known.push_back(name);
  const std::string bare = word.substr(std::min(word.find_first_not_of('-'), word.size()));
  std::string meant = bare.size() > 1 ? nearest_name(bare, known) : "";
  for (const auto& [other, own] : other_options)
    if (bare == other && std::ranges::find(known, own) != known.end()) meant = own;
  const std::string owner = bare.size() > 1 ? hint_to_owner(root, at, bare) : help_hint(at);
  const std::string path = command_path(at);
  throw UsageError(
      in_quotes(word) + " is not an option" + (path.empty() ? "" : " of `stepladder " + path + "`"),
      {.code = "unknown-option", .argument = word, .hint = meant.empty() ? owner : "did you mean --" + meant + "?"});
}

// An empty variable of a script is no value, except of an option whose text may be nothing.
void refuse_empty(const std::string& option, const CLI::App& at) {
  for (const std::string_view free_text :
       {"--note", "--name", "--filter", "--sample-prompt", "--message", "-m", "--db"})
    if (option == free_text) return;
  throw UsageError(option + ": the value is empty",
                   {.code = "invalid-value", .argument = option, .hint = help_hint(at)});
}

const CLI::App* subcommand_named(const CLI::App& at, const std::string& word) {
  for (const CLI::App* command : at.get_subcommands([](const CLI::App*) { return true; }))
    if (command->check_name(word)) return command;
  return nullptr;
}

bool has_subcommands(const CLI::App& at) {
  return !at.get_subcommands([](const CLI::App*) { return true; }).empty();
}

int most_positions(const CLI::App& at) {
  int most = 0;
  for (const CLI::Option* option : at.get_options())
    if (option->get_positional()) most = std::min(most + option->get_items_expected_max(), 1 << 20);
  return most;
}

// The option that a word names, in the command or for all commands; null if there is none.
const CLI::Option* option_named(const CLI::App& root, const CLI::App& at, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  for (const CLI::App* app : {&at, &root})
    if (const CLI::Option* option = app->get_option_no_throw(name)) return option;
  if (word.size() > 2 && word[1] != '-')  // -oFILE
    for (const CLI::App* app : {&at, &root})
      if (const CLI::Option* option = app->get_option_no_throw(word.substr(0, 2)))
        return option->get_items_expected_max() > 0 ? option : nullptr;
  return nullptr;
}

// Whether the word is an option, whole: "-5" and "-oFILE" may be values.
bool names_option(const CLI::App& root, const CLI::App& at, const std::string& word) {
  return word.size() > 1 && word[0] == '-' && (at.get_option_no_throw(word) || root.get_option_no_throw(word));
}

// Whether the word after the i-th is the value of the option that it names.
bool takes_next(const CLI::Option& option, const CLI::App& at, const std::vector<std::string>& words, std::size_t i) {
  if (option.get_items_expected_min() > 0) return true;
  if (option.get_items_expected_max() != 1 || i + 1 == words.size()) return false;
  const std::string& next = words[i + 1];
  return (next[0] != '-' || is_number(next)) && !subcommand_named(at, next);
}

// Throws UsageError if the option takes a list and an item of it is empty, or was there before (`seen`).
void check_list(const CLI::Option& option, const std::string& name, const std::string& text,
                std::set<std::pair<const CLI::Option*, std::string>>& seen) {
  const char comma = option.get_delimiter();
  if (comma == '\0') return;
  for (std::size_t begin = 0, end = 0; begin <= text.size(); begin = end + 1) {
    end = std::min(text.find(comma, begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    if (!item.empty() && seen.insert({&option, item}).second) continue;
    throw UsageError(
        name + ": " + (item.empty() ? in_quotes(text) + " has an empty item" : in_quotes(item) + " is there twice"),
        {.code = "invalid-value", .argument = name, .value = item.empty() ? text : item});
  }
}

// The text between the last two quotes: the value that a sentence of ours names.
std::string named_value(const std::string& text) {
  const std::size_t end = text.rfind('\''),
                    begin = end == std::string::npos || end == 0 ? end : text.rfind('\'', end - 1);
  return begin == std::string::npos || begin == end ? "" : text.substr(begin + 1, end - begin - 1);
}

template <class Number>
std::string number_problem(const std::string& text, const char* what) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return "is too large: " + in_quotes(text);
  return error == std::errc() && end == text.data() + text.size()
             ? ""
             : "must be " + std::string(what) + ", not " + in_quotes(text);
}

// The text with each option called as the words call it: an old spelling stays the user's.
std::string as_given(std::string text, const CLI::App& at, const std::vector<std::string>& words) {
  const auto is_given = [&](const std::string& name) {
    return std::ranges::any_of(words,
                               [&](const std::string& word) { return word == name || word.starts_with(name + "="); });
  };
  for (const CLI::Option* option : at.get_options()) {
    const std::string name = option->get_name();
    if (option->get_lnames().size() < 2 || is_given(name)) continue;
    for (const std::string& other : option->get_lnames()) {
      const std::size_t begin = text.find(name), end = begin + name.size();
      if (!is_given("--" + other) || begin == std::string::npos) continue;
      if (end == text.size() || text[end] == ':' || text[end] == ' ' || text[end] == ',')
        text.replace(begin, name.size(), "--" + other);
    }
  }
  return text;
}

}  // namespace

std::string command_path(const CLI::App& command) {
  if (!command.get_parent()) return {};
  const std::string above = command_path(*command.get_parent());
  return above + (above.empty() ? "" : " ") + command.get_name();
}

const CLI::App* command_named(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* at = &app;
  for (const std::string& word : words) {
    at = subcommand_named(*at, word);
    if (!at) return nullptr;
  }
  return at;
}

const CLI::App& parsed_command(const CLI::App& app) {
  const CLI::App* at = &app;
  for (auto given = at->get_subcommands(); !given.empty(); given = at->get_subcommands()) at = given.front();
  return *at;
}

std::vector<std::string> respelled(const CLI::App& app, std::vector<std::string> words) {
  std::size_t at = 0;
  while (at < words.size() && words[at].starts_with('-') && words[at] != "--") {
    const CLI::Option* option = app.get_option_no_throw(words[at]);
    at += option && option->get_items_expected_min() > 0 ? 2 : 1;
  }
  for (const auto& [old, now] : spellings) {
    const std::vector<std::string> from = words_of(old);
    std::vector<std::string> to = words_of(now);
    if (at + from.size() > words.size() || !std::equal(from.begin(), from.end(), words.begin() + std::ptrdiff_t(at)))
      continue;
    const auto place =
        words.erase(words.begin() + std::ptrdiff_t(at), words.begin() + std::ptrdiff_t(at + from.size()));
    if (place != words.end() && (*place == "--help" || *place == "-h"))
      std::erase_if(to, [](const std::string& word) { return word.starts_with('-'); });  // help is of the command
    words.insert(place, to.begin(), to.end());
    return words;
  }
  return words;
}

void check_words(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* at = &app;
  const CLI::Option* list = nullptr;  // the option before, if it takes several values
  std::string list_name, of_parent;   // of_parent: the first word that belongs to the command above a subcommand
  std::set<std::pair<const CLI::Option*, std::string>> seen;
  int positions = 0;
  const bool asks_for_help =
      std::ranges::any_of(words, [](const std::string& word) { return word == "--help" || word == "-h"; });
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const std::string& word = words[i];
    if (word.size() > 1 && word[0] == '-' && !is_number(word)) {
      const CLI::Option* option = option_named(app, *at, word);
      if (!option) refuse_option(app, *at, word);
      const bool has_value = word.find('=') != std::string::npos || (word[1] != '-' && word.size() > 2);
      if (has_value && option->get_items_expected_max() == 0) {
        const std::string name = word.substr(0, word.find('='));
        throw UsageError(name + " takes no value",
                         {.code = "invalid-value", .argument = name, .value = word.substr(word.find('=') + 1)});
      }
      const std::string name = has_value && word[1] == '-' ? word.substr(0, word.find('=')) : word;
      const bool is_common = option == at->get_help_ptr() || option->check_lname("json");
      if (of_parent.empty() && !is_common && at->get_option_no_throw(name)) of_parent = name;
      if (name.size() < word.size()) check_list(*option, name, word.substr(name.size() + 1), seen);
      if (!has_value && takes_next(*option, *at, words, i)) {
        if (++i < words.size() && (words[i] == "--" || names_option(app, *at, words[i])))
          throw UsageError(word + " needs a value",
                           {.code = "missing-value", .argument = word, .hint = help_hint(*at)});
        if (i < words.size() && words[i].empty()) refuse_empty(word, *at);
        if (i < words.size()) check_list(*option, word, words[i], seen);
      }
      list = option->get_items_expected_max() > 1 ? option : nullptr;
      list_name = name;
    } else if (list && !subcommand_named(*at, word)) {
      check_list(*list, list_name, word, seen);
    } else if (word.empty() && at != &app) {
      throw UsageError("an argument is empty", {.code = "invalid-value", .hint = help_hint(*at)});
    } else if (const CLI::App* command = subcommand_named(*at, word)) {
      if (at != &app && !of_parent.empty())
        throw UsageError(command_path(*command) + " doesn't take " + of_parent,
                         {.code = "unexpected-argument", .argument = of_parent, .hint = help_hint(*command)});
      of_parent.clear();
      at = command;
    } else if (word == "bisect" && command_path(*at) == "record") {
      refuse_bisect();
    } else if (at == &app) {
      if (!word.ends_with(".stepladder")) refuse_command(app, word);
    } else if (has_subcommands(*at) && most_positions(*at) == 0) {
      refuse_command(*at, word);
    } else if (++positions > most_positions(*at)) {
      throw UsageError(in_quotes(word) + " was not expected",
                       {.code = "unexpected-argument", .value = word, .hint = hint_for_word(app, *at, word)});
    } else {
      if (has_subcommands(*at) && asks_for_help && !near_command(*at, word).empty()) refuse_command(*at, word);
      if (of_parent.empty()) of_parent = in_quotes(word);
    }
  }
}

void check_numbers(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) continue;
    const std::string type = option->get_type_name().substr(0, option->get_type_name().find(':'));
    if (type == "INT")
      option->check([](const std::string& text) { return number_problem<std::int64_t>(text, "a whole number"); }, "");
    else if (type == "UINT")
      option->check(
          [](const std::string& text) { return number_problem<std::uint64_t>(text, "a whole number of at least 0"); },
          "");
    else if (type == "FLOAT")
      option->check([](const std::string& text) { return number_problem<double>(text, "a number"); }, "");
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) check_numbers(*command);
}

UsageError usage_error(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words) {
  const CLI::App& at = parsed_command(app);
  std::string text = as_given(error.what(), at, words);
  ErrorParts parts{.code = "usage", .hint = help_hint(at)};
  const auto up_to = [&](const char* end) { return text.substr(0, text.find(end)); };
  if (dynamic_cast<const CLI::RequiredError*>(&error)) {
    parts.code = "missing-argument";
    parts.argument = up_to(" is required");
    for (const CLI::Option* option : at.get_options())
      if (option->get_positional() && option->get_name(true) == parts.argument)
        text = metavar(*option) + text.substr(parts.argument.size());
  } else if (dynamic_cast<const CLI::RequiresError*>(&error)) {
    parts.code = "missing-argument";
    parts.argument = text.substr(text.rfind(' ') + 1);
  } else if (dynamic_cast<const CLI::ExcludesError*>(&error)) {
    parts.code = "conflicting-options";
    parts.argument = up_to(" ");
  } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) {
    parts.argument = text.starts_with("Expected") ? text.substr(text.rfind(" to ") + 4) : up_to(":");
    parts.argument = parts.argument.substr(0, parts.argument.find(','));
    const bool is_repeated = text.find("At Most") != std::string::npos || text.find("exactly") != std::string::npos;
    parts.code = is_repeated ? "repeated-option" : "missing-value";
    text = parts.argument + (is_repeated ? " takes one value, but several are given" : " needs a value");
  } else if (dynamic_cast<const CLI::ValidationError*>(&error)) {
    parts.code = "invalid-value";
    parts.argument = up_to(": ");
    parts.value = named_value(text);
  } else if (dynamic_cast<const CLI::ConversionError*>(&error)) {
    parts.code = "invalid-value";
    const std::string pair = text.substr(text.find(": ") == std::string::npos ? 0 : text.find(": ") + 2);
    parts.argument = pair.substr(0, pair.find(" = "));
    parts.value = pair.find(" = ") == std::string::npos ? "" : pair.substr(pair.find(" = ") + 3);
    text = parts.argument + ": " + in_quotes(parts.value) + " is not a value that it takes";
  } else if (dynamic_cast<const CLI::ExtrasError*>(&error)) {
    const std::string rest = text.substr(text.find(": ") + 2);
    parts.code = "unexpected-argument";
    parts.value = rest.substr(rest.rfind(' ') + 1);  // CLI11 has the first word last
    text = in_quotes(parts.value) + " was not expected";
  }
  return UsageError(bounded(std::move(text), longest_line), std::move(parts));
}

}  // namespace stepladder
