#include "tarn/landing/dead_letter.h"

#include <arrow/api.h>

#include "tarn/base/arrow_status.h"

namespace tarn::landing {

namespace {

using TextMember = std::string DeadLetter::*;

Result<std::shared_ptr<arrow::Array>> MakeTexts(const std::vector<DeadLetter>& letters,
                                                TextMember member) {
  arrow::StringBuilder builder;
  for (const DeadLetter& letter : letters) {
    TARN_RETURN_IF_ERROR(builder.Append(letter.*member));
  }
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> array, builder.Finish());
  return array;
}

}  // namespace

Result<std::shared_ptr<arrow::RecordBatch>> MakeDeadLetters(const std::vector<DeadLetter>& letters,
                                                            Timestamp landed) {
  arrow::BinaryBuilder raw;
  arrow::TimestampBuilder times(arrow::timestamp(arrow::TimeUnit::MICRO, "UTC"),
                                arrow::default_memory_pool());
  for (const DeadLetter& letter : letters) {
    TARN_RETURN_IF_ERROR(raw.Append(letter.raw));
    TARN_RETURN_IF_ERROR(times.Append(ToMicros(landed)));
  }
  arrow::FieldVector fields;
  arrow::ArrayVector columns;
  const auto add = [&](const char* name, std::shared_ptr<arrow::Array> array) {
    fields.push_back(arrow::field(name, array->type()));
    columns.push_back(std::move(array));
  };
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> raw_array, raw.Finish());
  add("raw", std::move(raw_array));
  const std::pair<const char*, TextMember> texts[] = {
      {"source", &DeadLetter::source},           {"position", &DeadLetter::position},
      {"error_code", &DeadLetter::error_code},   {"error_text", &DeadLetter::error_text},
      {"rejected_by", &DeadLetter::rejected_by},
  };
  for (const auto& [name, member] : texts) {
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> array, MakeTexts(letters, member));
    add(name, std::move(array));
  }
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> landed_array, times.Finish());
  add("hdr__landed_timestamp", std::move(landed_array));
  return arrow::RecordBatch::Make(arrow::schema(std::move(fields)),
                                  static_cast<int64_t>(letters.size()), std::move(columns));
}

}  // namespace tarn::landing
