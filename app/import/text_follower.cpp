#include "app/import/text_follower.h"

#include <algorithm>
#include <utility>

#include "app/import/followed_text.h"
#include "app/import/open_files.h"
#include "storage/importers/journal/journal.h"

namespace stepladder {
namespace fs = std::filesystem;

TextFollower::TextFollower(RunStore& store, FollowRequest request, std::function<void(const std::string&)> tell)
    : store_(store), request_(std::move(request)), tell_(std::move(tell)) {}

TextFollower::~TextFollower() = default;

void TextFollower::look() {
  for (const fs::path& given : request_.paths) {
    const fs::path path = resolved(given);
    std::error_code error;
    if (fs::is_directory(path, error))
      folders_.look(path, [this](const fs::path& folder) {
        look_into(folder);
        return true;
      });
    else if (fs::is_regular_file(path, error))
      add(path);
  }
}

void TextFollower::look_into(const fs::path& folder) {
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  for (auto it = fs::directory_iterator(folder, options, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    std::error_code unknown;
    const std::string name = it->path().filename().string();
    if (name.starts_with('.') || it->is_symlink(unknown) || !it->is_regular_file(unknown)) continue;
    const std::string ending = it->path().extension().string();
    if (ending == ".csv" || ending == ".jsonl" || ending == ".ndjson") add(it->path());
  }
}

void TextFollower::add(const fs::path& file, std::optional<RunId> joined) {
  if (journal_place(file) || !known_.insert(file).second) return;
  files_.push_back(std::make_unique<File>(store_, request_, tell_, file, joined));
}

void TextFollower::add(const fs::path& file, Printed printed) {
  const RunId run = printed.run;
  if (known_.insert(file).second)
    files_.push_back(std::make_unique<File>(store_, request_, tell_, file, run, std::move(printed)));
}

bool TextFollower::take_in() {
  find_writers();
  bool more = false;
  for (const auto& file : files_) {
    more = file->take_in() || more;
    file->settle(false);
  }
  return more;
}

void TextFollower::find_writers() {
  const bool any = std::any_of(files_.begin(), files_.end(), [](const auto& file) { return file->is_open(); });
  if (!any || Clock::now() - looked_for_writers_ < between_writer_looks) return;
  looked_for_writers_ = Clock::now();
  const auto open = files_open_for_writing(other_own_processes());
  for (const auto& file : files_)
    if (file->is_open()) file->find_writer(open);
}

void TextFollower::settle(bool at_end) {
  if (at_end) looked_for_writers_ = {};
  find_writers();
  for (const auto& file : files_) file->settle(at_end);
}

std::vector<FollowedRun> TextFollower::runs() const {
  std::vector<FollowedRun> runs;
  for (const auto& file : files_)
    if (file->run() != 0) runs.push_back(file->followed());
  return runs;
}

}  // namespace stepladder
