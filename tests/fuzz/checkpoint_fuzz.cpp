// libFuzzer: the files that the engine reads. The last byte selects one: a checkpoint's state.json, weights
// (safetensors or llm.c's), a tokenizer, or tokens. Any bytes must be read or refused with a DataError. The header of a
// safetensors file is put behind its right length first, unless the byte says otherwise.
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "engine/files/checkpoint_folder.h"
#include "engine/files/tokenizer.h"
#include "engine/files/tokens.h"
#include "engine/files/weights_file.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

void write(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void read_weights(const std::filesystem::path& path) {
  const WeightsFile file(path);
  for (const TensorInfo& tensor : file.tensors()) {
    if (tensor.bytes < 0) __builtin_trap();
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes));
    file.read(tensor, bytes);
  }
  file.gpt2_shape();
}

// Replaces the length before a safetensors header by the place where its JSON ends.
std::string with_header_length(std::string_view bytes) {
  std::string file(bytes);
  const std::size_t end = file.find("}}");
  if (file.size() < 10 || end == std::string::npos || end < 8) return file;
  const std::uint64_t length = end + 2 - 8;
  std::memcpy(file.data(), &length, sizeof length);
  return file;
}

void read(const TemporaryFolder& folder, std::string_view bytes, unsigned kind) {
  switch (kind % 5) {
    case 0: {
      write(folder / checkpoint_state, bytes);
      const CheckpointState state = read_checkpoint_state(folder.path());
      to_json(state);
      break;
    }
    case 1:
      write(folder / checkpoint_weights, bytes);
      return read_weights(folder / checkpoint_weights);
    case 2:
      write(folder / checkpoint_weights, with_header_length(bytes));
      return read_weights(folder / checkpoint_weights);
    case 3: {
      write(folder / "tokenizer.json", bytes);
      const Tokenizer tokenizer = Tokenizer::open(folder / "tokenizer.json");
      tokenizer.decode(tokenizer.encode("One night, 12 ladders\n"));
      break;
    }
    case 4:
      write(folder / "tokens.bin", bytes);
      TokenSource::open(folder / "tokens.bin", 8, 1).batch(Split::train, 0, 2);
  }
}

}  // namespace
}  // namespace stepladder

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const stepladder::TemporaryFolder folder;
  if (size == 0) return 0;
  try {
    stepladder::read(folder, {reinterpret_cast<const char*>(data), size - 1}, data[size - 1]);
  } catch (const stepladder::DataError&) {
    // a refusal is fine
  }
  return 0;
}
