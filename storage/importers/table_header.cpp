// A column gets the meaning that its name would have in a log's line; of two for one field, the plainer name's.
#include "storage/importers/table_header.h"

#include <algorithm>
#include <array>
#include <utility>

#include "storage/importers/text.h"
#include "storage/name_pattern.h"

namespace stepladder {

std::string_view bare_cell(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\"'#");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\"'") - first + 1);
}

namespace {

TableHeader read_header(std::string_view line) {
  TableHeader header;
  if (line.size() > 16384) return header;
  std::size_t most = 0;
  for (const char separator : {',', ';', '\t'}) {
    const auto count = static_cast<std::size_t>(std::ranges::count(line, separator));
    if (count <= most) continue;
    most = count;
    header.separator = separator;
  }
  if (most == 0) return header;
  TrimmedFields splitter;
  const std::vector<std::string_view>& fields = splitter.split(line, header.separator);
  std::array<int, field_count> best;
  best.fill(99);
  std::array<int, field_count> holder;
  holder.fill(-1);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string_view name = fields[i];
    const int column = static_cast<int>(i);
    if (name.size() > 80 || plain_column_name(name).find_first_of("=:{}") != std::string::npos ||
        (!name.empty() && read_cell(name, NumberStyle(), Counts::whole).is_number))
      return {};
    header.columns.push_back(Field::none);
    header.readers.emplace_back(name);
    if (!name.empty() && std::ranges::find(header.names, name) != header.names.end()) {
      header.twice = name;
      header.names.emplace_back();
      continue;
    }
    header.names.emplace_back(name);
    std::string lower = lower_case(name);
    std::ranges::replace(lower, ' ', '_');
    if (one_of(lower, {"variant", "name", "stage", "rung", "repeat", "seed", "trial", "trial_id", "config", "model",
                       "optimizer", "optimiser", "method"}))
      header.parts.push_back(column);
    if (lower == "rung") header.rung = column;
    if (lower == "name") header.name = column;
    if (lower == "stage") header.stage = column;
    if (one_of(lower, {"split", "phase", "mode", "dataset", "stage"})) header.split = column;
    if (one_of(lower, {"run", "run_id", "run_name", "experiment", "run_uuid"})) {
      header.run = column;
    } else if (one_of(lower, {"metric", "key", "tag", "metric_name", "variable", "name"})) {
      header.metric = column;
    } else if (lower == "value") {
      header.value = column;
    } else if (one_of(lower, {"timestamp", "_timestamp", "wall_time", "at", "date", "datetime", "at_unix_s"})) {
      header.at = column;
    } else if (one_of(lower, {"ladder_id", "rung", "repeat"})) {
      header.is_export |= lower == "ladder_id";
    } else {
      const Meaning meaning = header.readers.back().meaning();
      const auto field = static_cast<std::size_t>(meaning.field);
      if (meaning.field == Field::none || meaning.rank >= best[field]) continue;
      if (holder[field] >= 0) header.columns[static_cast<std::size_t>(holder[field])] = Field::none;
      best[field] = meaning.rank;
      holder[field] = column;
      header.columns.back() = meaning.field;
    }
  }
  for (std::size_t i = 0; i < header.columns.size(); ++i)
    if (header.columns[i] == Field::none && static_cast<int>(i) != header.value) header.readers[i].forget_meaning();
  header.step = holder[static_cast<std::size_t>(Field::step)];
  header.epoch = holder[static_cast<std::size_t>(Field::epoch)];
  header.batch = holder[static_cast<std::size_t>(Field::batch)];
  const auto has = [&](Field field) { return holder[static_cast<std::size_t>(field)] >= 0; };
  const bool counted = header.step >= 0 || header.epoch >= 0;
  const bool measured = has(Field::loss) || has(Field::val_loss) || has(Field::time) || has(Field::elapsed) ||
                        (has(Field::throughput) && counted);
  header.useful = header.is_long() ? counted : measured && (counted || fields.size() > 1);
  return header;
}

}  // namespace

bool precedes_rows(std::string_view line, TableHeader& header) {
  if (header.useful && !header.is_comment) return false;
  TableHeader read = read_header(line);
  read.is_comment = line.front() == '#';
  const bool precedes = read.useful || read.is_comment;
  if (read.useful) header = std::move(read);
  return precedes;
}

}  // namespace stepladder
