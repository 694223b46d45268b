// The state of one program that was started on a machine. Only FarRuns includes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/machines/far_kind.h"
#include "app/machines/far_runs.h"
#include "storage/json_values.h"

namespace stepladder {

// The uids of all runs of its submission, itself included; empty if it was started alone.
std::vector<Uid> repeats_of(const Json& request);

struct FarRuns::Followed {
  FarRun row;
  Json request;
  std::filesystem::path folder;  // the copies
  std::map<std::string, std::uint64_t> sizes;
  FarOutputFile output;
  std::unique_ptr<JournalFollower> keeper;    // the run of a watched program
  std::unique_ptr<JournalFollower> journals;  // the runs that it trains or logs
  std::unique_ptr<SourceFollower> text;
  std::set<std::string> known;  // journals that the followers have
  RunId run = 0;                // of a watched program
  std::string joined;           // the folder under journals/ that completes it
  bool is_sending = false;
  bool reads_text = false;
  std::string phase = "asked";
  std::string reason;
  std::int64_t exit_status = 0;
  bool is_all_here = false;  // it has ended, and the machine has sent all of it

  Followed(FarRun far_run, std::filesystem::path mirror)
      : row(std::move(far_run)),
        request(object_in(row.request)),
        folder(std::move(mirror)),
        output(folder / "output.log") {}

  bool is_watch() const { return row.kind == far_kind::watch; }
  bool is_try() const { return row.kind == far_kind::one_try; }  // only its output is wanted, and stays
};

}  // namespace stepladder
