// Reader of one version of an object. Opening brings the last bytes along, where Parquet keeps its
// footer, so a small object takes one request; small and sequential reads are gathered into blocks,
// and of a long walk the next block is under way while one is read.
#pragma once

#include <memory>
#include <string>

#include "tarn/base/thread_pool.h"
#include "tarn/storage/object_store.h"
#include "tarn/storage/s3/s3_client.h"

namespace tarn::storage::s3 {

/// What all readers of a store share; must outlive them.
struct ReaderWorld {
  S3Client& client;
  ThreadPool& pool;  // Of blocks that are fetched ahead.
};

/// `key` is the caller's name of the object `full_key`.
/// Errors: kNotFound.
Result<std::unique_ptr<ObjectReader>> OpenS3Reader(ReaderWorld world, const std::string& full_key,
                                                   std::string_view key);

}  // namespace tarn::storage::s3
