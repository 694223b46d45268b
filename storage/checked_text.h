// Texts that name something to act on: a run's folder, a machine, a word for Slurm. Each has a type of its own, which
// only holds what its rule allows, so that a text from a file, a row or another machine has to pass the rule first.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace stepladder {

// `Rule::refused` returns a sentence that says why a text isn't allowed; empty if it is.
template <class Rule>
class CheckedText {
 public:
  CheckedText() = default;  // empty: names nothing

  static std::string refused(std::string_view text) { return Rule::refused(text); }
  static std::optional<CheckedText> from(std::string_view text) {
    return refused(text).empty() ? std::optional(CheckedText(std::string(text))) : std::nullopt;
  }

  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  auto operator<=>(const CheckedText&) const = default;

 private:
  explicit CheckedText(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

// 32 lower-case hexadecimal digits, drawn by random_uid: the name of a run's folder, here and on other machines.
struct UidRule {
  static std::string refused(std::string_view text);
};
using Uid = CheckedText<UidRule>;

// What ssh calls a machine: letters, digits and . _ - @ : % + [ ], with no "-" in front.
struct MachineAliasRule {
  static std::string refused(std::string_view text);
};
using MachineAlias = CheckedText<MachineAliasRule>;

// A folder there: from / or ~/, of letters, digits, spaces and . _ - @ : % + = , so that it means the same to every
// shell in double quotes. Empty: the default.
struct MachineFolderRule {
  static std::string refused(std::string_view text);
};
using MachineFolder = CheckedText<MachineFolderRule>;

// A program there: one word or path without control characters. Empty: the default.
struct MachineProgramRule {
  static std::string refused(std::string_view text);
};
using MachineProgram = CheckedText<MachineProgramRule>;

// A partition, an account or a time limit, as sbatch takes it behind "=". Empty: the cluster's default.
struct SlurmWordRule {
  static std::string refused(std::string_view text);
};
using SlurmWord = CheckedText<SlurmWordRule>;

}  // namespace stepladder
