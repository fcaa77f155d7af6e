#include "tarn/format/record_error.h"

namespace tarn::format {

std::string_view RecordErrorName(RecordError error) {
  switch (error) {
    case RecordError::kNone:
      return "none";
    case RecordError::kBadJson:
      return "bad_json";
    case RecordError::kBadUtf8:
      return "bad_utf8";
    case RecordError::kTooDeep:
      return "too_deep";
    case RecordError::kTooLarge:
      return "too_large";
    case RecordError::kTruncated:
      return "truncated";
    case RecordError::kNotAnObject:
      return "not_an_object";
    case RecordError::kTypeMismatch:
      return "type_mismatch";
    case RecordError::kTooManyColumns:
      return "too_many_columns";
    case RecordError::kBadEnvelope:
      return "bad_envelope";
  }
  return "unknown";
}

}  // namespace tarn::format
