// Uncommitted changes of a checkout as a patch that a project keeps: of bounded length, and without files that look
// like secrets.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "app/host/git.h"
#include "storage/database/recordings.h"

namespace stepladder {

inline constexpr std::size_t longest_patch = 1 << 20;  // bytes that are kept
inline constexpr std::int64_t unknown_length = -1;     // of a patch, since git failed or took too long

// By its name: ".env", "*.pem", "id_rsa", "credentials.json" ...
bool looks_secret(const std::string& path);

// The patch that `git diff` prints with these arguments: two trees, or a commit for the files as they are. A patch to
// keep has no files that look like secrets, of the others the smallest up to a few MB, and nothing with --no-patch.
// `changed`: the files that differ, if they are known. Blocks. Throws StorageError.
enum class PatchOf { kept, whole };  // whole: of any length and with every file, for a file of this user alone
RunPatch patch_of(const GitCheckout& checkout, const std::vector<std::string>& between, PatchOf which = PatchOf::kept,
                  const std::vector<std::string>* changed = nullptr);

// The files around the current folder against their commit, with small untracked text files; no text if nothing has
// changed or this isn't a checkout, and of unknown length if git fails. Computed once per process, as environment_json.
const RunPatch& patch_here();
void keep_no_patches();  // --no-patch

// A project inside a checkout is no part of its patches and states, as .git isn't: FILE, and what begins with FILE. or
// FILE-. Call it before threads start.
void leave_out_of_patches(const std::filesystem::path& database);
// What git calls pathspecs that leave them out; empty: the project isn't in the checkout.
std::vector<std::string> without_project(const std::filesystem::path& top);
bool is_of_project(const std::filesystem::path& top, const std::string& path_below);

// The same of the checkout that contains a folder, now.
RunPatch patch_in(const std::filesystem::path& folder);

}  // namespace stepladder
