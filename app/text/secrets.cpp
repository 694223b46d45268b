// Hides secrets in command lines before they are stored, in two passes: values after a secret's name, then tokens and
// passwords in the remaining words. python/stepladder.py has the same rules; change both.
#include "app/text/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace stepladder {
namespace {

constexpr std::string_view hidden = "***";

// The same rules as python/stepladder.py's. They hide too much rather than too little.

// A name one of whose words, or two of whose words together, end in one of these; or whose last word is one of those.
constexpr std::array<std::string_view, 16> secret_words = {
    "secret",  "secrets",   "password",   "passwords",  "passwd",      "passphrase", "pwd",         "apikey",
    "apikeys", "accesskey", "privatekey", "credential", "credentials", "authtoken",  "accesstoken", "bearer"};
constexpr std::array<std::string_view, 7> secret_ends = {"key", "auth", "pat", "pass", "cookie", "signature", "sig"};

// The start of a service's tokens: OpenAI and Anthropic, Hugging Face, GitHub, GitLab, Slack, npm, PyPI, Groq, NVIDIA,
// AWS, Google, W&B, a JWT.
constexpr std::array<std::string_view, 24> token_starts = {
    "sk-",    "hf_",   "ghp_",  "gho_",  "ghs_",   "ghu_",     "ghr_",     "github_pat_",
    "glpat-", "xoxa-", "xoxb-", "xoxp-", "xapp-",  "npm_",     "pypi-",    "gsk_",
    "nvapi-", "AKIA",  "ASIA",  "AIza",  "wandb_", "eyJhbGci", "eyJ0eXAi", "eyJraWQi"};
constexpr std::size_t shortest_token = 16;

// Words that may be between a header's name and its secret.
constexpr std::array<std::string_view, 5> schemes = {"bearer", "basic", "token", "digest", "apikey"};
constexpr std::string_view blanks = " \t";
constexpr std::string_view spaces = " \t\n\v\f\r";

template <std::size_t n>
bool is_one_of(std::string_view word, const std::array<std::string_view, n>& words) {
  return std::ranges::find(words, word) != words.end();
}

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
}

bool is_quote(char c) {
  return c == '\'' || c == '"';
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

bool ends_in_secret(std::string_view word) {
  return std::ranges::any_of(secret_words, [&](auto end) { return word.ends_with(end); });
}

// "--wandbApi_key" has the words wandb, api and key.
bool names_secret(std::string_view name) {
  if (!std::ranges::all_of(name, is_name)) return false;
  std::string before;
  std::string word;
  bool found = false;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    const auto c = static_cast<unsigned char>(i < name.size() ? name[i] : '-');
    const bool is_next = std::isupper(c) && i > 0 && std::islower(static_cast<unsigned char>(name[i - 1]));
    if ((!std::isalnum(c) || is_next) && !word.empty()) {
      found |= ends_in_secret(word) || ends_in_secret(before + word);
      before = std::exchange(word, {});
    }
    if (std::isalnum(c)) word += static_cast<char>(std::tolower(c));
  }
  return found || is_one_of(before, secret_ends) || before.ends_with("token") || before.ends_with("authorization");
}

bool is_token(std::string_view text) {
  return text.size() >= shortest_token &&
         std::ranges::any_of(token_starts, [&](auto start) { return text.starts_with(start); });
}

// The tokens and URLs in a word that has no name of its own.
std::string hide_values(std::string text) {
  for (std::size_t scheme = 0; (scheme = text.find("://", scheme)) != std::string::npos;) {
    scheme += 3;
    const std::size_t end = std::min(text.find_first_of("/?# \t'\"", scheme), text.size());
    const std::size_t at = text.rfind('@', end);
    if (at != std::string::npos && at > scheme && at < end) text.replace(scheme, at - scheme, hidden);
  }
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && is_name(text[end])) ++end;
    if (is_token(std::string_view(text).substr(begin, end - begin))) {
      text.replace(begin, end - begin, hidden);
      end = begin + hidden.size();
    }
    begin = std::max(end, begin + 1);
  }
  return text;
}

// The end of the value of a secret's name: its own quote, the quote that encloses the name too (`outer`, or 0), or the
// next separator.
std::size_t value_end(std::string_view text, std::size_t begin, char outer) {
  if (begin < text.size() && is_quote(text[begin]))
    return std::min(text.find(text[begin], begin + 1), text.size() - 1) + 1;
  if (is_quote(outer)) return std::min(text.find(outer, begin), text.size());
  std::size_t end = begin;
  while (end < text.size() && std::isalpha(static_cast<unsigned char>(text[end]))) ++end;
  const std::size_t secret = std::min(text.find_first_not_of(blanks, end), text.size());
  const bool has_scheme = secret > end && is_one_of(lower(text.substr(begin, end - begin)), schemes);
  return std::min(text.find_first_of("&,; \t\n\v\f\r", has_scheme ? secret : begin), text.size());
}

// Hides the values of names that are secret: "?api_key=X&n=3", '{"token": "X"}', "Authorization: Bearer X".
std::string hide_pairs(std::string text) {
  for (std::size_t sign = 0; (sign = text.find_first_of("=:", sign)) != std::string::npos; ++sign) {
    if (sign == 0 || text.compare(sign, 3, "://") == 0) continue;
    std::size_t end = text.find_last_not_of(blanks, sign - 1) + 1;
    const bool is_spaced = end < sign;
    const bool is_quoted = end > 0 && is_quote(text[end - 1]);
    if (is_quoted) --end;
    if (is_quoted && end > 0 && text[end - 1] == '\\') --end;
    std::size_t begin = end;
    while (begin > 0 && is_name(text[begin - 1])) --begin;
    if (!names_secret(std::string_view(text).substr(begin, end - begin))) continue;
    std::size_t value = sign + 1;
    if (text[sign] == ':' || is_spaced) value = std::min(text.find_first_not_of(blanks, value), text.size());
    end = value_end(text, value, begin > 0 && !is_quoted ? text[begin - 1] : '\0');
    if (end == value) continue;
    text.replace(value, end - value, hidden);
    sign = value + hidden.size() - 1;
  }
  return text;
}

// True if the next word is a secret: after "--token", "Authorization:" and "Bearer".
bool secret_follows(std::string_view word) {
  if (lower(word) == "bearer" || (word.ends_with(':') && names_secret(word.substr(0, word.size() - 1)))) return true;
  return word.starts_with('-') && word.find('=') == std::string_view::npos && names_secret(word);
}

// A word, or a command for a shell in one argument, or any other text.
std::string hide(const std::string& argument) {
  for (const char sign : {'=', ':'}) {  // a whole argument may have spaces in its value
    const std::size_t at = argument.find(sign);
    if (at + 1 >= argument.size() || argument.compare(at + 1, 2, "//") == 0) continue;  // npos + 1 is 0
    if (at == std::string::npos || !names_secret(std::string_view(argument).substr(0, at))) continue;
    return argument.substr(0, at + 1) + (argument[at + 1] == ' ' ? " " : "") + std::string(hidden);
  }
  const std::string text = hide_pairs(argument);
  std::string result;
  bool follows = false;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = std::min(text.find_first_of(spaces, begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (follows && !word.empty() && !word.starts_with('-')) {
      if (is_quote(word[0]) && text.find(word[0], begin + 1) != std::string::npos)
        end = std::max(end, text.find(word[0], begin + 1) + 1);
      result += hidden;
    } else {
      result += hide_values(word);
    }
    if (!word.empty()) follows = secret_follows(word);
    if (end < text.size() && spaces.find(text[end]) != std::string_view::npos) result += text[end++];
    begin = end;
  }
  return result;
}

}  // namespace

bool holds_token(std::string_view text) {
  if (const std::size_t key = text.find("-----BEGIN "); key != std::string_view::npos)
    if (text.substr(key, 60).find("PRIVATE KEY") != std::string_view::npos) return true;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && is_name(text[end])) ++end;
    if (is_token(text.substr(begin, end - begin))) return true;
    begin = std::max(end, begin + 1);
  }
  return false;
}

std::vector<std::string> each_without_secrets(const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  bool follows = false;
  for (const std::string& argument : arguments) {
    words.push_back(follows && !argument.starts_with('-') ? std::string(hidden) : hide(argument));
    follows = secret_follows(argument);
  }
  return words;
}

std::string without_secrets(const std::vector<std::string>& arguments) {
  std::string line;  // the far program has no {fmt}
  for (const std::string& word : each_without_secrets(arguments)) line += (line.empty() ? "" : " ") + word;
  return line;
}

}  // namespace stepladder
