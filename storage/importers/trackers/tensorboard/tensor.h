// A TensorProto (tensorboard/compat/proto/tensor.proto) of one element, as TensorBoard's summaries hold numbers and
// texts.
#pragma once

#include <optional>
#include <string_view>

namespace stepladder {

// `text` points into the message.
struct EventTensor {
  std::optional<double> value;  // unset: a text, several numbers, or malformed
  bool is_text = false;
  std::string_view text;
};

EventTensor read_event_tensor(std::string_view message);

}  // namespace stepladder
