#include "app/text/terminal_text.h"

#include <gtest/gtest.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/text/format.h"

namespace stepladder {
namespace {

// What `write` puts on standard output through the guard.
template <class Write>
std::string written(const Write& write) {
  std::ostringstream shown;
  std::streambuf* const before = std::cout.rdbuf(shown.rdbuf());
  {
    const TerminalGuard guard;
    write();
  }
  std::cout.rdbuf(before);
  return shown.str();
}

TEST(TerminalText, NothingThatIsPrintedSteersTheTerminal) {
  EXPECT_EQ(written([] {
              std::cout << "run \x1b]0;title\x07, \xC2\x9B"
                        << "2J and \xE2\x80\xAE"
                        << "txt\n\tend" << '\r';
            }),
            "run .]0;title., .2J and .txt\n\tend.");
  EXPECT_EQ(written([] { std::cout << "Läufe 日本 " << 12 << " \xFF\xC3"; }), "Läufe 日本 12 \xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(TerminalText, ACharacterMayBeWrittenInPieces) {
  const std::string text = "ä 日 😀 \xE2\x80\xAE.";
  EXPECT_EQ(written([&] {
              for (const char c : text) std::cout << c << std::flush;
            }),
            "ä 日 😀 ..");
}

TEST(TerminalText, DataIsUnchangedUnlessItGoesToATerminal) {
  const std::string data = "a,\x1b[31m,\xC2\x9B,\xFF\n";
  EXPECT_EQ(written([&] { write_data(data); }), data) << "this test's standard output is no terminal";
}

TEST(TerminalText, JsonGivesEveryCharacterBack) {
  const std::string name = "\x1b[31m \x7f \xC2\x9B \xD8\x9C \xE2\x80\xAE \xE2\x81\xA6 ä 😀\n";
  const std::string json = harmless_json(nlohmann::json({{"name", name}}).dump(2));
  EXPECT_EQ(harmless(json), json);
  EXPECT_EQ(nlohmann::json::parse(json).at("name"), name);
}

TEST(TerminalText, ConsoleIsItsLinesWithoutEscapeSequences) {
  EXPECT_EQ(console_lines("step 1\r\n\x1b[32mgreen\x1b[0m\n 10 %\r 20 %\r\nlast"),
            (std::vector<std::string>{"step 1", "green", " 10 %", " 20 %", "last"}));
}

}  // namespace
}  // namespace stepladder
