// Finds what is new in a folder and below it, by looking again and again, which costs little: a folder is only read
// after it has changed, and one without folders in it is looked at ever more rarely while it doesn't change.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace stepladder {

class FolderWatch {
 public:
  explicit FolderWatch(int deepest) : deepest_(deepest) {}

  // Calls `read` for each folder that may have got a new entry since the last call. It returns whether folders below it
  // matter. Skips hidden folders, __pycache__ and links to folders.
  void look(const std::filesystem::path& root, const std::function<bool(const std::filesystem::path&)>& read);

 private:
  using Clock = std::chrono::steady_clock;
  struct Folder {
    std::filesystem::path path;
    std::filesystem::file_time_type changed{};
    Clock::time_point since{};  // when it was seen to have changed
    Clock::time_point next{};
    std::vector<std::unique_ptr<Folder>> inner;  // by path
  };

  void look(Folder& folder, int depth, Clock::time_point now,
            const std::function<bool(const std::filesystem::path&)>& read);
  static void list(Folder& folder);

  const int deepest_;
  std::map<std::filesystem::path, Folder> roots_;
};

// The path as everybody would name it: absolute, without links as far as it exists.
std::filesystem::path resolved(const std::filesystem::path& given);

// The time after which to look again at something that hasn't changed for so long.
std::chrono::steady_clock::duration look_again_after(std::chrono::steady_clock::duration quiet);

// The time for which something hasn't changed, by its time stamp.
std::chrono::steady_clock::duration quiet_since(std::filesystem::file_time_type changed);

}  // namespace stepladder
