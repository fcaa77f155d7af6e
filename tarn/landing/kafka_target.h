// KafkaTarget: one landing dataset that topics go to, and the batch under way for it. Only for
// kafka_landing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tarn/landing/landing_files.h"
#include "tarn/landing/landing_offsets.h"
#include "tarn/landing/landing_rows.h"
#include "tarn/landing/landing_run.h"
#include "tarn/landing/landing_state.h"

namespace tarn::landing {

/// One owner thread.
class KafkaTarget {
 public:
  /// `spec.name` is that of the dataset; `home` holds the offsets of the whole task.
  KafkaTarget(LandingSpec spec, LandingDatasets datasets, const LandingDeps& deps);

  /// Reads what earlier commits left, or records the first start. When the branch of the dataset
  /// was set back, or it is not the one that they were read for, `offsets` of its topics go back
  /// with it, here and in the metastore.
  Status Open(const dataset::DatasetRid& home, StoredOffsets& offsets);

  [[nodiscard]] LandingRows& rows() { return *rows_; }
  [[nodiscard]] const LandingSpec& spec() const { return spec_; }
  [[nodiscard]] const std::string& cluster() const { return landed_.cluster; }
  [[nodiscard]] bool Takes(std::string_view topic) const;
  /// Rows of the batch, written or not.
  [[nodiscard]] int64_t row_count() const { return rows_in_batch_ + rows_->row_count(); }

  /// Rows that wait go to the writer.
  Status HandOver(Timestamp batch_start);
  /// Ends the files of the batch.
  Status CloseFiles();
  [[nodiscard]] bool has_files() const { return !closed_.empty(); }
  /// Writes the transaction of the batch; `topics` are its positions.
  Result<dataset::TransactionRid> WriteCommit(metastore::SqlTransaction& sql,
                                              const LandedTopics& topics);
  /// The transaction is committed: a new batch begins.
  void Committed();

  // For the record of the next transaction: what was passed over, and what was read before that
  // without landing anything.
  std::vector<source::kafka::LostRange> gaps;
  std::vector<LandedRange> before_gaps;
  std::optional<Timestamp> newest_event;  // Of what was handed over.

 private:
  StoredOffsets BeginAnew(const dataset::DatasetRid& home, StoredOffsets& offsets) const;
  Status FollowBranch(const dataset::DatasetRid& home, StoredOffsets& offsets);

  const LandingSpec spec_;
  const LandingDatasets datasets_;
  const LandingDeps& deps_;
  LandingState landed_;
  std::unique_ptr<LandingRows> rows_;
  std::unique_ptr<LandingFiles> files_;
  std::vector<dataset::StoredFile> closed_;
  int64_t rows_in_batch_ = 0;
  std::string stored_schema_;
};

}  // namespace tarn::landing
