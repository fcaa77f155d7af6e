// SHA-1 for many short messages: no allocation, the processor's instructions where it has them.
#pragma once

#include <cstdint>
#include <string_view>

namespace tarn::transform {

/// Writes the 20 bytes of the digest to `digest`. Identifies keys, secures nothing.
void Sha1Short(std::string_view message, uint8_t* digest);

/// The same without the processor's instructions, for tests of both ways.
void Sha1Portable(std::string_view message, uint8_t* digest);

}  // namespace tarn::transform
