// Follows machines for the window, on a thread of its own with its own connection to the database.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "app/machines/far_command.h"
#include "app/machines/far_runs.h"
#include "app/machines/machine_status.h"
#include "app/machines/ssh_questions.h"
#include "storage/thread_safety.h"

namespace stepladder {

// Used by the UI thread; no function blocks. The thread starts with the first machine; what was started on machines
// before the window opened is followed too.
class MachineWatch {
 public:
  // `wake` is called on the thread when there is something new to show.
  MachineWatch(std::filesystem::path database, std::function<void()> wake);
  ~MachineWatch();  // ends the links; runs on machines continue
  MachineWatch(const MachineWatch&) = delete;
  MachineWatch& operator=(const MachineWatch&) = delete;

  // Called while a view shows the machines: all are asked every few seconds for as long as these calls continue.
  void look();

  void add(const Machine& machine);
  void remove(const MachineAlias& alias);
  void adopt(const MachineInFile& shown);
  void ask_again(const MachineAlias& alias);  // now
  void start(const MachineAlias& alias, std::shared_ptr<const FarLadder> ladder);
  void signal(RunId run, const std::string& signal);  // of docs/far.md

  // The questions of ssh; nullopt: nothing has changed since the last call.
  std::optional<std::vector<SshQuestion>> take_questions();
  // nullopt: refused; machines that can't be reached without an answer are asked again when the user tries them.
  void answer(const std::string& id, std::optional<std::string> text);

  // Changes since the last call; nullopt: none.
  std::optional<std::vector<MachineStatus>> take_statuses();
  std::optional<std::vector<MachineInFile>> take_machines_in_file();
  struct Message {
    std::string text;
    bool is_error = false;
  };
  std::vector<Message> take_messages();

 private:
  using Work = std::function<void(RunStore&, FarRuns&)>;
  void post(Work work);
  void run();
  void report(const std::string& text, bool is_error);
  void update_report(FarRuns& runs, MachineStatus& status);
  void publish(RunStore& store, FarRuns& runs);
  void bring_questions();

  const std::filesystem::path database_;
  const std::function<void()> wake_;

  // Only the thread uses these.
  std::map<MachineAlias, MachineStatus> statuses_;
  std::map<MachineAlias, std::unique_ptr<MachineReport>> asked_;  // receives the answers
  std::set<MachineAlias> ask_now_;
  std::unique_ptr<SshQuestions> questions_;
  std::vector<SshQuestion> open_questions_;

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Work> work_ GUARDED_BY(mutex_);
  std::vector<Message> messages_ GUARDED_BY(mutex_);
  std::optional<std::vector<SshQuestion>> asked_questions_ GUARDED_BY(mutex_);
  std::optional<std::vector<MachineStatus>> published_ GUARDED_BY(mutex_);
  std::optional<std::vector<MachineInFile>> published_in_file_ GUARDED_BY(mutex_);
  std::atomic<double> looked_at_ = 0;  // unix seconds
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace stepladder
