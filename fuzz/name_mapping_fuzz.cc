// Name mappings, schemas and partition specs from arbitrary bytes: properties and metadata are
// other people's text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tarn/base/check.h"
#include "tarn/iceberg/codec/name_mapping.h"
#include "tarn/iceberg/schema.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tarn::iceberg;  // NOLINT(google-build-using-namespace)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto mapping = ParseNameMapping(text);
  if (mapping.ok()) {
    (void)FindMapped(*mapping, "a");
  }
  const auto schema = ParseSchema(text);
  if (schema.ok()) {
    const auto again = ParseSchema(FormatSchema(*schema));
    TARN_CHECK(again.ok());
  }
  return 0;
}
