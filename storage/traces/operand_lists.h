// The operands of an operator, out of the lists in which PyTorch writes them with record_shapes=True, one value for
// each argument: "Input Dims", "Input type" and "Concrete Inputs" of its profiler, "sizes" of emit_nvtx. Inside
// storage/traces/ only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "storage/traces/operator_work.h"

namespace stepladder {

class OperandLists {
 public:
  static constexpr std::size_t most = 64;        // arguments; more are ignored
  static constexpr std::size_t most_sizes = 8;   // of a tensor; one with more is of no shape
  static constexpr double most_elements = 1e15;  // of an argument; of one with more nothing is known

  void clear();

  // "Input Dims" is a list of shapes, or of lists of shapes. `depth`: 1 is the list of all arguments.
  void list_begins(int depth);
  void list_ends(int depth);
  void size(std::int64_t value);
  // The same of a text, "[[128, 64], [], [[3], [4]]]"; other characters are ignored.
  void read_sizes(std::string_view text);
  // The next argument's type, or its value.
  void type(std::string_view text);
  void value(std::string_view text);

  // The type of the first argument that is a tensor: "c10::BFloat16"; empty: not known.
  const std::string& first_type() const { return first_type_; }

  // Without types, an argument without sizes isn't a tensor, and the others' bytes aren't known.
  const std::vector<Operand>& operands();

 private:
  struct Type {
    double value_bytes = missing;
    bool is_list = false;
  };
  std::vector<Operand> operands_;
  std::vector<Type> types_;
  std::vector<double> values_;
  std::string first_type_;
  double elements_ = 1;  // of the tensor whose shape is being read
};

// Finds the precision in which most FLOPs of a trace's products are.
class ProductPrecision {
 public:
  void add(const OperandLists& operands, const Work& work) {
    if (!is_missing(work.flops)) flops_[operands.first_type()] += work.flops;
  }
  void add_kernel(std::string_view name);  // of a GPU
  // "bf16", as storage/analysis/hardware.h names it; empty: there are no products, or of another type. Operands in
  // float32 are TF32 if a kernel's name says so.
  std::string precision() const;

 private:
  std::map<std::string, double> flops_;  // by type
  bool has_tf32_ = false;
};

}  // namespace stepladder
