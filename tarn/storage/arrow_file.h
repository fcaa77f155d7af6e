// Objects as Arrow files: what Parquet and the other formats read from and write to.
//
// A failure of the store keeps its code and message on the way through Arrow (FromArrow finds it).
#pragma once

#include <memory>

#include <arrow/io/type_fwd.h>

#include "tarn/storage/object_store.h"

namespace tarn::storage {

/// Random access to an object. Threads: concurrent ReadAt calls are fine, the rest is one thread.
std::shared_ptr<arrow::io::RandomAccessFile> ArrowInput(std::unique_ptr<ObjectReader> reader);

/// Opens and wraps. Errors: kNotFound.
Result<std::shared_ptr<arrow::io::RandomAccessFile>> OpenArrowInput(ObjectStore& store,
                                                                    std::string_view key);

/// A stream into `writer`, which must outlive it. Closing the stream only ends it: the caller then
/// calls writer.Close(), which makes the object visible, or writer.Abort().
std::shared_ptr<arrow::io::OutputStream> ArrowOutput(ObjectWriter& writer);

}  // namespace tarn::storage
