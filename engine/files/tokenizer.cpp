// GPT-2's tokenizer, in the order of its work: byte letters, pieces (PCRE2), reading vocabulary and merges, encoding.
// Other kinds of tokenizers are refused rather than approximated, since a wrong token is never noticed in a run.
#include "engine/files/tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <queue>
#include <stdexcept>
#include <unordered_map>

#include "engine/files/files.h"
#include "storage/bounded_text.h"

namespace stepladder {
namespace {

constexpr std::string_view end_of_text_token = "<|endoftext|>";
constexpr std::string_view replacement_character = "\xef\xbf\xbd";  // U+FFFD
constexpr std::int64_t largest_file = 256 << 20;                    // GPT-2's has 1.3 MB
constexpr int most_tokens = 1 << 20;                                // GPT-2's are 50,257

// --- UTF-8 and GPT-2's letters for bytes -----------------------------------------------------------------------------

// GPT-2 writes each byte of a token as a visible letter: printable Latin-1 as itself, the 68 others as U+0100 and up.
class ByteLetters {
 public:
  ByteLetters() {
    int others = 0;
    for (int byte = 0; byte < 256; ++byte) {
      const bool itself =
          (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
      const int letter = itself ? byte : 256 + others++;
      byte_of_[static_cast<std::size_t>(letter)] = byte;
      std::string& text = letters_[static_cast<std::size_t>(byte)];
      if (letter < 0x80)
        text = static_cast<char>(letter);
      else  // all letters are below U+0800
        text = {static_cast<char>(0xc0 | (letter >> 6)), static_cast<char>(0x80 | (letter & 0x3f))};
    }
  }

  const std::string& letter(int byte) const { return letters_[static_cast<std::size_t>(byte)]; }

  // The bytes that a token's letters represent; nothing if one of them isn't such a letter.
  std::optional<std::string> bytes(std::string_view symbol) const {
    std::string bytes;
    while (!symbol.empty()) {
      const std::size_t length = utf8_length(symbol);
      if (length != 1 && length != 2) return std::nullopt;
      const auto first = static_cast<unsigned char>(symbol[0]);
      const std::size_t letter =
          length == 1 ? first : static_cast<std::size_t>((first & 0x1f) << 6 | (symbol[1] & 0x3f));
      if (letter >= byte_of_.size() || byte_of_[letter] < 0) return std::nullopt;
      bytes += static_cast<char>(byte_of_[letter]);
      symbol.remove_prefix(length);
    }
    return bytes;
  }

 private:
  static constexpr std::array<int, 256 + 68> none() {
    std::array<int, 256 + 68> array{};
    array.fill(-1);
    return array;
  }
  std::array<std::string, 256> letters_;
  std::array<int, 256 + 68> byte_of_ = none();
};

const ByteLetters& byte_letters() {
  static const ByteLetters letters;
  return letters;
}

// --- Pieces: tokens never cross their borders ------------------------------------------------------------------------

// The pattern of GPT-2's pieces: contractions; letters, digits or other characters, each with the space before them;
// white space, of which the last space belongs to the word that follows.
std::string piece_pattern() {
  // Unicode's White_Space, spelled out: PCRE2's own \s includes U+180E.
  const std::string white = R"(\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
  return R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{L}\p{N})" + white + "]+|[" + white + "]+(?![^" + white +
         "])|[" + white + "]+";
}

class PieceFinder {
  struct FreeCode {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  };
  struct FreePlace {
    void operator()(pcre2_match_data* place) const { pcre2_match_data_free(place); }
  };

 public:
  // The place of a match; each thread needs its own.
  using Place = std::unique_ptr<pcre2_match_data, FreePlace>;
  Place new_place() const { return Place(pcre2_match_data_create_from_pattern(code_.get(), nullptr)); }

  PieceFinder() {
    int error = 0;
    PCRE2_SIZE place = 0;
    const std::string pattern = piece_pattern();
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF, &error, &place,
                              nullptr));
    if (!code_) throw std::runtime_error("PCRE2 was built without Unicode: error " + std::to_string(error));
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // if it fails (hardened kernels), matching is only slower
  }

  // Calls `found` with each piece, in order and without gaps. The text must be UTF-8: PCRE2's check is off, since it
  // would check all of the text for every piece.
  template <class Found>
  void each(std::string_view text, const Place& place, Found found) const {
    for (std::size_t begin = 0; begin < text.size();) {
      const int matched = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), begin,
                                      PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED, place.get(), nullptr);
      // Every character begins a piece, so this is a limit of PCRE2 that no known text reaches.
      if (matched <= 0) throw std::runtime_error("PCRE2 failed on a text: error " + std::to_string(matched));
      const std::size_t end = pcre2_get_ovector_pointer(place.get())[1];
      found(text.substr(begin, end - begin));
      begin = end;
    }
  }

 private:
  std::unique_ptr<pcre2_code, FreeCode> code_;
};

const PieceFinder& piece_finder() {
  static const PieceFinder finder;
  return finder;
}

struct Merge {
  int rank = 0;
  int token = 0;
};

std::uint64_t pair_key(int left, int right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
}

struct AddedToken {
  std::string text;
  int token = 0;
};

// The contents of a tokenizer file.
struct Bpe {
  std::string name;                               // of the file; empty: one token a byte
  std::vector<std::optional<std::string>> bytes;  // of each token; none: not a token
  std::array<int, 256> token_of_byte{};           // -1: none
  std::unordered_map<std::uint64_t, Merge> merges;
  std::vector<AddedToken> added;  // longest first
  std::array<bool, 256> begins_added{};
  bool prefix_space = false;  // adds a space to text that doesn't begin with one
  std::optional<int> end_of_text;

  std::vector<int> merged(std::string_view piece) const;
  const AddedToken* added_at(std::string_view text) const;
};

// --- Reading tokenizers ----------------------------------------------------------------------------------------------

std::string read_text(const std::filesystem::path& path) {
  const InputFile file(path);
  if (file.size_bytes() > largest_file) throw DataError(file.name() + " is too large for a tokenizer");
  std::string text(static_cast<std::size_t>(file.size_bytes()), '\0');
  file.read(0, text.data(), file.size_bytes());
  return text;
}

// Fills a tokenizer's tables. Knows each file's name, for the error messages.
class Builder {
 public:
  explicit Builder(const std::filesystem::path& file) : file_(file.string()) {
    bpe_.name = file_;
    bpe_.token_of_byte.fill(-1);
  }

  void read_from(const std::filesystem::path& file) { file_ = file.string(); }

  [[noreturn]] void fail(const std::string& what) const { throw DataError(file_ + ": " + what); }

  // {"symbol": token, ...}
  void add_vocab(const nlohmann::json& vocab) {
    if (!vocab.is_object() || vocab.empty()) fail("it has no vocabulary");
    for (const auto& [symbol, token] : vocab.items()) {
      const int number = token_number(token, symbol);
      // A symbol that isn't made of letters for bytes is an added token, written as it is.
      set_token(number, byte_letters().bytes(symbol).value_or(symbol));
      token_of_symbol_[symbol] = number;
    }
    for (int byte = 0; byte < 256; ++byte) {
      const auto found = token_of_symbol_.find(byte_letters().letter(byte));
      if (found != token_of_symbol_.end()) bpe_.token_of_byte[static_cast<std::size_t>(byte)] = found->second;
    }
  }

  void add_merge(const std::string& left, const std::string& right) {
    const std::string which = "merge " + std::to_string(ranks_ + 1) + " (" + left + " " + right + ")";
    const Merge merge{.rank = ranks_++, .token = token_of(left + right, which)};
    bpe_.merges.emplace(pair_key(token_of(left, which), token_of(right, which)), merge);
  }

  // "left right"
  void add_merge(const std::string& line) {
    const auto space = line.find(' ');
    if (space == 0 || space == std::string::npos || space + 1 == line.size() ||
        line.find(' ', space + 1) != std::string::npos)
      fail("merge " + std::to_string(ranks_ + 1) + " (\"" + line.substr(0, 40) + "\") isn't a pair");
    add_merge(line.substr(0, space), line.substr(space + 1));
  }

  void add_special(const std::string& text, const nlohmann::json& id) {
    const int token = token_number(id, text);
    const auto place = static_cast<std::size_t>(token);
    if (text.empty()) fail("an added token is empty");
    // Usually it is in the vocabulary too, with the same id.
    if (place < bpe_.bytes.size() && token_of_symbol_.contains(text) && token_of_symbol_[text] == token)
      bpe_.bytes[place].reset();
    set_token(token, text);
    bpe_.added.push_back({text, token});
    bpe_.begins_added[static_cast<unsigned char>(text[0])] = true;
    if (text == end_of_text_token) bpe_.end_of_text = token;
  }

  // vocab.json lists GPT-2's only special token like any other.
  void add_listed_end_of_text() {
    const auto found = token_of_symbol_.find(std::string(end_of_text_token));
    if (found != token_of_symbol_.end()) add_special(found->first, found->second);
  }

  void set_prefix_space(bool prefix_space) { bpe_.prefix_space = prefix_space; }

  Bpe finish() {
    std::ranges::stable_sort(bpe_.added,
                             [](const AddedToken& a, const AddedToken& b) { return a.text.size() > b.text.size(); });
    return std::move(bpe_);
  }

 private:
  int token_number(const nlohmann::json& number, const std::string& symbol) const {
    if (!number.is_number_integer() || number < 0 || number >= most_tokens)
      fail("\"" + symbol.substr(0, 40) + "\" has no valid token id");
    return number.get<int>();
  }

  void set_token(int token, const std::string& bytes) {
    const auto place = static_cast<std::size_t>(token);
    if (place >= bpe_.bytes.size()) bpe_.bytes.resize(place + 1);
    if (bpe_.bytes[place]) fail("token " + std::to_string(token) + " is given twice");
    bpe_.bytes[place] = bytes;
  }

  int token_of(const std::string& symbol, const std::string& which) const {
    const auto found = token_of_symbol_.find(symbol);
    if (found == token_of_symbol_.end()) fail(which + " needs \"" + symbol + "\", which isn't in the vocabulary");
    return found->second;
  }

  std::string file_;
  Bpe bpe_;
  std::unordered_map<std::string, int> token_of_symbol_;
  int ranks_ = 0;
};

nlohmann::json parse_json(const std::string& file, const std::string& text) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw DataError(file + " isn't valid JSON at byte " + std::to_string(error.byte));
  } catch (const nlohmann::json::out_of_range&) {
    throw DataError(file + " contains a number that is too large");
  }
}

// null for a missing member, or if `object` isn't an object.
const nlohmann::json& member(const nlohmann::json& object, const char* key) {
  static const nlohmann::json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

std::string type_of(const nlohmann::json& object) {
  const auto& type = member(object, "type");
  return type.is_string() ? type.get<std::string>() : "";
}

bool is_set(const nlohmann::json& value) {
  return !value.is_null() && value != false && value != "" && !(value.is_number() && value == 0);
}

// Refuses every feature that GPT-2's tokenizer lacks, since it would silently give other tokens.
void require_gpt2_kind(const nlohmann::json& json, const Builder& builder) {
  const auto& model = member(json, "model");
  const std::string kind = type_of(model);
  if (!kind.empty() && kind != "BPE") builder.fail("its model is " + kind + "; only BPE can be read");
  if (is_set(member(json, "normalizer")))
    builder.fail("it normalises the text first (" + type_of(member(json, "normalizer")) + "), which GPT-2's doesn't");
  const auto& before = member(json, "pre_tokenizer");
  if (type_of(before) != "ByteLevel" || member(before, "use_regex") == false)
    builder.fail("it splits text differently from GPT-2 (pre_tokenizer " + type_of(before) + ", expected ByteLevel)");
  for (const char* option :
       {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback", "ignore_merges"})
    if (is_set(member(model, option)))
      builder.fail("its model sets " + std::string(option) + ", which GPT-2's doesn't");
}

Bpe read_tokenizer_json(const std::filesystem::path& file, const nlohmann::json& json) {
  Builder builder(file);
  require_gpt2_kind(json, builder);
  const auto& model = member(json, "model");
  builder.add_vocab(member(model, "vocab"));
  const auto& merges = member(model, "merges");
  if (!merges.is_array()) builder.fail("it has no merges");
  for (const auto& merge : merges)
    if (merge.is_string())
      builder.add_merge(merge.get<std::string>());
    else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
      builder.add_merge(merge[0].get<std::string>(), merge[1].get<std::string>());
    else
      builder.fail("a merge is neither \"a b\" nor [\"a\", \"b\"]");
  for (const auto& added : member(json, "added_tokens")) {
    const auto& text = member(added, "content");
    if (!text.is_string()) builder.fail("an added token has no content");
    for (const char* option : {"single_word", "lstrip", "rstrip"})
      if (is_set(member(added, option)))
        builder.fail("the added token " + text.get<std::string>() + " sets " + option + ", which GPT-2's doesn't");
    builder.add_special(text.get<std::string>(), member(added, "id"));
  }
  builder.set_prefix_space(member(member(json, "pre_tokenizer"), "add_prefix_space") == true);
  return builder.finish();
}

Bpe read_pair(const std::filesystem::path& vocab_file, const std::filesystem::path& merges_file) {
  Builder builder(vocab_file);
  builder.add_vocab(parse_json(vocab_file.string(), read_text(vocab_file)));
  builder.add_listed_end_of_text();
  builder.read_from(merges_file);
  std::string_view rest;
  const std::string text = read_text(merges_file);
  for (rest = text; !rest.empty();) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with("#version")) continue;
    builder.add_merge(std::string(line));
  }
  return builder.finish();
}

// The two files of one tokenizer, by the ends of their names: "gpt2-vocab.json" pairs with "gpt2-merges.txt".
struct PairNames {
  std::string_view vocab;
  std::string_view merges;
};
constexpr std::array<PairNames, 2> pair_names = {{{"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}}};

std::filesystem::path sibling(const std::filesystem::path& file, std::string_view PairNames::*mine,
                              std::string_view PairNames::*other) {
  const std::string name = file.filename().string();
  for (const PairNames& names : pair_names) {
    if (!name.ends_with(names.*mine)) continue;
    auto found = file.parent_path() / (name.substr(0, name.size() - (names.*mine).size()) + std::string(names.*other));
    if (!std::filesystem::exists(found))
      throw DataError(file.string() + " is half of a tokenizer: " + found.filename().string() + " is not beside it");
    return found;
  }
  throw DataError(file.string() + " isn't a tokenizer (expected tokenizer.json, vocab.json or merges.txt)");
}

std::filesystem::path file_in_folder(const std::filesystem::path& folder) {
  for (const char* name : {"tokenizer.json", "vocab.json", "encoder.json"})
    if (std::filesystem::exists(folder / name)) return folder / name;
  throw DataError(folder.string() + " contains no tokenizer (expected tokenizer.json, or vocab.json and merges.txt)");
}

// --- Encoding --------------------------------------------------------------------------------------------------------

// The longest added token that the text begins with; nullptr: none.
const AddedToken* Bpe::added_at(std::string_view text) const {
  if (!begins_added[static_cast<unsigned char>(text[0])]) return nullptr;
  const auto found = std::ranges::find_if(added, [&](const AddedToken& token) { return text.starts_with(token.text); });
  return found == added.end() ? nullptr : &*found;
}

// Joins the pair of the lowest rank, the leftmost of equals, until no pair is left: O(n log n), since each merge
// changes only its two neighbours.
std::vector<int> Bpe::merged(std::string_view piece) const {
  struct Symbol {
    int token;  // -1: was joined to the previous one
    int before;
    int after;  // -1: the last
  };
  struct Candidate {
    Merge merge;
    int place;
    int left, right;  // the tokens when it was found
    bool operator<(const Candidate& other) const {
      return std::pair(other.merge.rank, other.place) < std::pair(merge.rank, place);
    }
  };
  std::vector<Symbol> symbols;
  for (const char letter : piece) {
    const int token = token_of_byte[static_cast<unsigned char>(letter)];
    if (token < 0)
      throw DataError(name + ": there is no token for the byte " + std::to_string(static_cast<unsigned char>(letter)));
    const int place = static_cast<int>(symbols.size());
    symbols.push_back({token, place - 1, place + 1});
  }
  symbols.back().after = -1;

  std::priority_queue<Candidate> candidates;
  const auto consider = [&](int place) {
    if (place < 0 || symbols[place].after < 0) return;
    const int left = symbols[place].token, right = symbols[symbols[place].after].token;
    const auto found = merges.find(pair_key(left, right));
    if (found != merges.end()) candidates.push({found->second, place, left, right});
  };
  for (int place = 0; place < static_cast<int>(symbols.size()); ++place) consider(place);
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    Symbol& left = symbols[best.place];
    if (left.token != best.left || left.after < 0 || symbols[left.after].token != best.right) continue;
    Symbol& right = symbols[left.after];
    left.token = best.merge.token;
    left.after = right.after;
    right.token = -1;
    if (left.after >= 0) symbols[left.after].before = best.place;
    consider(left.before);
    consider(best.place);
  }

  std::vector<int> tokens;
  for (int place = 0; place >= 0; place = symbols[place].after) tokens.push_back(symbols[place].token);
  return tokens;
}

// Encodes one text. Words repeat, so each is merged only once.
class Encoding {
 public:
  explicit Encoding(const Bpe& bpe) : bpe_(bpe) {}

  std::vector<int> encode(std::string_view text) {
    std::size_t begin = 0;
    for (std::size_t place = 0; place < text.size();) {
      const AddedToken* added = bpe_.added_at(text.substr(place));
      if (!added) {
        ++place;
        continue;
      }
      add_ordinary(text.substr(begin, place - begin));
      tokens_.push_back(added->token);
      begin = place += added->text.size();
    }
    add_ordinary(text.substr(begin));
    return std::move(tokens_);
  }

 private:
  // Text without added tokens.
  void add_ordinary(std::string_view text) {
    if (bpe_.prefix_space && !text.empty() && text[0] != ' ') {
      const std::string spaced = " " + std::string(text);
      add_runs(spaced);
    } else {
      add_runs(text);
    }
  }

  // Runs of UTF-8 are cut into pieces; a run of other bytes is a piece of its own.
  void add_runs(std::string_view text) {
    while (!text.empty()) {
      std::size_t valid = 0, invalid = 0;
      for (std::size_t length; valid < text.size() && (length = utf8_length(text.substr(valid))) > 0;) valid += length;
      piece_finder().each(text.substr(0, valid), place_, [this](std::string_view piece) { add_piece(piece); });
      text.remove_prefix(valid);
      while (invalid < text.size() && utf8_length(text.substr(invalid)) == 0) ++invalid;
      if (invalid > 0) add_piece(text.substr(0, invalid));
      text.remove_prefix(invalid);
    }
  }

  void add_piece(std::string_view piece) {
    constexpr std::size_t longest_word = 64;
    if (piece.size() > longest_word) {
      append(bpe_.merged(piece));
      return;
    }
    const auto [place, is_new] = known_.try_emplace(std::string(piece));
    if (is_new) place->second = bpe_.merged(piece);
    append(place->second);
  }

  void append(const std::vector<int>& tokens) { tokens_.insert(tokens_.end(), tokens.begin(), tokens.end()); }

  const Bpe& bpe_;
  PieceFinder::Place place_ = piece_finder().new_place();
  std::vector<int> tokens_;
  std::unordered_map<std::string, std::vector<int>> known_;
};

}  // namespace

struct Tokenizer::Content : Bpe {};

Tokenizer Tokenizer::bytes() {
  auto content = std::make_shared<Content>();
  for (int byte = 0; byte < 256; ++byte) content->bytes.emplace_back(std::string(1, static_cast<char>(byte)));
  return Tokenizer(content);
}

Tokenizer Tokenizer::open(const std::filesystem::path& path) {
  const auto wrap = [](Bpe bpe) { return Tokenizer(std::make_shared<const Content>(Content{std::move(bpe)})); };
  const auto file = std::filesystem::is_directory(path) ? file_in_folder(path) : path;
  const std::string text = read_text(file);
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '{')
    return wrap(read_pair(sibling(file, &PairNames::merges, &PairNames::vocab), file));
  const nlohmann::json json = parse_json(file.string(), text);
  if (member(json, "model").is_object()) return wrap(read_tokenizer_json(file, json));
  return wrap(read_pair(file, sibling(file, &PairNames::vocab, &PairNames::merges)));
}

std::vector<int> Tokenizer::encode(std::string_view text) const {
  if (!content_->name.empty()) return Encoding(*content_).encode(text);
  std::vector<int> tokens;
  tokens.reserve(text.size());
  for (const char letter : text) tokens.push_back(static_cast<unsigned char>(letter));
  return tokens;
}

std::string Tokenizer::decode(std::span<const int> tokens) const {
  std::string text;
  for (const int token : tokens) {
    const bool known = token >= 0 && token < vocab() && content_->bytes[static_cast<std::size_t>(token)];
    text += known ? std::string_view(*content_->bytes[static_cast<std::size_t>(token)]) : replacement_character;
  }
  return text;
}

int Tokenizer::vocab() const {
  return static_cast<int>(content_->bytes.size());
}
std::optional<int> Tokenizer::end_of_text() const {
  return content_->end_of_text;
}

}  // namespace stepladder
