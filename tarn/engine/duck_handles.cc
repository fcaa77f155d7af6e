#include "tarn/engine/duck_handles.h"

#include <array>

namespace tarn::engine {
namespace {

struct ErrorKind {
  std::string_view prefix;
  ErrorCode code;
};

constexpr std::array<ErrorKind, 25> kErrorKinds = {{
    {"Parser Error", ErrorCode::kInvalidArgument},
    {"Syntax Error", ErrorCode::kInvalidArgument},
    {"Binder Error", ErrorCode::kInvalidArgument},
    {"Catalog Error", ErrorCode::kInvalidArgument},
    {"Conversion Error", ErrorCode::kInvalidArgument},
    {"Invalid Input Error", ErrorCode::kInvalidArgument},
    {"Invalid Type Error", ErrorCode::kInvalidArgument},
    {"Mismatch Type Error", ErrorCode::kInvalidArgument},
    {"Out of Range Error", ErrorCode::kInvalidArgument},
    {"Divide by Zero Error", ErrorCode::kInvalidArgument},
    {"Decimal Error", ErrorCode::kInvalidArgument},
    {"Expression Error", ErrorCode::kInvalidArgument},
    {"Constraint Error", ErrorCode::kInvalidArgument},
    {"Parameter Not Resolved Error", ErrorCode::kInvalidArgument},
    {"Parameter Not Allowed Error", ErrorCode::kInvalidArgument},
    {"Invalid Configuration Error", ErrorCode::kInvalidArgument},
    {"Not implemented Error", ErrorCode::kInvalidArgument},
    {"Permission Error", ErrorCode::kPermissionDenied},
    {"Out of Memory Error", ErrorCode::kResourceExhausted},
    {"INTERRUPT Error", ErrorCode::kCancelled},
    {"Serialization Error", ErrorCode::kCorruption},
    {"HTTP Error", ErrorCode::kUnavailable},
    {"Connection Error", ErrorCode::kUnavailable},
    {"Network Error", ErrorCode::kUnavailable},
    {"IO Error", ErrorCode::kUnavailable},
}};

// DuckDB reports a broken Parquet file under several kinds; these words only occur there.
constexpr std::array<std::string_view, 14> kBrokenFileWords = {
    "No magic bytes found",
    "too small to be a Parquet file",
    "TProtocolException",
    "Invalid data in Parquet",
    "Footer length error",
    "failed to deserialize Parquet",
    "ZSTD Decompression failure",
    "Snappy decompression failure",
    "Decompression failure",
    "Variable-length int over",
    "Unexpected end of",
    "file is corrupt",
    "Out of buffer",
    "Invalid string encoding found in Parquet",
};

// The engine advises settings of its own, which nobody can change here.
constexpr std::string_view kMemoryAdvice =
    "; read fewer rows or columns, sort or group less at a time, or raise engine_memory in "
    "tarn.toml "
    "(TARN_ENGINE_MEMORY)";

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

Status FromDuckText(std::string_view text) {
  // "…\n\nLINE 1: SELECT …\n        ^": an excerpt of text that may be ours, not the caller's.
  std::string_view shown = text.substr(0, text.find("\n\nLINE "));
  while (!shown.empty() && (shown.back() == '\n' || shown.back() == ' ')) {
    shown.remove_suffix(1);
  }
  for (const std::string_view word : kBrokenFileWords) {
    if (Contains(text, word)) {
      return {ErrorCode::kCorruption, std::string(shown)};
    }
  }
  for (const ErrorKind& kind : kErrorKinds) {
    if (!text.starts_with(kind.prefix)) {
      continue;
    }
    if (kind.prefix == "IO Error" &&
        (Contains(text, "No files found that match") || Contains(text, "No such file"))) {
      return Status::NotFound(std::string(shown));
    }
    if (kind.prefix == "Invalid Input Error" && Contains(text, "configuration has been locked")) {
      return Status::PermissionDenied(std::string(shown));
    }
    if (kind.code == ErrorCode::kResourceExhausted) {
      // One line: what was asked for and how much is in use. Advice follows it.
      shown = shown.substr(0, shown.find('\n'));
      while (shown.ends_with('.') || shown.ends_with(' ')) {
        shown.remove_suffix(1);
      }
      return {kind.code, std::string(shown) + std::string(kMemoryAdvice)};
    }
    return {kind.code, std::string(shown)};
  }
  return Status::Internal(shown.empty() ? "the SQL engine failed without a reason"
                                        : std::string(shown));
}

Status FromDuckError(duckdb_error_data error) {
  if (error == nullptr) {
    return Status::Ok();
  }
  Status status;
  if (duckdb_error_data_has_error(error)) {
    status = FromDuckText(duckdb_error_data_message(error));
  }
  duckdb_destroy_error_data(&error);
  return status;
}

}  // namespace tarn::engine
