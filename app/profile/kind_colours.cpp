#include "app/profile/kind_colours.h"

#include <utility>

#include "storage/by_enum.h"

namespace stepladder {

KindColour colour_of(OperatorKind kind) {
  constexpr std::pair<OperatorKind, KindColour> colours[] = {
      {OperatorKind::products, {0x5aa9ff, 0x6fb0f5}},      {OperatorKind::convolution, {0x4f93d6, 0x7ab8ee}},
      {OperatorKind::attention, {0xb48cf2, 0xb497e8}},     {OperatorKind::softmax, {0xe58fc4, 0xe39ac6}},
      {OperatorKind::layer_norm, {0x4fc6c0, 0x66c4be}},    {OperatorKind::normalisation, {0x4fc6c0, 0x66c4be}},
      {OperatorKind::gelu, {0x67c587, 0x78c492}},          {OperatorKind::activation, {0x67c587, 0x78c492}},
      {OperatorKind::elementwise, {0xa9c46c, 0xb3c877}},   {OperatorKind::copies, {0xe3b75c, 0xe2ba66}},
      {OperatorKind::embedding, {0x8fa5d8, 0x9db0dc}},     {OperatorKind::optimizer, {0xef8f62, 0xef9c75}},
      {OperatorKind::communication, {0xf2747f, 0xf08690}}, {OperatorKind::data, {0xc9a38a, 0xcfac95}},
      {OperatorKind::graph, {0xb9a1c9, 0xbfaacd}},         {OperatorKind::other, {0xa9a28f, 0xb6b09e}},
  };
  for (const auto& [known, colour] : colours)
    if (known == kind) return colour;
  return {0x7d8797, 0xb4bcc8};
}

KindColour colour_of(MemoryUse use) {
  using enum OperatorKind;
  return colour_of(by_enum<MemoryUse>(between, data, products, attention, optimizer)[use]);
}

}  // namespace stepladder
