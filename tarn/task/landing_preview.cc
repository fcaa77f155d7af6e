#include "tarn/task/landing_preview.h"

#include <arrow/api.h>

#include "tarn/landing/landing_rows.h"
#include "tarn/landing/landing_state.h"
#include "tarn/landing/topic_names.h"
#include "tarn/source/kafka/kafka_source.h"
#include "tarn/task/pipeline_place.h"

namespace tarn::task {

namespace {

using source::files::FilePosition;
using source::files::FilesSource;

constexpr uint64_t kSampleBytesMax = 64ULL << 20;
constexpr size_t kSampleItemBytes = 256 << 10;

source::files::FilesSourceOptions OptionsOf(const landing::LandingSpec& landing,
                                            const source::files::SourceStore& place,
                                            Timestamp first_start) {
  source::files::FilesSourceOptions options = landing.files;
  options.name_prefix = place.name_prefix;
  options.decide.version_kind = place.version_kind;
  options.decide.first_start = first_start;
  if (landing.after_load == landing::AfterLoad::kMove) {
    options.exclude_folders.push_back(landing.move_to);
  }
  return options;
}

// Feeds what `source` gives until there are enough rows.
Status Fill(FilesSource& source, landing::LandingRows& rows, int64_t rows_max) {
  std::string open_key;
  uint64_t bytes = 0;
  while (rows.row_count() < rows_max && bytes < kSampleBytesMax) {
    TARN_ASSIGN_OR_RETURN(const source::SourceBatch batch,
                          source.Next({.bytes_max = kSampleItemBytes, .items_max = 16}));
    for (const source::SourceItem& item : batch.items) {
      const auto* position = std::get_if<FilePosition>(&item.position);
      if (position == nullptr || rows.row_count() >= rows_max) {
        continue;
      }
      if (open_key != position->key) {
        rows.StartFile(*position);
        open_key = position->key;
      }
      bytes += item.payload.size();
      TARN_RETURN_IF_ERROR(rows.Feed(item.payload));
      if (position->end) {
        open_key.clear();
        TARN_RETURN_IF_ERROR(rows.FinishFile());
      }
    }
    if (batch.caught_up) {
      break;
    }
  }
  return Status::Ok();
}

// The first messages of each partition that comes, as rows.
Result<std::shared_ptr<arrow::RecordBatch>> SampleTopics(const ControlDeps& deps,
                                                         const landing::LandingSpec& landing,
                                                         int64_t rows_max) {
  using source::kafka::KafkaSource;
  source::kafka::KafkaSourceOptions options = landing.kafka->source;
  options.start = {};
  options.until = source::kafka::ReadUntil::kEnd;
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<KafkaSource> source,
                        KafkaSource::Open(options, {}, deps.budget));
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<landing::LandingRows> rows,
                        landing::LandingRows::Make(landing, {}));
  std::vector<source::kafka::KafkaHeader> headers;
  std::string headers_json;
  bool ended = false;
  while (!ended && rows->row_count() < rows_max) {
    TARN_ASSIGN_OR_RETURN(const source::kafka::KafkaBatch batch,
                          source->Next({.bytes_max = kSampleItemBytes, .items_max = 256}));
    for (const source::kafka::KafkaMessage& message : batch.messages) {
      source::kafka::ReadHeaders(message, headers);
      landing::WriteHeadersJson(headers, headers_json);
      const source::kafka::TopicPartition& where = source->partition(message.partition);
      TARN_RETURN_IF_ERROR(rows->TakeMessage({.topic = where.topic,
                                              .partition = where.partition,
                                              .has_key = message.has_key,
                                              .has_value = message.has_value,
                                              .has_time = message.time_ms >= 0,
                                              .offset = message.offset,
                                              .time_micros = message.time_ms * 1000,
                                              .key = message.key,
                                              .value = message.value,
                                              .headers = headers_json}));
    }
    ended = batch.caught_up || rows->counts().bytes >= static_cast<int64_t>(kSampleBytesMax);
  }
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> batch,
                        rows->TakeRows(deps.catalog.deps().clock.Now()));
  return batch == nullptr || batch->num_rows() <= rows_max ? batch : batch->Slice(0, rows_max);
}

}  // namespace

Result<source::files::FilesPreview> PreviewLanding(const ControlDeps& deps,
                                                   const std::optional<Rid>& project,
                                                   const landing::LandingSpec& landing) {
  if (landing.kafka) {
    return Status::InvalidArgument("it reads topics of Kafka: a preview lists files; see sample");
  }
  const catalog::CatalogDeps& catalog = deps.catalog.deps();
  std::optional<landing::LandingState> state;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](metastore::SqlTransaction& sql) -> Status {
    if (!project) {
      return Status::Ok();
    }
    TARN_ASSIGN_OR_RETURN(const std::optional<dataset::DatasetRid> dataset,
                          FindLandingDataset(sql, *project, landing));
    if (dataset) {
      TARN_ASSIGN_OR_RETURN(state, landing::ReadState(sql, dataset->ToString()));
    }
    return Status::Ok();
  }));
  if (!state || state->source != landing.source_uri) {
    state.emplace();
    state->first_start = catalog.clock.Now();
  }
  TARN_ASSIGN_OR_RETURN(const source::files::SourceStore place,
                        source::files::OpenSourceStore(landing.source_uri));
  return source::files::PreviewFiles(
      OptionsOf(landing, place, state->first_start),
      FilesSource::Dependencies{*place.store, state->ledger, catalog.clock, deps.budget});
}

Result<std::shared_ptr<arrow::RecordBatch>> SampleLanding(const ControlDeps& deps,
                                                          landing::LandingSpec landing,
                                                          int64_t rows_max) {
  const catalog::CatalogDeps& catalog = deps.catalog.deps();
  if (landing.on_bad_record == landing::OnBadRecord::kStop) {
    landing.on_bad_record = landing::OnBadRecord::kReject;  // The others are to be seen.
  }
  if (landing.kafka) {
    return SampleTopics(deps, landing, rows_max);
  }
  TARN_ASSIGN_OR_RETURN(const source::files::SourceStore place,
                        source::files::OpenSourceStore(landing.source_uri));
  source::files::FilesSourceOptions options = OptionsOf(landing, place, catalog.clock.Now());
  options.decide.process_from = {};
  options.piece_bytes = kSampleItemBytes;
  const source::files::FileLedger nothing_landed;
  TARN_ASSIGN_OR_RETURN(
      const std::unique_ptr<FilesSource> source,
      FilesSource::Open(options, FilesSource::Dependencies{*place.store, nothing_landed,
                                                           catalog.clock, deps.budget}));
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<landing::LandingRows> rows,
                        landing::LandingRows::Make(landing, {}));
  TARN_RETURN_IF_ERROR(Fill(*source, *rows, rows_max));
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> batch,
                        rows->TakeRows(catalog.clock.Now()));
  return batch == nullptr || batch->num_rows() <= rows_max ? batch : batch->Slice(0, rows_max);
}

}  // namespace tarn::task
