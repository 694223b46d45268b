#include "storage/regular_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "storage/folder_watch.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

TEST(RegularFile, IsReadFromAnyPlaceAndStaysTheSameFile) {
  const TemporaryFolder folder;
  const std::string bytes = std::string(100'000, 'a') + "\nlast line";
  write(folder / "a", bytes);
  RegularFile file(folder / "a");
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  EXPECT_EQ(line.size(), 100'000u);
  EXPECT_EQ(file.tellg(), 100'001);
  file.seekg(99'999);
  EXPECT_EQ(file.get(), 'a');
  EXPECT_EQ(file.get(), '\n');
  EXPECT_EQ(file.read_at(100'001, 4), "last");
  ASSERT_TRUE(std::getline(file, line));
  EXPECT_EQ(line, "last line");
  EXPECT_FALSE(std::getline(file, line));
  EXPECT_TRUE(file.is_at(folder / "a"));
  fs::rename(folder / "a", folder / "b");
  write(folder / "a", "another");
  EXPECT_FALSE(file.is_at(folder / "a"));
  EXPECT_TRUE(file.is_at(folder / "b"));
  EXPECT_EQ(file.size(), 100'010);
  EXPECT_EQ(file.read_at(100'006, 100), "line");
}

TEST(RegularFile, IsNoPipeFolderOrDevice) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const std::pair<fs::path, std::string> others[] = {{folder / "pipe", "is not a regular file"},
                                                     {folder.path(), "is a folder, not a file"},
                                                     {"/dev/zero", "is not a regular file"},
                                                     {folder / "none", "cannot be opened: No such file or directory"}};
  for (const auto& [path, why] : others) {
    RegularFile file(path);
    EXPECT_FALSE(file) << path;
    EXPECT_EQ(file.why(), why);
    EXPECT_EQ(file.get(), EOF);
    EXPECT_EQ(file.read_at(0, 10), "");
    EXPECT_EQ(file.size(), 0);
  }
}

TEST(FolderWatch, ReadsAFolderAgainOnlyAfterItHasChanged) {
  const TemporaryFolder folder;
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const char* const name : {"runs/a", "runs/b", "runs/.hidden"}) {
    fs::create_directories(folder / name);
    fs::last_write_time(folder / name, long_ago);
  }
  fs::last_write_time(folder / "runs", long_ago);
  FolderWatch watch(4);
  std::string read;
  const auto look = [&] {
    read.clear();
    watch.look(folder / "runs", [&](const fs::path& path) {
      read += path.filename().string() + " ";
      return true;
    });
    return read;
  };
  EXPECT_EQ(look(), "runs a b ");
  EXPECT_EQ(look(), "");
  write(folder / "runs/a/file", "");  // of a folder that was over: it is seen after a while
  EXPECT_EQ(look(), "");
  fs::create_directories(folder / "runs/c");
  EXPECT_EQ(look(), "runs c ");
  EXPECT_EQ(look(), "runs c ") << "the time of a change may be coarse";
}

TEST(FolderWatch, LooksEverMoreRarely) {
  using std::chrono::seconds;
  EXPECT_EQ(look_again_after(seconds(1)), seconds(0)) << "it may be growing";
  EXPECT_EQ(look_again_after(seconds(4)), std::chrono::milliseconds(200));
  EXPECT_EQ(look_again_after(seconds(100)), seconds(5));
  EXPECT_EQ(look_again_after(seconds(100'000)), seconds(15));
}

}  // namespace
}  // namespace stepladder
