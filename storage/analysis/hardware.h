// The peaks of devices: dense FLOP/s by precision, memory bandwidth and size, from a table that names its sources and
// can be edited. A peak may be unknown.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "storage/analysis/verdict/run_spread.h"
#include "storage/by_enum.h"
#include "storage/errors.h"
#include "storage/records.h"

namespace stepladder {

enum class Precision { fp32, tf32, bf16, fp16, fp8, unknown };
std::string_view to_string(Precision precision);  // "tf32"
Precision precision_from(std::string_view text);  // as runs and logs spell it: "float32", "amp_bf16", "tensorfloat32"

struct Hardware {
  std::string name;
  std::vector<std::string> aliases;
  std::array<double, enum_count<Precision>() - 1> peak_tflops{missing, missing, missing, missing,
                                                              missing};  // by Precision; dense
  double bandwidth_gb_s = missing;
  double memory_gb = missing;
  std::string source;  // the document that says so, or "measured here"
};

// A peak, with the device and precision that it belongs to.
struct Peak {
  double tflops = missing;                   // of one device
  Precision precision = Precision::unknown;  // the fastest one of bf16 or wider if the run's is unknown
  bool assumed = false;                      // the run's precision is unknown, or the device lacks it
  double most_tflops = missing;              // in any precision that the run may have: where assumed, in fp8 too
  const Hardware* hardware = nullptr;
  int devices = 1;
  bool known() const { return !is_missing(tflops); }
  double total_tflops() const { return tflops * devices; }
  double most_total_tflops() const { return most_tflops * devices; }
};

class HardwareTable {
 public:
  HardwareTable() = default;

  // CSV with the columns of assets/hardware.csv, in that order; lines that begin with # are comments. Later rows
  // override earlier ones of the same name. Throws StorageError, with the file's name and the line.
  static HardwareTable read(const std::filesystem::path& file);
  void add(const std::filesystem::path& file);

  // assets/hardware.csv and assets/spread.csv, then the user's own file ($XDG_CONFIG_HOME/stepladder/hardware.csv, else
  // under ~/.config) if it exists. A probe of this machine (`stepladder doctor --probe`) writes its result there, with
  // the source "measured here". Mistakes in the user's file never throw: `problems` has a sentence for each, with file,
  // line and what is ignored.
  static HardwareTable load(const std::filesystem::path& assets_folder);
  static std::filesystem::path user_file();
  void add_user_file();
  const std::vector<std::string>& problems() const { return problems_; }

  // Finds a device by any spelling: "NVIDIA GeForce RTX 3080", "RTX3080", "3080", "8xA100_80GB". The alias with the
  // most words wins. Null if none fits; a laptop's chip isn't the desktop's. A row whose name contains a count, "2 x
  // Intel Xeon", was measured as a whole: only exactly that name finds it, and it is one device.
  const Hardware* find(std::string_view name) const;

  // No peak is known of fp4 on a device that has fp8: the table doesn't list it.
  Peak peak(std::string_view hardware, std::string_view precision) const;

  // The highest peak of any one device, in bf16 or wider; `most_tflops` is that of any device.
  Peak fastest() const;

  // Whether two names are surely of different devices. False if one is unknown (empty), or says no more than the other
  // one does: "NVIDIA A100" may be an "NVIDIA A100-SXM4-80GB".
  bool differ(std::string_view one, std::string_view other) const;

  const std::vector<Hardware>& all() const { return rows_; }

  SpreadTable spreads;  // between runs on such devices

 private:
  void add(std::vector<Hardware> rows);

  std::vector<std::string> problems_;
  std::vector<Hardware> rows_;
  std::vector<std::vector<std::vector<std::string>>> spellings_;  // of each row: the words of its name and aliases
};

// Returns the content of such a file (empty for a new one) with `row` appended. An earlier row of that name is removed;
// other lines and comments stay as they are. Throws StorageError if a name or source would break a line.
std::string with_row(std::string_view csv, const Hardware& row);

// 8 for "8x NVIDIA H100"; 1 if no number is given.
int device_count(std::string_view hardware);

}  // namespace stepladder
