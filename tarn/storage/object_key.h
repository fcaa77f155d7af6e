// Keys of objects: what a key may look like, and how it relates to URIs and paths.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tarn/base/status.h"
#include "tarn/storage/object_store.h"

namespace tarn::storage {

constexpr size_t kKeyBytesMax = 1024;

/// Checks a key: UTF-8 without NUL, 1..1024 bytes, no empty, "." or ".." segment.
/// Errors: kInvalidArgument naming the key and the fault.
Status CheckKey(std::string_view key);

/// Errors: kInvalidArgument unless 1 <= limit <= 10,000.
Status CheckListRequest(const ListRequest& request);

/// A key as it appears in messages: quoted, invalid bytes replaced, cut after 200 bytes.
std::string QuoteKey(std::string_view key);

/// Absolute path behind "file:///x", "file://localhost/x", "file:/x" or "/x". URIs are taken as
/// they are, without percent-decoding: our own (UriOf) are not encoded.
/// Errors: kInvalidArgument for other schemes, hosts and relative paths.
Result<std::string> PathOfFileUri(std::string_view uri);

}  // namespace tarn::storage
