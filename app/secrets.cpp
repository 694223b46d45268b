#include "app/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace stepladder {
namespace {

constexpr std::string_view hidden = "***";

// A name that has one of these words anywhere, or ends in one of those.
constexpr std::array<std::string_view, 11> secret_words = {"secret",    "password",    "passwd",     "passphrase",
                                                           "pwd",       "apikey",      "credential", "credentials",
                                                           "authtoken", "accesstoken", "bearer"};
constexpr std::array<std::string_view, 7> secret_ends = {"key",           "token", "auth",  "pat",
                                                         "authorization", "pass",  "cookie"};

// The start of a service's tokens: OpenAI and Anthropic, Hugging Face, GitHub, GitLab, Slack, AWS, Google, W&B, a JWT.
constexpr std::array<std::string_view, 14> token_starts = {"sk-",         "hf_",    "ghp_",   "gho_",    "ghs_",
                                                           "github_pat_", "glpat-", "xoxb-",  "xoxp-",   "AKIA",
                                                           "ASIA",        "AIza",   "wandb_", "eyJhbGci"};
constexpr std::size_t shortest_token = 16;

template <std::size_t n>
bool is_one_of(std::string_view word, const std::array<std::string_view, n>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
}

// "--wandbApi_key" has the words wandb, api and key.
bool names_secret(std::string_view name) {
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_name)) return false;
  std::string word;
  bool was_lower = false;
  bool found = false;
  const auto end_word = [&] {
    found |= is_one_of(word, secret_words);
    if (!word.empty()) word.clear();
  };
  std::string last;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (!std::isalnum(byte) || (std::isupper(byte) && was_lower)) end_word();
    was_lower = std::islower(byte);
    if (!std::isalnum(byte)) continue;
    word += static_cast<char>(std::tolower(byte));
    last = word;
  }
  end_word();
  return found || is_one_of(last, secret_ends);
}

bool is_token(std::string_view text) {
  return text.size() >= shortest_token &&
         std::any_of(token_starts.begin(), token_starts.end(), [&](auto start) { return text.starts_with(start); });
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

// "?api_key=X&n=3" and "--a=1,token=X": every name with its value, up to the next one.
std::string hide_pairs(std::string text) {
  for (std::size_t sign = 0; (sign = text.find('=', sign)) != std::string::npos; ++sign) {
    std::size_t begin = sign;
    while (begin > 0 && is_name(text[begin - 1])) --begin;
    if (!names_secret(std::string_view(text).substr(begin, sign - begin))) continue;
    const std::size_t value = sign + 1;
    const bool quoted = value < text.size() && (text[value] == '\'' || text[value] == '"');
    const std::size_t end = quoted ? text.find(text[value], value + 1) : text.find_first_of("&,; \t\n", value);
    text.replace(value, std::min(end, text.size()) - value + (quoted && end != std::string::npos ? 1 : 0), hidden);
    sign = value + hidden.size() - 1;
  }
  return text;
}

// "Authorization: Bearer X"
std::string hide_header(std::string text) {
  const std::size_t colon = text.find(": ");
  if (colon == std::string::npos || !names_secret(std::string_view(text).substr(0, colon))) return text;
  return text.substr(0, colon + 2) + std::string(hidden);
}

// An option without a value, which the next word is.
bool takes_secret(std::string_view word) {
  return word.starts_with('-') && word.find('=') == std::string_view::npos && names_secret(word);
}

std::string hide_words(const std::string& text);

std::string hide(const std::string& word) {
  const std::size_t sign = word.find('=');
  // A whole argument may have spaces in its value.
  if (sign != std::string::npos && names_secret(std::string_view(word).substr(0, sign)))
    return word.substr(0, sign + 1) + std::string(hidden);
  if (word.find_first_of(" \t\n") != std::string::npos) return hide_words(hide_header(word));
  return hide_values(hide_pairs(word));
}

// A command for a shell in one argument, or any other text.
std::string hide_words(const std::string& text) {
  const std::string pairs = hide_pairs(text);
  std::string result;
  bool secret_follows = false;
  for (std::size_t begin = 0; begin < pairs.size();) {
    const std::size_t end = std::min(pairs.find_first_of(" \t\n", begin), pairs.size());
    const std::string word = pairs.substr(begin, end - begin);
    result += secret_follows && !word.empty() && !word.starts_with('-') ? std::string(hidden) : hide_values(word);
    if (!word.empty()) secret_follows = takes_secret(word) || word == "Bearer";
    if (end < pairs.size()) result += pairs[end];
    begin = end + 1;
  }
  return result;
}

}  // namespace

std::vector<std::string> each_without_secrets(const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  bool secret_follows = false;
  for (const std::string& argument : arguments) {
    words.push_back(secret_follows && !argument.starts_with('-') ? std::string(hidden) : hide(argument));
    secret_follows = takes_secret(argument);
  }
  return words;
}

std::string without_secrets(const std::vector<std::string>& arguments) {
  std::string line;
  for (const std::string& word : each_without_secrets(arguments)) line += (line.empty() ? "" : " ") + word;
  return line;
}

}  // namespace stepladder
