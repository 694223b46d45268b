// Assigns slices to parts of the model in three walks: names of ranges and modules, then the order of forward operators
// that have none, then backward work by autograd's numbers. A guess never overrides a name; KnownBy records which of
// the two it was.
#include "storage/traces/places.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "storage/analysis/own_kernels.h"
#include "storage/number_text.h"
#include "storage/traces/segments.h"

namespace stepladder {
namespace {

constexpr int most_blocks = 1'000;
constexpr std::size_t most_places = 10'000;  // PlaceTimes::number

// A word of a range's name, or a number.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  char before = 0;
  for (const char c : name.substr(0, 300)) {
    const auto u = static_cast<unsigned char>(c);
    const char kind = std::isdigit(u) ? 'd' : std::isalpha(u) ? 'a' : 0;
    if (kind != 0 && kind != before) words.emplace_back();
    if (kind != 0) words.back() += static_cast<char>(std::tolower(u));
    before = kind;
  }
  return words;
}

std::optional<int> number_of(const std::string& word) {
  const auto number = parse_number<int>(word);
  return number && *number < most_blocks ? number : std::nullopt;
}

bool has_one_of(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

// "block 3", "layers.3", "h.3", "TransformerBlock_3".
std::optional<int> block_of(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "h" || word.ends_with("block") || word.ends_with("blocks") || word.ends_with("layer") ||
        word.ends_with("layers")) {
      if (const std::optional<int> number = number_of(words[i + 1])) return number;
    }
  }
  return std::nullopt;
}

ModelPart part_of(const std::vector<std::string>& words) {
  std::string joined;
  for (const std::string& word : words) joined += word;
  const auto is_word = [&](std::initializer_list<std::string_view> wanted) {
    return std::ranges::any_of(
        words, [&](const std::string& word) { return std::ranges::find(wanted, word) != wanted.end(); });
  };
  if (has_one_of(joined, {"attention"}) || is_word({"attn"}) || joined.ends_with("attn")) return ModelPart::attention;
  if (has_one_of(joined, {"feedforward"}) || is_word({"mlp", "ffn"}) || joined.ends_with("mlp")) return ModelPart::mlp;
  if (has_one_of(joined, {"embedding"}) || is_word({"wte", "wpe", "embed", "emb"})) return ModelPart::embedding;
  if (has_one_of(joined, {"crossentropy"}) || is_word({"loss"})) return ModelPart::loss;
  if (has_one_of(joined, {"layernorm", "rmsnorm"}) || is_word({"ln", "norm"})) return ModelPart::norm;
  if (has_one_of(joined, {"lmhead", "unembed"}) || is_word({"head"})) return ModelPart::head;
  return ModelPart::unknown;
}

// The place in a GPT's forward pass that an operator's name suggests.
enum class Role { embedding, norm, attention, activation, product, loss, other };

Role role_of(std::string_view name) {
  struct Word {
    std::string_view word;
    Role role;
  };
  constexpr std::array words{Word{"cross_entropy", Role::loss},    Word{"log_softmax", Role::loss},
                             Word{"nll_loss", Role::loss},         Word{"embedding", Role::embedding},
                             Word{"layer_norm", Role::norm},       Word{"rms_norm", Role::norm},
                             Word{"aten::rsqrt", Role::norm},      Word{"scaled_dot_product", Role::attention},
                             Word{"flash_attn", Role::attention},  Word{"softmax", Role::attention},
                             Word{"aten::gelu", Role::activation}, Word{"aten::relu", Role::activation},
                             Word{"aten::silu", Role::activation}, Word{"aten::tanh", Role::activation},
                             Word{"aten::erf", Role::activation},  Word{"aten::linear", Role::product},
                             Word{"aten::addmm", Role::product},   Word{"aten::mm", Role::product},
                             Word{"aten::matmul", Role::product},  Word{"aten::einsum", Role::product}};
  for (const Word& word : words) {
    if (name.find(word.word) != std::string_view::npos) return word.role;
  }
  return Role::other;
}

// An operator of the forward pass that no other operator called, and that no name places.
struct ForwardOperator {
  std::size_t slice = 0;
  Role role = Role::other;
};

// A run of forward operators: each norm begins a sublayer, an attention and an MLP make a block, and what is behind the
// last norm is the head.
class OrderReader {
 public:
  explicit OrderReader(std::map<std::size_t, Place>& found) : found_(found) {}

  void read(const ForwardOperator& each) {
    if (each.role == Role::embedding && has_norm_) finish();
    pass_.push_back(each);
    has_norm_ = has_norm_ || each.role == Role::norm;
    has_attention_ = has_attention_ || each.role == Role::attention;
  }

  void finish() {
    if (has_norm_ && has_attention_) place_pass();
    pass_.clear();
    has_norm_ = has_attention_ = false;
  }

 private:
  void place(std::size_t from, std::size_t to, ModelPart part, int block) {
    for (std::size_t i = from; i < to; ++i)
      found_[pass_[i].slice] = {.part = part, .block = block, .known_by = KnownBy::order};
  }
  std::size_t find(std::size_t from, std::size_t to, Role role) const {
    while (from < to && pass_[from].role != role) ++from;
    return from;
  }

  // A sublayer with attention and activation has no norm between them: the product behind the attention ends it.
  void place_sublayer(std::size_t from, std::size_t to) {
    const std::size_t attention = find(from, to, Role::attention), activation = find(from, to, Role::activation);
    if (attention < to) {
      block_ = std::min(block_ + 1, most_blocks - 1);
      const std::size_t end = activation < to ? std::min(find(attention, to, Role::product) + 1, to) : to;
      place(from, end, ModelPart::attention, block_);
      if (activation < to) place(end, to, ModelPart::mlp, block_);
    } else if (activation < to) {
      place(from, to, ModelPart::mlp, std::max(block_, 0));
    } else {
      const std::size_t loss = find(from, to, Role::loss);
      if (find(from, loss, Role::product) < loss) place(from, loss, ModelPart::head, -1);
      if (loss < to) place_loss(loss, to);
    }
  }

  // Places the operators until the last one of the loss: later ones don't belong to the model.
  void place_loss(std::size_t from, std::size_t to) {
    while (to > from && pass_[to - 1].role != Role::loss) --to;
    place(from, to, ModelPart::loss, -1);
  }

  void place_pass() {
    block_ = -1;
    std::size_t norm = find(0, pass_.size(), Role::norm);
    const std::size_t embedding = find(0, norm, Role::embedding);
    place(embedding, norm, ModelPart::embedding, -1);
    while (norm < pass_.size()) {
      const std::size_t next = find(norm + 1, pass_.size(), Role::norm);
      place_sublayer(norm, next);
      norm = next;
    }
  }

  std::map<std::size_t, Place>& found_;
  std::vector<ForwardOperator> pass_;
  bool has_norm_ = false, has_attention_ = false;
  int block_ = -1;
};

// One walk over all threads, with what earlier walks have found.
class Walk {
 public:
  Walk(const Trace& trace, const std::map<std::size_t, Place>& by_order) : trace_(trace), by_order_(by_order) {}

  std::vector<ForwardOperator> unplaced;                                  // in the order of the slices
  std::unordered_map<std::uint32_t, Place> by_sequence;                   // of forward operators
  const std::unordered_map<std::uint32_t, Place>* of_backward = nullptr;  // of an earlier walk
  Places* places = nullptr;                                               // to be filled in

  void run() {
    const std::vector<TraceSlice>& slices = trace_.slices();
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (i > 0 && slices[i].lane != slices[i - 1].lane) open_.clear();
      const SliceKind kind = slices[i].kind;
      if (kind == SliceKind::operation || kind == SliceKind::module || kind == SliceKind::launch) read(i, slices[i]);
    }
  }

 private:
  struct Open {
    std::int64_t end_ns = 0;
    Place place;
    std::uint8_t part = 0;
    bool in_operator = false;
  };

  void read(std::size_t i, const TraceSlice& slice) {
    while (!open_.empty() && open_.back().end_ns <= slice.start_ns) open_.pop_back();
    Open now = open_.empty() ? Open{.part = step_part::forward} : open_.back();
    now.end_ns = slice.start_ns + slice.duration_ns;
    if (slice.kind != SliceKind::launch) enter(i, slice, now);
    if (places) places->of_slice[i] = number_of_place(now.place);
    if (slice.kind != SliceKind::launch) open_.push_back(now);
  }

  void enter(std::size_t i, const TraceSlice& slice, Open& now) {
    const std::string& name = trace_.text(slice.name);
    if (const std::uint8_t part = part_begun_by(name); part != step_part::unknown) now.part = part;
    const bool is_operator = slice.kind == SliceKind::operation && !trace_.is_range(slice);
    if (!is_operator) now.place = known_place(slice.name, now.place);
    if (const auto found = by_order_.find(i); found != by_order_.end()) now.place = found->second;
    if (const OwnKernel* const own = find_own_kernel(name);
        own && own->part != ModelPart::unknown && is_operator && now.place.part == ModelPart::unknown)
      now.place = {.part = own->part, .block = now.place.block, .known_by = KnownBy::name};
    const bool is_forward = now.part == step_part::forward;
    if (slice.kind == SliceKind::operation && slice.correlation != 0) {
      if (now.part == step_part::backward && of_backward && now.place.part == ModelPart::unknown) {
        if (const auto found = of_backward->find(slice.correlation); found != of_backward->end())
          now.place = found->second;
      }
      // The last operator of a number is the one whose backward function has it.
      if (is_forward && now.place.part != ModelPart::unknown) by_sequence[slice.correlation] = now.place;
    }
    if (is_operator && is_forward && !now.in_operator && now.place.part == ModelPart::unknown)
      unplaced.push_back({i, role_of(name)});
    now.in_operator = now.in_operator || is_operator;
  }

  const Place& known_place(std::uint32_t name, const Place& around) {
    const auto [known, is_new] = of_ranges_.try_emplace(std::pair(name, around));
    if (is_new) known->second = place_of_range(trace_.text(name), around);
    return known->second;
  }

  std::uint16_t number_of_place(const Place& place) {
    if (place.part == ModelPart::unknown) return 0;
    if (places->places.size() >= most_places && numbers_.find(place) == numbers_.end()) return 0;
    const auto [known, is_new] = numbers_.try_emplace(place, static_cast<std::uint16_t>(places->places.size()));
    if (is_new) places->places.push_back(place);
    return known->second;
  }

  const Trace& trace_;
  const std::map<std::size_t, Place>& by_order_;
  std::vector<Open> open_;
  std::map<Place, std::uint16_t> numbers_;
  std::map<std::pair<std::uint32_t, Place>, Place> of_ranges_;
};

std::map<std::size_t, Place> places_by_order(const Trace& trace, const std::vector<ForwardOperator>& operators) {
  std::map<std::size_t, Place> found;
  OrderReader reader(found);
  const std::vector<StepSpan> steps = marked_steps(trace, SliceKind::step);
  const StepSpan* step = nullptr;
  std::uint16_t lane = 0;
  for (const ForwardOperator& each : operators) {
    const TraceSlice& slice = trace.slices()[each.slice];
    const StepSpan* const now = step_at(steps, slice.start_ns);
    if (slice.lane != lane || now != step) reader.finish();
    lane = slice.lane;
    step = now;
    reader.read(each);
  }
  reader.finish();
  return found;
}

}  // namespace

Place place_of_range(std::string_view name, const Place& around) {
  constexpr std::string_view module = "nn.Module: ";
  const bool is_module = name.starts_with(module);
  if (is_module) name.remove_prefix(module.size());
  // Autograd's functions ("NativeLayerNormBackward0") are operators.
  if (name.find("Backward") != std::string_view::npos || name.starts_with("ProfilerStep#") ||
      name.starts_with("Optimizer.") || name.starts_with("enumerate("))
    return around;
  const bool is_inside =
      around.part == ModelPart::attention || around.part == ModelPart::mlp || around.part == ModelPart::head;
  const std::vector<std::string> words = words_of(name);
  Place place = around;
  if (const std::optional<int> block = block_of(words); block && around.block < 0) place.block = *block;
  if (is_inside) return place;
  ModelPart part = part_of(words);
  if (part == ModelPart::unknown && is_module && !words.empty() && words.front() == "linear" && place.block < 0)
    part = ModelPart::head;
  if (part == ModelPart::unknown) return place;
  place.part = part;
  place.known_by = KnownBy::name;
  const bool has_block = part == ModelPart::attention || part == ModelPart::mlp;
  // PyTorch numbers the modules of a class: "CausalSelfAttention_3" is the fourth block's.
  if (is_module && has_block && place.block < 0 && words.size() > 1) place.block = number_of(words.back()).value_or(-1);
  if (part == ModelPart::embedding || part == ModelPart::head || part == ModelPart::loss) place.block = -1;
  return place;
}

Places places_of(const Trace& trace) {
  const std::map<std::size_t, Place> none;
  Walk first(trace, none);
  first.run();
  const std::map<std::size_t, Place> by_order = places_by_order(trace, first.unplaced);
  Walk second(trace, by_order);
  second.run();
  Places places;
  places.of_slice.resize(trace.slices().size());
  Walk last(trace, by_order);
  last.of_backward = &second.by_sequence;
  last.places = &places;
  last.run();
  return places;
}

}  // namespace stepladder
