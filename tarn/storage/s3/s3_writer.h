// Writer of one object: put whole while it fits one part, else in parts that move in parallel.
//
// Each write carries an identifier of its own in the object's metadata. When a reply is lost, or a
// condition fails that may have been met by an earlier attempt of ours, the object is looked at: it
// was this write exactly when it carries this identifier.
#pragma once

#include <memory>
#include <string>

#include "tarn/base/thread_pool.h"
#include "tarn/storage/object_store.h"
#include "tarn/storage/s3/s3_client.h"

namespace tarn::storage::s3 {

/// What all writers of a store share; must outlive them.
struct WriterWorld {
  S3Client& client;
  ThreadPool& pool;  // Of uploads of parts.
};

struct WriterTarget {
  std::string key;       // The caller's name.
  std::string full_key;  // In the bucket.
  WriteMode mode = WriteMode::kOverwrite;
  std::string write_id;  // Nobody else's.
};

/// No request is made before there is a part to send.
std::unique_ptr<ObjectWriter> MakeS3Writer(WriterWorld world, WriterTarget target);

/// The header that makes a write fail when the key exists; empty for kOverwrite.
aws::NamedValues ConditionOf(const S3Options& options, WriteMode mode);

}  // namespace tarn::storage::s3
