#include "tarn/query/run_sql.h"

#include <deque>
#include <map>

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/dataset/branching/tag.h"
#include "tarn/engine/quoting.h"
#include "tarn/engine/select_check.h"
#include "tarn/lakehouse/table_making.h"
#include "tarn/lakehouse/view_origin.h"
#include "tarn/query/dataset_relation.h"
#include "tarn/query/memory_watch.h"
#include "tarn/query/metadata_relation.h"
#include "tarn/query/point_in_time.h"
#include "tarn/query/resource_name.h"
#include "tarn/query/stoppable_sql.h"
#include "tarn/query/table_relation.h"
#include "tarn/query/union_view.h"
#include "tarn/tree/permission.h"

namespace tarn::query {

namespace {

using metastore::SqlTransaction;

// Stored views inside each other: text of people, so it may go round in circles.
constexpr int kViewDepthMax = 16;
constexpr size_t kReferencesMax = 1000;

// Which state of what a name stands for.
struct ReadPoint {
  std::string branch;  // Or tag.
  PointInTime point = Newest{};
  std::string by_at{};  // The text of AT or `at` that named the branch or tag.
};

// Text that is no point in time names a branch or a tag.
Result<ReadPoint> ReadPointOf(const std::string& at, const ReadPoint& otherwise) {
  if (at.empty()) {
    return otherwise;
  }
  const Result<PointInTime> point = ParsePointInTime(at);
  if (point.ok()) {
    return ReadPoint{.branch = otherwise.branch, .point = *point};
  }
  if (at.starts_with("ri.") || otherwise.branch != QueryRequest().branch) {
    return point.status();
  }
  return ReadPoint{.branch = at, .by_at = at};
}

// What `read` says of a branch that is missing, when it may have been meant for a time.
Status OfReadPoint(const ReadPoint& when, const Status& read) {
  if (when.by_at.empty() || read.reason() != "BranchNotFound") {
    return read;
  }
  return Status::InvalidArgument(fmt::format("{}; and there is no branch or tag of that name here",
                                             StatusOf(ParsePointInTime(when.by_at)).message()));
}

// A table that a statement names, and what was found of it.
struct Reference {
  engine::TableReference written;
  Rid project;                       // Where names of one or two parts are looked up.
  std::vector<std::string> folders;  // Looked at first for short names.
  ReadPoint when;
  int depth = 0;  // Of stored views around it.

  tree::Node node;
  std::optional<catalog::CatalogObject> object;  // Of tables and views; for views of a target the
                                                 // internal table's.
  std::optional<lakehouse::ViewOrigin> origin;
  std::optional<size_t> stored_view;      // Index of its statement.
  std::optional<MetadataTable> part;      // Of "orders$files" and the like.
  std::vector<ScanCondition> conditions;  // When it is the only reference of the whole query.
};

// The user's SELECT, or the text of a stored view.
struct Statement {
  engine::SelectStatement checked;
  std::vector<size_t> references;    // One per table of `checked`.
  std::vector<std::string> columns;  // Names that a stored view gives its columns.
};

std::string NameOf(const Reference& reference) {
  return fmt::format("{}", fmt::join(reference.written.name, "."));
}

// Finds out what a statement reads, pins it, and makes the relations of its session.
class QueryPlanner {
 public:
  QueryPlanner(engine::Session& session, const QueryRequest& request,
               const access::Principal& principal, const QueryDeps& deps)
      : session_(session), request_(request), principal_(principal), deps_(deps) {}

  /// The statement over the relations that were made.
  Result<std::string> Plan() {
    TARN_ASSIGN_OR_RETURN(const ReadPoint when,
                          ReadPointOf(request_.at, {.branch = request_.branch}));
    TARN_ASSIGN_OR_RETURN(engine::SelectStatement checked,
                          engine::CheckSelect(session_, request_.sql));
    Rid project;
    TARN_RETURN_IF_ERROR(database().Read([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const tree::Node node, FindProject(sql, request_.project));
      project = node.rid;
      return Status::Ok();
    }));
    TARN_RETURN_IF_ERROR(AddStatement(
        std::move(checked), {.project = std::move(project), .when = when}, /*columns=*/{}));
    for (size_t resolved = 0; resolved < references_.size();) {
      const size_t end = references_.size();
      TARN_RETURN_IF_ERROR(FindObjects(resolved, end));
      for (; resolved < end; ++resolved) {
        TARN_RETURN_IF_ERROR(ReadView(resolved));
      }
    }
    if (references_.empty() && !when.by_at.empty()) {
      return StatusOf(ParsePointInTime(when.by_at));  // Nothing here has branches or tags.
    }
    TARN_RETURN_IF_ERROR(PinTables());
    if (references_.size() == 1) {
      references_.front().conditions = FindConditions(statements_.front().checked);
    }
    return MakeStatement(0);
  }

 private:
  metastore::Database& database() { return deps_.catalog.deps().database; }

  // `context`: project, folders, point and depth of the references.
  Status AddStatement(engine::SelectStatement checked, const Reference& context,
                      std::vector<std::string> columns) {
    Statement statement;
    for (const engine::TableReference& table : checked.tables) {
      Reference reference = context;
      reference.written = table;
      TARN_ASSIGN_OR_RETURN(reference.when, ReadPointOf(table.at_value, context.when));
      statement.references.push_back(references_.size());
      references_.push_back(std::move(reference));
    }
    if (references_.size() > kReferencesMax) {
      return Status::InvalidArgument(
          fmt::format("the statement reads more than {} tables", kReferencesMax));
    }
    statement.checked = std::move(checked);
    statement.columns = std::move(columns);
    statements_.push_back(std::move(statement));
    return Status::Ok();
  }

  // Names to nodes and catalog objects, with the permission of the principal.
  Status FindObjects(size_t begin, size_t end) {
    return database().Read([&](SqlTransaction& sql) -> Status {
      for (size_t i = begin; i < end; ++i) {
        Reference& reference = references_[i];
        const NameScope scope{.principal = principal_,
                              .authorizer = deps_.authorizer,
                              .project = reference.project,
                              .folders = reference.folders};
        TARN_RETURN_IF_ERROR(FindNode(sql, scope, reference));
        if (reference.node.type != tree::NodeType::kDataset) {
          TARN_ASSIGN_OR_RETURN(reference.object, catalog::FindObject(sql, reference.node.rid));
          if (!reference.object) {
            return Status::NotFound(
                fmt::format("{} does not exist in the catalog any more", NameOf(reference)));
          }
        }
      }
      return Status::Ok();
    });
  }

  // The node of a name; when there is none, that of a table whose metadata the name asks for.
  static Status FindNode(SqlTransaction& sql, const NameScope& scope, Reference& reference) {
    Result<tree::Node> node = FindResource(sql, scope, reference.written.name);
    const std::optional<MetadataName> split = SplitMetadataName(reference.written.name.back());
    if (!node.ok() && node.status().code() == ErrorCode::kNotFound && split) {
      std::vector<std::string> name = reference.written.name;
      name.back() = split->table;
      node = FindResource(sql, scope, name);
      if (node.ok() && node->type != tree::NodeType::kTable) {
        return Status::InvalidArgument(
            fmt::format("{} is a {}: only tables have {}", fmt::join(name, "."),
                        tree::NodeTypeName(node->type), reference.written.name.back()));
      }
      reference.part = split->part;
    }
    TARN_ASSIGN_OR_RETURN(reference.node, std::move(node));
    return Status::Ok();
  }

  // What a view is made of: a target's internal table, or a statement of its own.
  Status ReadView(size_t index) {
    const Reference reference = references_[index];
    if (!reference.object || reference.object->kind != catalog::ObjectKind::kView) {
      return Status::Ok();
    }
    TARN_ASSIGN_OR_RETURN(const catalog::ViewMetadataPtr view,
                          deps_.catalog.ReadView(reference.object->metadata_location));
    // Only views that nobody else may commit to are believed: they show the internal table to
    // people who may not read it.
    if (reference.object->writers == catalog::Writers::kProduct) {
      TARN_ASSIGN_OR_RETURN(references_[index].origin, lakehouse::ParseOrigin(view->properties));
      if (references_[index].origin) {
        return Status::Ok();
      }
    }
    return AddStoredView(index, reference, *view);
  }

  Status AddStoredView(size_t index, const Reference& reference,
                       const iceberg::ViewMetadata& view) {
    const std::string name = NameOf(reference);
    const iceberg::ViewVersion& version = view.CurrentVersion();
    const iceberg::ViewRepresentation* text = version.FindDialect("duckdb");
    if (text == nullptr) {
      return Status::Unimplemented(fmt::format(
          "view {} has no text for the dialect duckdb: replace it with one that has", name));
    }
    if (reference.depth == kViewDepthMax) {
      return Status::InvalidArgument(fmt::format(
          "view {}: views are more than {} deep inside each other", name, kViewDepthMax));
    }
    if (std::holds_alternative<SnapshotId>(reference.when.point)) {
      return Status::InvalidArgument(
          fmt::format("view {} has no snapshots of its own: give a time", name));
    }
    Result<engine::SelectStatement> checked = engine::CheckSelect(session_, text->sql);
    if (!checked.ok()) {
      return checked.status().WithContext("view " + name);
    }
    std::vector<std::string> columns;
    if (const iceberg::Schema* schema = view.FindSchema(version.schema_id)) {
      for (const iceberg::SchemaField& field : schema->fields) {
        columns.push_back(engine::QuoteName(field.name));
      }
    }
    Reference context{.project = {},
                      .folders = version.default_namespace,
                      .when = reference.when,
                      .depth = reference.depth + 1};
    TARN_RETURN_IF_ERROR(database().Read([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located,
                            tree::LocateNode(sql, reference.node.rid));
      context.project = located.project;
      return Status::Ok();
    }));
    references_[index].stored_view = statements_.size();
    return AddStatement(std::move(checked).value(), context, std::move(columns));
  }

  // The pointers of all tables at one moment. For views of targets this finds the internal tables.
  Status PinTables() {
    return database().Read([&](SqlTransaction& sql) -> Status {
      for (Reference& reference : references_) {
        if (!reference.object || reference.stored_view) {
          continue;
        }
        std::optional<catalog::CatalogObject> table;
        if (reference.origin) {
          TARN_ASSIGN_OR_RETURN(table, FindInternal(sql, reference));
        } else {
          TARN_ASSIGN_OR_RETURN(table, catalog::FindObject(sql, reference.node.rid));
        }
        if (!table || table->kind != catalog::ObjectKind::kTable) {
          return Status::NotFound(
              fmt::format("the table behind {} does not exist any more", NameOf(reference)));
        }
        reference.object = std::move(table);
      }
      return Status::Ok();
    });
  }

  static Result<std::optional<catalog::CatalogObject>> FindInternal(SqlTransaction& sql,
                                                                    const Reference& reference) {
    TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located,
                          tree::LocateNode(sql, reference.node.rid));
    TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> folder,
                          tree::FindChild(sql, located.project, reference.origin->internal_schema));
    if (!folder) {
      return std::optional<catalog::CatalogObject>();
    }
    return catalog::FindObject(sql, folder->rid, reference.origin->internal_name);
  }

  // The internal table says in which folder its views are. Where that is not the view's, somebody
  // has written the view's properties, and its readers need rights of their own on the table.
  Status RequireShown(const Reference& reference, const iceberg::TableMetadata& internal) {
    const auto schema = internal.properties.find(std::string(lakehouse::kSchemaProperty));
    return database().Read([&](SqlTransaction& sql) -> Status {
      if (schema != internal.properties.end()) {
        TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located,
                              tree::LocateNode(sql, reference.node.rid));
        TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> folder,
                              tree::FindChild(sql, located.project, schema->second));
        if (folder && folder->rid == located.node.parent) {
          return Status::Ok();
        }
      }
      const Status own =
          tree::Require(sql, deps_.authorizer, principal_, reference.object->rid,
                        {.role = access::Role::kViewer, .scope = access::Scope::kIcebergRead});
      const ErrorCode code = own.code();
      return code == ErrorCode::kNotFound || code == ErrorCode::kPermissionDenied
                 ? Status::PermissionDenied(fmt::format(
                       "view {} was changed: the table that it shows now was not made for it, and "
                       "you may not read that; recreate the view's table",
                       NameOf(reference)))
                 : own;
    });
  }

  // Makes the relations that a statement reads and gives its text over them.
  Result<std::string> MakeStatement(size_t index) {
    std::vector<std::vector<std::string>> names;
    for (const size_t reference : statements_[index].references) {
      TARN_ASSIGN_OR_RETURN(std::string name, MakeRelation(reference));
      // Qualified, so that no common table expression can stand in for it.
      names.push_back({"temp", "main", std::move(name)});
    }
    return engine::RewriteTables(session_, statements_[index].checked, names);
  }

  // The temporary view of a reference; one for all references to the same state.
  Result<std::string> MakeRelation(size_t index) {
    const Reference& reference = references_[index];
    const auto same = std::pair(
        reference.node.rid,
        fmt::format("{}@{}{}", reference.when.branch, FormatPointInTime(reference.when.point),
                    reference.part ? "$" + std::to_string(static_cast<int>(*reference.part)) : ""));
    const auto [entry, inserted] = relations_.try_emplace(same);
    if (!inserted) {
      return entry->second;
    }
    std::string name = fmt::format("tarn_relation_{}", relations_.size());
    entry->second = name;
    const std::string written = NameOf(reference);
    if (reference.node.type == tree::NodeType::kDataset) {
      TARN_ASSIGN_OR_RETURN(const dataset::DatasetRid rid,
                            dataset::DatasetRid::Parse(reference.node.rid.ToString()));
      const Status made = MakeDataset(reference, {.name = name,
                                                  .written = written,
                                                  .dataset = rid,
                                                  .branch = reference.when.branch,
                                                  .point = reference.when.point});
      TARN_RETURN_IF_ERROR(OfReadPoint(reference.when, made));
    } else if (reference.stored_view) {
      const size_t statement = *reference.stored_view;
      TARN_ASSIGN_OR_RETURN(const std::string text, MakeStatement(statement));
      const std::string columns =
          statements_[statement].columns.empty()
              ? std::string()
              : fmt::format("({})", fmt::join(statements_[statement].columns, ", "));
      TARN_RETURN_IF_ERROR(session_.Execute(fmt::format("CREATE OR REPLACE TEMP VIEW {}{} AS {}",
                                                        engine::QuoteName(name), columns, text)));
    } else {
      TARN_ASSIGN_OR_RETURN(const catalog::TableMetadataPtr metadata,
                            deps_.catalog.ReadTable(reference.object->metadata_location));
      const Result<PointInTime> point =
          PointOnBranch(*metadata, reference.when.point, reference.when.branch);
      if (!point.ok()) {
        return OfReadPoint(reference.when, point.status()).WithContext(written);
      }
      if (reference.part) {
        TARN_RETURN_IF_ERROR(MakePart(reference, name, metadata, *point));
        return name;
      }
      if (reference.origin) {
        TARN_RETURN_IF_ERROR(RequireShown(reference, *metadata));
      }
      TARN_RETURN_IF_ERROR(MakeTableRelation(session_, deps_.catalog,
                                             {.name = name,
                                              .written = written,
                                              .metadata = metadata,
                                              .point = *point,
                                              .origin = reference.origin,
                                              .conditions = reference.conditions}));
    }
    return name;
  }

  // The rows of a dataset; its branch may be the name of a tag.
  Status MakeDataset(const Reference& reference, DatasetRelation relation) {
    if (reference.when.branch != dataset::kDefaultBranch) {
      dataset::ViewSelector selector;
      const Status found = database().Read([&](SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(selector, dataset::branching::SelectorOfName(sql, relation.dataset,
                                                                           reference.when.branch));
        return Status::Ok();
      });
      if (found.ok() && selector.end) {
        if (!std::holds_alternative<Newest>(relation.point)) {
          return Status::InvalidArgument(
              fmt::format("{}: tag {} is one state already: leave {} out", relation.written,
                          reference.when.branch, FormatPointInTime(relation.point)));
        }
        relation.branch = selector.branch;
        relation.point = *selector.end;
      }
    }
    return MakeRows(session_,
                    {database(), deps_.authorizer, deps_.datasets, deps_.catalog.deps().warehouse},
                    principal_, relation);
  }

  // What a table knows of itself at a point in time.
  Status MakePart(const Reference& reference, const std::string& name,
                  const catalog::TableMetadataPtr& metadata, const PointInTime& point) {
    const Result<const iceberg::Snapshot*> snapshot = PinSnapshot(*metadata, point, "");
    if (!snapshot.ok()) {
      return snapshot.status().WithContext(NameOf(reference));
    }
    const Status made = MakeMetadataRelation(session_, deps_.catalog,
                                             {.name = name,
                                              .part = *reference.part,
                                              .metadata = metadata,
                                              .snapshot = *snapshot,
                                              .conditions = reference.conditions});
    return made.ok() ? made : made.WithContext(NameOf(reference));
  }

  engine::Session& session_;
  const QueryRequest& request_;
  const access::Principal& principal_;
  const QueryDeps& deps_;
  std::deque<Reference> references_;
  std::vector<Statement> statements_;
  std::map<std::pair<Rid, std::string>, std::string> relations_;  // Names of temporary views.
};

// What the watch, if there is one, says of a statement.
Status StateOf(const std::unique_ptr<MemoryWatch::Watched>& watched) {
  return watched == nullptr ? Status::Ok() : watched->status();
}

class SessionQuery final : public RunningQuery {
 public:
  SessionQuery(std::unique_ptr<engine::Session> session,
               std::unique_ptr<engine::ArrowStream> stream,
               std::unique_ptr<MemoryWatch::Watched> watched)
      : session_(std::move(session)), stream_(std::move(stream)), watched_(std::move(watched)) {}

  [[nodiscard]] const std::shared_ptr<arrow::Schema>& schema() const override {
    return stream_->schema();
  }
  Result<std::shared_ptr<arrow::RecordBatch>> Next() override {
    Result<std::shared_ptr<arrow::RecordBatch>> batch = stream_->Next();
    TARN_RETURN_IF_ERROR(StateOf(watched_));
    return batch;
  }
  void Interrupt() override { session_->Interrupt(); }

 private:
  std::unique_ptr<engine::Session> session_;  // Outlives the stream.
  std::unique_ptr<engine::ArrowStream> stream_;
  std::unique_ptr<MemoryWatch::Watched> watched_;
};

}  // namespace

Result<std::unique_ptr<RunningQuery>> RunSql(const QueryRequest& request,
                                             const access::Principal& principal,
                                             const QueryDeps& deps) {
  return RunStoppableSql(request, principal, deps, {});
}

Result<std::unique_ptr<RunningQuery>> RunStoppableSql(const QueryRequest& request,
                                                      const access::Principal& principal,
                                                      const QueryDeps& deps,
                                                      const std::stop_token& stop) {
  return StartWatched(deps.engine, deps.memory_watch, stop, [&](engine::Session& session) {
    return QueryPlanner(session, request, principal, deps).Plan();
  });
}

Result<std::unique_ptr<RunningQuery>> StartWatched(
    engine::Engine& engine, MemoryWatch* watch, const std::stop_token& stop,
    const std::function<Result<std::string>(engine::Session&)>& plan) {
  TARN_ASSIGN_OR_RETURN(std::unique_ptr<engine::Session> session, engine.OpenSession());
  const std::stop_callback interrupt(stop, [&session] { session->Interrupt(); });
  std::unique_ptr<MemoryWatch::Watched> watched;
  if (watch != nullptr) {
    watched = std::make_unique<MemoryWatch::Watched>(
        *watch, [running = session.get()] { running->Interrupt(); });
  }
  const auto start = [&]() -> Result<std::unique_ptr<engine::ArrowStream>> {
    TARN_ASSIGN_OR_RETURN(const std::string text, plan(*session));
    return session->Query(text);
  };
  Result<std::unique_ptr<engine::ArrowStream>> stream = start();
  TARN_RETURN_IF_ERROR(StateOf(watched));
  TARN_RETURN_IF_ERROR(stream.status());
  return std::unique_ptr<RunningQuery>(std::make_unique<SessionQuery>(
      std::move(session), std::move(stream).value(), std::move(watched)));
}

}  // namespace tarn::query
