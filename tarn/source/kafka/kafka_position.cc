#include "tarn/source/kafka/kafka_position.h"

#include <fmt/core.h>

namespace tarn::source::kafka {

std::string NameOf(const TopicPartition& where) {
  return fmt::format("{}[{}]", where.topic, where.partition);
}

std::string Describe(const LostRange& lost) {
  if (lost.cause == LossCause::kRetention) {
    return fmt::format(
        "{}: offsets {} to {} were removed by the broker before they were read; it begins at {} "
        "now",
        NameOf(lost.where), lost.from, lost.to - 1, lost.to);
  }
  return fmt::format(
      "{}: offset {} is to be read next, but what was read before it is not there any more: the "
      "topic was made again or cut back; it begins at {} now",
      NameOf(lost.where), lost.from, lost.to);
}

}  // namespace tarn::source::kafka
