#include "tarn/dataset/retention/live_files.h"

#include <unordered_map>
#include <utility>

#include "tarn/dataset/file_scan.h"
#include "tarn/dataset/physical_name.h"
#include "tarn/dataset/rows.h"

namespace tarn::dataset::retention {

using metastore::Blob;
using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;

namespace {

constexpr int64_t kMembersPerRead = 1000;
constexpr int64_t kRowsPerRead = 4000;
constexpr int64_t kLinesPerRead = 1000;

// Heads and tagged ones stay whatever their mark says, as in a real sweep.
#define TARN_IS_DUE                                                                          \
  "EXISTS (SELECT 1 FROM dataset_retention_marks m WHERE m.transaction_id = t.id AND "       \
  "m.sweep_at <= ?2) AND NOT EXISTS (SELECT 1 FROM dataset_branches b WHERE b.dataset_id = " \
  "t.dataset_id AND b.head_id = t.id) AND NOT EXISTS (SELECT 1 FROM dataset_tags g WHERE "   \
  "g.dataset_id = t.dataset_id AND g.transaction_id = t.id)"

// Adds members to a root, parents first.
class RootLoader {
 public:
  explicit RootLoader(RootContent& content) : content_(content) {}

  void Add(int64_t id, const std::optional<int64_t>& parent_id, Member member) {
    if (parent_id) {
      const auto parent = index_.find(*parent_id);
      if (parent != index_.end()) {
        member.parent = parent->second;
      }
    }
    index_.emplace(id, content_.members.size());
    content_.members.push_back(member);
    content_.ids.push_back(id);
  }

 private:
  RootContent& content_;
  std::unordered_map<int64_t, size_t> index_;
};

// A file row on its way to the verdict of its path.
struct Row {
  RowPlace place;
  bool needed_if_shown = false;  // A managed file, no removal.
  std::string location;
};

// Collects the rows of one path after the other and passes on what is shown.
class PathJudge {
 public:
  PathJudge(const Reachability& reachability, const LocationCallback& visit)
      : reachability_(reachability), visit_(visit) {}

  Status Add(std::string_view path, Row row) {
    if (path != path_) {
      TARN_RETURN_IF_ERROR(Finish());
      path_.assign(path);
    }
    rows_.push_back(std::move(row));
    return Status::Ok();
  }

  Status Finish() {
    places_.clear();
    for (const Row& row : rows_) {
      places_.push_back(row.place);
    }
    const std::vector<uint8_t> shown = reachability_.Shown(places_);
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (shown[i] != 0 && rows_[i].needed_if_shown) {
        TARN_RETURN_IF_ERROR(visit_(rows_[i].location));
      }
    }
    rows_.clear();
    return Status::Ok();
  }

 private:
  const Reachability& reachability_;
  const LocationCallback& visit_;
  std::string path_;
  std::vector<Row> rows_;
  std::vector<RowPlace> places_;
};

Status VisitRoot(metastore::Database& database, LineId root, std::optional<Timestamp> due_at,
                 const LocationCallback& visit) {
  TARN_ASSIGN_OR_RETURN(const RootContent content, LoadRoot(database, root, due_at));
  const Reachability reachability(content.members);
  PathJudge judge(reachability, visit);
  std::string path;
  RowPlace last;
  int64_t count = kRowsPerRead;
  while (count == kRowsPerRead) {
    count = 0;
    TARN_RETURN_IF_ERROR(database.Read([&](SqlTransaction& sql) {
      return sql.Query(
          "SELECT path, line, ordinal, operation, managed, location FROM dataset_files WHERE "
          "root = ?1 AND (path, line, ordinal) > (?2, ?3, ?4) ORDER BY path, line, ordinal "
          "LIMIT ?5",
          {root, Blob{path}, last.line, last.ordinal, kRowsPerRead},
          [&](const SqlRow& row) -> Result<RowAction> {
            ++count;
            path.assign(row.Text(0));
            last = {.line = row.Int(1), .ordinal = row.Int(2)};
            const bool removal = static_cast<FileOperation>(row.Int(3)) == FileOperation::kRemove;
            Row read{.place = last, .needed_if_shown = !removal && row.Int(4) != 0, .location = {}};
            AssignLocation(row.Text(5), read.location);
            TARN_RETURN_IF_ERROR(judge.Add(path, std::move(read)));
            return RowAction::kContinue;
          });
    }));
  }
  return judge.Finish();
}

}  // namespace

Result<RootContent> LoadRoot(metastore::Database& database, LineId root,
                             std::optional<Timestamp> due_at) {
  RootContent content;
  RootLoader loader(content);
  // No mark is due at the beginning of time.
  const int64_t due = due_at ? ToMicros(*due_at) : 0;
  const auto add_checkpoint = [&](const SqlRow& row) -> Result<RowAction> {
    loader.Add(row.Int(0), std::nullopt,
               {.line = root, .ordinal = 1, .parent = std::nullopt, .kept = row.Int(1) == 0});
    return RowAction::kStop;
  };
  TARN_RETURN_IF_ERROR(database.Read([&](SqlTransaction& sql) {
    return sql.Query(
        "SELECT t.id, t.swept_at IS NOT NULL OR (" TARN_IS_DUE
        ") FROM dataset_lines l JOIN dataset_transactions t ON t.id = l.checkpoint_of WHERE l.id "
        "= ?1",
        {root, due}, add_checkpoint);
  }));
  int64_t after = 0;
  int64_t count = kMembersPerRead;
  while (count == kMembersPerRead) {
    count = 0;
    TARN_RETURN_IF_ERROR(database.Read([&](SqlTransaction& sql) {
      return sql.Query(
          "SELECT t.id, t.parent_id, t.line, t.ordinal, t.state, t.swept_at IS NOT NULL OR "
          "(" TARN_IS_DUE
          ") FROM dataset_transactions t WHERE t.root = ?1 AND t.id > ?3 ORDER BY t.id LIMIT ?4",
          {root, due, after, kMembersPerRead}, [&](const SqlRow& row) -> Result<RowAction> {
            ++count;
            after = row.Int(0);
            if (static_cast<TransactionState>(row.Int(4)) == TransactionState::kCommitted) {
              loader.Add(after, ReadOptionalInt(row, 1),
                         {.line = row.Int(2),
                          .ordinal = row.Int(3),
                          .parent = std::nullopt,
                          .kept = row.Int(5) == 0});
            }
            return RowAction::kContinue;
          });
    }));
  }
  return content;
}

Status VisitLiveFiles(metastore::Database& database, int64_t dataset_id,
                      std::optional<Timestamp> due_at, const LocationCallback& visit) {
  LineId after = 0;
  while (true) {
    std::vector<LineId> lines;
    TARN_RETURN_IF_ERROR(database.Read([&](SqlTransaction& sql) {
      return sql.Query(
          "SELECT id FROM dataset_lines WHERE dataset_id = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
          {dataset_id, after, kLinesPerRead}, [&](const SqlRow& row) -> Result<RowAction> {
            lines.push_back(row.Int(0));
            return RowAction::kContinue;
          });
    }));
    if (lines.empty()) {
      return Status::Ok();
    }
    for (const LineId line : lines) {
      TARN_RETURN_IF_ERROR(VisitRoot(database, line, due_at, visit));
    }
    after = lines.back();
  }
}

}  // namespace tarn::dataset::retention
