// Gives a file its name once the disk has all of it. Inside storage/ only. Both set errno where they return false.
#pragma once

#include <filesystem>

namespace stepladder {

bool sync_to_disk(const std::filesystem::path& file_or_folder);

// Names the file `part` as `name`, without replacing a file: EEXIST if there is one. A file system without links gets
// the name by renaming. Sync the folder afterwards.
bool name_new_file(const std::filesystem::path& part, const std::filesystem::path& name);

}  // namespace stepladder
