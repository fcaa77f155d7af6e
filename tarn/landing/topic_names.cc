#include "tarn/landing/topic_names.h"

#include <algorithm>

#include "tarn/base/utf8.h"
#include "tarn/format/base64.h"
#include "tarn/format/json_escape.h"
#include "tarn/source/kafka/topic_selection.h"

namespace tarn::landing {

namespace {

using source::kafka::KafkaHeader;

void WriteValue(const KafkaHeader& header, std::string& out) {
  if (!header.value) {
    out += "null";
  } else if (IsValidUtf8(*header.value)) {
    format::AppendJsonString(*header.value, out);
  } else {
    out += R"({"base64":")" + format::EncodeBase64(*header.value) + "\"}";
  }
}

}  // namespace

std::string DatasetNameOf(std::string_view topic) {
  std::string name;
  for (const char c : topic) {
    if (c >= 'A' && c <= 'Z') {
      name += static_cast<char>(c - 'A' + 'a');
    } else if (c == '-' || c == '.') {
      name += '_';
    } else if (c != ' ') {
      name += c;
    }
  }
  return name;
}

bool MayGiveDataset(const std::vector<std::string>& topics, std::string_view dataset) {
  return std::any_of(topics.begin(), topics.end(), [&](const std::string& topic) {
    return source::kafka::MatchesTopic(DatasetNameOf(topic), dataset);
  });
}

void WriteHeadersJson(const std::vector<KafkaHeader>& headers, std::string& out) {
  out.clear();
  const auto has_name = [](std::string_view name) {
    return [name](const KafkaHeader& header) { return header.name == name; };
  };
  for (auto at = headers.begin(); at != headers.end(); ++at) {
    if (std::any_of(headers.begin(), at, has_name(at->name))) {
      continue;
    }
    out += out.empty() ? "{" : ",";
    format::AppendJsonString(ReplaceInvalidUtf8(at->name), out);
    out += ':';
    const bool many = std::any_of(at + 1, headers.end(), has_name(at->name));
    out += many ? "[" : "";
    for (auto same = at; same != headers.end(); ++same) {
      if (same->name == at->name) {
        out += same == at ? "" : ",";
        WriteValue(*same, out);
      }
    }
    out += many ? "]" : "";
  }
  out += out.empty() ? "" : "}";
}

}  // namespace tarn::landing
