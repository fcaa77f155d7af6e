// Table and view metadata from arbitrary bytes: what parses must survive being written and read.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tarn/base/check.h"
#include "tarn/iceberg/table_metadata_json.h"
#include "tarn/iceberg/view_metadata.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tarn::iceberg;  // NOLINT(google-build-using-namespace)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto metadata = ParseTableMetadata(text);
  if (metadata.ok()) {
    const auto again = ParseTableMetadata(FormatTableMetadata(*metadata));
    TARN_CHECK(again.ok());
  }
  const auto view = ParseViewMetadata(text);
  if (view.ok()) {
    const auto again = ParseViewMetadata(FormatViewMetadata(*view));
    TARN_CHECK(again.ok());
  }
  return 0;
}
