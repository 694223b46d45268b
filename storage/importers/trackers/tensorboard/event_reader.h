// Reads TensorBoard's event files: TFRecord frames (length, its masked CRC32C, payload, its masked CRC32C), each an
// Event (tensorboard/compat/proto/event.proto, summary.proto).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "storage/importers/importer.h"
#include "storage/importers/trackers/foreign_run.h"
#include "storage/importers/trackers/wire_reader.h"

namespace stepladder {

// Whether these first bytes are those of an event file.
bool begins_event_file(std::string_view head);

// A run without anything, named after its file or folder.
ForeignRun new_event_run(const std::filesystem::path& folder_or_file);

// Adds to one run what its files hold, one file after the other.
class EventReader {
 public:
  explicit EventReader(ForeignRun& run) : run_(run) {}

  // One file, pushed piece by piece. Throws ImportError if it doesn't begin with a record. `name` is for notes.
  void take(std::string_view bytes);
  void finish_file(const std::string& name);

  // The same of a whole file.
  void read(ImportInput& input);

  struct Progress {
    std::uint64_t end = 0;  // every byte before it was taken
    bool more = false;
    bool is_stuck = false;
    bool restarts = false;
  };

  // Reads whole records from `begin` on, about `most` bytes. A restart of the program is only ever the first of them.
  Progress read_some(ImportInput& input, std::uint64_t begin, std::uint64_t most, bool impatient);

  // Notes what was skipped; call it after the last file.
  void finish();

 private:
  enum class Frame { event, bad, too_large, not_yet, lost };  // lost: no later record can be found

  // `event` is valid until the next call.
  static Frame next_frame(ByteStream& stream, std::string_view& event);
  // SessionLog START: the program was restarted at this event's step.
  static bool starts_session(std::string_view message);
  void note(const std::string& name, const std::string& text);
  void read_event(std::string_view message);
  void read_summary_value(std::string_view message, std::int64_t step, double at);
  // Programs put their configuration there as text: "args/text_summary" (Hugging Face), add_text("config", ...).
  void read_text(std::string_view tag, std::string_view text);
  // Whether the value was hyper-parameters, whose "tensor" is empty.
  bool read_plugin(std::string_view metadata);
  void read_session_start(std::string_view message);
  void read_session_end(std::string_view message);

  ForeignRun& run_;
  ByteStream stream_;  // of the file that is being read
  bool is_lost_ = false;
  std::uint64_t bad_checksums_ = 0;
  std::uint64_t malformed_ = 0;
  std::uint64_t too_large_ = 0;
  std::uint64_t not_scalar_ = 0;
};

// A TensorProto (tensorboard/compat/proto/tensor.proto) of one element, as TensorBoard's summaries hold numbers and
// texts.
// `text` points into the message.
struct EventTensor {
  std::optional<double> value;  // unset: a text, several numbers, or malformed
  bool is_text = false;
  std::string_view text;
};

EventTensor read_event_tensor(std::string_view message);

}  // namespace stepladder
