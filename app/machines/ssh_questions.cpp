// Both sides of ssh's questions: ssh starts this program as SSH_ASKPASS, which writes its question to a private folder
// and waits at a fifo; the window reads the question and writes the answer. Secrets are erased from memory after use.
#include "app/machines/ssh_questions.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>

#include "app/text/format.h"
#include "storage/bounded_text.h"
#include "storage/regular_file.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr const char* variable = "STEPLADDER_ASKS_IN";
constexpr std::string_view question_begin = "question-", answer_begin = "answer-";
constexpr int patience_ms = 300'000;
constexpr int look_interval_ms = 500;
constexpr std::size_t longest_answer = 4096;
constexpr std::size_t longest_question = 2000;

// True if something can be read before the patience is over or the process that asked, ssh, has ended.
bool is_answered(int pipe, pid_t asker) {
  pollfd waiting{.fd = pipe, .events = POLLIN, .revents = 0};
  for (int waited_ms = 0; waited_ms < patience_ms && ::getppid() == asker; waited_ms += look_interval_ms)
    if (::poll(&waiting, 1, look_interval_ms) == 1) return true;
  return false;
}

bool is_id(const std::string& id) {
  return !id.empty() && id.size() < 20 && id.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

SshQuestions::SshQuestions() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  std::error_code error;
  const fs::path place =
      runtime && *runtime && fs::is_directory(runtime, error) ? fs::path(runtime) : fs::temp_directory_path();
  std::string folder = (place / "stepladder-asks-XXXXXX").string();
  if (!::mkdtemp(folder.data())) throw std::runtime_error(folder + " can't be created: " + std::strerror(errno));
  folder_ = folder;
}

SshQuestions::~SshQuestions() {
  for (const SshQuestion& question : open()) answer(question.id, std::nullopt);
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::vector<std::string> SshQuestions::environment() const {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return {"SSH_ASKPASS=" + program.string(), "SSH_ASKPASS_REQUIRE=force",
          std::string(variable) + "=" + folder_.string()};
}

std::vector<SshQuestion> SshQuestions::open() const {
  std::vector<SshQuestion> questions;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder_, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(question_begin)) continue;
    SshQuestion question{.id = name.substr(question_begin.size())};
    RegularFile file(it->path());
    std::string kind;
    std::getline(file, kind);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (!is_id(question.id) || !file) continue;
    if (::kill(static_cast<pid_t>(std::stol(question.id)), 0) != 0 && errno == ESRCH) continue;  // it was killed
    question.text = bounded(harmless(text), longest_question);
    question.is_notice = kind == "none";
    question.is_secret = kind != "confirm" && text.find("yes/no") == std::string::npos;
    questions.push_back(std::move(question));
  }
  std::ranges::sort(questions, [](const auto& a, const auto& b) { return a.id < b.id; });
  return questions;
}

void SshQuestions::answer(const std::string& id, const std::optional<std::string>& text) {
  if (!is_id(id)) return;
  const int answer = ::open((folder_ / (std::string(answer_begin) + id)).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (answer >= 0) {
    std::string bytes = (text ? "y" + text->substr(0, longest_answer - 2) : "n") + "\n";
    [[maybe_unused]] const ssize_t written = ::write(answer, bytes.data(), bytes.size());  // a pipe holds it
    ::explicit_bzero(bytes.data(), bytes.size());
    ::close(answer);
  }
  std::error_code ignored;
  fs::remove(folder_ / (std::string(question_begin) + id), ignored);
}

std::optional<int> ask_for_ssh(int argc, char** argv) {
  const char* folder = std::getenv(variable);
  if (!folder || !*folder || argc != 2 || argv[1][0] == '-') return std::nullopt;
  const pid_t asker = ::getppid();
  const std::string id = std::to_string(::getpid());
  const fs::path answer = fs::path(folder) / (std::string(answer_begin) + id);
  const fs::path question = fs::path(folder) / (std::string(question_begin) + id);
  if (::mkfifo(answer.c_str(), 0600) != 0) return 1;
  // Open for both ways, so that it neither blocks nor ends before there is a writer.
  const int pipe = ::open(answer.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  const char* kind = std::getenv("SSH_ASKPASS_PROMPT");
  {
    std::ofstream file(question.string() + ".part", std::ios::binary);
    file << (kind ? kind : "") << "\n" << argv[1];
  }
  std::error_code error;
  fs::rename(question.string() + ".part", question, error);
  std::array<char, longest_answer> bytes{};
  ssize_t count = 0;
  if (!error && pipe >= 0 && is_answered(pipe, asker)) count = ::read(pipe, bytes.data(), bytes.size());
  fs::remove(question, error);
  fs::remove(answer, error);
  const bool is_given = count > 1 && bytes[0] == 'y';
  if (is_given) {
    [[maybe_unused]] const ssize_t written =
        ::write(STDOUT_FILENO, bytes.data() + 1, static_cast<std::size_t>(count - 1));
  }
  ::explicit_bzero(bytes.data(), bytes.size());
  return is_given ? 0 : 1;
}

}  // namespace stepladder
