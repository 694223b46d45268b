// Folders are compared by path and, where the file system knows when one was made, by identity: one may be moved.
#include "app/import/journal_origin.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "storage/database/events/event_origin.h"
#include "storage/folder_watch.h"
#include "storage/importers/journal/journal_reader.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

// Inodes are used again, so that only the time of birth distinguishes two folders.
JournalOrigin::Place place_of(const fs::path& folder) {
  JournalOrigin::Place place{resolved(folder).string(), ""};
  constexpr std::int64_t second_ns = 1'000'000'000;
  if (const auto found = identity_of(folder); found && found->born_ns > 0)
    place.identity = fmt::format("{}:{} {} {}.{}", found->device >> 32, found->device & 0xffff'ffff, found->inode,
                                 found->born_ns / second_ns, found->born_ns % second_ns);
  return place;
}

Json json_of(const JournalOrigin::Place& place) {
  return {{"name", place.name}, {"identity", place.identity}};
}

JournalOrigin::Place place_in(const Json& origin, const char* name) {
  const auto found = origin.find(name);
  if (found == origin.end() || !found->is_object()) return {};
  return {text_in(*found, "name"), text_in(*found, "identity")};
}

// The origin of each followed journal of the run; empty where an earlier version didn't store it.
std::vector<std::optional<JournalOrigin>> origins_of(RunStore& store, RunId run, const std::string& uid) {
  std::vector<std::optional<JournalOrigin>> origins;
  for (const FollowedSource& source : store.following().journals(uid))
    if (source.run == run) origins.push_back(JournalOrigin::in(source.state));
  return origins;
}

}  // namespace

JournalOrigin JournalOrigin::of_folder(const fs::path& folder) {
  const Place place = place_of(folder);
  return {place, place_of(fs::path(place.name).parent_path())};
}

Json JournalOrigin::json() const {
  return {{"folder", json_of(folder)}, {"above", json_of(above)}};
}

std::optional<JournalOrigin> JournalOrigin::in(const std::string& state) {
  const Json json = Json::parse(state, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  if (const auto found = json.find("origin"); found != json.end() && found->is_object())
    return JournalOrigin{place_in(*found, "folder"), place_in(*found, "above")};
  const fs::path joined = text_in(json, "joined");
  if (joined.empty()) return std::nullopt;
  return JournalOrigin{{resolved(joined.parent_path()).string(), ""},
                       {resolved(joined.parent_path().parent_path()).string(), ""}};
}

MayAdd may_add(RunStore& store, const Run& run, const std::string& uid, const JournalOrigin& origin) {
  const auto origins = origins_of(store, run.id, uid);
  bool is_known = false;
  for (const auto& each : origins) {
    if (each && each->folder.is(origin.folder)) return MayAdd::yes;
    is_known = is_known || each;
  }
  if (is_known) return MayAdd::no;
  // A run that an earlier version has followed, or whose position was lost, names the folder or the machine's run.
  const std::string far_begin = "far ";
  const bool is_far = origin.folder.name.starts_with(far_begin);
  if (is_far ? run.source_path.ends_with(":runs/" + origin.folder.name.substr(far_begin.size()))
             : run.source == "import" && !run.source_path.empty() &&
                   resolved(run.source_path).string() == origin.folder.name)
    return MayAdd::as_first;
  const bool may_go_on = !is_over(run.status) || run.status == RunStatus::interrupted;
  return !is_far && run.source == "launched" && may_go_on && !origins.empty() ? MayAdd::as_first : MayAdd::no;
}

bool is_beside(RunStore& store, const Run& run, const JournalOrigin& origin) {
  const auto origins = origins_of(store, run.id, run.uid);
  return std::ranges::any_of(origins, [&](const auto& each) { return each && each->above.is(origin.above); });
}

std::string maker_of(RunStore& store, const Run& run, const std::string& uid) {
  const auto origins = origins_of(store, run.id, uid);
  for (const auto& each : origins)
    if (each) return "is followed from " + each->folder.name;
  if (!origins.empty()) return "was followed from a place that isn't known";
  return run.source == "launched" ? "was launched here" : "was made by something else";
}

}  // namespace stepladder
