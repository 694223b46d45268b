// Facts about a run from the lines around its steps: batch, sequence length, data, device, hardware, precision,
// parameters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/json_values.h"
#include "storage/records.h"

namespace stepladder {

struct LogFacts {
  std::int64_t batch = 0;  // B: sequences; all of these are zero or empty if unknown
  std::int64_t seq = 0;    // T: tokens of a sequence
  std::int64_t grad_accum = 0;
  std::int64_t devices = 0;        // that the training says it runs on: its world size
  std::int64_t named_devices = 0;  // "8 GPUs"; -1: several such numbers
  std::int64_t nodes = 0;
  std::int64_t global_batch = 0;    // sequences of a step, over all devices and accumulated batches
  std::int64_t tokens_printed = 0;  // tokens of a step, as printed
  std::int64_t tokens_loaded = 0;
  std::int64_t batches_per_epoch = 0;
  std::int64_t params = 0;
  std::string dtype;                     // as printed
  std::string precision;                 // "fp32", "tf32", "bf16", "fp16", "fp8", "nvfp4"
  std::string device;                    // "cuda", "cpu", "mps"
  std::string hardware;                  // "NVIDIA A100"
  std::string other_hardware;            // that a line calls the run's device too: "NVIDIA H100"; empty: none
  bool names_several = false;            // the lines name other hardware too
  std::map<std::string, Json> settings;  // that the lines print, by name

  // Reads the facts of one line; false if it has none.
  bool read(std::string_view line);

  // Reads a line of a printed configuration: settings, and the facts among them. False if it isn't one.
  bool read_configuration(std::string_view line);
  // Takes a count of devices that is proven, or of which another line may name more; false if it can't be one.
  bool add_devices(std::int64_t count);

  // Reads the facts that a step's own line repeats: its batch size, sequence length and devices.
  void read_step(std::string_view line);

  // 0 if unknown.
  std::int64_t device_count() const {
    return devices > 0 ? devices : nodes > 1 ? 0 : std::max<std::int64_t>(0, named_devices);
  }

  // Sequences of a step; 0 if unknown. `certain` as in Tokens.
  struct Sequences {
    std::int64_t count = 0;
    bool certain = false;
  };
  Sequences sequences_per_step() const;

  // Tokens of a step and how they were calculated; {0, ""} if they cannot be.
  struct Tokens {
    std::int64_t count = 0;
    bool certain = false;  // printed as such
    std::string how;
  };
  Tokens tokens_per_step() const;

  // The known facts, with the family of the log ("log_family").
  Json recipe(std::string_view family) const;

 private:
  struct Number;
  using Fact = std::int64_t LogFacts::*;
  template <class Use>
  static void for_numbers(std::string_view line, const Use& use);
  bool read_hardware(std::string_view line);
  bool read_device(std::string_view line);
  bool read_precision(std::string_view line);
  bool read_numbers(std::string_view line);
  bool read_params(const Number& number);
  // The fact that a number gives; null if it gives none of these.
  Fact shape_fact(const Number& number) const;
  Fact batch_fact(const Number& number) const;
  Fact data_fact(const Number& number) const;
  bool set(Fact fact, std::int64_t value, const Number& number);
  // Devices that each take a batch of this size; 0 if unknown.
  std::int64_t batch_devices() const;
  bool is_in_section_of_others(std::string_view line);
  bool read_devices(const Number& number);
  bool name_devices(std::int64_t count);  // false if it is none
  bool read_part_of_one(std::string_view line);

  std::int64_t available_ = 0;  // devices that are there, of which perhaps not all are used
  std::int64_t per_node_ = 0;   // as `torchrun --nproc_per_node=8` has it
  std::string narrow_;          // "fp8", which `precision` then stays
  std::string part_name_;       // of a count of micro-batches that was printed for one device
  std::int64_t part_of_one_ = 0;
  bool batch_is_of_one_ = false;                      // "batch size: 16 (per gpu)"
  std::vector<std::pair<Fact, int>> other_words_;     // in the name that gave a fact, other than those that name it
  std::optional<std::size_t> indent_of_others_ = {};  // of "eval:", whose deeper lines aren't about training
};

// Facts from the words around the steps, about the run that follows or continues.

class SpokenFacts {
 public:
  // False once so many lines of a run were read that later ones can be skipped.
  bool attentive() const { return lines_left_ > 0; }
  // After a heading or a fence, the next lines may state facts again.
  void listen() { lines_left_ = std::max(lines_left_, 1000); }

  // Whether the line states a fact.
  bool read(std::string_view line) {
    --lines_left_;
    return facts_.read(line);
  }
  // Whether the line is one of a printed configuration.
  bool read_configuration(std::string_view line) { return facts_.read_configuration(line); }
  // Reads a line that is part of a step.
  void read_part(std::string_view line) { facts_.read(line); }
  // Reads the line of a run's first step.
  void read_step(std::string_view line) { facts_.read_step(line); }

  std::int64_t batch() const { return facts_.batch; }

  // Keeps the hardware named before the first run for all runs.
  void keep_hardware() {
    if (!facts_.hardware.empty()) hardware_ = facts_.hardware;
    several_ |= facts_.names_several;
  }
  const std::string& hardware() const { return facts_.hardware.empty() ? hardware_ : facts_.hardware; }
  // Empty if the text names several, and none for this run alone.
  std::string sole_hardware() const {
    const bool is_sole = facts_.hardware.empty() ? !several_ : !facts_.names_several;
    return is_sole ? hardware() : std::string();
  }

  // Uses the precision that a title names if no line sets one.
  void suggest_precision(std::string_view precision) {
    if (facts_.precision.empty()) facts_.precision = precision;
  }

  // The facts of the run that begins now.
  LogFacts take() {
    lines_left_ = lines_of_a_run;
    several_ |= facts_.names_several;
    facts_.hardware = hardware_ = hardware();
    return std::exchange(facts_, {});
  }

 private:
  static constexpr int lines_of_a_run = 20000;

  LogFacts facts_;
  int lines_left_ = lines_of_a_run;
  std::string hardware_;  // named anywhere before
  bool several_ = false;  // other hardware is named too
};

}  // namespace stepladder
