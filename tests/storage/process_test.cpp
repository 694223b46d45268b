// The one class that starts programs: streams, groups, signals, ends, and what cannot be started.
#include "storage/process.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

std::string all_of(const Descriptor& pipe) {
  std::string all;
  char piece[4096];
  for (ssize_t count = 0; (count = ::read(pipe.get(), piece, sizeof piece)) > 0;)
    all.append(piece, static_cast<std::size_t>(count));
  return all;
}

struct Printed {
  std::string text;
  int status;
};

Printed run(Launch launch) {
  Pipe output;
  launch.output = launch.errors = output.write.get();
  Process process(launch);
  output.write.reset();
  const std::string text = all_of(output.read);
  process.wait();
  return {text, process.exit_status()};
}

std::string reason(const Launch& launch) {
  try {
    Process process(launch);
  } catch (const std::system_error& error) {
    return error.what();
  }
  return "started";
}

TEST(Process, HasItsStreamsFolderAndEnvironment) {
  const TemporaryFolder folder;
  ::setenv("STEPLADDER_TEST_A", "ours", 1);
  ::setenv("STEPLADDER_TEST_B", "ours", 1);
  const auto [text, status] =
      run({.command = {"sh", "-c", "pwd; cat; echo $STEPLADDER_TEST_A-$STEPLADDER_TEST_B >&2; exit 3"},
           .folder = folder.path().string(),
           .environment = {"STEPLADDER_TEST_A=theirs", "STEPLADDER_TEST_B"}});
  EXPECT_EQ(text, folder.path().string() + "\ntheirs-\n");
  EXPECT_EQ(status, 3);
}

TEST(Process, SaysWhyItCannotBeStarted) {
  EXPECT_EQ(reason({.command = {"no such program"}}), "'no such program' cannot be started: No such file or directory");
  EXPECT_EQ(reason({.command = {"true"}, .folder = "/no such folder"}),
            "/no such folder cannot be entered: No such file or directory");
  EXPECT_EQ(reason({.command = {"/"}}), "'/' cannot be started: Permission denied");
}

TEST(Process, AScriptWithoutItsShellIsRunByOne) {
  const TemporaryFolder folder;
  std::ofstream(folder / "script") << "echo $1\n";
  ::chmod((folder / "script").c_str(), 0700);
  EXPECT_EQ(run({.command = {(folder / "script").string(), "word"}}).text, "word\n");
}

TEST(Process, OnlyWhatIsNamedIsOpenBesideAFourthStream) {
  const Pipe inherited, other;
  const int left_open = ::dup(other.read.get());  // without O_CLOEXEC
  EXPECT_EQ(run({.command = {"sh", "-c", "ls /proc/self/fd | wc -l"}, .fourth = inherited.read.get()}).text, "5\n")
      << "its streams, the fourth, and the folder that ls reads";
  ::close(left_open);
}

TEST(Process, IsWaitedForAndKilled) {
  Process process({.command = {"sleep", "1000"}});
  EXPECT_FALSE(process.wait(std::chrono::milliseconds(20)));
  process.kill_group(SIGTERM);
  process.wait();
  EXPECT_TRUE(process.has_ended());
  EXPECT_EQ(process.exit_status(), 128 + SIGTERM);
  process.kill(SIGKILL);  // nobody's number any more
  pid_t pid = 0;
  {
    Process forgotten({.command = {"sleep", "1000"}});
    pid = forgotten.pid();
  }
  EXPECT_NE(::kill(pid, 0), 0) << "killed and waited for";
}

TEST(Process, AScriptWithoutAFirstLineIsTheOneOnThePath) {
  TemporaryFolder folder;
  const auto script = folder.path() / "bin" / "stepladder-mytool";
  std::filesystem::create_directory(script.parent_path());
  std::ofstream(script) << "echo from the path\n";
  std::ofstream(folder.path() / "stepladder-mytool") << "echo from the folder\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  EXPECT_EQ(run({.command = {"stepladder-mytool"},
                 .folder = folder.path().string(),
                 .environment = {"PATH=" + script.parent_path().string()}})
                .text,
            "from the path\n");
}

TEST(Process, SignalsAreAsUsualButThoseNamed) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  // The last eight digits: signals 33 and up are the C library's own.
  const std::string script = "grep SigIgn /proc/self/status | tr -d '\\n' | tail -c 8";
  EXPECT_EQ(run({.command = {"sh", "-c", script}}).text.substr(1), "0000000");
  EXPECT_EQ(run({.command = {"sh", "-c", script}, .ignored_signals = {SIGHUP}}).text.substr(1), "0000001");
  EXPECT_EQ(ignored_signals().front(), SIGHUP);
  std::signal(SIGHUP, before);
}

}  // namespace
}  // namespace stepladder
