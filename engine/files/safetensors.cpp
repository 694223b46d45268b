// Hugging Face's safetensors (https://huggingface.co/docs/safetensors): the header's length as u64, a JSON header with
// type, shape and place of each tensor, then the tensors' bytes without a gap. Little-endian.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/files/weights_file.h"

namespace stepladder {
namespace {

// Old checkpoints hold each layer's causal mask and the value that it gives to later positions. They are constants, not
// weights, and newer models don't have them.
bool is_mask(std::string_view name) {
  const auto [layer, rest] = split_layer(name);
  return layer >= 0 && (rest == "attn.bias" || rest == "attn.masked_bias");
}

// Removes "transformer.", the prefix of the language model's checkpoints that those of the bare model don't have.
std::string plain_name(const std::string& name) {
  constexpr std::string_view prefix = "transformer.";
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

constexpr std::int64_t largest_header = 100'000'000;  // the limit of the format's own reader
constexpr std::size_t most_dimensions = 64;
constexpr std::uint64_t largest_number = std::uint64_t{1} << 62;  // so that sums of two still fit

// Processes the header entry by entry while it is parsed, so that a hostile one cannot become a large tree in memory.
class SafetensorsHeader {
 public:
  SafetensorsHeader(const std::string& file, std::int64_t data_begin) : file_(file), data_begin_(data_begin) {}

  void parse(const std::string& text) {
    try {
      // The result isn't needed: everything is already in tensors and metadata.
      const auto rest =
          nlohmann::json::parse(text, [this](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
            return take(depth, event, value);
          });
      static_cast<void>(rest);
    } catch (const nlohmann::json::parse_error& error) {
      // Without the parser's message: it quotes the header, which may be large and hold anything.
      throw DataError(file_ + ": its safetensors header isn't valid JSON at byte " + std::to_string(8 + error.byte));
    } catch (const nlohmann::json::out_of_range&) {
      fail("contains a number that is too large");
    }
  }

  std::vector<TensorInfo> tensors;
  std::map<std::string, std::string> metadata;

 private:
  using Event = nlohmann::json::parse_event_t;

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(file_ + ": " + (entry_.empty() ? "the header" : entry_) + " " + what);
  }

  // The file is {name: {key: string or [numbers]}}; depth counts the brackets around an event. Returns whether to keep
  // the value.
  bool take(int depth, Event event, nlohmann::json& value) {
    switch (event) {
      case Event::key:
        if (depth == 1) begin_entry(value.get<std::string>());
        if (depth == 2 && !keys_.insert(value.get<std::string>()).second)
          fail("holds \"" + value.get<std::string>() + "\" twice");
        return true;
      case Event::object_start:
        if (depth > 1) fail("is nested too deeply");
        return true;
      case Event::array_start:
        if (depth != 2) fail("has a list where none is allowed");
        numbers_ = 0;
        return true;
      case Event::value:
        if (depth < 2) fail("isn't an object");
        if (depth == 3 && ++numbers_ > most_dimensions) fail("has a list of more than 64 numbers");
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
        if (!value.is_string()) fail("holds \"" + key + "\", which isn't a string");
        metadata[key] = value.get<std::string>();
      }
    } else {
      add_tensor(entry);
    }
    entry_.clear();
  }

  std::int64_t number(const nlohmann::json& value, const char* key) const {
    if (value.is_number_integer() && !value.is_number_unsigned())
      fail("has a negative number in its " + std::string(key));
    if (!value.is_number_unsigned()) fail("has a value in its " + std::string(key) + " that isn't a whole number");
    if (value.get<std::uint64_t>() >= largest_number)
      fail("has a number in its " + std::string(key) + " that is too large");
    return static_cast<std::int64_t>(value.get<std::uint64_t>());
  }

  TensorShape numbers(const nlohmann::json& entry, const char* key) const {
    const auto found = entry.find(key);
    if (found == entry.end() || !found->is_array()) fail("has no " + std::string(key));
    TensorShape values;
    for (const auto& value : *found) values.push_back(number(value, key));
    return values;
  }

  TensorType type_of(const nlohmann::json& entry) const {
    const auto found = entry.find("dtype");
    if (found == entry.end() || !found->is_string()) fail("has no dtype");
    if (const auto type = tensor_type_from(found->get<std::string>())) return *type;
    fail("has the unknown type \"" + found->get<std::string>() + "\"");
  }

  void add_tensor(const nlohmann::json& entry) {
    TensorInfo tensor{.name = plain_name(entry_), .type = type_of(entry), .shape = numbers(entry, "shape")};
    const TensorShape offsets = numbers(entry, "data_offsets");
    if (offsets.size() != 2 || offsets[1] < offsets[0]) fail("has data_offsets that aren't a start and an end");
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
  std::string entry_;  // the tensor being read; empty between two
  std::set<std::string> names_;
  std::set<std::string> keys_;
  std::size_t numbers_ = 0;
};

// The format allows neither overlaps nor gaps, nor anything after the last tensor. Sorted by place.
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
  if (end < file_bytes)
    throw DataError(file + ": " + std::to_string(file_bytes - end) + " bytes after " + before + " belong to no tensor");
}

}  // namespace

void WeightsFile::open_safetensors() {
  format_ = WeightsFormat::safetensors;
  std::uint64_t length = 0;
  file_.read(0, &length, sizeof length);
  const std::int64_t most = std::min(file_.size_bytes() - 8, largest_header);
  if (length > static_cast<std::uint64_t>(most)) {
    throw DataError(file_.name() + " is cut short or isn't a safetensors file: it announces a header of " +
                    std::to_string(length) + " bytes, but at most " + std::to_string(most) + " are possible");
  }
  std::string text(static_cast<std::size_t>(length), ' ');
  file_.read(8, text.data(), static_cast<std::int64_t>(length));
  const auto data_begin = static_cast<std::int64_t>(8 + length);
  SafetensorsHeader header(file_.name(), data_begin);
  header.parse(text);
  metadata_ = std::move(header.metadata);
  tensors_ = std::move(header.tensors);

  std::ranges::stable_sort(tensors_, [](const TensorInfo& a, const TensorInfo& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
  });
  require_side_by_side(file_.name(), data_begin, file_.size_bytes(), tensors_);
  std::erase_if(tensors_, [](const TensorInfo& tensor) { return is_mask(tensor.name); });
  std::set<std::string_view> names;
  for (const TensorInfo& tensor : tensors_)
    if (!names.insert(tensor.name).second)
      throw DataError(file_.name() + ": " + tensor.name + " occurs with and without \"transformer.\"");
  mark_in_out();
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const std::map<std::string, std::string>& metadata) {
  by_name(path.string(), tensors);
  // Wide types first, so that each tensor begins at a multiple of its own type's size.
  std::vector<const TensorView*> ordered;
  for (const TensorView& tensor : tensors) ordered.push_back(&tensor);
  std::ranges::stable_sort(
      ordered, [](const TensorView* a, const TensorView* b) { return bytes_each(a->type) > bytes_each(b->type); });

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
  file.write(std::as_bytes(std::span(length)));
  file.write(std::as_bytes(std::span(text)));
  for (const TensorView* tensor : ordered) file.write(tensor->bytes);
  file.commit();
}

}  // namespace stepladder
