#include "tarn/pipeline/landing_keys.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "tarn/format/field_type.h"
#include "tarn/pipeline/folder_name.h"
#include "tarn/source/kafka/topic_selection.h"

namespace tarn::pipeline {

namespace {

using landing::LandingSpec;

std::chrono::milliseconds Millis(std::optional<std::chrono::microseconds> duration,
                                 std::chrono::milliseconds otherwise) {
  return duration ? std::chrono::duration_cast<std::chrono::milliseconds>(*duration) : otherwise;
}

const std::vector<std::string_view> kFileKeys = {
    "paths",  "exclude",    "process_files_from", "look_back",
    "future", "on_changed", "delete_after_load",  "move_to"};
const std::vector<std::string_view> kTopicKeys = {"topics",      "exclude_topics", "one_dataset",
                                                  "start",       "tombstone",      "on_lost_range",
                                                  "key_columns", "on_new_topic"};

// Keys of a source of another type.
void RefuseOfOthers(YamlReader& keys, const std::vector<std::string_view>& others,
                    std::string_view why) {
  for (const std::string_view key : others) {
    if (keys.Has(key)) {
      keys.Complain(key, why);
    }
  }
}

// What landing itself and the transform call their columns.
bool IsReserved(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name.starts_with("hdr__") || name.starts_with("tarn_") || name.starts_with("tarn:");
}

int64_t SizeOfOneOrMore(YamlReader& keys, std::string_view key, int64_t otherwise) {
  const int64_t bytes = keys.Size(key, otherwise);
  if (bytes < 1) {
    keys.Complain(key, "must be at least 1 byte");
  }
  return bytes;
}

void ReadFiles(YamlReader& keys, LandingSpec& spec) {
  source::files::FilesSourceOptions& files = spec.files;
  files.paths = keys.Texts("paths", {"*"});
  files.exclude = keys.Texts("exclude");
  const Result<source::files::ProcessFrom> from =
      source::files::ParseProcessFrom(keys.Text("process_files_from", "earliest"));
  if (from.ok()) {
    files.decide.process_from = *from;
  } else {
    keys.Complain("process_files_from", from.status().message());
  }
  files.listing.look_back =
      Millis(keys.Duration("look_back", std::chrono::hours(24)), std::chrono::milliseconds(0));
  const bool read_future = keys.Choice("future", {"wait", "read"}, 0) == 1;
  files.listing.future =
      read_future ? source::files::FuturePolicy::kRead : source::files::FuturePolicy::kWait;
  files.decide.read_future = read_future;
  const bool remove = keys.Flag("delete_after_load", false);
  spec.move_to = keys.Text("move_to");
  // A folder whose files go once they are loaded is an inbox: names come again with something new.
  const bool is_inbox = remove || !spec.move_to.empty();
  files.decide.on_changed = keys.Choice("on_changed", {"report", "reload"}, is_inbox ? 1 : 0) == 0
                                ? source::files::OnChanged::kReport
                                : source::files::OnChanged::kReload;
  if (remove && !spec.move_to.empty()) {
    keys.Complain("move_to", "cannot be combined with delete_after_load: true");
  }
  if (remove) {
    spec.after_load = landing::AfterLoad::kDelete;
  } else if (!spec.move_to.empty()) {
    spec.after_load = landing::AfterLoad::kMove;
  }
}

void ReadKafkaSource(YamlReader& keys, SourceSpec& source) {
  source.uri = "kafka:";
  source::kafka::ClientSettings& client = source.kafka.emplace();
  client.brokers = keys.Texts("brokers");
  if (client.brokers.empty()) {
    keys.Complain("brokers", "expected [host:port, …]");
  }
  for (const std::string& broker : client.brokers) {
    const Status checked = source::kafka::CheckBroker(broker);
    if (!checked.ok()) {
      keys.Complain("brokers", checked.message());
    }
  }
  YamlReader properties = keys.Child("client");
  for (const std::string& name : properties.Keys()) {
    std::string value = properties.Text(name);
    const Status checked = source::kafka::CheckProperty(name, value);
    if (!checked.ok()) {
      properties.Complain(name, checked.message());
    }
    client.properties[name] = std::move(value);
  }
  properties.Finish();
  RefuseOfOthers(keys, {"uri"}, "is for type: files");
  keys.Refuse({"options", "schema_registry", "region", "endpoint", "access_key", "secret_key",
               "url", "publication", "slot"});
  keys.Finish();
}

void ReadKeyColumns(YamlReader keys, landing::KeyColumns& columns) {
  const std::string format = keys.Text("format", "json");
  if (format == "string") {
    columns.format = landing::KeyColumns::Format::kString;
  } else if (format == "avro") {
    keys.Complain("format", "avro is not available in this version");
  } else if (format != "json") {
    keys.Complain("format", "expected json or string, found " + format);
  }
  columns.names = keys.Texts("names");
  for (const std::string& name : columns.names) {
    if (name.empty() || IsReserved(name)) {
      keys.Complain("names", "\"" + name + "\" cannot be a column");
    }
  }
  if (columns.names.empty() && keys.Has("format")) {
    keys.Complain("", "names: [column, …] is required");
  }
  if (columns.format == landing::KeyColumns::Format::kString && columns.names.size() > 1) {
    keys.Complain("names", "a text is one column");
  }
  keys.Finish();
}

void ReadKafka(YamlReader& keys, landing::KafkaLanding& kafka) {
  source::kafka::KafkaSourceOptions& source = kafka.source;
  source.topics = keys.Texts("topics");
  source.exclude = keys.Texts("exclude_topics");
  const Status topics = source::kafka::TopicSelection::Make(source.topics, source.exclude).status();
  if (!topics.ok()) {
    keys.Complain("topics", topics.message());
  }
  const Result<source::kafka::StartPolicy> start =
      source::kafka::ParseStart(keys.Text("start", "earliest"));
  if (start.ok()) {
    source.start = *start;
  } else {
    keys.Complain("start", start.status().message());
  }
  kafka.one_dataset = keys.Flag("one_dataset", true);
  kafka.tombstone =
      static_cast<landing::Tombstone>(keys.Choice("tombstone", {"auto", "delete", "reject"}, 0));
  source.on_lost_range = static_cast<source::kafka::OnLostRange>(
      keys.Choice("on_lost_range", {"stop", "continue"}, 0));
  source.on_new_topic =
      static_cast<source::kafka::LaterTopics>(keys.Choice("on_new_topic", {"apply", "ignore"}, 0));
  ReadKeyColumns(keys.Child("key_columns"), kafka.key_columns);
}

// What needs more than one key.
void CheckKafka(YamlReader& keys, const LandingSpec& spec) {
  if (!spec.kafka || spec.envelope != landing::Envelope::kDebezium) {
    return;
  }
  if (!spec.kafka->key_columns.names.empty()) {
    keys.Complain("key_columns", "change events carry their key: leave it out");
  }
  if (spec.kafka->tombstone == landing::Tombstone::kReject) {
    keys.Complain("tombstone", "a message without value behind a delete event is skipped");
  }
}

void ReadContent(YamlReader content, LandingSpec& spec) {
  const std::string type = content.Text("type", "json");
  if (type != "json") {
    static const std::vector<std::string_view> kLater = {
        "csv", "tsv", "avro", "parquet", "orc", "xml", "regex", "lines", "raw", "protobuf"};
    const bool later = std::find(kLater.begin(), kLater.end(), type) != kLater.end();
    content.Complain("type", later ? type + " is not available in this version"
                                   : "expected json, found " + type);
  }
  spec.envelope = content.Choice("envelope", {"none", "debezium"}, 0) == 0
                      ? landing::Envelope::kNone
                      : landing::Envelope::kDebezium;
  spec.tables = content.Texts("tables");
  if (!spec.tables.empty() && spec.envelope == landing::Envelope::kNone) {
    content.Complain("tables", "needs envelope: debezium");
  }
  spec.cdc_before =
      static_cast<landing::CdcBefore>(content.Choice("cdc_before", {"key", "full", "off"}, 0));
  if (content.Flag("track_absent", false)) {
    content.Complain("track_absent", "true is not available in this version");
  }
  spec.columns.numbers = content.Choice("numbers", {"exact", "double"}, 0) == 0
                             ? format::NumberMode::kExact
                             : format::NumberMode::kDouble;
  spec.columns.infer_times = content.Flag("infer_times", false);
  content.Refuse({"options"});
  content.Finish();
}

void ReadDeclared(YamlReader columns, LandingSpec& spec) {
  for (const std::string& name : columns.Keys()) {
    const Result<format::FieldType> type = format::ParseTypeName(columns.Text(name));
    if (IsReserved(name)) {
      columns.Complain(name,
                       "names that begin with hdr__ or tarn_ are reserved: such a member is "
                       "landed with a _ in front");
    } else if (type.ok()) {
      spec.columns.declared.push_back({.name = name, .type = *type});
    } else {
      columns.Complain(name, type.status().message());
    }
  }
}

void ReadCommit(YamlReader commit, LandingSpec& spec) {
  spec.commit.rows = commit.Count("rows", 1, spec.commit.rows);
  spec.commit.bytes = SizeOfOneOrMore(commit, "bytes", spec.commit.bytes);
  spec.commit.interval = commit.Period("interval", spec.commit.interval);
  commit.Finish();
}

}  // namespace

SourceSpec ReadSource(YamlReader& keys) {
  SourceSpec source;
  const std::string type = keys.RequiredText("type");
  if (type == "kafka") {
    ReadKafkaSource(keys, source);
    return source;
  }
  if (type == "kinesis" || type == "postgres") {
    keys.Complain("type", type + " is not available in this version: use files or kafka");
  } else if (type != "files") {
    keys.Complain("type", "expected files or kafka, found " + type);
  }
  source.uri = keys.RequiredText("uri");
  if (!source.uri.starts_with("file:")) {
    keys.Complain("uri", fmt::format("{} is not available in this version: only file: is",
                                     source.uri.substr(0, source.uri.find(':') + 1)));
  }
  RefuseOfOthers(keys, {"brokers", "client"}, "is for type: kafka");
  keys.Refuse({"options", "schema_registry", "region", "endpoint", "access_key", "secret_key",
               "url", "publication", "slot"});
  keys.Finish();
  return source;
}

LandingSpec ReadLanding(const std::string& name, YamlReader& keys,
                        const std::map<std::string, SourceSpec>& sources) {
  LandingSpec spec;
  spec.name = name;
  spec.schema = ReadFolderName(keys, "schema", "landing");
  const std::string source = keys.RequiredText("source");
  if (const auto found = sources.find(source); found != sources.end()) {
    spec.source_uri = found->second.uri;
    if (found->second.kafka) {
      spec.kafka.emplace();
      spec.kafka->source.client = *found->second.kafka;
    }
  } else if (!source.empty()) {
    keys.Complain("source", fmt::format("there is no source {} under sources:", source));
  }
  if (spec.kafka) {
    RefuseOfOthers(keys, kFileKeys, "is for files, and the source is Kafka");
    ReadKafka(keys, *spec.kafka);
  } else {
    RefuseOfOthers(keys, kTopicKeys, "is for topics of Kafka, and the source are files");
    ReadFiles(keys, spec);
  }
  spec.poll = keys.Period("poll", spec.poll);
  if (spec.kafka) {
    spec.kafka->source.look_every = spec.poll;
  }
  spec.record_bytes_max = static_cast<uint64_t>(SizeOfOneOrMore(keys, "max_record", 16LL << 20));
  ReadContent(keys.Child("content"), spec);
  ReadDeclared(keys.Child("columns"), spec);
  ReadCommit(keys.Child("commit"), spec);
  spec.on_bad_record = static_cast<landing::OnBadRecord>(
      keys.Choice("on_bad_record", {"reject", "stop", "skip"}, 0));
  keys.Refuse({"streams", "consumers", "tables", "exclude_tables", "snapshot", "parallel", "rate",
               "schema_evolution", "retention", "readers"});
  keys.Finish();
  CheckKafka(keys, spec);
  return spec;
}

}  // namespace tarn::pipeline
