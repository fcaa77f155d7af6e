// Answers of S3 servers and files of credentials from arbitrary bytes: an error or values, never a
// crash.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tarn/storage/aws/credentials.h"
#include "tarn/storage/s3/s3_error.h"
#include "tarn/storage/s3/s3_options.h"
#include "tarn/storage/s3/xml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto root = tarn::storage::s3::ParseXml(bytes);
  if (root.ok()) {
    const auto again =
        tarn::storage::s3::ParseXml("<x>" + tarn::storage::s3::EscapeXml(root->text) + "</x>");
    if (again.ok() && again->text != root->text) {
      __builtin_trap();
    }
  }
  (void)tarn::storage::s3::ParseErrorBody(bytes);
  (void)tarn::storage::aws::ParseProfile(bytes, "default").ok();
  (void)tarn::storage::s3::WithUri({}, bytes).ok();
  (void)tarn::storage::s3::ParseEndpoint(bytes).ok();
  return 0;
}
