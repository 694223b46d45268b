#include "engine/files/tokens.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "storage/records.h"

namespace stepladder {
namespace {

class Tokens : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("stepladder-tokens-" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) +
               std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    const auto file = folder_ / name;
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }

  template <class T>
  static std::string bytes_of(const std::vector<T>& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }

  static std::vector<std::uint16_t> counting(std::size_t count) {
    std::vector<std::uint16_t> tokens(count);
    for (std::size_t i = 0; i < count; ++i) tokens[i] = static_cast<std::uint16_t>(i % 50'000);
    return tokens;
  }

  static std::string llmc(std::vector<std::uint16_t> tokens, int magic = 20240520, int version = 1, int extra = 0) {
    std::vector<std::int32_t> header(256);
    header[0] = magic;
    header[1] = version;
    header[2] = static_cast<std::int32_t>(tokens.size()) + extra;
    return bytes_of(header) + bytes_of(tokens);
  }

  // The sentence, without the folder.
  std::string error_of(const std::filesystem::path& file, int seq = 8) const {
    try {
      TokenSource::open(file, seq, 1);
    } catch (const DataError& error) {
      std::string text = error.what();
      const auto place = text.find(folder_.string() + "/");
      if (place != std::string::npos) text.erase(place, folder_.string().size() + 1);
      return text;
    }
    return "";
  }

  std::filesystem::path folder_;
};

TEST_F(Tokens, TextIsReadByteByByte) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += static_cast<char>('a' + i % 26);
  const TokenSource source = TokenSource::open(write("letters.txt", text), 8, 1);
  EXPECT_EQ(source.tokens(), 2000);
  EXPECT_EQ(source.vocab_needed(), 256);
  EXPECT_TRUE(is_missing(source.entropy()));
  EXPECT_EQ(source.description(), "2,000 bytes of letters.txt");
  const Batch batch = source.batch(Split::train, 0, 3);
  ASSERT_EQ(batch.inputs.size(), 24u);
  ASSERT_EQ(batch.targets.size(), 24u);
  for (std::size_t i = 0; i < 24; ++i) EXPECT_EQ(batch.targets[i], 'a' + (batch.inputs[i] - 'a' + 1) % 26);
}

TEST_F(Tokens, Utf8IsText) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "\xc3\xa4\t\xe2\x82\xac\r\n";
  EXPECT_EQ(error_of(write("text.txt", text)), "");
}

TEST_F(Tokens, NanoGptAndLlmcGiveTheSameBatches) {
  const auto tokens = counting(5000);
  const TokenSource nano = TokenSource::open(write("nano.bin", bytes_of(tokens)), 16, 7);
  const TokenSource llmc_source = TokenSource::open(write("llmc.bin", llmc(tokens)), 16, 7);
  EXPECT_EQ(nano.tokens(), 5000);
  EXPECT_EQ(nano.vocab_needed(), 50257);
  EXPECT_EQ(nano.description(), "5,000 GPT-2 tokens of nano.bin");
  for (const Split split : {Split::train, Split::validation}) {
    for (int index = 0; index < 5; ++index) {
      EXPECT_EQ(nano.batch(split, index, 4).inputs, llmc_source.batch(split, index, 4).inputs);
      EXPECT_EQ(nano.batch(split, index, 4).targets, llmc_source.batch(split, index, 4).targets);
    }
  }
}

TEST_F(Tokens, PaddingTokensNeedThePaddedVocabulary) {
  auto tokens = counting(1000);
  tokens[500] = 50257;
  EXPECT_EQ(TokenSource::open(write("padded.bin", bytes_of(tokens)), 8, 1).vocab_needed(), 50304);
}

TEST_F(Tokens, SameSeedAndIndexGiveTheSameBatchInAnyOrder) {
  const auto file = write("tokens.bin", bytes_of(counting(30'000)));
  for (const std::filesystem::path& path : {file, std::filesystem::path()}) {
    const TokenSource one = TokenSource::open(path, 8, 42);
    const TokenSource two = TokenSource::open(path, 8, 42);
    const Batch third = one.batch(Split::train, 3, 4);
    one.batch(Split::validation, 9, 2);
    two.batch(Split::train, 0, 4);
    EXPECT_EQ(two.batch(Split::train, 3, 4).inputs, third.inputs);
    EXPECT_EQ(one.batch(Split::train, 3, 4).inputs, third.inputs);
    EXPECT_NE(one.batch(Split::train, 4, 4).inputs, third.inputs);
    EXPECT_NE(TokenSource::open(path, 8, 43).batch(Split::train, 3, 4).inputs, third.inputs);
  }
}

TEST_F(Tokens, SplitsNeverOverlapAndReachTheirEnds) {
  const int seq = 4;
  const TokenSource source = TokenSource::open(write("tokens.bin", bytes_of(counting(997))), seq, 3);
  std::set<std::int64_t> train, validation;
  for (int index = 0; index < 400; ++index) {
    const Batch batch = source.batch(Split::train, index, 16);
    train.insert(batch.inputs.begin(), batch.inputs.end());
    train.insert(batch.targets.begin(), batch.targets.end());
  }
  for (std::int64_t index = 0; index < source.validation_batches(4); ++index) {
    const Batch batch = source.batch(Split::validation, index, 4);
    validation.insert(batch.inputs.begin(), batch.inputs.end());
    validation.insert(batch.targets.begin(), batch.targets.end());
  }
  EXPECT_EQ(*train.begin(), 0);
  EXPECT_EQ(*train.rbegin(), 896);  // tokens 0..896 are the first nine tenths
  EXPECT_EQ(train.size(), 897u);
  EXPECT_EQ(*validation.begin(), 897);
  EXPECT_EQ(validation.size(), 97u);  // 24 windows of 4, and the target behind the last
}

TEST_F(Tokens, FirstValidationWindowsAreSpreadOverTheSplit) {
  const TokenSource source = TokenSource::open(write("tokens.bin", bytes_of(counting(40'001))), 4, 3);
  EXPECT_EQ(source.validation_batches(10), 100);
  std::vector<std::int64_t> starts;
  for (int index = 0; index < 2; ++index) {
    const Batch batch = source.batch(Split::validation, index, 10);
    for (std::size_t row = 0; row < 10; ++row) starts.push_back(batch.inputs[row * 4]);
  }
  std::sort(starts.begin(), starts.end());
  for (std::size_t i = 1; i < starts.size(); ++i) {
    EXPECT_GT(starts[i], starts[i - 1]);
    EXPECT_LT(starts[i] - starts[i - 1], 3 * 4000 / 20) << "a gap of more than three mean gaps";
  }
}

TEST_F(Tokens, SyntheticSourceHasTheEntropyItClaims) {
  const TokenSource source = TokenSource::open({}, 64, 5);
  EXPECT_EQ(source.vocab_needed(), 256);
  EXPECT_EQ(source.tokens(), 0);
  std::int64_t by_rule = 0, others = 0;
  std::map<std::int64_t, std::int64_t> offsets;  // (next - rule) mod 256
  for (int index = 0; index < 100; ++index) {
    const Batch batch = source.batch(Split::train, index, 64);
    for (std::size_t i = 0; i < batch.inputs.size(); ++i) {
      const std::int64_t offset = (batch.targets[i] - (5 * batch.inputs[i] + 17) % 256 + 256) % 256;
      ++offsets[offset];
      ++(offset == 0 ? by_rule : others);
    }
  }
  const auto total = static_cast<double>(by_rule + others);
  double counted = 0;
  for (const auto& [offset, count] : offsets) {
    const double p = static_cast<double>(count) / total;
    counted -= p * std::log(p);
  }
  EXPECT_EQ(offsets.size(), 256u);
  EXPECT_NEAR(static_cast<double>(by_rule) / total, 0.75 + 0.25 / 256, 0.003);
  EXPECT_NEAR(source.entropy(), 1.9412, 0.0001);
  EXPECT_NEAR(counted, source.entropy(), 0.02);
}

TEST_F(Tokens, SyntheticSplitsDiffer) {
  const TokenSource source = TokenSource::open({}, 64, 5);
  EXPECT_NE(source.batch(Split::train, 0, 2).inputs, source.batch(Split::validation, 0, 2).inputs);
}

TEST_F(Tokens, SentencesForFilesThatCannotBeUsed) {
  EXPECT_EQ(error_of(folder_ / "none.txt"), "none.txt does not exist");
  EXPECT_NE(error_of(folder_).find(" is a folder, not a file"), std::string::npos);
  EXPECT_EQ(error_of("/dev/null"), "/dev/null is not a regular file");
  EXPECT_EQ(error_of(write("empty.txt", "")), "empty.txt is empty");
  EXPECT_EQ(error_of(write("empty.bin", "")), "empty.bin is empty");
}

TEST_F(Tokens, TooShortSaysHowManyThereAreAndAreNeeded) {
  EXPECT_EQ(error_of(write("one.txt", "a"), 64),
            "one.txt is too short: it holds 1 bytes, but sequences of 64 need at least 641 (the last tenth is for "
            "validation)");
  EXPECT_EQ(error_of(write("short.txt", std::string(640, 'a')), 64).substr(0, 38),
            "short.txt is too short: it holds 640 b");
  EXPECT_EQ(error_of(write("enough.txt", std::string(641, 'a')), 64), "");
  EXPECT_EQ(error_of(write("short.bin", bytes_of(counting(80))), 8),
            "short.bin is too short: it holds 80 tokens, but sequences of 8 need at least 81 (the last tenth is for "
            "validation)");
  EXPECT_EQ(error_of(write("least.bin", bytes_of(counting(11))), 1), "");
  const TokenSource least = TokenSource::open(folder_ / "least.bin", 1, 1);
  EXPECT_EQ(least.batch(Split::validation, 0, 3).targets, (std::vector<std::int64_t>{10, 10, 10}));
}

TEST_F(Tokens, BinaryIsNoText) {
  EXPECT_EQ(error_of(write("zero.txt", "abc" + std::string(1, '\0') + std::string(500, 'x'))),
            "zero.txt is not text: byte 3 is zero (token files end in .bin)");
  EXPECT_EQ(error_of(write("control.txt", std::string(100, '\x01') + std::string(100, 'x'))),
            "control.txt is not text: 100 of its first 200 bytes are control characters");
}

TEST_F(Tokens, DamagedLlmcFiles) {
  EXPECT_EQ(error_of(write("cut.bin", llmc(counting(900), 20240520, 1, 100))),
            "cut.bin is cut short: the header says 1,000 tokens, the file holds 900");
  EXPECT_EQ(error_of(write("long.bin", llmc(counting(900), 20240520, 1, -100))),
            "long.bin does not fit its header: the header says 800 tokens, the file holds 900");
  EXPECT_EQ(error_of(write("negative.bin", llmc(counting(900), 20240520, 1, -2000))),
            "negative.bin does not fit its header: the header says -1,100 tokens, the file holds 900");
  EXPECT_EQ(error_of(write("head.bin", llmc(counting(900)).substr(0, 600))),
            "head.bin is cut short: llm.c's header alone has 1,024 bytes, the file 600");
  EXPECT_EQ(error_of(write("version.bin", llmc(counting(900), 20240520, 2))),
            "version.bin is an llm.c token file of version 2; only version 1 (GPT-2 tokens) can be read");
}

TEST_F(Tokens, WrongLlmcMagics) {
  for (const int magic : {20240326, 20240801, 20240522, 20240327, 20240527, 20240328, 7}) {
    EXPECT_EQ(error_of(write("magic.bin", llmc(counting(2000), magic))),
              "magic.bin looks like an llm.c file, but its magic is " + std::to_string(magic) + ", expected 20240520");
  }
}

TEST_F(Tokens, DamagedNanoGptFiles) {
  EXPECT_EQ(error_of(write("odd.bin", bytes_of(counting(1000)) + "x")),
            "odd.bin has an odd size (2,001 bytes), but its tokens have two bytes each: it is cut short or isn't a "
            "token file");
  EXPECT_EQ(error_of(write("byte.bin", "x")).substr(0, 33), "byte.bin has an odd size (1 bytes");
  auto tokens = counting(1000);
  tokens[999] = 50304;
  EXPECT_EQ(error_of(write("vocabulary.bin", bytes_of(tokens))),
            "vocabulary.bin contains token 50,304, but GPT-2's are below 50,304: it has another vocabulary or isn't a "
            "token file");
}

TEST_F(Tokens, AFileThatIsCutWhileItIsReadIsAnError) {
  const auto file = write("cut.bin", bytes_of(counting(5000)));
  const TokenSource source = TokenSource::open(file, 16, 7);
  std::filesystem::resize_file(file, 10);
  EXPECT_THROW(source.batch(Split::validation, 0, 4), DataError);
}

}  // namespace
}  // namespace stepladder
