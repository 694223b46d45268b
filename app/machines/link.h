// The connection to one machine (docs/far.md): starts ssh, brings the far program there, and talks to it. Connects
// again by itself for as long as the object lives: after 1, 2, 4 ... 60 s, and after answers that aren't ours ever more
// rarely, up to a quarter of an hour.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/process/piped_process.h"
#include "storage/database/machine_store.h"
#include "storage/json_values.h"

namespace stepladder {

// The program that is sent to machines: a file beside this one, for one system and architecture.
struct FarProgram {
  std::filesystem::path file;
  std::string sha256;
  std::string platform;  // "Linux x86_64"
  std::uintmax_t bytes = 0;
};

// Throws std::runtime_error with a remedy if the file isn't there.
FarProgram far_program();

// The place where ssh may ask for a passphrase, or whether a new host's key is right; without one, it fails instead.
struct SshAsks {
  bool on_terminal = false;              // of this process
  std::vector<std::string> environment;  // SshQuestions::environment
};

// Not thread-safe: one thread. Nothing blocks.
class Link {
 public:
  using Clock = std::chrono::steady_clock;

  enum class State {
    waiting,     // until the next try
    connecting,  // ssh has been started
    sending,     // the far program
    up
  };

  // `on_line` gets every line that isn't an answer; `on_up` is called after each `hello`.
  struct Callbacks {
    std::function<void(const Json&)> on_line;
    std::function<void()> on_up;
  };

  Link(Machine machine, FarProgram program, Callbacks callbacks, SshAsks asks = {});

  void poll();
  void add_to(std::vector<pollfd>& waiting) const;

  // `answer` gets what the far program says, or a sentence. A question that is unanswered when the connection is lost
  // is asked again (`again`), or answered with a sentence.
  enum class WhenLost { again, fail };
  using Answer = std::function<void(const Json& ok, const std::string& error)>;
  void ask(std::string_view verb, Json fields, Answer answer, WhenLost when_lost = WhenLost::again);

  State state() const { return state_; }
  bool is_up() const { return state_ == State::up; }
  const Machine& machine() const { return machine_; }
  const Json& hello() const { return hello_; }     // of the last time that it was up; null before
  double lost_at() const { return lost_at_; }      // unix seconds; missing while it is up, or was never tried
  const std::string& why() const { return why_; }  // of the last failure, a sentence
  // It will fail again until the user changes something: another architecture, a program that can't be run.
  bool is_hopeless() const { return is_hopeless_; }
  // It was reached, but sent what the far program never sends, and has answered nothing but a greeting since.
  bool is_garbled() const { return is_garbled_; }
  // Connections in a row that failed, or were soon lost.
  int failures() const { return failures_; }
  void try_now() {
    next_try_ = {};
    asks_nothing_ = false;
  }
  // Never sends the far program: a machine without it is lost, and lacks_program says so. Call it before the first
  // poll.
  void only_look() { only_looks_ = true; }
  bool lacks_program() const { return lacks_program_; }
  // The user has refused an answer: the link is tried again without questions, until try_now.
  void ask_nothing() { asks_nothing_ = true; }

 private:
  struct Question {
    Json request;
    Answer answer;
    WhenLost when_lost;
    bool is_sent = false;
    Clock::time_point sent_at{};
  };

  void connect();
  void send_program_here();
  void send_program();
  void read_lines();
  void handle_line(std::string_view line);
  void handle_mark(std::string_view words);
  void handle_json(const Json& line);
  void begin_talk(const Json& greeting);
  void send(std::int64_t id, Question& question);
  enum class Fault { passing, hopeless, garbled };
  void lose(const std::string& why, Fault fault = Fault::passing);
  void lose_garbled(const std::string& what);
  Clock::duration wait_after(Fault fault) const;
  std::string words_of_failure() const;
  std::vector<std::string> command(const std::string& script) const;
  std::vector<std::string> environment() const;

  const Machine machine_;
  const FarProgram program_;
  const Callbacks callbacks_;
  const SshAsks asks_;
  std::unique_ptr<PipedProcess> child_;
  State state_ = State::waiting;
  std::string mark_;  // random; output before it is the login's own
  bool is_marked_ = false;
  std::string input_;
  std::map<std::int64_t, Question> questions_;  // by id, in the order of asking
  std::int64_t last_id_ = 0;
  Json hello_;
  double lost_at_ = missing;
  std::string why_;
  bool is_hopeless_ = false;
  bool is_garbled_ = false;
  bool asks_nothing_ = false;
  bool only_looks_ = false;
  bool lacks_program_ = false;
  bool sent_program_ = false;  // since the link was lost
  int failures_ = 0;
  Clock::time_point next_try_{};
  Clock::time_point up_since_{};
  Clock::time_point began_{};
  Clock::time_point last_heard_{};
  Clock::time_point pinged_{};
};

}  // namespace stepladder
