#include "engine/files/tokenizer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

const std::filesystem::path data_folder = std::filesystem::path(STEPLADDER_SOURCE_DIR) / "tests/data/tokenizer";

nlohmann::json json_of(const std::filesystem::path& file) {
  return nlohmann::json::parse(std::ifstream(file));
}

// All 256 bytes as GPT-2 writes them, in the order of their letters, as its own vocabulary has them: "!" is 0.
nlohmann::json byte_vocab() {
  nlohmann::json vocab = nlohmann::json::object();
  int token = 0;
  const auto add = [&](int letter) {
    const std::string text =
        letter < 0x80 ? std::string(1, static_cast<char>(letter))
                      : std::string{static_cast<char>(0xc0 | (letter >> 6)), static_cast<char>(0x80 | (letter & 0x3f))};
    vocab[text] = token++;
  };
  for (int letter = '!'; letter <= '~'; ++letter) add(letter);
  for (int letter = 0xa1; letter <= 0xac; ++letter) add(letter);
  for (int letter = 0xae; letter <= 0xff; ++letter) add(letter);
  for (int letter = 0x100; letter <= 0x143; ++letter) add(letter);
  return vocab;
}

constexpr int space = 220;  // "Ġ"
constexpr int line_feed = 198;

class Tokenizers : public testing::Test {
 protected:
  std::filesystem::path write(const char* name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }

  // A tokenizer of the bytes and these merges, whose tokens follow the bytes.
  static nlohmann::json tokenizer_json(const std::vector<std::pair<std::string, std::string>>& merges) {
    nlohmann::json vocab = byte_vocab(), pairs = nlohmann::json::array();
    for (const auto& [left, right] : merges) {
      vocab[left + right] = vocab.size();
      pairs.push_back({left, right});
    }
    return {{"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
            {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", pairs}}}};
  }

  Tokenizer open(const nlohmann::json& json) const { return Tokenizer::open(write("tokenizer.json", json.dump())); }

  std::string error_of(const std::filesystem::path& path) const {
    std::string text = complaint<DataError>([&] { Tokenizer::open(path); });
    const std::string folder = folder_.path().string() + "/";
    if (const auto place = text.find(folder); place != std::string::npos) text.erase(place, folder.size());
    return text;
  }
  std::string error_of(const nlohmann::json& json) const { return error_of(write("tokenizer.json", json.dump())); }

  TemporaryFolder folder_;
};

TEST(Bytes, AreTheirOwnTokens) {
  const Tokenizer tokenizer = Tokenizer::bytes();
  EXPECT_EQ(tokenizer.vocab(), 256);
  EXPECT_EQ(tokenizer.end_of_text(), std::nullopt);
  EXPECT_EQ(tokenizer.encode("a\n\xff"), (std::vector<int>{'a', '\n', 255}));
  EXPECT_EQ(tokenizer.decode(std::vector<int>{'a', 255}), "a\xff");
}

// Texts and their tokens by Hugging Face's tokenizers 0.23.3, for a tokenizer of 700 tokens that it trained. Between
// them: scripts, emoji, every kind of space, contractions, added tokens, control characters and sixty random mixtures.
TEST(Golden, SameTokensAsHuggingFace) {
  const Tokenizer tokenizer = Tokenizer::open(data_folder / "tokenizer.json");
  EXPECT_EQ(tokenizer.vocab(), 700);
  EXPECT_EQ(tokenizer.end_of_text(), 0);
  const auto samples = json_of(data_folder / "encodings.json");
  ASSERT_GT(samples.size(), 90u);
  for (const auto& sample : samples) {
    const auto text = sample["text"].get<std::string>();
    const auto tokens = sample["tokens"].get<std::vector<int>>();
    EXPECT_EQ(tokenizer.encode(text), tokens) << sample;
    EXPECT_EQ(tokenizer.decode(tokens), text);
  }
}

TEST_F(Tokenizers, EveryFormOfAFileGivesTheSame) {
  auto json = json_of(data_folder / "tokenizer.json");
  std::string merges = "#version: 0.2\n";
  auto& pairs = json["model"]["merges"];
  ASSERT_TRUE(pairs.at(0).is_array());
  for (auto& pair : pairs) {
    const std::string line = pair[0].get<std::string>() + " " + pair[1].get<std::string>();
    merges += line + "\r\n";
    pair = line;
  }
  std::filesystem::create_directories(folder_ / "old");
  const std::string text = "To be, or not to be:\n  that's 42<|endoftext|> \xc3\xa9";
  const std::vector<int> expected = Tokenizer::open(data_folder).encode(text);
  EXPECT_EQ(open(json).encode(text), expected);  // merges as "a b"
  write("vocab.json", json["model"]["vocab"].dump());
  write("merges.txt", merges);
  EXPECT_EQ(Tokenizer::open(folder_ / "vocab.json").encode(text), expected);
  EXPECT_EQ(Tokenizer::open(folder_ / "merges.txt").encode(text), expected);
  write("old/encoder.json", json["model"]["vocab"].dump());
  write("old/vocab.bpe", merges);
  EXPECT_EQ(Tokenizer::open(folder_ / "old").encode(text), expected);
  EXPECT_EQ(Tokenizer::open(folder_ / "old/vocab.bpe").end_of_text(), 0);
}

TEST_F(Tokenizers, MergesGoByRankAndThenFromTheLeft) {
  const Tokenizer tokenizer = open(tokenizer_json({{"b", "c"}, {"a", "b"}, {"a", "a"}, {"aa", "a"}}));
  const int bc = 256, ab = 257, aa = 258, aaa = 259;
  EXPECT_EQ(tokenizer.encode("abc"), (std::vector<int>{'a' - '!', bc}));
  EXPECT_EQ(tokenizer.encode("abd"), (std::vector<int>{ab, 'd' - '!'}));
  EXPECT_EQ(tokenizer.encode("aaa"), (std::vector<int>{aaa}));
  EXPECT_EQ(tokenizer.encode("aaaaa"), (std::vector<int>{aa, aaa}));
  EXPECT_EQ(tokenizer.encode("a a\n"), (std::vector<int>{'a' - '!', space, 'a' - '!', line_feed}));
}

TEST_F(Tokenizers, MergesStayWithinAPiece) {
  const Tokenizer tokenizer = open(tokenizer_json({{"a", "1"}, {"Ġ", "Ġ"}, {"Ġ", "a"}}));
  EXPECT_EQ(tokenizer.encode("a1"), (std::vector<int>{'a' - '!', '1' - '!'}));
  EXPECT_EQ(tokenizer.encode("  a"), (std::vector<int>{space, 258}));  // the last space is the word's
  EXPECT_EQ(tokenizer.encode("  "), (std::vector<int>{257}));
}

TEST_F(Tokenizers, BytesThatAreNoUtf8ComeBack) {
  const Tokenizer tokenizer = Tokenizer::open(data_folder);
  std::vector<std::string> texts = {
      "\xff",     "a\xc3",          "\xc3(b", "\xe2\x82 euro", "\xed\xa0\x80 surrogate", "\xf4\x90\x80\x80",
      "\xc0\xaf", "ok \xf0\x9f\x98"};
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  texts.push_back(all + all);
  std::string random;
  std::uint32_t state = 1;
  for (int i = 0; i < 20'000; ++i) random += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  texts.push_back(random);
  for (const std::string& text : texts) EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
}

TEST_F(Tokenizers, NumbersThatAreNoTokensAreShownAsSuch) {
  const Tokenizer tokenizer = open(tokenizer_json({}));
  EXPECT_EQ(tokenizer.vocab(), 256);
  EXPECT_EQ(tokenizer.decode(std::vector<int>{'a' - '!', 256, -1, 1 << 30, 'b' - '!'}),
            "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
            "b");
}

TEST_F(Tokenizers, TheLongestAddedTokenIsTaken) {
  auto json = tokenizer_json({});
  json["added_tokens"] = {{{"id", 300}, {"content", "<|a|>"}}, {{"id", 301}, {"content", "<|a|><|b|>"}}};
  const Tokenizer tokenizer = open(json);
  EXPECT_EQ(tokenizer.vocab(), 302);
  EXPECT_EQ(tokenizer.encode("<|a|><|b|><|a|>x"), (std::vector<int>{301, 300, 'x' - '!'}));
  EXPECT_EQ(tokenizer.decode(std::vector<int>{301, 260}), "<|a|><|b|>\xef\xbf\xbd");
}

TEST_F(Tokenizers, ASpaceInFrontWhereTheFileAsksForIt) {
  auto json = tokenizer_json({});
  json["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_EQ(open(json).encode("a"), (std::vector<int>{space, 'a' - '!'}));
  EXPECT_EQ(open(json).encode(" a"), (std::vector<int>{space, 'a' - '!'}));
  EXPECT_EQ(open(json).encode(""), std::vector<int>());
}

// Quadratic merging would take minutes here.
TEST_F(Tokenizers, AMillionLettersWithoutASpace) {
  std::vector<std::pair<std::string, std::string>> merges;
  for (std::string part = "a"; part.size() < 1024; part += part) merges.emplace_back(part, part);
  const Tokenizer tokenizer = open(tokenizer_json(merges));
  EXPECT_EQ(tokenizer.encode(std::string(1 << 20, 'a')), std::vector<int>(1024, 265));
  EXPECT_EQ(tokenizer.encode(std::string(1'000'000, ' ')).size(), 1'000'000u);
}

TEST_F(Tokenizers, FilesThatAreNoTokenizer) {
  EXPECT_EQ(error_of(folder_ / "none.json"), "none.json does not exist");
  EXPECT_NE(
      error_of(folder_.path()).find("contains no tokenizer (expected tokenizer.json, or vocab.json and merges.txt)"),
      std::string::npos);
  EXPECT_EQ(error_of(write("notes.txt", "some text")),
            "notes.txt isn't a tokenizer (expected tokenizer.json, vocab.json or merges.txt)");
  EXPECT_EQ(error_of(write("empty.json", "")),
            "empty.json isn't a tokenizer (expected tokenizer.json, vocab.json or merges.txt)");
  EXPECT_EQ(error_of(write("tokenizer.json", "{\"model\": {")), "tokenizer.json isn't valid JSON at byte 12");
  EXPECT_EQ(error_of(write("tokenizer.json", "{\"model\": 1e999}")),
            "tokenizer.json contains a number that is too large");
  EXPECT_EQ(error_of(write("merges.txt", "a b\n")), "merges.txt is half of a tokenizer: vocab.json is not beside it");
}

TEST_F(Tokenizers, DamagedTables) {
  auto json = tokenizer_json({{"a", "b"}});
  json["model"]["merges"].push_back({"a", "zz"});
  EXPECT_EQ(error_of(json), "tokenizer.json: merge 2 (a zz) needs \"azz\", which isn't in the vocabulary");
  json["model"]["merges"][1] = "ab";
  EXPECT_EQ(error_of(json), "tokenizer.json: merge 2 (\"ab\") isn't a pair");
  json["model"]["merges"][1] = "a b c";
  EXPECT_EQ(error_of(json), "tokenizer.json: merge 2 (\"a b c\") isn't a pair");
  json["model"]["merges"][1] = 7;
  EXPECT_EQ(error_of(json), "tokenizer.json: a merge is neither \"a b\" nor [\"a\", \"b\"]");
  json["model"].erase("merges");
  EXPECT_EQ(error_of(json), "tokenizer.json: it has no merges");
  json["model"]["vocab"]["twice"] = 5;
  EXPECT_EQ(error_of(json), "tokenizer.json: token 5 is given twice");
  json["model"]["vocab"]["twice"] = 2'000'000'000;
  EXPECT_EQ(error_of(json), "tokenizer.json: \"twice\" has no valid token id");
  json["model"]["vocab"]["twice"] = -1;
  EXPECT_EQ(error_of(json), "tokenizer.json: \"twice\" has no valid token id");
  json["model"]["vocab"] = nullptr;
  EXPECT_EQ(error_of(json), "tokenizer.json: it has no vocabulary");
  auto added = tokenizer_json({});
  added["added_tokens"] = {{{"id", 3}, {"content", "<|x|>"}}};
  EXPECT_EQ(error_of(added), "tokenizer.json: token 3 is given twice");
  added["added_tokens"] = {7};
  EXPECT_EQ(error_of(added), "tokenizer.json: an added token has no content");
}

TEST_F(Tokenizers, OtherKindsAreRefusedSinceTheyWouldGiveWrongTokens) {
  auto json = tokenizer_json({});
  json["model"]["type"] = "Unigram";
  EXPECT_EQ(error_of(json), "tokenizer.json: its model is Unigram; only BPE can be read");
  json = tokenizer_json({});
  json["pre_tokenizer"]["type"] = "Metaspace";
  EXPECT_EQ(error_of(json),
            "tokenizer.json: it splits text differently from GPT-2 (pre_tokenizer Metaspace, expected ByteLevel)");
  json = tokenizer_json({});
  json["normalizer"] = {{"type", "NFC"}};
  EXPECT_EQ(error_of(json), "tokenizer.json: it normalises the text first (NFC), which GPT-2's doesn't");
  json = tokenizer_json({});
  json["model"]["byte_fallback"] = true;
  EXPECT_EQ(error_of(json), "tokenizer.json: its model sets byte_fallback, which GPT-2's doesn't");
  json = tokenizer_json({});
  json["added_tokens"] = {{{"id", 300}, {"content", "<x>"}, {"lstrip", true}}};
  EXPECT_EQ(error_of(json), "tokenizer.json: the added token <x> sets lstrip, which GPT-2's doesn't");
}

TEST_F(Tokenizers, AByteWithoutATokenIsASentence) {
  auto json = tokenizer_json({});
  json["model"]["vocab"].erase("z");
  const Tokenizer tokenizer = open(json);
  EXPECT_EQ(tokenizer.encode("a").size(), 1u);
  EXPECT_NE(complaint<DataError>([&] { tokenizer.encode("az"); }).find("there is no token for the byte 122"),
            std::string::npos);
}

// A changed or truncated file must be read, or an error must name it.
TEST_F(Tokenizers, Damaged) {
  auto json = tokenizer_json({{"a", "b"}, {"ab", "c"}});
  json["added_tokens"] = {{{"id", 300}, {"content", "<|x|>"}}};
  const std::string whole = json.dump();
  int read = 0, refused = 0;
  const auto attempt = [&](const std::string& text) {
    std::filesystem::remove(folder_ / "tokenizer.json");
    const auto file = write("tokenizer.json", text);
    try {
      Tokenizer::open(file).encode("abcd <|x|>\n");
      ++read;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("tokenizer.json"), std::string::npos);
      ++refused;
    }
  };
  for (std::size_t place = 0; place < whole.size(); place += 3) {
    attempt(whole.substr(0, place));
    std::string changed = whole;
    changed[place] = static_cast<char>(whole[place] ^ (1 << (place % 8)));
    attempt(changed);
  }
  EXPECT_GT(read, 10);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace stepladder
