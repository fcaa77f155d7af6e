#include "tarn/query/union_view.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/engine/quoting.h"
#include "tarn/tree/permission.h"

namespace tarn::query {

namespace {

using dataset::DatasetRid;
using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;
using nlohmann::json;

// No column of people may have this name beside it.
constexpr std::string_view kSource = "tarn_union_source";

json ToJson(const UnionView& view) {
  json backing = json::array();
  for (const BackingDataset& dataset : view.backing) {
    backing.push_back({{"dataset", dataset.dataset.ToString()},
                       {"branch", dataset.branch},
                       {"stoppedMarkings", dataset.stopped_markings}});
  }
  json document = {{"backing", std::move(backing)}};
  if (view.key) {
    document["key"] = {{"columns", view.key->columns},
                       {"unique", view.key->unique},
                       {"orderColumns", view.key->order_columns},
                       {"deletionColumn", view.key->deletion_column}};
  }
  return document;
}

Result<UnionView> FromJson(std::string_view text) {
  UnionView view;
  try {
    const json document = json::parse(text);
    for (const json& entry : document.at("backing")) {
      BackingDataset dataset;
      TARN_ASSIGN_OR_RETURN(dataset.dataset,
                            DatasetRid::Parse(entry.at("dataset").get<std::string>()));
      dataset.branch = entry.at("branch").get<std::string>();
      dataset.stopped_markings = entry.at("stoppedMarkings").get<std::vector<std::string>>();
      view.backing.push_back(std::move(dataset));
    }
    if (document.contains("key")) {
      const json& key = document.at("key");
      view.key = UnionKey{.columns = key.at("columns").get<std::vector<std::string>>(),
                          .unique = key.at("unique").get<bool>(),
                          .order_columns = key.at("orderColumns").get<std::vector<std::string>>(),
                          .deletion_column = key.at("deletionColumn").get<std::string>()};
    }
  } catch (const json::exception& error) {
    return Status::Corruption(fmt::format("table query_union_views: {}", error.what()));
  }
  return view;
}

// Makes the relations of one view's datasets.
class UnionReader {
 public:
  UnionReader(engine::Session& session, const RowsDeps& deps, const access::Principal& principal,
              const DatasetRelation& relation)
      : session_(session), deps_(deps), principal_(principal), relation_(relation) {}

  Status Make(const UnionView& view) {
    if (relation_.start || std::holds_alternative<dataset::TransactionRid>(relation_.point)) {
      return Status::InvalidArgument("a view has no transactions of its own: give a time");
    }
    std::vector<std::string> relations;
    for (const BackingDataset& backing : view.backing) {
      TARN_RETURN_IF_ERROR(RequireViewer(backing.dataset));
      DatasetRelation one = relation_;
      one.name = fmt::format("{}_{}", relation_.name, relations.size());
      one.written = backing.dataset.ToString();
      one.dataset = backing.dataset;
      TARN_ASSIGN_OR_RETURN(one.branch, BranchOf(backing));
      const Status made = MakeDatasetRelation(session_, deps_.datasets, deps_.store, one);
      if (made.code() == ErrorCode::kFailedPrecondition) {
        continue;  // Neither schema nor files yet: no rows and no columns.
      }
      TARN_RETURN_IF_ERROR(made);
      relations.push_back(one.name);
    }
    TARN_ASSIGN_OR_RETURN(const std::string text, BuildUnion(view, relations));
    return session_.Execute(fmt::format("CREATE OR REPLACE TEMP VIEW {} AS {}",
                                        engine::QuoteName(relation_.name), text));
  }

 private:
  Status RequireViewer(const DatasetRid& dataset) {
    return deps_.database.Read([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const access::Role role,
                            tree::RoleOn(sql, deps_.authorizer, principal_, dataset.ToRid()));
      return role >= access::Role::kViewer
                 ? Status::Ok()
                 : Status::PermissionDenied(
                       fmt::format("the view reads {}, of which the role Viewer is needed too",
                                   dataset.ToString()));
    });
  }

  Result<std::string> BranchOf(const BackingDataset& backing) {
    if (!backing.branch.empty()) {
      return backing.branch;
    }
    const Result<dataset::Branch> same =
        deps_.datasets.GetBranch(backing.dataset, relation_.branch);
    if (same.status().reason() == "BranchNotFound") {
      return std::string(dataset::kDefaultBranch);
    }
    TARN_RETURN_IF_ERROR(StatusOf(same));
    return relation_.branch;
  }

  engine::Session& session_;
  const RowsDeps& deps_;
  const access::Principal& principal_;
  const DatasetRelation& relation_;
};

}  // namespace

std::vector<metastore::Migration> Migrations() {
  return {{.room = "query", .version = 1, .sql = R"(
CREATE TABLE query_union_views (
  dataset TEXT NOT NULL,
  branch TEXT NOT NULL,
  definition TEXT NOT NULL,
  PRIMARY KEY (dataset, branch)
);
)"}};
}

Status PutUnionView(SqlTransaction& sql, const DatasetRid& rid, std::string_view branch,
                    const UnionView& view) {
  return sql
      .Execute(
          "INSERT INTO query_union_views (dataset, branch, definition) VALUES (?1, ?2, ?3) "
          "ON CONFLICT (dataset, branch) DO UPDATE SET definition = excluded.definition",
          {rid.ToString(), std::string(branch), ToJson(view).dump()})
      .status();
}

Result<std::optional<UnionView>> FindUnionView(SqlTransaction& sql, const DatasetRid& rid,
                                               std::string_view branch) {
  std::optional<UnionView> view;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT definition FROM query_union_views WHERE dataset = ?1 AND branch = ?2",
                {rid.ToString(), std::string(branch)}, [&](const SqlRow& row) -> Result<RowAction> {
                  TARN_ASSIGN_OR_RETURN(view, FromJson(row.Text(0)));
                  return RowAction::kStop;
                }));
  return view;
}

Result<bool> IsUnionView(SqlTransaction& sql, const DatasetRid& rid) {
  bool found = false;
  TARN_RETURN_IF_ERROR(sql.Query("SELECT 1 FROM query_union_views WHERE dataset = ?1 LIMIT 1",
                                 {rid.ToString()}, [&](const SqlRow&) {
                                   found = true;
                                   return Result<RowAction>(RowAction::kStop);
                                 }));
  return found;
}

Status RemoveUnionView(SqlTransaction& sql, const DatasetRid& rid) {
  return sql.Execute("DELETE FROM query_union_views WHERE dataset = ?1", {rid.ToString()}).status();
}

Result<std::string> BuildUnion(const UnionView& view, const std::vector<std::string>& relations) {
  if (relations.empty()) {
    return Status::InvalidArgument(
        "the view has no dataset with columns: there is nothing to read");
  }
  std::vector<std::string> parts;
  for (size_t i = 0; i < relations.size(); ++i) {
    parts.push_back(
        fmt::format("SELECT *, {} AS {} FROM {}", i, kSource, engine::QuoteName(relations[i])));
  }
  const std::string all = fmt::format("({})", fmt::join(parts, " UNION ALL BY NAME "));
  if (!view.key || view.key->unique) {
    return fmt::format("SELECT * EXCLUDE ({}) FROM {}", kSource, all);
  }
  std::vector<std::string> keys;
  for (const std::string& column : view.key->columns) {
    keys.push_back(engine::QuoteName(column));
  }
  std::vector<std::string> order;
  for (const std::string& column : view.key->order_columns) {
    order.push_back(engine::QuoteName(column) + " DESC NULLS LAST");
  }
  order.push_back(fmt::format("{} DESC", kSource));
  const std::string newest =
      fmt::format("SELECT * FROM {} QUALIFY row_number() OVER (PARTITION BY {} ORDER BY {}) = 1",
                  all, fmt::join(keys, ", "), fmt::join(order, ", "));
  const std::string condition = view.key->deletion_column.empty()
                                    ? std::string()
                                    : fmt::format(" WHERE {} IS DISTINCT FROM true",
                                                  engine::QuoteName(view.key->deletion_column));
  return fmt::format("SELECT * EXCLUDE ({}) FROM ({}){}", kSource, newest, condition);
}

Status MakeRows(engine::Session& session, const RowsDeps& deps, const access::Principal& principal,
                const DatasetRelation& relation) {
  std::optional<UnionView> view;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(view, FindUnionView(sql, relation.dataset, relation.branch));
    return Status::Ok();
  }));
  if (!view) {
    return MakeDatasetRelation(session, deps.datasets, deps.store, relation);
  }
  return UnionReader(session, deps, principal, relation).Make(*view).WithContext(relation.written);
}

}  // namespace tarn::query
