#include "engine/weights_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

namespace stepladder {
namespace {

static_assert(std::endian::native == std::endian::little, "both formats are read and written as they lie in memory");

struct TypeFacts {
  TensorType type;
  std::string_view name;
  int bytes;
};

constexpr std::array<TypeFacts, 13> types = {{{TensorType::f64, "F64", 8},
                                              {TensorType::f32, "F32", 4},
                                              {TensorType::f16, "F16", 2},
                                              {TensorType::bf16, "BF16", 2},
                                              {TensorType::i64, "I64", 8},
                                              {TensorType::i32, "I32", 4},
                                              {TensorType::i16, "I16", 2},
                                              {TensorType::i8, "I8", 1},
                                              {TensorType::u64, "U64", 8},
                                              {TensorType::u32, "U32", 4},
                                              {TensorType::u16, "U16", 2},
                                              {TensorType::u8, "U8", 1},
                                              {TensorType::boolean, "BOOL", 1}}};

const TypeFacts& facts(TensorType type) {
  return *std::find_if(types.begin(), types.end(), [&](const TypeFacts& known) { return known.type == type; });
}

bool is_float(TensorType type) {
  return type == TensorType::f64 || type == TensorType::f32 || type == TensorType::f16 || type == TensorType::bf16;
}

using Shape = std::vector<std::int64_t>;

std::string to_text(const Shape& shape) {
  std::string text = "(";
  for (const std::int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + ")";
}

// Nothing where a size is negative or the product has no place in 63 bits.
std::optional<std::int64_t> bytes_of(TensorType type, const Shape& shape) {
  std::int64_t bytes = bytes_each(type);
  for (const std::int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  }
  return bytes;
}

// --- What a GPT-2 is made of -----------------------------------------------------------------------------------------

enum class Size { none, vocab, max_seq, d, d3, d4 };

struct Part {
  std::string_view name;
  Size rows;
  Size columns = Size::none;
};

// In llm.c's order. Those between the first two and the last two are there once a layer, as "h.N." and the name.
constexpr std::array<Part, 16> parts = {{{"wte.weight", Size::vocab, Size::d},
                                         {"wpe.weight", Size::max_seq, Size::d},
                                         {"ln_1.weight", Size::d},
                                         {"ln_1.bias", Size::d},
                                         {"attn.c_attn.weight", Size::d3, Size::d},
                                         {"attn.c_attn.bias", Size::d3},
                                         {"attn.c_proj.weight", Size::d, Size::d},
                                         {"attn.c_proj.bias", Size::d},
                                         {"ln_2.weight", Size::d},
                                         {"ln_2.bias", Size::d},
                                         {"mlp.c_fc.weight", Size::d4, Size::d},
                                         {"mlp.c_fc.bias", Size::d4},
                                         {"mlp.c_proj.weight", Size::d, Size::d4},
                                         {"mlp.c_proj.bias", Size::d},
                                         {"ln_f.weight", Size::d},
                                         {"ln_f.bias", Size::d}}};
constexpr std::string_view token_embedding = "wte.weight";
constexpr std::string_view head = "lm_head.weight";

bool is_per_layer(const Part& part) {
  const auto place = &part - parts.data();
  return place >= 2 && place < 14;
}
bool is_linear(const Part& part) {
  return is_per_layer(part) && part.columns != Size::none;
}

std::string full_name(const Part& part, int layer) {
  if (!is_per_layer(part)) return std::string(part.name);
  return "h." + std::to_string(layer) + "." + std::string(part.name);
}

// Linear weights as (out, in).
Shape shape_of(const Part& part, const Gpt2Shape& model) {
  Shape shape;
  for (const Size size : {part.rows, part.columns}) {
    switch (size) {
      case Size::none:
        break;
      case Size::vocab:
        shape.push_back(model.vocab);
        break;
      case Size::max_seq:
        shape.push_back(model.max_seq);
        break;
      case Size::d:
        shape.push_back(model.d_model);
        break;
      case Size::d3:
        shape.push_back(std::int64_t{3} * model.d_model);
        break;
      case Size::d4:
        shape.push_back(std::int64_t{4} * model.d_model);
        break;
    }
  }
  return shape;
}

// 3 and "attn.c_attn.weight" of "h.3.attn.c_attn.weight"; -1 where it is no such name.
std::pair<int, std::string_view> split_layer(std::string_view name) {
  int layer = -1;
  if (!name.starts_with("h.")) return {-1, {}};
  const auto [end, error] = std::from_chars(name.data() + 2, name.data() + name.size(), layer);
  if (error != std::errc() || layer < 0 || end == name.data() + name.size() || *end != '.') return {-1, {}};
  return {layer, name.substr(static_cast<std::size_t>(end + 1 - name.data()))};
}

// Old checkpoints hold each layer's causal mask and the value that it puts in the future's place. They are constants
// and not weights, and no newer model has a place for them.
bool is_mask(std::string_view name) {
  const auto [layer, rest] = split_layer(name);
  return layer >= 0 && (rest == "attn.bias" || rest == "attn.masked_bias");
}

// The language model's checkpoints keep the transformer under a name of its own, those of the bare model do not.
std::string plain_name(const std::string& name) {
  constexpr std::string_view prefix = "transformer.";
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

// --- safetensors' header ---------------------------------------------------------------------------------------------

constexpr std::int64_t largest_header = 100'000'000;  // the limit of the format's own reader
constexpr std::size_t most_dimensions = 64;
constexpr std::uint64_t largest_number = std::uint64_t{1} << 62;  // so that sums of two still fit

// Takes the header apart as it is parsed, entry by entry, so that a hostile one cannot become a large tree in memory.
class SafetensorsHeader {
 public:
  SafetensorsHeader(const std::string& file, std::int64_t data_begin) : file_(file), data_begin_(data_begin) {}

  void parse(const std::string& text) {
    try {
      // The result is thrown away: everything is in tensors and metadata by then.
      const auto rest =
          nlohmann::json::parse(text, [this](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
            return take(depth, event, value);
          });
      static_cast<void>(rest);
    } catch (const nlohmann::json::parse_error& error) {
      // Without the parser's own words: they quote the header, which may be large and hold anything.
      throw DataError(file_ + ": the header of its safetensors is no JSON at byte " + std::to_string(8 + error.byte));
    } catch (const nlohmann::json::out_of_range&) {
      fail("holds a number that is too large");
    }
  }

  std::vector<TensorInfo> tensors;
  std::map<std::string, std::string> metadata;

 private:
  using Event = nlohmann::json::parse_event_t;

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(file_ + ": " + (entry_.empty() ? "the header" : entry_) + " " + what);
  }

  // The file is {name: {key: string or [numbers]}}; depth counts the brackets around an event. Returns whether the
  // value is to be kept.
  bool take(int depth, Event event, nlohmann::json& value) {
    switch (event) {
      case Event::key:
        if (depth == 1) begin_entry(value.get<std::string>());
        if (depth == 2 && !keys_.insert(value.get<std::string>()).second) {
          fail("holds \"" + value.get<std::string>() + "\" twice");
        }
        return true;
      case Event::object_start:
        if (depth > 1) fail("is nested too deep");
        return true;
      case Event::array_start:
        if (depth != 2) fail("holds a list where none may be");
        numbers_ = 0;
        return true;
      case Event::value:
        if (depth < 2) fail("is no object");
        if (depth == 3 && ++numbers_ > most_dimensions) fail("holds a list of more than 64 numbers");
        return true;
      case Event::object_end:
        if (depth != 1) return true;
        end_entry(value);
        return false;
      case Event::array_end:
        return true;
    }
    return true;
  }

  void begin_entry(const std::string& name) {
    entry_.clear();
    keys_.clear();
    if (!names_.insert(name).second) fail("names " + name + " twice");
    entry_ = name;
  }

  void end_entry(const nlohmann::json& entry) {
    if (entry_ == "__metadata__") {
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) fail("holds \"" + key + "\", which is no string");
        metadata[key] = value.get<std::string>();
      }
    } else {
      add_tensor(entry);
    }
    entry_.clear();
  }

  std::int64_t number(const nlohmann::json& value, const char* key) const {
    if (value.is_number_integer() && !value.is_number_unsigned()) {
      fail("has a negative number in its " + std::string(key));
    }
    if (!value.is_number_unsigned()) fail("has something in its " + std::string(key) + " that is no whole number");
    if (value.get<std::uint64_t>() >= largest_number)
      fail("has a number in its " + std::string(key) + " that is too large");
    return static_cast<std::int64_t>(value.get<std::uint64_t>());
  }

  Shape numbers(const nlohmann::json& entry, const char* key) const {
    const auto found = entry.find(key);
    if (found == entry.end() || !found->is_array()) fail("has no " + std::string(key));
    Shape values;
    for (const auto& value : *found) values.push_back(number(value, key));
    return values;
  }

  TensorType type_of(const nlohmann::json& entry) const {
    const auto found = entry.find("dtype");
    if (found == entry.end() || !found->is_string()) fail("has no dtype");
    for (const TypeFacts& known : types) {
      if (known.name == found->get<std::string>()) return known.type;
    }
    fail("has the type \"" + found->get<std::string>() + "\", which is not known here");
  }

  void add_tensor(const nlohmann::json& entry) {
    TensorInfo tensor{.name = plain_name(entry_), .type = type_of(entry), .shape = numbers(entry, "shape")};
    const Shape offsets = numbers(entry, "data_offsets");
    if (offsets.size() != 2 || offsets[1] < offsets[0]) fail("has data_offsets that are no beginning and end");
    tensor.offset = data_begin_ + offsets[0];
    tensor.bytes = offsets[1] - offsets[0];
    const auto needed = bytes_of(tensor.type, tensor.shape);
    if (!needed) fail("has the shape " + to_text(tensor.shape) + ", which is larger than any file");
    if (*needed != tensor.bytes) {
      fail("has the shape " + to_text(tensor.shape) + " of " + std::string(to_string(tensor.type)) + ", which is " +
           std::to_string(*needed) + " bytes, but takes " + std::to_string(tensor.bytes));
    }
    tensors.push_back(std::move(tensor));
  }

  std::string file_;
  std::int64_t data_begin_;
  std::string entry_;  // the tensor that is being read; empty between two
  std::set<std::string> names_;
  std::set<std::string> keys_;
  std::size_t numbers_ = 0;
};

// The format allows neither overlaps nor gaps, nor anything behind the last tensor. Sorted by place.
void require_side_by_side(const std::string& file, std::int64_t data_begin, std::int64_t file_bytes,
                          const std::vector<TensorInfo>& tensors) {
  std::int64_t end = data_begin;
  std::string before = "the header";
  for (const TensorInfo& tensor : tensors) {
    if (tensor.offset < end) throw DataError(file + ": " + tensor.name + " overlaps " + before);
    if (tensor.offset > end) {
      throw DataError(file + ": " + std::to_string(tensor.offset - end) + " bytes between " + before + " and " +
                      tensor.name + " belong to no tensor");
    }
    end = tensor.offset + tensor.bytes;
    before = tensor.name;
    if (end > file_bytes) {
      throw DataError(file + " is cut short: " + tensor.name + " ends at byte " + std::to_string(end) +
                      ", the file at " + std::to_string(file_bytes));
    }
  }
  if (end < file_bytes) {
    throw DataError(file + ": " + std::to_string(file_bytes - end) + " bytes behind " + before +
                    " belong to no tensor");
  }
}

// --- llm.c -----------------------------------------------------------------------------------------------------------

constexpr std::int32_t llmc_magic = 20240326;
constexpr std::int64_t llmc_header_bytes = 1024;
constexpr std::int64_t llmc_vocab_multiple = 128;
using LlmcHeader = std::array<std::int32_t, 256>;

std::int64_t padded_vocab(int vocab) {
  return (vocab + llmc_vocab_multiple - 1) / llmc_vocab_multiple * llmc_vocab_multiple;
}

struct LlmcModel {
  Gpt2Shape shape;
  std::int64_t padded_vocab = 0;
  TensorType type = TensorType::f32;

  // As it lies in the file: with the rows that pad the vocabulary.
  std::int64_t stored_bytes(const Part& part) const {
    Shape stored = shape_of(part, shape);
    if (part.rows == Size::vocab) stored[0] = padded_vocab;
    return bytes_of(type, stored).value_or(std::numeric_limits<std::int64_t>::max());
  }
};

LlmcModel read_llmc_header(const InputFile& file) {
  if (file.size_bytes() < llmc_header_bytes) {
    throw DataError(file.name() + " is cut short: llm.c's header alone has 1024 bytes, the file " +
                    std::to_string(file.size_bytes()));
  }
  LlmcHeader header;
  file.read(0, header.data(), llmc_header_bytes);
  if (header[1] != static_cast<int>(LlmcVersion::f32) && header[1] != static_cast<int>(LlmcVersion::bf16)) {
    throw DataError(file.name() + " is a checkpoint of llm.c of version " + std::to_string(header[1]) +
                    "; only 3 (float32) and 5 (bfloat16) can be read");
  }
  constexpr std::array<std::string_view, 6> names = {"the sequence length",  "the vocabulary",
                                                     "the number of layers", "the number of heads",
                                                     "the model's width",    "the padded vocabulary"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (header[i + 2] > 0) continue;
    throw DataError(file.name() + ": its header says that " + std::string(names[i]) + " is " +
                    std::to_string(header[i + 2]));
  }
  LlmcModel model{.shape = {.layers = header[4],
                            .heads = header[5],
                            .d_model = header[6],
                            .vocab = header[3],
                            .max_seq = header[2],
                            .tied_head = true},
                  .padded_vocab = header[7],
                  .type = header[1] == static_cast<int>(LlmcVersion::bf16) ? TensorType::bf16 : TensorType::f32};
  if (model.padded_vocab < model.shape.vocab) {
    throw DataError(file.name() + ": its header says that a vocabulary of " + std::to_string(model.shape.vocab) +
                    " is padded to " + std::to_string(model.padded_vocab));
  }
  return model;
}

// Before anything is made of the header's numbers: a wrong one could ask for a list of billions of tensors.
void require_llmc_size(const InputFile& file, const LlmcModel& model) {
  std::int64_t end = llmc_header_bytes;
  for (const Part& part : parts) {
    std::int64_t bytes = model.stored_bytes(part);
    const bool overflow = (is_per_layer(part) && __builtin_mul_overflow(bytes, model.shape.layers, &bytes)) ||
                          __builtin_add_overflow(end, bytes, &end);
    if (overflow || end > file.size_bytes()) {
      const std::string last = full_name(part, model.shape.layers - 1);
      throw DataError(file.name() + " is cut short: " + last + " ends at byte " +
                      (overflow ? "2^63 or later" : std::to_string(end)) + ", the file at " +
                      std::to_string(file.size_bytes()));
    }
  }
  if (end < file.size_bytes()) {
    throw DataError(file.name() + ": " + std::to_string(file.size_bytes() - end) +
                    " bytes behind ln_f.bias belong to no tensor");
  }
}

// --- Numbers ---------------------------------------------------------------------------------------------------------

float bf16_to_f32(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 mantissa bits.
float f16_to_f32(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {  // zero and subnormals
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide_exponent = exponent == 31 ? 255 : exponent - 15 + 127;
  return std::bit_cast<float>(sign | (wide_exponent << 23) | (mantissa << 13));
}

template <class Stored, class Convert>
std::vector<float> convert(std::span<const std::byte> bytes, Convert to_float) {
  std::vector<float> values(bytes.size() / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof stored, sizeof stored);
    values[i] = to_float(stored);
  }
  return values;
}

std::size_t as_size(std::int64_t bytes) {
  return static_cast<std::size_t>(bytes);
}

}  // namespace

std::string_view to_string(TensorType type) {
  return facts(type).name;
}
std::int64_t bytes_each(TensorType type) {
  return facts(type).bytes;
}

std::vector<float> to_f32(TensorType type, std::span<const std::byte> bytes) {
  switch (type) {
    case TensorType::f64:
      return convert<double>(bytes, [](double value) { return static_cast<float>(value); });
    case TensorType::f32:
      return convert<float>(bytes, [](float value) { return value; });
    case TensorType::f16:
      return convert<std::uint16_t>(bytes, f16_to_f32);
    case TensorType::bf16:
      return convert<std::uint16_t>(bytes, bf16_to_f32);
    default:
      throw DataError("a tensor of type " + std::string(to_string(type)) + " holds no floats");
  }
}

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);  // or rounding may make it infinite
  const std::uint32_t half_less_one = 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<std::uint16_t>((bits + half_less_one) >> 16);
}

// --- Reading ---------------------------------------------------------------------------------------------------------

WeightsFile::WeightsFile(const std::filesystem::path& path) : file_(path) {
  std::array<char, 9> beginning{};
  file_.read(0, beginning.data(), std::min<std::int64_t>(file_.size_bytes(), beginning.size()));
  const bool may_be_json = beginning[8] == '{';
  std::int32_t magic = 0;
  std::memcpy(&magic, beginning.data(), sizeof magic);
  if (magic == llmc_magic && !may_be_json) {
    open_llmc();
  } else if (may_be_json) {
    open_safetensors();
  } else {
    throw DataError(file_.name() + " is neither a safetensors file nor a checkpoint of llm.c");
  }
}

void WeightsFile::open_safetensors() {
  format_ = WeightsFormat::safetensors;
  std::uint64_t length = 0;
  file_.read(0, &length, sizeof length);
  const std::int64_t most = std::min(file_.size_bytes() - 8, largest_header);
  if (length > static_cast<std::uint64_t>(most)) {
    throw DataError(file_.name() + " is cut short or no safetensors file: its header is said to have " +
                    std::to_string(length) + " bytes, of which there may be " + std::to_string(most));
  }
  std::string text(static_cast<std::size_t>(length), ' ');
  file_.read(8, text.data(), static_cast<std::int64_t>(length));
  const auto data_begin = static_cast<std::int64_t>(8 + length);
  SafetensorsHeader header(file_.name(), data_begin);
  header.parse(text);
  metadata_ = std::move(header.metadata);
  tensors_ = std::move(header.tensors);

  std::stable_sort(tensors_.begin(), tensors_.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
  });
  require_side_by_side(file_.name(), data_begin, file_.size_bytes(), tensors_);
  std::erase_if(tensors_, [](const TensorInfo& tensor) { return is_mask(tensor.name); });
  std::set<std::string_view> names;
  for (const TensorInfo& tensor : tensors_) {
    if (!names.insert(tensor.name).second) {
      throw DataError(file_.name() + ": " + tensor.name + " is there with and without \"transformer.\"");
    }
  }
  mark_in_out();
}

// The queries, keys and values tell: only there the two sizes differ for certain and are known to be C and 3 C.
void WeightsFile::mark_in_out() {
  const TensorInfo* first = find("h.0.attn.c_attn.weight");
  if (!first || first->shape.size() != 2 || first->shape[0] >= first->shape[1]) return;
  for (TensorInfo& tensor : tensors_) {
    const auto [layer, rest] = split_layer(tensor.name);
    const bool linear =
        std::any_of(parts.begin(), parts.end(), [&](const Part& part) { return is_linear(part) && part.name == rest; });
    tensor.in_out = layer >= 0 && linear;
  }
}

void WeightsFile::open_llmc() {
  format_ = WeightsFormat::llmc;
  const LlmcModel model = read_llmc_header(file_);
  require_llmc_size(file_, model);
  std::int64_t offset = llmc_header_bytes;
  for (const Part& part : parts) {
    const std::int64_t stored = model.stored_bytes(part);
    for (int layer = 0; layer < (is_per_layer(part) ? model.shape.layers : 1); ++layer) {
      TensorInfo tensor{.name = full_name(part, layer), .type = model.type, .shape = shape_of(part, model.shape)};
      tensor.offset = offset;
      tensor.bytes = *bytes_of(tensor.type, tensor.shape);
      tensors_.push_back(std::move(tensor));
      offset += stored;
    }
  }
  metadata_ = {{"n_layer", std::to_string(model.shape.layers)},
               {"n_head", std::to_string(model.shape.heads)},
               {"n_embd", std::to_string(model.shape.d_model)},
               {"n_positions", std::to_string(model.shape.max_seq)},
               {"vocab_size", std::to_string(model.shape.vocab)}};
}

const TensorInfo* WeightsFile::find(std::string_view name) const {
  const auto found =
      std::find_if(tensors_.begin(), tensors_.end(), [&](const TensorInfo& tensor) { return tensor.name == name; });
  return found == tensors_.end() ? nullptr : &*found;
}

const TensorInfo& WeightsFile::tensor(std::string_view name) const {
  if (const TensorInfo* found = find(name)) return *found;
  throw DataError(file_.name() + ": " + std::string(name) + " is missing");
}

namespace {

int as_dimension(const WeightsFile& file, const TensorInfo& tensor, std::size_t axis) {
  if (tensor.shape.size() == 2 && tensor.shape[axis] > 0 && tensor.shape[axis] <= std::numeric_limits<int>::max()) {
    return static_cast<int>(tensor.shape[axis]);
  }
  throw DataError(file.name() + ": " + tensor.name + " has the shape " + to_text(tensor.shape) +
                  ", which is no GPT-2's");
}

int layers_of(const WeightsFile& file) {
  int last = -1;
  for (const TensorInfo& tensor : file.tensors()) last = std::max(last, split_layer(tensor.name).first);
  if (last == std::numeric_limits<int>::max()) throw DataError(file.name() + ": a layer has an impossible number");
  return last + 1;
}

int heads_of(const WeightsFile& file, int d_model) {
  const auto found = file.metadata().find("n_head");
  if (found == file.metadata().end()) return 0;
  const std::string& text = found->second;
  int heads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), heads);
  if (error != std::errc() || end != text.data() + text.size() || heads <= 0 || d_model % heads != 0) {
    throw DataError(file.name() + ": a width of " + std::to_string(d_model) + " cannot have \"" + text + "\" heads");
  }
  return heads;
}

void require_part(const WeightsFile& file, const TensorInfo& tensor, Shape expected) {
  if (tensor.in_out) std::swap(expected[0], expected[1]);
  if (tensor.shape != expected) {
    throw DataError(file.name() + ": " + tensor.name + " has the shape " + to_text(tensor.shape) + ", expected " +
                    to_text(expected));
  }
  if (!is_float(tensor.type)) {
    throw DataError(file.name() + ": " + tensor.name + " is of type " + std::string(to_string(tensor.type)) +
                    ", expected floats");
  }
}

}  // namespace

Gpt2Shape WeightsFile::gpt2_shape() const {
  Gpt2Shape shape;
  const TensorInfo& tokens = tensor(token_embedding);
  shape.vocab = as_dimension(*this, tokens, 0);
  shape.d_model = as_dimension(*this, tokens, 1);
  shape.max_seq = as_dimension(*this, tensor("wpe.weight"), 0);
  shape.layers = layers_of(*this);
  shape.heads = heads_of(*this, shape.d_model);

  std::map<std::string_view, const TensorInfo*> left;
  for (const TensorInfo& tensor : tensors_) left[tensor.name] = &tensor;
  const auto require = [&](const std::string& name, const Part& part) {
    const auto found = left.find(name);
    if (found == left.end()) throw DataError(file_.name() + ": " + name + " is missing");
    require_part(*this, *found->second, shape_of(part, shape));
    left.erase(found);
  };
  for (const Part& part : parts) {
    for (int layer = 0; layer < (is_per_layer(part) ? shape.layers : 1); ++layer) require(full_name(part, layer), part);
  }
  if (left.contains(head)) {
    require(std::string(head), parts.front());
    shape.tied_head = same_bytes(tensor(head), tokens);
  }
  if (!left.empty()) {
    throw DataError(file_.name() + ": " + std::string(left.begin()->first) + " has no place in a GPT-2");
  }
  return shape;
}

bool WeightsFile::same_bytes(const TensorInfo& one, const TensorInfo& other) const {
  if (one.type != other.type || one.bytes != other.bytes) return false;
  constexpr std::int64_t chunk = 1 << 20;
  std::vector<char> one_chunk(as_size(std::min(chunk, one.bytes))), other_chunk(one_chunk.size());
  for (std::int64_t done = 0; done < one.bytes; done += chunk) {
    const std::int64_t bytes = std::min(chunk, one.bytes - done);
    file_.read(one.offset + done, one_chunk.data(), bytes);
    file_.read(other.offset + done, other_chunk.data(), bytes);
    if (std::memcmp(one_chunk.data(), other_chunk.data(), as_size(bytes)) != 0) return false;
  }
  return true;
}

void WeightsFile::read(const TensorInfo& tensor, std::span<std::byte> destination) const {
  if (destination.size() != as_size(tensor.bytes)) {
    throw DataError(file_.name() + ": " + tensor.name + " has " + std::to_string(tensor.bytes) +
                    " bytes, but there is room for " + std::to_string(destination.size()));
  }
  file_.read(tensor.offset, destination.data(), tensor.bytes);
}

std::vector<float> WeightsFile::read_f32(const TensorInfo& tensor) const {
  if (!is_float(tensor.type)) {
    throw DataError(file_.name() + ": " + tensor.name + " is of type " + std::string(to_string(tensor.type)) +
                    ", expected floats");
  }
  std::vector<std::byte> bytes(as_size(tensor.bytes));
  read(tensor, bytes);
  return to_f32(tensor.type, bytes);
}

// --- Writing ---------------------------------------------------------------------------------------------------------

namespace {

template <class T>
std::span<const std::byte> as_bytes(const T& value) {
  return std::as_bytes(std::span(value));
}

// Every tensor once, and as large as its shape asks for.
std::map<std::string_view, const TensorView*> by_name(const std::string& file, std::span<const TensorView> tensors) {
  std::map<std::string_view, const TensorView*> named;
  for (const TensorView& tensor : tensors) {
    const auto needed = bytes_of(tensor.type, tensor.shape);
    if (!needed || as_size(*needed) != tensor.bytes.size()) {
      throw DataError(file + " cannot be written: " + tensor.name + " has the shape " + to_text(tensor.shape) + " of " +
                      std::string(to_string(tensor.type)) + " and " + std::to_string(tensor.bytes.size()) + " bytes");
    }
    if (!named.emplace(tensor.name, &tensor).second) {
      throw DataError(file + " cannot be written: " + tensor.name + " is given twice");
    }
  }
  return named;
}

std::vector<std::uint16_t> rounded_to_bf16(std::span<const float> values) {
  std::vector<std::uint16_t> rounded(values.size());
  std::transform(values.begin(), values.end(), rounded.begin(), to_bf16);
  return rounded;
}

// In the version's type; what has it already goes straight to the file.
void write_as(OutputFile& file, const TensorView& tensor, LlmcVersion version) {
  const TensorType wanted = version == LlmcVersion::bf16 ? TensorType::bf16 : TensorType::f32;
  if (tensor.type == wanted) return file.write(tensor.bytes);
  const std::vector<float> values = to_f32(tensor.type, tensor.bytes);
  if (wanted == TensorType::f32) return file.write(as_bytes(values));
  file.write(as_bytes(rounded_to_bf16(values)));
}

LlmcHeader llmc_header(const Gpt2Shape& shape, LlmcVersion version) {
  LlmcHeader header{};
  header[0] = llmc_magic;
  header[1] = static_cast<std::int32_t>(version);
  header[2] = shape.max_seq;
  header[3] = shape.vocab;
  header[4] = shape.layers;
  header[5] = shape.heads;
  header[6] = shape.d_model;
  header[7] = static_cast<std::int32_t>(padded_vocab(shape.vocab));
  return header;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const std::map<std::string, std::string>& metadata) {
  by_name(path.string(), tensors);
  // Wide types first, so that each tensor begins at a multiple of its own type's size.
  std::vector<const TensorView*> ordered;
  for (const TensorView& tensor : tensors) ordered.push_back(&tensor);
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const TensorView* a, const TensorView* b) { return bytes_each(a->type) > bytes_each(b->type); });

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::size_t offset = 0;
  for (const TensorView* tensor : ordered) {
    const std::size_t end = offset + tensor->bytes.size();
    header[tensor->name] = {
        {"dtype", to_string(tensor->type)}, {"shape", tensor->shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data begins at a multiple of 8, as the format recommends

  OutputFile file(path);
  const std::array<std::uint64_t, 1> length = {text.size()};
  file.write(as_bytes(length));
  file.write(as_bytes(text));
  for (const TensorView* tensor : ordered) file.write(tensor->bytes);
  file.commit();
}

void write_llmc(const std::filesystem::path& path, const Gpt2Shape& shape, std::span<const TensorView> tensors,
                LlmcVersion version) {
  const auto named = by_name(path.string(), tensors);
  const auto fail = [&](const std::string& why) { throw DataError(path.string() + " cannot be written: " + why); };
  if (!shape.tied_head) fail("llm.c's format has no place for an untied head");
  if (shape.heads <= 0) fail("llm.c's format needs the number of heads");

  OutputFile file(path);
  file.write(as_bytes(llmc_header(shape, version)));
  for (const Part& part : parts) {
    for (int layer = 0; layer < (is_per_layer(part) ? shape.layers : 1); ++layer) {
      const std::string name = full_name(part, layer);
      const auto found = named.find(name);
      if (found == named.end()) fail(name + " is missing");
      const TensorView& tensor = *found->second;
      if (tensor.shape != shape_of(part, shape)) {
        fail(name + " has the shape " + to_text(tensor.shape) + ", expected " + to_text(shape_of(part, shape)));
      }
      if (!is_float(tensor.type)) fail(name + " holds no floats");
      write_as(file, tensor, version);
    }
    if (part.rows == Size::vocab) {
      const std::int64_t rows = padded_vocab(shape.vocab) - shape.vocab;
      const std::int64_t row_bytes = shape.d_model * (version == LlmcVersion::bf16 ? 2 : 4);
      file.write(std::vector<std::byte>(as_size(rows * row_bytes)));
    }
  }
  file.commit();
}

}  // namespace stepladder
