#include "tarn/landing/kafka_target.h"

#include <algorithm>

#include <arrow/api.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/base/log.h"
#include "tarn/landing/landing_schema.h"
#include "tarn/landing/topic_names.h"

namespace tarn::landing {

namespace {

using dataset::Transaction;
using metastore::RowAction;
using metastore::SqlTransaction;

}  // namespace

KafkaTarget::KafkaTarget(LandingSpec spec, LandingDatasets datasets, const LandingDeps& deps)
    : spec_(std::move(spec)), datasets_(std::move(datasets)), deps_(deps) {}

bool KafkaTarget::Takes(std::string_view topic) const {
  return spec_.kafka->one_dataset || DatasetNameOf(topic) == spec_.name;
}

Status KafkaTarget::Open(const dataset::DatasetRid& home, StoredOffsets& offsets) {
  const std::string dataset = datasets_.landing.ToString();
  std::optional<LandingState> known;
  TARN_RETURN_IF_ERROR(deps_.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(known, ReadState(sql, dataset));
    return Status::Ok();
  }));
  if (!known) {
    known.emplace();
    known->first_start = deps_.clock.Now();
    known->source = spec_.source_uri;
    // A dataset that was deleted for good and made again begins anew.
    const StoredOffsets back = BeginAnew(home, offsets);
    TARN_RETURN_IF_ERROR(deps_.database.Write([&](SqlTransaction& sql) -> Status {
      if (deps_.fence) {
        TARN_RETURN_IF_ERROR(deps_.fence(sql));
      }
      TARN_RETURN_IF_ERROR(StartState(sql, dataset, *known));
      return WriteOffsets(sql, home.ToString(), back);
    }));
  }
  if (known->source != spec_.source_uri) {
    return Status::FailedPrecondition(
        fmt::format("the dataset {}.{} lands {}, not topics of Kafka; use another name or schema",
                    spec_.schema, spec_.name, known->source));
  }
  landed_ = *std::move(known);
  TARN_RETURN_IF_ERROR(FollowBranch(home, offsets));
  TARN_ASSIGN_OR_RETURN(rows_, LandingRows::Make(spec_, landed_.columns, landed_.keys));
  return Status::Ok();
}

// Offsets of the task that are about a dataset before this one; those that changed.
StoredOffsets KafkaTarget::BeginAnew(const dataset::DatasetRid& home,
                                     StoredOffsets& offsets) const {
  StoredOffsets back;
  if (home == datasets_.landing) {
    return back;
  }
  for (auto& [where, offset] : offsets) {
    if (Takes(where.topic) && offset.next != offset.first) {
      offset = {.first = offset.first, .next = offset.first};
      back[where] = offset;
    }
  }
  return back;
}

// What later transactions landed is landed again. Each partition goes back to where the newest
// transaction on the branch that had it ended, or to where reading it began.
Status KafkaTarget::FollowBranch(const dataset::DatasetRid& home, StoredOffsets& offsets) {
  if (landed_.commit_number == 0) {
    return Status::Ok();
  }
  LandingPositions newest;
  source::kafka::Offsets ends;
  TARN_RETURN_IF_ERROR(deps_.database.Read([&](SqlTransaction& sql) {
    newest = {};
    ends.clear();
    return deps_.datasets.VisitCommitted(
        sql, datasets_.landing, dataset::kDefaultBranch,
        [&](const Transaction& transaction) -> Result<RowAction> {
          const std::string record = transaction.record_json.value_or("");
          TARN_ASSIGN_OR_RETURN(const std::optional<LandingPositions> found,
                                DecodePositions(record));
          newest = newest.commit_number == 0 ? found.value_or(newest) : newest;
          if (newest.commit_number >= landed_.commit_number) {
            return RowAction::kStop;
          }
          TARN_ASSIGN_OR_RETURN(const std::optional<LandedTopics> topics, DecodeTopics(record));
          for (const LandedRange& range : topics.value_or(LandedTopics{}).ranges) {
            ends.emplace(range.where, range.to);
          }
          return RowAction::kContinue;
        });
  }));
  if (newest.commit_number == landed_.commit_number) {
    return Status::Ok();
  }
  if (newest.commit_number > landed_.commit_number) {
    return BranchMovedAhead(spec_, newest.commit_number, landed_.commit_number);
  }
  StoredOffsets back;
  for (auto& [where, offset] : offsets) {
    if (Takes(where.topic)) {
      const auto end = ends.find(where);
      offset.next = end == ends.end() ? offset.first : end->second;
      offset.seen.reset();  // It may be one behind.
      offset.recorded.reset();
      back[where] = offset;
    }
  }
  Log(LogLevel::kWarning, "landing",
      fmt::format("{}.{} was set back from transaction number {} of this task to {}: messages "
                  "behind it are landed again",
                  spec_.schema, spec_.name, landed_.commit_number, newest.commit_number));
  landed_.commit_number = newest.commit_number;
  return deps_.database.Write([&](SqlTransaction& sql) -> Status {
    if (deps_.fence) {
      TARN_RETURN_IF_ERROR(deps_.fence(sql));
    }
    TARN_RETURN_IF_ERROR(GoBack(sql, datasets_.landing.ToString(), newest));
    return WriteOffsets(sql, home.ToString(), back);
  });
}

Status KafkaTarget::HandOver(Timestamp batch_start) {
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> batch,
                        rows_->TakeRows(batch_start));
  if (batch == nullptr) {
    return Status::Ok();
  }
  if (files_ == nullptr) {
    files_ = std::make_unique<LandingFiles>(LandingFilesOptions{.dataset = datasets_.landing},
                                            deps_.warehouse, deps_.uuids);
  }
  rows_in_batch_ += batch->num_rows();
  newest_event = std::max(newest_event, NewestEvent(*batch));
  return files_->Write(batch);
}

Status KafkaTarget::CloseFiles() {
  if (files_ != nullptr) {
    const std::unique_ptr<LandingFiles> closing = std::move(files_);
    TARN_ASSIGN_OR_RETURN(closed_, closing->Close());
  }
  return Status::Ok();
}

Result<dataset::TransactionRid> KafkaTarget::WriteCommit(SqlTransaction& sql,
                                                         const LandedTopics& topics) {
  const int64_t number = landed_.commit_number + 1;
  nlohmann::json positions = nlohmann::json::parse(
      EncodePositions({.commit_number = number, .complete_until = {}, .resume = {}}));
  positions["kafka"] = nlohmann::json::parse(EncodeTopics(topics));
  dataset::CommitFilesRequest request;
  request.dataset = datasets_.landing;
  request.files = closed_;
  request.commit.by = datasets_.by;
  request.commit.record_json = nlohmann::json{
      {"task", spec_.name},
      {"rows", rows_in_batch_},
      {"positions",
       std::move(positions)}}.dump();
  TARN_ASSIGN_OR_RETURN(const Transaction transaction, deps_.datasets.CommitFiles(sql, request));
  const format::ColumnSet columns = rows_->column_set();
  const std::string schema = MakeLandingSchema(spec_, columns);
  if (schema != stored_schema_) {
    TARN_RETURN_IF_ERROR(deps_.datasets.PutSchema(sql, datasets_.landing, schema,
                                                  {.end = transaction.rid, .by = datasets_.by}));
  }
  TARN_RETURN_IF_ERROR(WriteState(sql, datasets_.landing.ToString(),
                                  {.entries = {},
                                   .touched = {},
                                   .complete_until = {},
                                   .resume = {},
                                   .columns = columns,
                                   .keys = rows_->source_keys(),
                                   .commit_number = number}));
  return transaction.rid;
}

void KafkaTarget::Committed() {
  ++landed_.commit_number;
  stored_schema_ = MakeLandingSchema(spec_, rows_->column_set());
  closed_.clear();
  gaps.clear();
  before_gaps.clear();
  rows_in_batch_ = 0;
}

}  // namespace tarn::landing
