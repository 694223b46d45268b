// Texts that name something to act on: a run's folder, a machine, a word for Slurm. Each has a type of its own, which
// only holds what its rule allows, so that a text from a file, a row or another machine has to pass the rule first.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace stepladder {

// `refuse` returns a sentence that says why a text isn't allowed; empty if it is.
template <std::string (*refuse)(std::string_view)>
class CheckedText {
 public:
  CheckedText() = default;  // empty: names nothing

  static std::string refused(std::string_view text) { return refuse(text); }
  static bool allows(std::string_view text) { return refuse(text).empty(); }
  static std::optional<CheckedText> from(std::string_view text) {
    return allows(text) ? std::optional(CheckedText(std::string(text))) : std::nullopt;
  }

  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  auto operator<=>(const CheckedText&) const = default;

 private:
  explicit CheckedText(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

std::string refused_uid(std::string_view text);
std::string refused_machine_alias(std::string_view text);
std::string refused_machine_folder(std::string_view text);
std::string refused_machine_program(std::string_view text);
std::string refused_slurm_word(std::string_view text);

// 32 lower-case hexadecimal digits, drawn by random_uid: the name of a run's folder, here and on other machines.
using Uid = CheckedText<refused_uid>;

// The name by which ssh knows a machine: letters, digits and . _ - @ : % + [ ], with no "-" in front.
using MachineAlias = CheckedText<refused_machine_alias>;

// A folder there: from / or ~/, of letters, digits, spaces and . _ - @ : % + = , so that it means the same to every
// shell in double quotes. Empty: the default.
using MachineFolder = CheckedText<refused_machine_folder>;

// A program there: one word or path without control characters. Empty: the default.
using MachineProgram = CheckedText<refused_machine_program>;

// A partition, an account or a time limit, as sbatch takes it behind "=". Empty: the cluster's default.
using SlurmWord = CheckedText<refused_slurm_word>;

}  // namespace stepladder
