#include "app/machines/output_file.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "storage/importers/journal/run_events.h"
#include "storage/records.h"

namespace stepladder {

void OutputFile::take_in(const std::filesystem::path& journal, std::uint64_t size,
                         const std::function<void(std::string_view)>& show) {
  auto read =
      std::find_if(journals_.begin(), journals_.end(), [&](const Read& each) { return each.journal == journal; });
  if (read == journals_.end()) read = journals_.insert(journals_.end(), Read{journal, JournalReader(0), 0});
  constexpr std::uint64_t at_once = 1 << 20;
  while (read->given < size) {
    std::ifstream file(journal, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(read->given));
    std::string bytes(std::min(at_once, size - read->given), '\0');
    file.read(bytes.data(), std::ssize(bytes));
    bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
    if (bytes.empty()) return;
    JournalReader reader = read->reader;
    reader.take(bytes);
    std::string output;
    std::vector<std::pair<std::int64_t, double>> times;
    while (true) {
      JournalEvent event;
      if (!reader.next(event)) {
        if (!reader.is_stuck()) break;
        reader.skip();
        continue;
      }
      if (event.kind != "out") continue;
      times.emplace_back(size_ + std::ssize(output), number_in(event.fields, "t"));
      output += bytes_of_text(text_in(event.fields, "b"));
    }
    if (!output.empty()) {
      std::fstream to(file_, std::ios::binary | std::ios::in | std::ios::out);
      if (!to) to.open(file_, std::ios::binary | std::ios::out);
      to.seekp(size_);
      to.write(output.data(), std::ssize(output));
      to.close();
      if (!to) throw std::runtime_error(file_.string() + " can't be written");
    }
    read->reader = std::move(reader);
    read->given += bytes.size();
    size_ += std::ssize(output);
    for (const auto& [byte, at] : times)
      if (times_.empty() || at - times_.back().second >= 0.05) times_.emplace_back(byte, at);
    if (show && !output.empty()) show(output);
  }
}

double OutputFile::written_at(std::int64_t byte) const {
  const auto after = std::upper_bound(times_.begin(), times_.end(), std::pair{byte, 1e300});
  return after == times_.begin() ? missing : std::prev(after)->second;
}

std::string OutputFile::tail(std::size_t most) const {
  std::ifstream file(file_, std::ios::binary);
  const std::int64_t begin = std::max<std::int64_t>(0, size_ - static_cast<std::int64_t>(most));
  file.seekg(begin);
  std::string bytes(static_cast<std::size_t>(size_ - begin), '\0');
  file.read(bytes.data(), std::ssize(bytes));
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  return bytes;
}

}  // namespace stepladder
