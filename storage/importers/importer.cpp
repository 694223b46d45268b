#include "storage/importers/importer.h"

#include <algorithm>

#include "storage/wording.h"

namespace stepladder {

const std::vector<Importer>& all_importers() {
  static const std::vector<Importer> list = {
#define IMPORTER(name) importers::name(),
#include "storage/importers/importers.def"
#undef IMPORTER
  };
  return list;
}

void refuse_more_metrics(std::size_t metrics) {
  if (metrics >= most_stored_metrics)
    throw ImportError("logs more than " + grouped(static_cast<std::int64_t>(most_stored_metrics)) +
                      " different metrics in one run: are its names values? Give it fewer names");
}

void Importer::read(ImportInput& input, const ImportOptions& options, ImportSink& sink) const {
  const std::unique_ptr<ImportReader> each = reader(input.path(), options, sink);
  if (!opens_file) push_all(input, *each);
  each->finish();
}

const Importer& importer_for(std::string_view head, const std::filesystem::path& path, const ImportOptions& options) {
  const auto& known = all_importers();
  if (!options.format.empty()) {
    const auto named = std::ranges::find_if(known, [&](auto& it) { return it.id == options.format; });
    if (named != known.end()) return *named;
    std::string ids;
    for (const Importer& importer : known) ids += (ids.empty() ? "" : ", ") + importer.id;
    throw ImportError("unknown format '" + options.format + "'; the formats are " + ids);
  }
  const auto found = std::ranges::find_if(known, [&](auto& it) { return it.recognises(head, path); });
  if (found == known.end()) throw ImportError("no importer recognises this format");
  return *found;
}

}  // namespace stepladder
