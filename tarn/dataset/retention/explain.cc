#include "tarn/dataset/retention/explain.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_set>
#include <utility>

#include "tarn/base/json_text.h"
#include "tarn/dataset/errors.h"
#include "tarn/dataset/file_scan.h"
#include "tarn/dataset/in_sql.h"
#include "tarn/dataset/physical_name.h"
#include "tarn/dataset/retention/live_files.h"
#include "tarn/dataset/rows.h"

namespace tarn::dataset::retention {

using metastore::Blob;
using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;

namespace {

constexpr size_t kNamesMax = 100;
constexpr size_t kExamplesMax = 10;

// The file, and the view roots that may show it: its writer's and the checkpoints of that view.
struct Found {
  DatasetRow dataset;
  File file;
  std::vector<LineId> roots;
};

Result<Found> FindRequested(SqlTransaction& sql, const ExplainRequest& request) {
  Found found;
  TARN_ASSIGN_OR_RETURN(found.dataset, LoadDataset(sql, request.dataset));
  TARN_ASSIGN_OR_RETURN(const TransactionRow end,
                        LoadTransaction(sql, found.dataset, request.transaction));
  if (end.state == TransactionState::kAborted) {
    return TransactionNotCommitted(request.dataset, request.transaction, end.state);
  }
  TARN_ASSIGN_OR_RETURN(std::optional<File> file, FindFile(sql, end.lineage, request.path));
  if (!file) {
    return Status::NotFound("no file " + JsonString(request.path) + " in the view of transaction " +
                            request.transaction.ToString())
        .WithReason("FileNotFoundOnTransactionRange",
                    JsonObject({{"datasetRid", request.dataset.ToString()},
                                {"endTransactionRid", request.transaction.ToString()},
                                {"path", request.path}}));
  }
  found.file = *std::move(file);
  TARN_ASSIGN_OR_RETURN(const TransactionRow writer,
                        LoadTransaction(sql, found.dataset, found.file.transaction));
  found.roots.push_back(writer.root);
  TARN_RETURN_IF_ERROR(sql.Query(
      "SELECT l.id FROM dataset_lines l JOIN dataset_transactions t ON t.id = l.checkpoint_of "
      "WHERE l.dataset_id = ?1 AND COALESCE(t.view_start_id, t.id) = ?2",
      {found.dataset.id, end.view_start()}, [&](const SqlRow& row) -> Result<RowAction> {
        if (row.Int(0) != writer.root) {
          found.roots.push_back(row.Int(0));
        }
        return RowAction::kContinue;
      }));
  return found;
}

// Names of the heads or tags whose view shows the file.
Result<std::vector<std::string>> NamesShowing(SqlTransaction& sql, const Found& found,
                                              const char* text) {
  std::vector<std::pair<std::string, int64_t>> ends;
  TARN_RETURN_IF_ERROR(
      sql.Query(text, {found.dataset.id}, [&](const SqlRow& row) -> Result<RowAction> {
        ends.emplace_back(std::string(row.Text(0)), row.Int(1));
        return RowAction::kContinue;
      }));
  std::vector<std::string> names;
  for (const auto& [name, id] : ends) {
    TARN_ASSIGN_OR_RETURN(const TransactionRow end, LoadTransactionById(sql, id));
    TARN_ASSIGN_OR_RETURN(const std::optional<File> file,
                          FindFile(sql, end.lineage, found.file.path));
    if (file && file->location == found.file.location && names.size() < kNamesMax) {
      names.push_back(name);
    }
  }
  return names;
}

// Adds the ids of the root's kept transactions whose view shows the file.
Status AddShowing(metastore::Database& database, const Found& found, LineId root,
                  std::set<int64_t>& showing) {
  TARN_ASSIGN_OR_RETURN(const RootContent content, LoadRoot(database, root, std::nullopt));
  std::vector<std::pair<RowPlace, bool>> rows;
  TARN_RETURN_IF_ERROR(database.Read([&](SqlTransaction& sql) {
    return sql.Query(
        "SELECT line, ordinal, location FROM dataset_files WHERE root = ?1 AND path = ?2",
        {root, Blob{found.file.path}}, [&](const SqlRow& row) -> Result<RowAction> {
          rows.emplace_back(RowPlace{.line = row.Int(0), .ordinal = row.Int(1)},
                            row.Text(2) == found.file.location ||
                                row.Text(2) == ShortenLocation(found.file.location));
          return RowAction::kContinue;
        });
  }));
  // The nearest row above each member decides; parents come first.
  std::vector<uint8_t> shows(content.members.size(), 0);
  for (size_t i = 0; i < content.members.size(); ++i) {
    const Member& member = content.members[i];
    const auto own = std::find_if(rows.begin(), rows.end(), [&](const auto& row) {
      return row.first == RowPlace{.line = member.line, .ordinal = member.ordinal};
    });
    if (own != rows.end()) {
      shows[i] = own->second ? 1 : 0;
    } else if (member.parent) {
      shows[i] = shows[*member.parent];
    }
    if (shows[i] != 0 && member.kept) {
      showing.insert(content.ids[i]);
    }
  }
  return Status::Ok();
}

// Marks of the showing transactions; returns how many there are.
Result<int64_t> ReadMarks(SqlTransaction& sql, const Found& found, const std::set<int64_t>& showing,
                          std::vector<FileMark>& marks) {
  int64_t count = 0;
  TARN_RETURN_IF_ERROR(sql.Query(
      "SELECT m.transaction_id, t.uuid, p.name, m.sweep_at FROM dataset_retention_marks m "
      "JOIN dataset_transactions t ON t.id = m.transaction_id "
      "JOIN dataset_retention_policies p ON p.id = m.policy_id WHERE m.dataset_id = ?1 "
      "ORDER BY m.sweep_at, m.transaction_id",
      {found.dataset.id}, [&](const SqlRow& row) -> Result<RowAction> {
        if (showing.contains(row.Int(0))) {
          ++count;
          if (marks.size() < kNamesMax) {
            marks.push_back({.transaction = {.uuid = ReadUuid(row, 1)},
                             .policy = std::string(row.Text(2)),
                             .sweep_at = FromMicros(row.Int(3))});
          }
        }
        return RowAction::kContinue;
      }));
  return count;
}

}  // namespace

std::string_view FileFateName(FileFate fate) {
  constexpr std::array<std::string_view, 4> kNames = {"kept", "marked", "doomed", "foreign"};
  return kNames.at(static_cast<size_t>(fate));
}

Result<Explanation> ExplainFile(const RetentionDeps& deps, const ExplainRequest& request) {
  TARN_ASSIGN_OR_RETURN(const Found found, InRead(deps.database, [&](SqlTransaction& sql) {
                          return FindRequested(sql, request);
                        }));
  std::set<int64_t> showing;
  for (const LineId root : found.roots) {
    TARN_RETURN_IF_ERROR(AddShowing(deps.database, found, root, showing));
  }
  Explanation explanation;
  explanation.file = found.file;
  explanation.views = static_cast<int64_t>(showing.size());
  int64_t marked = 0;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(
        explanation.branches,
        NamesShowing(sql, found,
                     "SELECT name, head_id FROM dataset_branches WHERE dataset_id = ?1 AND head_id "
                     "IS NOT NULL ORDER BY name"));
    TARN_ASSIGN_OR_RETURN(
        explanation.tags,
        NamesShowing(sql, found,
                     "SELECT name, transaction_id FROM dataset_tags WHERE dataset_id = ?1 "
                     "ORDER BY name"));
    for (auto id = showing.rbegin();
         id != showing.rend() && explanation.examples.size() < kExamplesMax; ++id) {
      TARN_ASSIGN_OR_RETURN(const Uuid uuid, TransactionUuid(sql, *id));
      explanation.examples.push_back({.uuid = uuid});
    }
    explanation.marks.clear();
    TARN_ASSIGN_OR_RETURN(marked, ReadMarks(sql, found, showing, explanation.marks));
    return Status::Ok();
  }));
  const bool rooted = !explanation.branches.empty() || !explanation.tags.empty();
  if (!found.file.managed) {
    explanation.fate = FileFate::kForeign;
  } else if (rooted || marked < explanation.views) {
    explanation.fate = FileFate::kKept;
  } else if (explanation.views > 0) {
    explanation.fate = FileFate::kMarked;
  }
  return explanation;
}

}  // namespace tarn::dataset::retention
