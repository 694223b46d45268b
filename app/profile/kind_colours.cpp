#include "app/profile/kind_colours.h"

namespace stepladder {

KindColour colour_of(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::products:
      return {0x5aa9ff, 0x6fb0f5};
    case OperatorKind::convolution:
      return {0x4f93d6, 0x7ab8ee};
    case OperatorKind::attention:
      return {0xb48cf2, 0xb497e8};
    case OperatorKind::softmax:
      return {0xe58fc4, 0xe39ac6};
    case OperatorKind::normalisation:
      return {0x4fc6c0, 0x66c4be};
    case OperatorKind::gelu:
    case OperatorKind::activation:
      return {0x67c587, 0x78c492};
    case OperatorKind::elementwise:
      return {0xa9c46c, 0xb3c877};
    case OperatorKind::copies:
      return {0xe3b75c, 0xe2ba66};
    case OperatorKind::embedding:
      return {0x8fa5d8, 0x9db0dc};
    case OperatorKind::optimizer:
      return {0xef8f62, 0xef9c75};
    case OperatorKind::communication:
      return {0xf2747f, 0xf08690};
    case OperatorKind::data:
      return {0xc9a38a, 0xcfac95};
    case OperatorKind::graph:
      return {0xb9a1c9, 0xbfaacd};
    case OperatorKind::other:
      return {0xa9a28f, 0xb6b09e};
    case OperatorKind::between:
    case OperatorKind::idle:
      break;
  }
  return {0x7d8797, 0xb4bcc8};
}

KindColour colour_of(MemoryUse use) {
  switch (use) {
    case MemoryUse::data:
      return colour_of(OperatorKind::data);
    case MemoryUse::activations:
      return colour_of(OperatorKind::products);
    case MemoryUse::gradients:
      return colour_of(OperatorKind::attention);
    case MemoryUse::optimizer:
      return colour_of(OperatorKind::optimizer);
    case MemoryUse::before:
      break;
  }
  return colour_of(OperatorKind::between);
}

}  // namespace stepladder
