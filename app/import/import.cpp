#include "app/import/import.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "app/import/file_input.h"
#include "app/import/store_sink.h"
#include "engine/stage.h"
#include "storage/importers/source_code.h"
#include "storage/importers/trackers/store_folder.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

struct Interrupted {};

// Passes pieces on until the request is interrupted, and hashes the source code at the top.
class WatchedInput : public ImportInput {
 public:
  WatchedInput(ImportInput& input, const std::function<bool()>& interrupted)
      : input_(input), interrupted_(interrupted) {}
  std::string_view head() override { return input_.head(); }
  std::string_view next() override {
    if (interrupted_()) throw Interrupted();
    const std::string_view piece = input_.next();
    source_.take(piece);
    return piece;
  }
  const fs::path& path() const override { return input_.path(); }
  std::string source_hash() const { return source_.text(); }

 private:
  ImportInput& input_;
  const std::function<bool()>& interrupted_;
  SourceCodeHash source_;
};

// "runs" for "/data/runs/".
std::string name_of_folder(const fs::path& folder) {
  const fs::path path = fs::absolute(folder).lexically_normal();
  return path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
}

struct FolderContents {
  std::map<fs::path, std::vector<fs::path>> files;  // by their folder
  std::vector<fs::path> stores;                     // folders that are another tracker's store
};

// The files and stores in a folder, without hidden ones.
FolderContents contents_of(const fs::path& folder) {
  FolderContents contents;
  for (auto it = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied);
       it != fs::recursive_directory_iterator(); ++it) {
    const std::string name = it->path().filename().string();
    if (name.starts_with(".") || name == "__pycache__") {
      if (it->is_directory()) it.disable_recursion_pending();
      continue;
    }
    if (it->is_directory() && is_store_folder(it->path())) {
      it.disable_recursion_pending();
      contents.stores.push_back(it->path());
    }
    if (it->is_regular_file()) contents.files[it->path().parent_path()].push_back(it->path());
  }
  for (auto& [parent, files] : contents.files) std::sort(files.begin(), files.end());
  return contents;
}

class Import {
 public:
  Import(const std::function<RunStore&()>& store, const ImportRequest& request) : request_(request), store_(store) {}

  ImportOutcome run() {
    try {
      if (request_.paths.empty()) {
        MemoryInput input(request_.text);
        take_named("pasted text", [&] { take(input, "pasted text", {}); });
      }
      for (const std::string& path : request_.paths) take_path(path);
    } catch (const Interrupted&) {
      outcome_.interrupted = true;
    }
    return std::move(outcome_);
  }

 private:
  void take_path(const std::string& path) {
    take_named(path == "-" ? "standard input" : path, [&] {
      if (path == "-") {
        FileInput input(STDIN_FILENO);
        take(input, "standard input", {});
      } else if (fs::is_directory(path)) {
        take_folder(path);
      } else {
        FileInput input{fs::path(path)};
        take(input, path, path);
      }
    });
  }

  // An input that the user named and that can't be imported is a failure.
  template <class Take>
  void take_named(const std::string& shown, const Take& take) {
    try {
      take();
    } catch (const ImportError& error) {
      outcome_.failures.push_back(shown + ": " + error.what());
    } catch (const fs::filesystem_error& error) {
      outcome_.failures.push_back(shown + ": " + error.code().message());
    }
  }

  // One file, in one transaction.
  void take(ImportInput& input, const std::string& shown, const fs::path& path) {
    if (request_.begins) request_.begins(shown);
    if (request_.interrupted()) throw Interrupted();
    const Importer& importer = importer_for(input, request_.options);
    WatchedInput watched(input, request_.interrupted);
    StoreSink sink(store_, request_.options, shown, path);
    ImportOptions options = request_.options;
    options.known_stages = &known_stages();
    importer.read(watched, options, sink);
    sink.commit(outcome_, watched.source_hash());
    read_by(importer.id);
  }

  // A folder that is another tracker's store, in one transaction.
  void take_store(const fs::path& folder) {
    if (request_.begins) request_.begins(folder.string());
    StoreSink sink(store_, request_.options, folder.string(), folder);
    read_store_folder(folder, sink);
    sink.commit(outcome_, "");
    read_by(store_format(folder));
  }

  void read_by(std::string_view format) {
    std::vector<std::string>& formats = outcome_.formats;
    if (std::find(formats.begin(), formats.end(), format) == formats.end()) formats.emplace_back(format);
  }

  void take_folder(const fs::path& folder);
  std::vector<std::size_t> take_files(const std::vector<fs::path>& paths);
  FileGrouping group(const std::vector<std::size_t>& files, const std::string& folder);
  int place(const std::vector<std::size_t>& files, FilesAre are, const std::string& stage, int rung);

  const ImportRequest& request_;
  const std::function<RunStore&()>& store_;
  ImportOutcome outcome_;
};

// A folder is a ladder. Its files are repeats of one rung or one rung each, and so are those of each folder within it.
void Import::take_folder(const fs::path& folder) {
  if (is_store_folder(folder)) return take_store(folder);
  const FolderContents contents = contents_of(folder);
  const std::size_t first = outcome_.runs.size();
  for (const fs::path& store : contents.stores) take_store(store);
  const std::string folder_name = name_of_folder(folder);
  int rung = 0;
  for (const auto& [parent, paths] : contents.files) {
    const std::vector<std::size_t> files = take_files(paths);
    const std::string stage = parent == folder ? folder_name : parent.lexically_relative(folder).string();
    rung += place(files, group(files, stage).files, stage, rung);
  }
  if (outcome_.runs.size() == first) {
    outcome_.failures.push_back(folder.string() + ": holds no file that can be imported");
    return;
  }
  // Files that are ladders themselves leave the folder's own ladder without runs: then there isn't one.
  std::vector<Run*> loose;
  for (std::size_t i = first; i < outcome_.runs.size(); ++i) {
    if (!outcome_.runs[i].ladder) loose.push_back(&outcome_.runs[i]);
  }
  if (loose.empty()) return;
  RunStore& store = store_();
  store.in_one_transaction([&] {
    const LadderId ladder = store.create_ladder(
        {.name = folder_name, .source = "import", .source_path = fs::absolute(folder).lexically_normal().string()});
    for (Run* run : loose) {
      run->ladder = ladder;
      store.update_run(*run);
    }
  });
}

// Returns the indices in `outcome_.runs` of the files that have one run each and no ladder of their own. A file that
// the user didn't name and that can't be imported is a note.
std::vector<std::size_t> Import::take_files(const std::vector<fs::path>& paths) {
  std::vector<std::size_t> files;
  for (const fs::path& path : paths) {
    const std::size_t before = outcome_.runs.size();
    try {
      FileInput input(path);
      take(input, path.string(), path);
    } catch (const ImportError& error) {
      outcome_.notes.push_back({path.string(), 0, std::string("skipped: ") + error.what()});
      continue;
    }
    if (outcome_.runs.size() == before + 1 && !outcome_.runs.back().ladder) files.push_back(before);
  }
  return files;
}

FileGrouping Import::group(const std::vector<std::size_t>& files, const std::string& folder) {
  FileGrouping decision{request_.options.files, "as asked"};
  const bool asked = decision.files != FilesAre::detect;
  if (!asked) {
    std::vector<Summary> summaries;
    for (const std::size_t i : files) summaries.push_back(store_().summary(outcome_.runs[i]));
    std::vector<FileRun> runs;
    for (std::size_t i = 0; i < files.size(); ++i) runs.push_back({&outcome_.runs[files[i]], &summaries[i]});
    decision = group_files(runs);
  }
  if (files.size() > 1) outcome_.groupings.push_back({folder, files.size(), decision, asked});
  return decision;
}

// Places the files from `rung` on, and returns how many rungs they take up. A stage that the file names stays;
// otherwise repeats are named after their folder, and rungs after their files.
int Import::place(const std::vector<std::size_t>& files, FilesAre are, const std::string& stage, int rung) {
  const bool rungs = are == FilesAre::rungs;
  for (std::size_t i = 0; i < files.size(); ++i) {
    Run& run = outcome_.runs[files[i]];
    run.rung = rung + (rungs ? static_cast<int>(i) : 0);
    run.repeat = rungs ? 0 : static_cast<int>(i);
    if (!run.stage.empty()) continue;
    run.stage = rungs ? fs::path(run.source_path).stem().string() : stage;
    if (run.changed == run.title) run.title = run.stage;
  }
  return files.empty() ? 0 : rungs ? static_cast<int>(files.size()) : 1;
}

}  // namespace

std::string grouping_text(const ImportGrouping& grouping) {
  const bool rungs = grouping.decision.files == FilesAre::rungs;
  return grouping.folder + ": " + std::to_string(grouping.files) + " files are " +
         (rungs ? "a rung each" : "repeats of one rung") + (grouping.asked ? ", " : ": ") + grouping.decision.reason;
}

ImportOutcome import_into(const std::function<RunStore&()>& store, const ImportRequest& request) {
  return Import(store, request).run();
}

}  // namespace stepladder
