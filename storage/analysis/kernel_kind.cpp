// Divides a kernel's name, demangled or mangled, into function, scope and template arguments, and finds the first
// family in each: the function's own words count before its namespaces, and these before its arguments. Names may be
// cut, so brackets needn't match.
#include "storage/analysis/kernel_kind.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "storage/analysis/kernel_families.h"

namespace stepladder {
namespace {

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_numeral(char c) {
  return c >= '0' && c <= '9';
}

// Whether one of the alternatives of a family is among the words.
bool has_words(std::string_view words, std::string_view alternatives) {
  while (!alternatives.empty()) {
    const std::string_view each = alternatives.substr(0, alternatives.find('|'));
    alternatives.remove_prefix(std::min(each.size() + 1, alternatives.size()));
    for (std::size_t at = words.find(each); at != std::string_view::npos; at = words.find(each, at + 1)) {
      if (at > 0 && words[at - 1] == ' ' && at + each.size() < words.size() && words[at + each.size()] == ' ')
        return true;
    }
  }
  return false;
}

struct NameParts {
  std::string function, scope, arguments;  // words
};

// The identifiers of a mangled name have their length in front of them; a literal's number doesn't ("Li64E").
NameParts parts_of_mangled(std::string_view name) {
  std::string function, scope, arguments;
  bool in_path = true;
  for (std::size_t i = 2; i < name.size();) {
    if (is_numeral(name[i])) {
      std::size_t length = 0;
      for (; i < name.size() && is_numeral(name[i]) && length < 10'000; ++i)
        length = length * 10 + static_cast<std::size_t>(name[i] - '0');
      const std::string_view identifier = name.substr(i, length);
      if (in_path) scope += " " + std::exchange(function, std::string(identifier));
      if (!in_path) (arguments += ' ') += identifier;
      i += identifier.size();
    } else if (name[i] == 'L' && i + 2 < name.size() && is_lower(name[i + 1]) && is_numeral(name[i + 2])) {
      for (i += 2; i < name.size() && is_numeral(name[i]);) ++i;
    } else {
      if (!function.empty() && (name[i] == 'I' || name[i] == 'E')) in_path = false;
      ++i;
    }
  }
  return {words_of_name(function), words_of_name(scope), words_of_name(arguments)};
}

NameParts parts_of(std::string_view name) {
  if (name.starts_with("_Z")) return parts_of_mangled(name);
  constexpr std::string_view unnamed = "(anonymous namespace)::";
  std::string path, arguments;
  int angles = 0, rounds = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (name.substr(i).starts_with(unnamed)) {
      i += unnamed.size() - 1;
    } else if (c == '(' || c == ')') {
      rounds = std::max(rounds + (c == '(' ? 1 : -1), 0);
    } else if (rounds > 0) {
      continue;  // types of parameters
    } else if (c == '<') {
      ++angles;
      arguments += ' ';
    } else if (c == '>' && angles > 0) {
      --angles;
    } else {
      (angles > 0 ? arguments : path) += c;
    }
  }
  for (const std::string_view returned : {"void ", "::type "}) {
    if (const std::size_t at = path.find(returned); at != std::string::npos) path.erase(0, at + returned.size());
  }
  const std::size_t scope = path.rfind("::");
  if (scope == std::string::npos) return {words_of_name(path), " ", words_of_name(arguments)};
  return {words_of_name(std::string_view(path).substr(scope)), words_of_name(std::string_view(path).substr(0, scope)),
          words_of_name(arguments)};
}

const KernelFamily* family_in(std::string_view words, bool are_arguments = false) {
  const auto* const found = std::ranges::find_if(kernel_families, [&](const KernelFamily& each) {
    return (!are_arguments || each.place == FamilyPlace::anywhere) && has_words(words, each.words);
  });
  return found == kernel_families.end() ? nullptr : found;
}

bool is_fusible(OperatorKind kind) {
  return kind == OperatorKind::softmax || kind == OperatorKind::layer_norm || kind == OperatorKind::normalisation ||
         kind == OperatorKind::gelu || kind == OperatorKind::activation || kind == OperatorKind::embedding;
}

// Inductor's names list the operators whose loops it fused, and those beside which it did. Only a template ("tem")
// multiplies matrices; a pointwise loop normalises nothing that it doesn't also activate.
OperatorKind fused_kind(std::string_view words) {
  if (has_words(words, "triton tem|triton mm|triton bmm|triton addmm|triton sdpa|triton flex"))
    return has_words(words, "attention|sdpa|flex") ? OperatorKind::attention
           : has_words(words, "convolution|conv")  ? OperatorKind::convolution
                                                   : OperatorKind::products;
  const bool is_pointwise = has_words(words, "triton poi");
  for (const bool is_first : {true, false}) {
    for (const KernelFamily& each : kernel_families) {
      if (each.words.starts_with("sigmoid")) continue;  // a gate, as often as an activation
      const bool activates = each.kind == OperatorKind::gelu || each.kind == OperatorKind::activation;
      const bool counts = is_first ? is_pointwise && activates : is_fusible(each.kind);
      if (counts && has_words(words, each.words)) return each.kind;
    }
  }
  if (!is_pointwise && has_words(words, "rsqrt") && has_words(words, "mean|var")) return OperatorKind::normalisation;
  for (std::size_t at = 1; at < words.size();) {
    const std::string_view word = words.substr(at, words.find(' ', at) - at);
    if (!is_numeral(word.front()) && !has_words(moving_words, word)) return OperatorKind::elementwise;
    at += word.size() + 1;
  }
  return OperatorKind::copies;
}

}  // namespace

std::string words_of_name(std::string_view name) {
  std::string words = " ";
  char before = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (!is_upper(c) && !is_lower(c) && !is_numeral(c)) {
      if (words.back() != ' ') words += ' ';
      before = 0;
      continue;
    }
    const bool begins_word = is_numeral(c) != is_numeral(before) || (is_lower(before) && is_upper(c)) ||
                             (is_upper(before) && is_upper(c) && i + 1 < name.size() && is_lower(name[i + 1]));
    if (before != 0 && begins_word) words += ' ';
    words += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    before = c;
  }
  if (words.back() != ' ') words += ' ';
  return words;
}

std::optional<KernelKind> kernel_kind(std::string_view name) {
  if (name == launch_gap || name == kernel_gap || name == idle_gap) return KernelKind{OperatorKind::idle};
  if (name.starts_with("triton_") || name.starts_with("cpp_fused")) return KernelKind{fused_kind(words_of_name(name))};
  const NameParts parts = parts_of(name);
  const auto is_carrier = [](const KernelFamily* each) { return each && each->place == FamilyPlace::carrier; };
  const KernelFamily* family = family_in(parts.function);
  if (!family || is_carrier(family)) {
    const KernelFamily* const around = family_in(parts.scope);
    const KernelFamily* inner = is_carrier(family) || is_carrier(around) ? family_in(parts.arguments, true) : nullptr;
    if (around && !is_carrier(around) && (!family || !inner)) inner = around;
    family = inner ? inner : family ? family : around;
  }
  if (!family || family->kind == OperatorKind::other) return std::nullopt;
  return KernelKind{family->kind, family->is_generic};
}

std::optional<OperatorKind> operator_kind(std::string_view name) {
  const std::string words = words_of_name(name);
  for (const OperatorFamily& each : operator_families) {
    if (has_words(words, each.words)) return each.kind;
  }
  return std::nullopt;
}

bool is_communication(std::string_view name) {
  const std::optional<KernelKind> kind = kernel_kind(name);
  return kind && kind->kind == OperatorKind::communication;
}

}  // namespace stepladder
