// Reader of one version of an object. Opening brings the last bytes along, where Parquet keeps its
// footer, so a small object takes one request; small and sequential reads are gathered into blocks.
#pragma once

#include <memory>
#include <string>

#include "tarn/storage/object_store.h"
#include "tarn/storage/s3/s3_client.h"

namespace tarn::storage::s3 {

/// `key` is the caller's name of the object `full_key`. The client must outlive the reader.
/// Errors: kNotFound.
Result<std::unique_ptr<ObjectReader>> OpenS3Reader(S3Client& client, const std::string& full_key,
                                                   std::string_view key);

}  // namespace tarn::storage::s3
