// Any bytes through JsonSplitter, JsonTape and JsonColumns: no crash, and what the tape accepts as
// one document the splitter accepts too.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tarn/base/check.h"
#include "tarn/format/json_columns.h"
#include "tarn/format/json_splitter.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  tarn::format::JsonTape tape;
  const bool whole = tape.Parse(text).ok() && tape.root().is_object();

  tarn::format::JsonSplitter splitter({.window_bytes = 64});
  auto columns = tarn::format::JsonColumns::Make({.track_absent = true, .columns_max = 50});
  TARN_CHECK(columns.ok());
  tarn::format::JsonRecord record;
  uint64_t good = 0;
  const auto drain = [&] {
    while (splitter.Next(record)) {
      if (record.failure.ok()) {
        ++good;
        static_cast<void>((*columns)->Append(record.value).ok());
      }
    }
  };
  const size_t half = size / 2;
  splitter.Feed(text.substr(0, half));
  drain();
  splitter.Feed(text.substr(half));
  drain();
  splitter.Finish();
  drain();
  TARN_CHECK(!whole || good == 1);
  const int64_t rows = (*columns)->row_count();
  const auto batch = (*columns)->Finish();
  TARN_CHECK(batch.ok());
  TARN_CHECK(rows >= 0);
  return 0;
}
