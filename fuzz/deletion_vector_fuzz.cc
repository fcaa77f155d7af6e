// Deletion vectors and Puffin footers from arbitrary bytes: an error or positions in order, never a
// crash or memory without bound. What parses is written and read again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tarn/base/check.h"
#include "tarn/iceberg/codec/roaring.h"
#include "tarn/iceberg/deletes/deletion_vector.h"
#include "tarn/iceberg/deletes/puffin.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tarn::iceberg;  // NOLINT(google-build-using-namespace)
  constexpr uint64_t kCountMax = 1'000'000;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto bitmap = DecodeRoaring64(bytes, kCountMax);
  if (bitmap.ok()) {
    TARN_CHECK(std::is_sorted(bitmap->begin(), bitmap->end()));
    const auto again = DecodeRoaring64(EncodeRoaring64(*bitmap), kCountMax);
    TARN_CHECK(again.ok() && *again == *bitmap);
  }
  const auto vector = DecodeDeletionVector(bytes, kCountMax);
  (void)vector;
  const auto footer = ParsePuffinFooter(bytes);
  (void)footer;
  return 0;
}
