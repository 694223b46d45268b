// Measures how much of this machine's processors other programs use. Reads /proc; needs no torch and no thread of its
// own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "storage/records.h"

namespace stepladder {

// CPU time up to a moment: the busy time of the cores that this process may use, and of it the own share.
struct CpuReading {
  std::int64_t busy_ticks = 0;
  double steady_s = 0;   // of the clock
  double run_s = 0;      // CPU time of the run: of its threads and its helpers
  double program_s = 0;  // CPU time of this program's other threads: the window, the recorder
};

// The busy time of these cores in the text of /proc/stat; waiting for a disk counts as idle. `usable` by number.
std::int64_t busy_ticks_in(std::istream& proc_stat, const std::vector<bool>& usable);

// The mean number of `cores` that others used between two readings; unknown if they are too close, if the machine shows
// no busy time at all (some sandboxes), or if `cores` is 0.
Contention use_of_others(const CpuReading& before, const CpuReading& now, int cores, double ticks_a_second);

// Makes the calling thread one of the run's, and with it all threads that it makes from now on, since a thread inherits
// the name of the one that made it. Those that LibTorch and CUDA name themselves are the run's too.
void become_run_thread();
// Undoes this for the calling thread, which a run's thread has made. `name`: at most 15 bytes.
void leave_run_threads(const char* name);

// The mean number of cores that others have used since the previous sample, of those that this process may use: the
// cores' busy time less the run's. Time that a virtual machine's host gave to others counts as theirs, and so does the
// kernel's work on interrupts, and this program's window and recorder. A sample costs some tens of microseconds, and as
// much again for each of the process's threads. Not thread-safe: one thread.
//
// Unknown where a control group limits the CPU time (a container's --cpus), since the machine may then be idle and the
// group busy, or the other way round.
class OthersWatch {
 public:
  enum class Run { whole_process, run_threads };  // which of this process is the run
  explicit OthersWatch(Run run, std::vector<pid_t> helpers = {});

  // Leaves unset: the cores that the run needs, which the caller knows, and the GPU's values.
  Contention sample();

  double run_cores() const { return run_cores_; }  // in the last sample

 private:
  CpuReading read();

  const Run run_;
  const std::vector<pid_t> helpers_;
  const std::vector<bool> usable_;    // of the machine's cores, by number
  const int cores_;                   // 0: limited otherwise
  std::map<pid_t, double> thread_s_;  // the last known CPU time of each; before `before_`, which is read with it
  std::map<pid_t, double> helper_s_;
  CpuReading before_;
  double run_cores_ = missing;
};

// The other processes of a run of several: this process's children or, if a launcher started it, the launcher's other
// children of the same name. Reads the whole list of processes.
std::vector<pid_t> run_helpers();

struct BusyProcess {
  std::int64_t pid = 0;
  std::string name;
  double cores = 0;
};

// Which other programs are busy. A sample reads the whole list of processes, which takes milliseconds.
class BusyProcesses {
 public:
  BusyProcesses();
  std::vector<BusyProcess> sample(std::size_t most = 3);  // since the previous one, the busiest first

 private:
  struct Reading {
    double steady_s = 0;
    std::map<std::int64_t, double> cpu_s;
    std::map<std::int64_t, std::string> names;
  };
  static Reading read();
  Reading before_;
};

// "cc1plus 0.9, ld 0.3": names and cores, several processes of one name together; empty without processes.
std::string names_of(const std::vector<BusyProcess>& processes);

}  // namespace stepladder
