// Rows of bulk registration: existing objects under logical paths, read from NDJSON or an Arrow
// stream, checked against the store, in batches.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tarn/dataset/upload.h"
#include "tarn/server/http/message.h"
#include "tarn/storage/object_store.h"

namespace tarn::server::native {

/// One row as sent. Value.
struct RegisterRow {
  std::string path;
  std::string uri;
  std::optional<int64_t> size_bytes;
  std::string checksum;  // "xxh3:…"; empty = unknown.
  std::optional<int64_t> row_count;
};

/// Errors: kInvalidArgument naming the member and what was found.
Result<RegisterRow> ParseRegisterRow(const nlohmann::json& row);

/// The file behind a row, after its object was looked at.
///
/// Errors: kInvalidArgument (UnsupportedUri) outside of the store, (ObjectSizeMismatch);
/// kPermissionDenied for what the server wrote itself: such bytes have owners of their own;
/// kNotFound (ObjectNotFound).
Result<dataset::StoredFile> CheckRegisterRow(storage::ObjectStore& store, const RegisterRow& row);

using RegisterBatch = std::function<Status(std::span<const RegisterRow>)>;

/// Gives the rows of the body in batches of up to 5,000; memory is bounded. `content_type` decides
/// the form: "application/vnd.apache.arrow.stream", else one JSON object per line.
/// Errors: kInvalidArgument naming the row by its number; those of the body and of `batch`.
Status ReadRegisterRows(http::BodyReader& body, std::string_view content_type,
                        const RegisterBatch& batch);

}  // namespace tarn::server::native
