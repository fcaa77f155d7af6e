// Names that come from topics, and their headers as JSON. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tarn/source/kafka/kafka_message.h"

namespace tarn::landing {

/// The dataset of a topic where each has one: lower case, without blanks, '_' for '-' and '.'.
std::string DatasetNameOf(std::string_view topic);

/// True when a topic that `topics` (names and patterns) select could have this dataset.
bool MayGiveDataset(const std::vector<std::string>& topics, std::string_view dataset);

/// A JSON object of all headers, names in order of arrival; a name met twice gives an array. Text
/// as strings, other bytes as {"base64": "…"}. Empty when there are none.
void WriteHeadersJson(const std::vector<source::kafka::KafkaHeader>& headers, std::string& out);

}  // namespace tarn::landing
