// LandingSpec: what the pipeline file says of one landing task. Value.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tarn/format/field_type.h"
#include "tarn/format/json_columns.h"
#include "tarn/source/files/files_source.h"
#include "tarn/source/kafka/kafka_options.h"

namespace tarn::landing {

enum class Envelope : uint8_t { kNone, kDebezium };

/// What hdr__cdc_before keeps of the before image.
enum class CdcBefore : uint8_t {
  kKey,  // The key's columns when the key changed; everything when the source names no key.
  kFull,
  kOff,
};

enum class OnBadRecord : uint8_t { kReject, kStop, kSkip };
enum class AfterLoad : uint8_t { kKeep, kDelete, kMove };

/// A batch is cut by whichever comes first.
struct CommitLimits {
  int64_t rows = 1'000'000;
  int64_t bytes = 128LL << 20;  // Of values in memory.
  std::chrono::milliseconds interval = std::chrono::seconds(5);
};

/// What becomes of a message without value.
enum class Tombstone : uint8_t {
  kAuto,    // A delete where columns come from the message key; else a row without values.
  kDelete,  // A delete.
  kReject,  // A dead letter.
};

/// Columns that are taken out of the message key; they win over members of the value.
struct KeyColumns {
  enum class Format : uint8_t {
    kJson,    // An object with these members, or one scalar for one name.
    kString,  // Text, for one name.
  };
  Format format = Format::kJson;
  std::vector<std::string> names;  // Empty: none.
};

/// What a task over Kafka reads, and what it makes of it.
struct KafkaLanding {
  source::kafka::KafkaSourceOptions source;
  bool one_dataset = true;  // False: one per topic, named after it.
  Tombstone tombstone = Tombstone::kAuto;
  KeyColumns key_columns;

  /// True when a merge takes a message without value for a delete.
  [[nodiscard]] bool tombstone_deletes() const {
    return tombstone == Tombstone::kDelete ||
           (tombstone == Tombstone::kAuto && !key_columns.names.empty());
  }
};

struct LandingSpec {
  std::string name;                // Of the task and of its dataset.
  std::string schema = "landing";  // Folder of the dataset.
  std::string source_uri;
  std::optional<KafkaLanding> kafka;  // Else the source are files.
  source::files::FilesSourceOptions files;
  AfterLoad after_load = AfterLoad::kKeep;
  std::string move_to;
  std::chrono::milliseconds poll = std::chrono::seconds(5);
  uint64_t record_bytes_max = 16ULL << 20;
  Envelope envelope = Envelope::kNone;
  std::vector<std::string> tables;  // Debezium: patterns with % over schema.table; empty = all.
  CdcBefore cdc_before = CdcBefore::kKey;
  format::JsonColumnsOptions columns;  // Numbers, times, declared types, absent members.
  OnBadRecord on_bad_record = OnBadRecord::kReject;
  CommitLimits commit;

  /// "<name>__rejected".
  [[nodiscard]] std::string rejected_name() const { return name + "__rejected"; }
};

/// True when `text` matches `pattern`, in which % stands for any characters. Case counts.
bool MatchesPattern(std::string_view pattern, std::string_view text);

}  // namespace tarn::landing
