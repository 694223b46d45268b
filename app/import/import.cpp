// Finds files and stores below the named paths, reads each with its importer into hidden runs, and shows all runs of a
// path in one transaction. A folder becomes a ladder; whether its files are repeats or rungs is `group_files`' decision
// unless the user chose. A file that fails leaves nothing.
#include "app/import/import.h"

#ifdef __linux__
#include <sys/resource.h>
#endif
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>

#include "app/import/file_input.h"
#include "app/import/store_sink.h"
#include "engine/stage.h"
#include "storage/analysis/mfu.h"
#include "storage/database/rescue/write_ahead_log.h"
#include "storage/database/traces/trace_store.h"
#include "storage/importers/source_code.h"
#include "storage/importers/trackers/store_file.h"
#include "storage/importers/trackers/store_folder.h"
#include "storage/intake/intake.h"
#include "storage/traces/trace_file.h"
#include "storage/wording.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

// Passes pieces on until the request is interrupted, and hashes them and the source code at the top.
class WatchedInput : public ImportInput {
 public:
  WatchedInput(ImportInput& input, const std::function<bool()>& interrupted)
      : input_(input), interrupted_(interrupted) {}
  std::string_view head() override { return input_.head(); }
  std::string_view next() override {
    if (interrupted_()) throw InputInterrupted();
    const std::string_view piece = input_.next();
    source_.take(piece);
    content_.take(piece);
    at_end_ = piece.empty();
    return piece;
  }
  const fs::path& path() const override { return input_.path(); }
  std::string source_hash() const { return source_.text(); }
  // The hash of the whole input, also if the importer stopped before its end or opened the file itself.
  std::string content_hash() {
    if (!at_end_ && !path().empty()) return stepladder::content_hash(path());
    while (!at_end_) next();
    return content_.text();
  }

 private:
  ImportInput& input_;
  const std::function<bool()>& interrupted_;
  SourceCodeHash source_;
  ContentHash content_;
  bool at_end_ = false;
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
    std::error_code unreadable;  // a link that leads nowhere, or in a circle
    if (it->is_symlink() && !fs::exists(it->path(), unreadable)) continue;
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
  std::ranges::sort(contents.stores);  // a folder lists its files in the file system's own order
  for (auto& [parent, files] : contents.files) std::ranges::sort(files);
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
      for (; outcome_.paths_done < request_.paths.size(); ++outcome_.paths_done)
        take_path(request_.paths[outcome_.paths_done]);
    } catch (const InputInterrupted&) {
      outcome_.interrupted = true;
      drop_hidden();
    } catch (...) {
      outcome_.error = std::current_exception();
      drop_hidden();
    }
    return std::move(outcome_);
  }

 private:
  void take_path(const std::string& path) {
    take_named(path == "-" ? "standard input" : path, [&] {
      if (path == "-" && request_.standard_input) {
        take(*request_.standard_input, "standard input", {});
      } else if (path == "-") {
        FileInput input(STDIN_FILENO, request_.interrupted);
        take(input, "standard input", {});
      } else if (std::error_code error; !named_.insert(fs::weakly_canonical(path, error)).second && !error) {
        outcome_.notes.push_back({path, 0, "named twice, and read once"});
      } else if (fs::is_directory(path)) {
        take_folder(path);
      } else {
        FileInput input(fs::path(path), request_.interrupted);
        take_file(input, path);
      }
    });
  }

  // Shows a named input as a whole, or reports it as a failure.
  template <class Take>
  void take_named(const std::string& shown, const Take& take) {
    try {
      take();
      show_hidden();
    } catch (const ImportError& error) {
      outcome_.failures.push_back(shown + ": " + error.what());
      drop_hidden();
    } catch (const fs::filesystem_error& error) {
      outcome_.failures.push_back(shown + ": " + error.code().message());
      drop_hidden();
    }
  }

  // The runs of the input that is being read.
  std::vector<RunId> hidden_runs() const {
    std::vector<RunId> hidden;
    for (std::size_t i = shown_; i < outcome_.runs.size(); ++i) hidden.push_back(outcome_.runs[i].id);
    return hidden;
  }

  // Others see an input's runs together with all that came with them.
  void show_hidden() {
    const std::vector<RunId> hidden = hidden_runs();
    if (hidden.empty() && outcome_.published.empty() && stored_passes_ == outcome_.passes.size() &&
        stored_views_ == outcome_.views.size())
      return;
    RunStore& store = store_();
    store.in_one_transaction([&] {
      store.hidden_runs().show(hidden);
      for (const StoredTries& each : outcome_.tries) store.tries().save(each);
      if (!outcome_.published.empty()) store_published(store);
      for (std::size_t i = stored_passes_; i < outcome_.passes.size(); ++i) store_passes(store, outcome_.passes[i]);
      for (std::size_t i = stored_views_; i < outcome_.views.size(); ++i) store_view(store, outcome_.views[i]);
    });
    outcome_.tries.clear();
    outcome_.published.clear();
    stored_passes_ = outcome_.passes.size();
    stored_views_ = outcome_.views.size();
    for (std::size_t i = std::exchange(shown_, outcome_.runs.size()); i < outcome_.runs.size(); ++i) {
      if (const auto kept = keep_logged_rate(store_(), outcome_.runs[i].id)) outcome_.runs[i].printed = *kept;
    }
  }

  // Adds the rows that the project doesn't have.
  void store_published(RunStore& store) {
    const std::string before = store.settings().get(published_setting).value_or("");
    const std::string added = unknown_rows(outcome_.published, published_rows(before, {}));
    constexpr std::size_t most = 4 << 20;
    if (!added.empty() && before.size() + added.size() <= most) store.settings().set(published_setting, before + added);
  }

  // Passes that the project has already keep their number.
  void store_passes(RunStore& store, StoredPasses& passes) {
    PassStore kept = store.traces().passes();
    for (const StoredPasses& each : kept.list()) {
      if (each.name == passes.name && (is_missing(passes.measured_at) || each.measured_at == passes.measured_at))
        passes.id = each.id;
    }
    if (passes.id == 0) passes.id = kept.insert(passes);
  }

  // Saves an imported view. One that the project has already keeps its name; the other gets a number.
  void store_view(RunStore& store, std::pair<std::string, std::string>& view) {
    ViewStore& views = store.views();
    const std::string name = view.first;
    for (int number = 2; views.content(view.first).value_or(view.second) != view.second; ++number)
      view.first = name + " (" + std::to_string(number) + ")";
    views.save(view.first, view.second);
  }

  void drop_hidden() {
    const std::vector<RunId> hidden = hidden_runs();
    outcome_.runs.resize(shown_);
    outcome_.tries.clear();
    outcome_.published.clear();
    outcome_.passes.resize(stored_passes_);
    outcome_.views.resize(stored_views_);
    try {
      if (!hidden.empty()) store_().hidden_runs().remove(hidden);
    } catch (const StorageError&) {  // a later opening deletes them
    }
  }

  // True if the project has the content with this hash; then notes it as skipped.
  bool is_in_project(const std::string& hash, const std::string& shown) {
    const auto known = request_.in_project.find(hash);
    if (known == request_.in_project.end()) return false;
    outcome_.skipped.push_back({shown, known->second});
    return true;
  }

  // The same for a file or store before it is read.
  bool is_path_in_project(const fs::path& path) {
    const std::vector<RunId>* const runs = runs_at(request_.in_project, path);
    if (runs) outcome_.skipped.push_back({path.string(), *runs});
    return runs != nullptr;
  }

  // `input` is the file at `path`, perhaps packed.
  void take_file(ImportInput& input, const fs::path& path) {
    PackedInput packed(path);
    take(is_packed(input.head()) ? static_cast<ImportInput&>(packed) : input, path.string(), path);
  }

  // Imports one file, whole or not at all.
  void take(ImportInput& input, const std::string& shown, const fs::path& path) {
    if (request_.begins) request_.begins(shown);
    if (request_.interrupted()) throw InputInterrupted();
    if (!path.empty() && is_path_in_project(path)) return;
    const Importer& importer = importer_for(input, request_.options);
    // Another tracker's log may have gaps after a power failure, but a project's is synced with each transaction.
    if (importer.id == "stepladder" && !damage_of_write_ahead_log(path).empty())
      throw ImportError("has a damaged log (-wal), so that transactions would be left out; rescue it first");
    WatchedInput watched(input, request_.interrupted);
    ImportOptions options = request_.options;
    const FileChoice choice = path.empty() ? FileChoice{} : choice_for(fs::absolute(path).lexically_normal().string());
    if (choice.tokens_per_step > 0) options.tokens_per_step = choice.tokens_per_step;
    StoreSink sink(store_, options, shown, path);
    options.known_stages = &known_stages();
    importer.read(watched, options, sink);
    const std::string hash = watched.content_hash();
    if (is_in_project(hash, shown)) return;  // standard input and pasted text: known only now
    sink.finish(outcome_, watched.source_hash(), hash);
    read_by(importer.id);
  }

  // Imports a folder that is another tracker's store, whole or not at all.
  void take_store(const fs::path& folder) {
    if (request_.begins) request_.begins(folder.string());
    if (is_path_in_project(folder)) return;
    StoreSink sink(store_, request_.options, folder.string(), folder);
    read_store_folder(folder, request_.options, sink);
    sink.finish(outcome_, "", content_hash(folder));
    read_by(store_format(folder));
  }

  void read_by(std::string_view format) {
    std::vector<std::string>& formats = outcome_.formats;
    if (std::ranges::find(formats, format) == formats.end()) formats.emplace_back(format);
  }

  void take_folder(const fs::path& folder);
  std::vector<std::size_t> take_files(const std::vector<fs::path>& paths);
  void keep_apart(std::vector<std::size_t>& files);
  void sort_by_values(std::vector<std::size_t>& files, FileGrouping& grouping) const;
  const FileChoice& choice_for(const std::string& file) const;  // Run::source_path
  FileGrouping group(const std::vector<std::size_t>& files, const std::string& folder);
  int place(const std::vector<std::size_t>& files, const FileGrouping& grouping, const std::string& stage, int rung);

  const ImportRequest& request_;
  const std::function<RunStore&()>& store_;
  ImportOutcome outcome_;
  std::size_t shown_ = 0;                             // how many of outcome_.runs are visible to others
  std::size_t stored_views_ = 0, stored_passes_ = 0;  // of the outcome's
  std::set<fs::path> named_;                          // paths that were read
  std::set<RunId> apart_;                             // runs that belong to no ladder
};

// A folder is a ladder. Its files are repeats of one rung or one rung each, and so are those of each folder within it.
void Import::take_folder(const fs::path& folder) {
  if (is_store_folder(folder)) return take_store(folder);
  const FolderContents contents = contents_of(folder);
  const std::size_t first = outcome_.runs.size(), skipped = outcome_.skipped.size(), passes = outcome_.passes.size(),
                    traces = outcome_.traces.size();
  std::map<fs::path, std::vector<std::size_t>> by_parent;  // runs of stores with one each, and of files
  for (const fs::path& store : contents.stores) {
    const std::size_t before = outcome_.runs.size();
    take_store(store);
    if (outcome_.runs.size() == before + 1 && !outcome_.runs.back().ladder)
      by_parent[store.parent_path()].push_back(before);
  }
  const std::string folder_name = name_of_folder(folder);
  for (const auto& [parent, paths] : contents.files) {
    const std::vector<std::size_t> files = take_files(paths);
    by_parent[parent].insert(by_parent[parent].end(), files.begin(), files.end());
  }
  int rung = 0;
  for (auto& [parent, files] : by_parent) {
    keep_apart(files);
    const std::string stage = parent == folder ? folder_name : parent.lexically_relative(folder).string();
    FileGrouping grouping = group(files, stage);
    if (grouping.is_sweep) sort_by_values(files, grouping);
    if (grouping.files == FilesAre::apart) {
      for (const std::size_t i : files) apart_.insert(outcome_.runs[i].id);
    } else {
      rung += place(files, grouping, stage, rung);
    }
  }
  if (outcome_.runs.size() == first) {
    if (outcome_.skipped.size() == skipped && outcome_.passes.size() == passes && outcome_.traces.size() == traces)
      outcome_.failures.push_back(folder.string() + ": holds no file that can be imported");
    return;
  }
  // Files that are ladders themselves leave the folder's own ladder without runs: then there isn't one.
  std::vector<Run*> loose;
  for (std::size_t i = first; i < outcome_.runs.size(); ++i) {
    Run& run = outcome_.runs[i];
    if (!run.ladder && !apart_.contains(run.id)) loose.push_back(&run);
  }
  if (loose.empty()) return;
  RunStore& store = store_();
  std::optional<LadderId> ladder;
  store.in_slices([&, next = loose.begin()]() mutable {
    if (!ladder)  // together with its first run, so that it is never without one
      ladder = store.create_ladder(
          {.name = folder_name, .source = "import", .source_path = fs::absolute(folder).lexically_normal().string()});
    (*next)->ladder = ladder;
    store.update_run(**next);
    return ++next != loose.end();
  });
  const auto begin = outcome_.runs.begin() + static_cast<std::ptrdiff_t>(first);
  if (std::all_of(begin, outcome_.runs.end(), [&](const Run& run) { return run.ladder == ladder; }))
    std::stable_sort(begin, outcome_.runs.end(), [](const Run& a, const Run& b) {
      return std::pair(a.rung, a.repeat) < std::pair(b.rung, b.repeat);
    });
}

// Returns the indices in `outcome_.runs` of the files that have one run each and no ladder of their own. A file that
// the user didn't name and that can't be imported is a note.
std::vector<std::size_t> Import::take_files(const std::vector<fs::path>& paths) {
  std::vector<std::size_t> files;
  for (const fs::path& path : paths) {
    const std::size_t before = outcome_.runs.size();
    if (const std::string name = path.filename().string();
        (name.find(".json") != std::string::npos || name.find(".sqlite") != std::string::npos) &&
        looks_like_trace(path)) {
      outcome_.traces.push_back(path.string());
      continue;
    }
    try {
      StoreFile input(path);
      take_file(input, path);
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
  for (std::size_t i = 0; asked && i < files.size(); ++i)
    decision.rung.push_back(decision.files == FilesAre::rungs ? static_cast<int>(i) : 0);
  if (!asked) {
    std::vector<Run> measured;
    for (const std::size_t i : files) measured.push_back(outcome_.runs[i]);
    const std::vector<Summary> summaries = store_().summaries(measured);
    std::vector<FileRun> runs;
    for (std::size_t i = 0; i < files.size(); ++i) {
      const Run& run = outcome_.runs[files[i]];
      runs.push_back({&run, &summaries[i], is_store_folder(run.source_path)});
    }
    decision = group_files(runs);
  }
  if (files.size() > 1) outcome_.groupings.push_back({folder, files.size(), decision, asked});
  return decision;
}

const FileChoice& Import::choice_for(const std::string& file) const {
  static const FileChoice none;
  const auto choice = request_.choices.find(file);
  return choice == request_.choices.end() ? none : choice->second;
}

// Brings the files into the order that the user chose, without those that belong to no ladder.
void Import::keep_apart(std::vector<std::size_t>& files) {
  const auto order = [this](std::size_t i) { return choice_for(outcome_.runs[i].source_path).order; };
  std::ranges::stable_sort(files, [&](std::size_t a, std::size_t b) { return order(a) < order(b); });
  std::erase_if(files, [this](std::size_t i) {
    Run& run = outcome_.runs[i];
    const FileChoice& choice = choice_for(run.source_path);
    if (choice.role != FileChoice::Role::apart) return false;
    apart_.insert(run.id);
    if (!choice.name.empty()) run.name = choice.name;
    store_().update_run(run);
    return true;
  });
}

// Brings a sweep's files into the order of its rungs, unless the user has chosen one.
void Import::sort_by_values(std::vector<std::size_t>& files, FileGrouping& grouping) const {
  if (std::ranges::any_of(files, [this](std::size_t i) { return choice_for(outcome_.runs[i].source_path).order != 0; }))
    return;
  std::vector<std::pair<int, std::size_t>> by_rung;
  for (std::size_t k = 0; k < files.size(); ++k) by_rung.emplace_back(grouping.rung[k], files[k]);
  std::ranges::stable_sort(by_rung, {}, &std::pair<int, std::size_t>::first);
  for (std::size_t k = 0; k < files.size(); ++k) std::tie(grouping.rung[k], files[k]) = by_rung[k];
}

// Places the files from `rung` on, and returns how many rungs they take up. A name that the user chose counts first,
// then the values that differ, then the stage that the file names; otherwise repeats are named after their folder, and
// rungs after their files.
int Import::place(const std::vector<std::size_t>& files, const FileGrouping& grouping, const std::string& stage,
                  int rung) {
  using Role = FileChoice::Role;
  int next = rung, last = rung;
  std::map<int, int> rung_of;  // of the grouping's
  std::map<int, int> runs;     // of each rung
  std::map<int, std::string> names;
  std::map<std::string, int> same;  // files that name this stage
  for (const std::size_t i : files) ++same[outcome_.runs[i].stage];
  const bool are_rungs = grouping.files == FilesAre::rungs;
  for (std::size_t k = 0; k < files.size(); ++k) {
    Run& run = outcome_.runs[files[k]];
    const FileChoice& choice = choice_for(run.source_path);
    const auto group = rung_of.find(grouping.rung[k]);
    const bool is_new = next == rung || choice.role == Role::rung ||
                        (choice.role == Role::detect && are_rungs && group == rung_of.end());
    if (is_new) {
      last = next++;
    } else if (choice.role == Role::detect && are_rungs) {
      last = group->second;
    }
    if (choice.role == Role::detect) rung_of.try_emplace(grouping.rung[k], last);
    run.rung = last;
    run.repeat = runs[last]++;
    const auto group_title = static_cast<std::size_t>(grouping.rung[k]);
    const bool is_rung = choice.role == Role::rung || (choice.role == Role::detect && are_rungs);
    if (is_new)
      names[last] = !choice.name.empty() ? choice.name : is_rung ? fs::path(run.source_path).stem().string() : stage;
    const std::string& name = names[last];
    const bool is_named = !choice.name.empty();
    if (!is_named && are_rungs && group_title < grouping.titles.size()) {
      run.title = grouping.titles[group_title];
      if (run.stage.empty()) run.stage = std::ranges::count(grouping.rung, grouping.rung[k]) > 1 ? run.title : name;
      if (run.changed.empty()) run.changed = run.title;
      continue;
    }
    if (!run.stage.empty() && !is_named) {
      if (is_new && is_rung && same[run.stage] > 1) run.title = name;  // else all rungs would look alike
      continue;
    }
    run.stage = is_named && run.repeat == 0 ? choice.name : name;
    if (is_named || run.changed == run.title) run.title = run.stage;
  }
  return next - rung;
}

}  // namespace

std::string grouping_text(const ImportGrouping& grouping) {
  const FileGrouping& decision = grouping.decision;
  const auto files = static_cast<std::int64_t>(grouping.files);
  const std::int64_t rungs = decision.rung.empty() ? files : 1 + *std::ranges::max_element(decision.rung);
  const std::string are = decision.files == FilesAre::apart     ? "in no ladder"
                          : decision.files == FilesAre::repeats ? "repeats of one rung"
                          : rungs == files                      ? "a rung each"
                                                                : plural(rungs, "rung") + " with repeats";
  return grouping.folder + ": " + std::to_string(files) + " files are " + are + (grouping.asked ? ", " : ": ") +
         decision.reason;
}

std::string skipped_text(const SkippedImport& skipped) {
  return in_project_text(skipped.file, skipped.runs);
}

ImportOutcome import_into(const std::function<RunStore&()>& store, const ImportRequest& request) {
#ifdef __linux__
  ::setpriority(PRIO_PROCESS, 0, 10);  // 0: on Linux this thread alone
#endif
  return Import(store, request).run();
}

}  // namespace stepladder
