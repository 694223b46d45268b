// Events that a process left in a ring or in a spill file when it exited, for the next one to store. Inside storage/
// only.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "storage/database/events/event_origin.h"
#include "storage/own_folder.h"
#include "storage/records.h"

namespace stepladder {

// One such file, locked against other processes that look for it.
class LeftEvents {
 public:
  // The files of this user's processes that have exited, for this database. Removes rings whose database was deleted.
  static std::vector<std::unique_ptr<LeftEvents>> of_database(const std::filesystem::path& database);

  const EventOrigin& origin() const { return origin_; }
  const std::filesystem::path& file() const { return file_; }
  bool next(std::vector<RunEvent>& events);  // the next piece; false at the end
  bool is_whole() const { return damaged_ == 0; }
  bool is_ring() const { return at_ == 0; }  // else a spill file
  void remove();

 private:
  LeftEvents(std::filesystem::path file, Descriptor descriptor)
      : file_(std::move(file)), descriptor_(std::move(descriptor)) {}
  static std::unique_ptr<LeftEvents> open(const std::filesystem::path& file);
  bool is_ours() const;
  bool understand();
  bool take();

  std::filesystem::path file_;
  Descriptor descriptor_;
  EventOrigin origin_;
  std::vector<RunEvent> steps_;  // of a ring
  std::int64_t at_ = 0;          // of a spill file: where the next piece begins
  std::size_t damaged_ = 0;
};

}  // namespace stepladder
