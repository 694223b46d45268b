// The parts of the MFU view, each drawn by the file of its name. UI thread.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "app/desktop/command.h"
#include "app/desktop/fields.h"
#include "app/desktop/models/run_columns.h"
#include "app/desktop/widgets.h"
#include "app/desktop/workspace.h"
#include "storage/analysis/mfu.h"
#include "storage/analysis/plausibility.h"
#include "storage/analysis/step_profile.h"

namespace stepladder {

// The calculator of the MFU view: its numbers, their source, and its fields.
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
  RunId run = 0;                 // the source of the numbers; 0: a published run, or custom ones
  std::string from;              // its name
  std::string assumed;           // the assumptions about them
  std::string unknown_hardware;  // of the run, which the table lacks
  bool is_cpu = false;           // `gpus` counts cores

  MfuForm() { values.fill(missing); }
  void leave() {  // the numbers are no longer a run's, since the user changed one
    run = 0;
    from.clear();
    assumed.clear();
    unknown_hardware.clear();
    is_cpu = false;
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

// The initial numbers: the current run's, else those of the newest run that has any, else GPT-2's.
MfuForm first_form(const Workspace& workspace);
void fill_from_run(MfuForm& form, const RunEntry& entry, const HardwareTable& table);
void fill_from_published(MfuForm& form, const PublishedRow& row, const HardwareTable& table);

void draw_calculator(MfuForm& form, const Workspace& workspace);

// The table: the project's runs next to MosaicML's published ones.
struct MfuRow {
  RunId run = 0;              // 0: published
  std::size_t published = 0;  // index of the published row
  std::string name;
  std::string hardware;
  int devices = 1;
  Precision peak = Precision::unknown;  // whose peak the MFU is a share of; unknown: there is none
  std::int64_t seq = 0;
  std::int64_t params = 0;
  double tokens_per_s = missing;
  double stated = missing;    // as published, by the nearest convention that was published
  double computed = missing;  // by the same convention
  double mfu = missing;       // by the view's convention
  std::string remark;         // the assumption, or why the figure is missing
  bool is_assumed = false;
  SpeedDoubt doubt = {};  // in the throughput of a run
  bool is_example = false;

  double difference() const { return is_missing(stated) ? missing : computed - stated; }
};

enum MfuColumn {
  column_name,
  column_hardware,
  column_seq,
  column_params,
  column_tokens,
  column_said,
  column_computed,
  column_difference,
  column_peak,
  column_mfu,
  column_count
};

struct MfuTable {
  std::vector<MfuRow> rows;
  bool has_read = false;
  std::vector<PublishedRow> published;
  std::string published_problem, seen_imported;
  std::array<char, 128> filter{};

  std::vector<std::size_t> shown;  // of the rows, in order; rebuilt when these change
  std::string seen_filter;
  bool must_sort = true;
  std::array<bool, column_count> has_value{};  // of the numbers: whether a shown row has it
  int sorted_by = column_mfu;
  bool ascending = false;
};

void derive_rows(MfuTable& table, const Workspace& workspace, MfuConvention convention);
// The view's answer: the best of the user's own runs that can be believed, and how many have no share. Empty if there
// are none.
std::string mfu_answer(const MfuTable& table);
std::string published_range(const MfuTable& table);  // "30.1 % to 62.3 %"; empty if nothing is known

// A click on a row copies its numbers into the form.
void draw_mfu_table(MfuTable& table, MfuForm& form, MfuConvention convention, const Workspace& workspace);

// The results of the calculator: every convention's figures, and the arithmetic of the chosen one.
std::string percent(double share);
Tone tone_of_share(double share);  // suspicious, impossible

// What surrounds the calculator's numbers; each text may be empty.
struct MfuContext {
  std::string published_range;             // of published runs by this convention
  std::string bound;                       // bound_text
  const FittedProfile* profile = nullptr;  // of the form's run; null: none, or not read yet
};

// A click on another convention chooses it.
void draw_answer(const MfuForm& form, MfuConvention& convention, const MfuContext& context, const Workspace& workspace,
                 Commands& commands);

// The roofline (storage/analysis/roofline.h): the chosen hardware's roof, and the runs as points under it.
struct RooflinePoint {
  RunId run = 0;
  std::string name;
  double intensity = missing;
  double tflops = missing;      // of one device
  std::string hardware;         // of the table
  std::string bytes;            // their arithmetic, as text
  std::string impossible = {};  // why its speed is; empty: it isn't
};

struct Roofline {
  std::vector<RooflinePoint> points;
  std::size_t without_speed = 0, without_shape = 0;  // runs that can't be points
};

// "memory-bound: 40 FLOP/byte, ridge at 150"; empty if the form's run, the peak or the bandwidth isn't known.
std::string bound_text(const Roofline& roofline, const MfuForm& form, const HardwareTable& table);

Roofline roofline_of(const std::vector<RunEntry>& runs, MfuConvention convention, const HardwareTable& table);
void draw_roofline(const Roofline& roofline, const MfuForm& form, MfuConvention convention, const HardwareTable& table);

}  // namespace stepladder
