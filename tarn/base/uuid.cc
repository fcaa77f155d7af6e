#include "tarn/base/uuid.h"

#include <algorithm>

#include <openssl/rand.h>

#include "tarn/base/hash.h"

namespace tarn {

namespace {
constexpr std::array<size_t, 4> kDashes = {8, 13, 18, 23};
constexpr uint32_t kCounterMax = (1U << 18) - 1;
}  // namespace

void FillSecureRandom(uint8_t* bytes, size_t size) {
  TARN_CHECK(RAND_bytes(bytes, static_cast<int>(size)) == 1);
}

std::string Uuid::ToString() const {
  std::string text =
      EncodeHex(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  for (const size_t dash : kDashes) {
    text.insert(dash, 1, '-');
  }
  return text;
}

Result<Uuid> Uuid::Parse(std::string_view text) {
  std::string hex;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dash = std::find(kDashes.begin(), kDashes.end(), i) != kDashes.end();
    if (dash != (text[i] == '-')) {
      return Status::InvalidArgument("not a UUID: \"" + std::string(text) + "\"");
    }
    if (!dash) {
      hex += text[i];
    }
  }
  const Result<std::string> raw = DecodeHex(hex);
  if (text.size() != 36 || !raw.ok()) {
    return Status::InvalidArgument("not a UUID: \"" + std::string(text) + "\"");
  }
  Uuid uuid;
  std::copy(raw->begin(), raw->end(), uuid.bytes.begin());
  return uuid;
}

Uuid UuidGenerator::NextV7() {
  Uuid uuid;
  FillSecureRandom(uuid.bytes.data(), uuid.bytes.size());
  int64_t millis = ToMillis(clock_.Now());
  uint32_t counter = 0;
  {
    const std::lock_guard lock(mutex_);
    if (millis > last_millis_) {
      // Start low in the counter's range so that a burst within this millisecond has room.
      counter = (static_cast<uint32_t>(uuid.bytes[0]) << 8 | uuid.bytes[1]) & (kCounterMax >> 2);
    } else if (last_counter_ < kCounterMax) {
      millis = last_millis_;
      counter = last_counter_ + 1;
    } else {
      millis = last_millis_ + 1;
    }
    last_millis_ = millis;
    last_counter_ = counter;
  }
  for (int i = 0; i < 6; ++i) {
    uuid.bytes[static_cast<size_t>(i)] = static_cast<uint8_t>(millis >> (40 - 8 * i));
  }
  uuid.bytes[6] = static_cast<uint8_t>(0x70 | ((counter >> 14) & 0x0F));
  uuid.bytes[7] = static_cast<uint8_t>((counter >> 6) & 0xFF);
  uuid.bytes[8] = static_cast<uint8_t>(0x80 | (counter & 0x3F));
  return uuid;
}

Uuid UuidGenerator::NextV4() {
  Uuid uuid;
  FillSecureRandom(uuid.bytes.data(), uuid.bytes.size());
  uuid.bytes[6] = static_cast<uint8_t>(0x40 | (uuid.bytes[6] & 0x0F));
  uuid.bytes[8] = static_cast<uint8_t>(0x80 | (uuid.bytes[8] & 0x3F));
  return uuid;
}

}  // namespace tarn
