// What a keeper costs a program that prints as fast as it can: raw bytes in a file, as `watch -- COMMAND` keeps them,
// beside lines of a journal with checksums, as the far program does. For docs/benchmarks.md.
//
//   keeper_flood FOLDER [MEBIBYTES]     FOLDER is on the disk that is to be measured
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "app/far/output_journal.h"
#include "app/journal/journal_file.h"
#include "storage/importers/journal/journal_reader.h"
#include "storage/importers/journal/run_events.h"
#include "storage/process.h"

namespace stepladder {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t piece = 64 << 10;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double own_cpu_s() {
  rusage used = {};
  ::getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& time) { return double(time.tv_sec) + 1e-6 * double(time.tv_usec); };
  return of(used.ru_utime) + of(used.ru_stime);
}

std::string text_of(const std::string& kind) {
  std::string text;
  for (int step = 0; text.size() < piece; ++step) {
    if (kind == "log lines") text += "step " + std::to_string(step) + " | loss 3.2841 | dt 12.53ms | tok/sec 40960\n";
    if (kind == "bars") text += "\r  3%|\u2588\u2588\u2588\u258c      | 12/400 [00:03<01:40, 3.9it/s]";
    if (kind == "binary") text += static_cast<char>(step * 37);
  }
  text.resize(piece);
  return text;
}

// A program that prints `size` bytes and nothing else.
pid_t start_program(const std::string& text, std::size_t size, const Pipe& pipe) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  for (std::size_t done = 0; done < size;) {
    const ssize_t count = ::write(pipe.write.get(), text.data(), text.size());
    if (count <= 0) ::_exit(1);
    done += static_cast<std::size_t>(count);
  }
  ::_exit(0);
}

struct Figures {
  double wall_s = 0, cpu_s = 0;
  std::size_t stored = 0;
};

// As a keeper does: reads a piece and stores it. An empty `keep` only reads.
template <class Keep>
Figures flood(const std::string& text, std::size_t size, const Keep& keep) {
  Pipe pipe;
  const auto begin = Clock::now();
  const double cpu = own_cpu_s();
  const pid_t program = start_program(text, size, pipe);
  pipe.write.reset();
  Figures figures;
  char bytes[piece];
  for (ssize_t count = 0; (count = ::read(pipe.read.get(), bytes, sizeof bytes)) > 0;)
    figures.stored += keep(std::string_view(bytes, static_cast<std::size_t>(count)));
  ::waitpid(program, nullptr, 0);
  figures.wall_s = seconds_since(begin);
  figures.cpu_s = own_cpu_s() - cpu;
  return figures;
}

Figures raw(const std::string& file, const std::string& text, std::size_t size) {
  const Descriptor to(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
  return flood(text, size, [&](std::string_view bytes) {
    return static_cast<std::size_t>(::write(to.get(), bytes.data(), bytes.size()));
  });
}

Figures journal(const std::string& file, const std::string& text, std::size_t size) {
  ::unlink(file.c_str());
  JournalFile to = JournalFile::create(file).value();
  std::size_t unsynced = 0;
  const auto figures = flood(text, size, [&](std::string_view bytes) {
    const std::string line = far::output_line(1764000000.125, bytes);
    to.add(line);
    to.write();
    if ((unsynced += line.size()) > std::size_t{64} << 20) {  // a keeper does so every second
      to.sync();
      unsynced = 0;
    }
    return line.size();
  });
  return figures;
}

// What a tracker does to get the bytes back.
double decoding_s(const std::string& file) {
  const Descriptor from(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  const double cpu = own_cpu_s();
  JournalReader reader(0);
  std::size_t output = 0;
  for (std::uint64_t at = 0;;) {
    const std::string bytes = read_at(from.get(), at, 1 << 20);
    if (bytes.empty()) break;
    at += bytes.size();
    reader.take(bytes);
    for (JournalEvent event; reader.next(event);) output += bytes_of_text(text_in(event.fields, "b")).size();
  }
  return output > 0 ? own_cpu_s() - cpu : -1;
}

void print(const char* kind, const char* way, std::size_t size, const Figures& figures, double decoding) {
  const double mebibytes = double(size) / (1 << 20);
  std::printf("%-10s %-9s %6.0f MiB/s, keeper %5.2f ms of CPU a MiB, %4.2f bytes stored a byte", kind, way,
              mebibytes / figures.wall_s, 1000 * figures.cpu_s / mebibytes, double(figures.stored) / double(size));
  if (decoding > 0) std::printf(", tracker's decoding %5.2f ms a MiB", 1000 * decoding / mebibytes);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace
}  // namespace stepladder

int main(int count, char** words) {
  using namespace stepladder;
  if (count < 2) return std::fprintf(stderr, "keeper_flood FOLDER [MEBIBYTES]\n"), 2;
  const std::string file = std::string(words[1]) + "/keeper_flood.out";
  const std::size_t size = std::size_t(count > 2 ? std::atoi(words[2]) : 256) << 20;
  for (const char* const kind : {"log lines", "bars", "binary"})
    for (int round = 0; round < 3; ++round) {
      const std::string text = text_of(kind);
      print(kind, "nothing", size, flood(text, size, [](std::string_view) { return std::size_t{0}; }), 0);
      print(kind, "raw", size, raw(file, text, size), 0);
      const Figures of_journal = journal(file, text, size);
      print(kind, "journal", size, of_journal, decoding_s(file));
    }
  ::unlink(file.c_str());
}
