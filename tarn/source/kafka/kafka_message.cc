#include "tarn/source/kafka/kafka_message.h"

#include <cstring>

#include <librdkafka/rdkafka.h>

#include "tarn/base/hash.h"

namespace tarn::source::kafka {

void FreeNative::operator()(rd_kafka_message_t* message) const {
  rd_kafka_message_destroy(message);
}

uint64_t DigestOf(const KafkaMessage& message) {
  // What has no value differs from what has an empty one.
  const int64_t facts[] = {message.time_ms, message.has_key ? int64_t{1} : int64_t{0},
                           message.has_value ? int64_t{1} : int64_t{0},
                           static_cast<int64_t>(message.key.size())};
  char bytes[sizeof(facts)];
  std::memcpy(bytes, facts, sizeof(facts));
  Xxh3Stream stream;
  stream.Update({bytes, sizeof(bytes)});
  stream.Update(message.key);
  stream.Update(message.value);
  return stream.Digest();
}

void ReadHeaders(const KafkaMessage& message, std::vector<KafkaHeader>& headers) {
  headers.clear();
  rd_kafka_headers_t* list = nullptr;
  if (rd_kafka_message_headers(message.native, &list) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return;
  }
  const char* name = nullptr;
  const void* value = nullptr;
  size_t size = 0;
  for (size_t i = 0;
       rd_kafka_header_get_all(list, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR; ++i) {
    KafkaHeader header{.name = name, .value = std::nullopt};
    if (value != nullptr) {
      header.value = std::string_view(static_cast<const char*>(value), size);
    }
    headers.push_back(header);
  }
}

}  // namespace tarn::source::kafka
