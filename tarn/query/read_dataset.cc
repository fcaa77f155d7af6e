#include "tarn/query/read_dataset.h"

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/base/json_text.h"
#include "tarn/engine/quoting.h"
#include "tarn/query/stoppable_sql.h"

namespace tarn::query {

namespace {

constexpr std::string_view kRows = "tarn_rows";

// The engine compares names without case; here they must be the same.
Result<std::string> SelectList(engine::Session& session, const std::vector<std::string>& columns) {
  if (columns.empty()) {
    return std::string("*");
  }
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::Schema> schema,
                        session.Describe(fmt::format("SELECT * FROM {}", kRows)));
  std::string list;
  for (const std::string& column : columns) {
    if (schema->GetFieldIndex(column) < 0) {
      return Status::InvalidArgument(fmt::format("there is no column {}; there are {}",
                                                 JsonString(column),
                                                 fmt::join(schema->field_names(), ", ")))
          .WithReason("ColumnNotFound", JsonObject({{"column", column}}));
    }
    list += (list.empty() ? "" : ", ") + engine::QuoteName(column);
  }
  return list;
}

}  // namespace

Result<std::unique_ptr<RunningQuery>> ReadDataset(const ReadRequest& request,
                                                  const access::Principal& principal,
                                                  engine::Engine& engine, const RowsDeps& deps) {
  return StartWatched(engine, request.memory_watch, request.stop,
                      [&](engine::Session& session) -> Result<std::string> {
                        DatasetRelation relation = request.relation;
                        relation.name = kRows;
                        TARN_RETURN_IF_ERROR(MakeRows(session, deps, principal, relation));
                        TARN_ASSIGN_OR_RETURN(const std::string list,
                                              SelectList(session, request.columns));
                        std::string text = fmt::format("SELECT {} FROM {}", list, kRows);
                        if (request.row_limit) {
                          text += fmt::format(" LIMIT {}", *request.row_limit);
                        }
                        return text;
                      });
}

}  // namespace tarn::query
