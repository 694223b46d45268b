// Reads "12 (name) S parent ..." by proc(5), where a field's number counts from 1.
#include "storage/process_stat.h"

#include <unistd.h>

#include <fstream>
#include <sstream>

namespace stepladder {

std::optional<ProcessStat> process_stat(const std::string& folder) {
  std::ifstream file(folder + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const std::size_t open = line.find('('), close = line.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return std::nullopt;
  ProcessStat stat{.name = line.substr(open + 1, close - open - 1)};
  std::istringstream fields(line.substr(close + 1));
  std::string skipped;
  std::int64_t user = 0, system = 0;
  fields >> stat.state >> stat.parent;
  for (int field = 5; field < 14; ++field) fields >> skipped;
  fields >> user >> system;
  for (int field = 16; field < 22; ++field) fields >> skipped;
  if (!(fields >> stat.start)) return std::nullopt;
  static const auto ticks_a_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  stat.cpu_s = static_cast<double>(user + system) / ticks_a_second;
  return stat;
}

}  // namespace stepladder
