#include "storage/checked_text.h"

#include <algorithm>

namespace stepladder {
namespace {

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool has_only(std::string_view text, std::string_view more) {
  return std::ranges::all_of(text,
                             [&](char c) { return is_letter_or_digit(c) || more.find(c) != std::string_view::npos; });
}

bool has_control_characters(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; });
}

}  // namespace

std::string refused_uid(std::string_view text) {
  const bool is_uid = text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return is_uid ? "" : "a uid has 32 lower-case hexadecimal digits";
}

std::string refused_machine_alias(std::string_view text) {
  if (text.empty()) return "a machine needs a name";
  if (text.size() > 200) return "a machine's name has at most 200 characters";
  if (text.front() == '-') return "a machine's name can't begin with \"-\", since ssh would take it for an option";
  if (!has_only(text, "._-@:%+[]"))
    return "a machine's name has only letters, digits and . _ - @ : % +, as an alias of ssh has";
  return {};
}

std::string refused_machine_folder(std::string_view text) {
  if (text.empty()) return {};
  if (text.front() != '/' && !text.starts_with("~/")) return "a machine's folder begins with / or ~/";
  if (!has_only(text, "._-@:%+=,/~ "))
    return "a machine's folder has only letters, digits, spaces and . _ - @ : % + = , /";
  return text.size() > 1000 ? "a machine's folder has at most 1,000 characters" : "";
}

std::string refused_machine_program(std::string_view text) {
  if (text.empty()) return {};
  if (text.front() == '-') return "a machine's program can't begin with \"-\"";
  if (has_control_characters(text)) return "a machine's program is one word or path, without control characters";
  return text.size() > 1000 ? "a machine's program has at most 1,000 characters" : "";
}

std::string refused_slurm_word(std::string_view text) {
  if (text.empty()) return {};
  if (text.front() == '-') return "a word for Slurm can't begin with \"-\", since sbatch would take it for an option";
  if (!has_only(text, "._-,:@+")) return "a word for Slurm has only letters, digits and . _ - , : @ +";
  return text.size() > 200 ? "a word for Slurm has at most 200 characters" : "";
}

}  // namespace stepladder
