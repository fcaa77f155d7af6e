// Manifests and manifest lists from arbitrary bytes: an error or entries, never a crash.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tarn/iceberg/manifest_avro.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tarn::iceberg;  // NOLINT(google-build-using-namespace)
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static const PartitionSpec kSpec{.spec_id = 1,
                                   .fields = {{.source_id = 1, .field_id = 1000, .name = "a"},
                                              {.source_id = 2, .field_id = 1001, .name = "b"}}};
  const auto manifest = DecodeManifest(bytes, kSpec);
  if (manifest.ok()) {
    auto entries = manifest->entries;
    const tarn::Status inherited =
        InheritFrom({.sequence_number = 3}, manifest->format_version, entries);
    (void)inherited;
  }
  const auto list = DecodeManifestList(bytes);
  (void)list;
  return 0;
}
