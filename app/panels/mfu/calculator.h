// The calculator of the MFU view: its numbers, their source, and its fields. UI thread.
#pragma once

#include <array>
#include <string>

#include "app/desktop/fields.h"
#include "app/desktop/workspace.h"
#include "storage/analysis/mfu.h"
#include "storage/analysis/plausibility.h"

namespace stepladder {

enum Number {
  number_params,
  number_layers,
  number_width,
  number_seq,
  number_vocab,
  number_tokens,
  number_peak,
  number_count
};

struct MfuForm {
  std::array<double, number_count> values;
  std::array<NumberField, number_count> fields;
  int gpus = 1;
  std::string hardware;  // a name of the table; empty: the peak is given by hand
  Precision precision = Precision::bf16;
  bool recomputed = false;
  RunId run = 0;                       // the source of the numbers; 0: a published run, or custom ones
  std::string from;                    // its name
  std::string assumed;                 // the assumptions about them
  std::string unknown_hardware;        // of the run, which the table lacks
  std::array<char, 128> run_filter{};  // typed while a run is chosen

  MfuForm() { values.fill(missing); }
  void leave() {  // the numbers are no longer a run's, since the user changed one
    run = 0;
    from.clear();
    assumed.clear();
    unknown_hardware.clear();
  }
  void set(Number which, double value) {
    values[which] = value > 0 ? value : missing;
    fields[which].show(values[which]);
  }
  void set_shape(const ModelShape& shape) {
    set(number_params, static_cast<double>(shape.params));
    set(number_layers, static_cast<double>(shape.layers));
    set(number_width, static_cast<double>(shape.d_model));
    set(number_seq, static_cast<double>(shape.seq_len));
    set(number_vocab, static_cast<double>(shape.vocab));
  }
};

// An N left empty is computed from the rest, for a GPT-2 with its head tied to the embedding.
ModelShape shape_of(const MfuForm& form);

const Hardware* hardware_of(const MfuForm& form, const HardwareTable& table);  // null: the peak is given by hand
double peak_of(const Hardware& hardware, Precision precision);
double peak_of(const MfuForm& form, const HardwareTable& table);  // of one device

// The initial numbers: the selected run's, else those of the newest run that has any, else GPT-2's.
MfuForm first_form(const Workspace& workspace);
void fill_from_run(MfuForm& form, const RunEntry& entry, const HardwareTable& table);
void fill_from_published(MfuForm& form, const PublishedRow& row, const HardwareTable& table);

void draw_calculator(MfuForm& form, const Workspace& workspace);

}  // namespace stepladder
