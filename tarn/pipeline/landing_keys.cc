#include "tarn/pipeline/landing_keys.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "tarn/format/field_type.h"

namespace tarn::pipeline {

namespace {

using landing::LandingSpec;

std::chrono::milliseconds Millis(std::optional<std::chrono::microseconds> duration,
                                 std::chrono::milliseconds otherwise) {
  return duration ? std::chrono::duration_cast<std::chrono::milliseconds>(*duration) : otherwise;
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
  files.decide.on_changed = keys.Choice("on_changed", {"report", "reload"}, 0) == 0
                                ? source::files::OnChanged::kReport
                                : source::files::OnChanged::kReload;
  const bool remove = keys.Flag("delete_after_load", false);
  spec.move_to = keys.Text("move_to");
  if (remove && !spec.move_to.empty()) {
    keys.Complain("move_to", "cannot be combined with delete_after_load: true");
  }
  if (remove) {
    spec.after_load = landing::AfterLoad::kDelete;
  } else if (!spec.move_to.empty()) {
    spec.after_load = landing::AfterLoad::kMove;
  }
  spec.poll = keys.Period("poll", spec.poll);
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
  if (type == "kafka" || type == "kinesis" || type == "postgres") {
    keys.Complain("type", type + " is not available in this version: use files");
  } else if (type != "files") {
    keys.Complain("type", "expected files, found " + type);
  }
  source.uri = keys.RequiredText("uri");
  if (!source.uri.starts_with("file:")) {
    keys.Complain("uri", fmt::format("{} is not available in this version: only file: is",
                                     source.uri.substr(0, source.uri.find(':') + 1)));
  }
  keys.Refuse({"options", "brokers", "client", "schema_registry", "region", "endpoint",
               "access_key", "secret_key", "url", "publication", "slot"});
  keys.Finish();
  return source;
}

LandingSpec ReadLanding(const std::string& name, YamlReader& keys,
                        const std::map<std::string, SourceSpec>& sources) {
  LandingSpec spec;
  spec.name = name;
  spec.schema = keys.Text("schema", "landing");
  const std::string source = keys.RequiredText("source");
  if (const auto found = sources.find(source); found != sources.end()) {
    spec.source_uri = found->second.uri;
  } else if (!source.empty()) {
    keys.Complain("source", fmt::format("there is no source {} under sources:", source));
  }
  ReadFiles(keys, spec);
  spec.record_bytes_max = static_cast<uint64_t>(SizeOfOneOrMore(keys, "max_record", 16LL << 20));
  ReadContent(keys.Child("content"), spec);
  ReadDeclared(keys.Child("columns"), spec);
  ReadCommit(keys.Child("commit"), spec);
  spec.on_bad_record = static_cast<landing::OnBadRecord>(
      keys.Choice("on_bad_record", {"reject", "stop", "skip"}, 0));
  keys.Refuse({"topics", "streams", "exclude_topics", "one_dataset", "start", "consumers",
               "tombstone", "on_lost_range", "tables", "exclude_tables", "snapshot", "parallel",
               "key_columns", "on_new_topic", "rate", "schema_evolution", "retention", "readers"});
  keys.Finish();
  return spec;
}

}  // namespace tarn::pipeline
