// What is sent to a machine: command lines as words, bytes as Base64, names that are refused; and its report as checks.
#include "app/machines/far_command.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "app/machines/machine_check.h"
#include "storage/base64.h"

namespace stepladder {
namespace {

TEST(FarCommand, ALadderTravelsAsWordsThatNoShellReads) {
  Machine machine{.alias = *MachineAlias::from("box"), .program = *MachineProgram::from("/opt/it's here/stepladder")};
  LadderRequest request;
  apply_preset(request.base, "nano");
  request.base.data = "/data/it's $(touch x); `y` \"z\".txt";
  request.base.steps = 60;
  request.rungs = {{.stages = {"baseline"}}, {.stages = {"bf16"}}};
  request.repeats = 3;
  request.interleave = true;
  const FarLadder ladder = ladder_there(machine, request, {}, "/assets/tinyshakespeare.txt");
  const std::vector<std::string>& words = ladder.command.command;
  ASSERT_GT(words.size(), 6u);
  EXPECT_EQ(words[0], "/bin/sh");
  EXPECT_EQ(words[3], machine.program.text());
  EXPECT_EQ(words[4], "ladder");
  const auto data = std::find(words.begin(), words.end(), "--data");
  ASSERT_NE(data, words.end());
  EXPECT_EQ(data[1], request.base.data);
  EXPECT_NE(std::find(words.begin(), words.end(), "--interleave"), words.end());
  EXPECT_FALSE(ladder.files) << "data is never sent";
  EXPECT_EQ(words_of("a 'b c' 'it'\\''s' '' d"), (std::vector<std::string>{"a", "b c", "it's", "", "d"}));
}

TEST(FarCommand, Base64IsReadBackAndMistakesAreRefused) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes) << i;
    bytes += static_cast<char>(i * 37);
  }
  EXPECT_EQ(to_base64("any carnal pleas"), "YW55IGNhcm5hbCBwbGVhcw==");  // RFC 4648's kind of example
  for (const char* wrong : {"A", "AAA", "AA=A", "A===", "AA AA", "\xff\xff\xff\xff"})
    EXPECT_EQ(from_base64(wrong), std::nullopt) << wrong;
}

TEST(Machines, NamesAndFoldersThatAShellOrSshWouldMisreadAreRefused) {
  for (const char* name : {"", "-oProxyCommand=x", "a b", "a;b", "a'b", "a\nb", "a$b", "a`b`"})
    EXPECT_NE(MachineAlias::refused(name), "") << name;
  for (const char* name : {"box", "me@box.example.org", "10.0.0.1", "[::1]", "gpu-01.cluster"})
    EXPECT_EQ(MachineAlias::refused(name), "") << name;
  for (const char* folder : {"relative", "~other/x", "/a'b", "/a\"b", "/a$b", "/a`b", "/a\\b", "/a\nb", "/tmp/$(id)"})
    EXPECT_NE(MachineFolder::refused(folder), "") << folder;
  for (const char* folder : {"", "/scratch/me/.stepladder", "~/with space"})
    EXPECT_EQ(MachineFolder::refused(folder), "") << folder;
}

TEST(Machines, WordsThatSbatchWouldTakeForMoreThanAValueAreRefused) {
  for (const char* word : {"-p", "--wrap=id", "gpu --wrap=id", "gpu\n#SBATCH --wrap=id", "a;b", "$(id)", "a=b"})
    EXPECT_NE(SlurmWord::refused(word), "") << word;
  EXPECT_NE(SlurmWord::refused(std::string("a\0b", 3)), "");
  for (const char* word : {"", "gpu", "gpu,cpu", "02:00:00", "1-12:00:00", "me@physics", "gpu_a100.8+"})
    EXPECT_EQ(SlurmWord::refused(word), "") << word;
  for (const char* program : {"-c", "a\nb", "a\x1b[2J"}) EXPECT_NE(MachineProgram::refused(program), "") << program;
}

TEST(Machines, ChecksSayWhatIsWrongAndWhatToDo) {
  const Machine machine{.alias = *MachineAlias::from("box"), .uses_slurm = true};
  MachineReport report{.is_reachable = true,
                       .host = "node1",
                       .folder = "/home/me/.stepladder",
                       .why_not_writable = "Read-only file system",
                       .clock_ahead_s = 300,
                       .cores = 8};
  const std::vector<MachineCheck> checks = checks_of(report, machine);
  const auto named = [&](const std::string& name) {
    return *std::find_if(checks.begin(), checks.end(), [&](const MachineCheck& check) { return check.name == name; });
  };
  EXPECT_EQ(named("Folder").result, MachineCheck::Result::bad);
  EXPECT_NE(named("Folder").text.find("--folder"), std::string::npos);
  EXPECT_EQ(named("Clock").result, MachineCheck::Result::warning);
  EXPECT_NE(named("Clock").text.find("5 min"), std::string::npos) << named("Clock").text;
  EXPECT_EQ(named("Slurm").result, MachineCheck::Result::bad) << "it was added for Slurm";
  EXPECT_EQ(named("Stepladder").result, MachineCheck::Result::warning);
  const auto lost = checks_of({.reason = "no"}, machine);
  EXPECT_EQ(lost.front().result, MachineCheck::Result::bad);
  EXPECT_EQ(lost.back().result, MachineCheck::Result::not_tried);
  EXPECT_NE(explained("ssh: Could not resolve hostname box: Name or service not known", "box").find("~/.ssh/config"),
            std::string::npos);
  EXPECT_NE(explained("me@box: Permission denied (publickey).", "box").find("ssh-copy-id box"), std::string::npos);
}

}  // namespace
}  // namespace stepladder
