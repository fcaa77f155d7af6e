#include "tarn/lakehouse/target_table.h"

#include <algorithm>
#include <charconv>

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/base/arrow_status.h"
#include "tarn/base/crash_point.h"
#include "tarn/iceberg/schema_update.h"
#include "tarn/lakehouse/column_update.h"
#include "tarn/lakehouse/header_columns.h"
#include "tarn/lakehouse/internal_schema.h"
#include "tarn/lakehouse/kept_changes.h"
#include "tarn/lakehouse/table_commit.h"
#include "tarn/lakehouse/table_files.h"
#include "tarn/lakehouse/table_making.h"
#include "tarn/lakehouse/table_views.h"
#include "tarn/lakehouse/version_rows.h"

namespace tarn::lakehouse {

namespace {

// A list of names as people write it.
std::string Shown(std::string names) {
  for (size_t at = 0; (at = names.find('\x1f', at)) != std::string::npos; at += 2) {
    names.replace(at, 1, ", ");
  }
  return names;
}

int64_t NumberOf(const std::string& text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Status RequireOurs(const catalog::LoadedTable& table) {
  if (table.metadata->CurrentSnapshot() == nullptr ||
      !SummaryOf(*table.metadata, kChangeCountKey).empty()) {
    return Status::Ok();
  }
  return Status::FailedPrecondition(fmt::format(
      "table {}: snapshot {} was not written by tarn; roll back to a snapshot whose summary has "
      "tarn.change-count, or recreate the table from its landing dataset",
      table.object.name, *table.metadata->current_snapshot_id));
}

// Properties of the internal table that say what it was made for.
std::map<std::string, std::string> MakingOf(const TableSpec& spec) {
  return {{"tarn.owner", spec.owner},
          {"tarn.mode", spec.mode == Mode::kMerge ? "merge" : "append"},
          {"tarn.key", fmt::format("{}", fmt::join(spec.key, "\x1f"))},
          {"tarn.history", spec.fold.history ? "true" : "false"},
          {"tarn.soft-delete", spec.fold.soft_delete ? "true" : "false"}};
}

// The names in the property tarn.key.
std::vector<std::string> SplitKey(std::string_view text) {
  std::vector<std::string> key;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\x1f'), text.size());
    key.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return key;
}

std::map<std::string, std::string> SummaryFor(int64_t change_count,
                                              const std::string& apply_identifier,
                                              const std::string& copy_identifier) {
  return {{std::string(kChangeCountKey), std::to_string(change_count)},
          {std::string(kApplyIdentifierKey), apply_identifier},
          {std::string(kCopyIdentifierKey), copy_identifier}};
}

}  // namespace

struct TargetTable::Objects {
  Rid internal_folder;
  Rid external_folder;
  std::optional<catalog::CatalogObject> internal;
  std::optional<catalog::CatalogObject> current_view;
  std::optional<catalog::CatalogObject> history_view;
  std::optional<catalog::CatalogObject> applied;
  bool views_differ = false;  // From what the spec wants of them.
};

TargetTable::TargetTable(TableSpec spec, TargetPlace place, catalog::Catalog& catalog)
    : spec_(std::move(spec)),
      place_(std::move(place)),
      catalog_(catalog),
      objects_(std::make_unique<Objects>()) {}
TargetTable::~TargetTable() = default;

bool TargetTable::exists() const { return objects_->internal.has_value(); }

Result<std::unique_ptr<TargetTable>> TargetTable::Open(TableSpec spec, TargetPlace place,
                                                       catalog::Catalog& catalog) {
  auto table =
      std::unique_ptr<TargetTable>(new TargetTable(std::move(spec), std::move(place), catalog));
  TARN_RETURN_IF_ERROR(table->FindObjects());
  return table;
}

Status TargetTable::FindObjects() {
  Objects found;
  const auto find = [](metastore::SqlTransaction& sql, const Rid& project,
                       const std::string& folder, Rid& folder_rid) -> Result<bool> {
    TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> node,
                          tree::FindChild(sql, project, folder));
    if (!node) {
      return false;
    }
    if (!tree::IsFolderLike(node->type)) {
      return Status::AlreadyExists(fmt::format("{} exists and is no schema (folder)", folder));
    }
    folder_rid = node->rid;
    return true;
  };
  const auto find_object =
      [](metastore::SqlTransaction& sql, const Rid& folder,
         const std::string& name) -> Result<std::optional<catalog::CatalogObject>> {
    TARN_ASSIGN_OR_RETURN(std::optional<catalog::CatalogObject> object,
                          catalog::FindObject(sql, folder, name));
    TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> node, tree::FindChild(sql, folder, name));
    if (!object && node) {
      return Status::AlreadyExists(
          fmt::format("the name {} belongs to a {}: use another schema or "
                      "prefix",
                      name, tree::NodeTypeName(node->type)));
    }
    return object;
  };
  TARN_RETURN_IF_ERROR(catalog_.deps().database.Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const bool internal,
                          find(sql, place_.project, spec_.internal_schema, found.internal_folder));
    if (internal) {
      TARN_ASSIGN_OR_RETURN(found.internal,
                            find_object(sql, found.internal_folder, spec_.internal_name()));
    }
    TARN_ASSIGN_OR_RETURN(const bool external,
                          find(sql, place_.project, spec_.external_schema, found.external_folder));
    if (external) {
      const Rid& folder = found.external_folder;
      TARN_ASSIGN_OR_RETURN(found.current_view, find_object(sql, folder, spec_.name));
      TARN_ASSIGN_OR_RETURN(found.history_view, find_object(sql, folder, spec_.history_name()));
      TARN_ASSIGN_OR_RETURN(found.applied, find_object(sql, folder, spec_.applied_name()));
    }
    return Status::Ok();
  }));
  if (!found.internal && (found.current_view || found.history_view || found.applied)) {
    return Status::AlreadyExists(
        fmt::format("schema {} already has a table or view named {}, {} or {}",
                    spec_.external_schema, spec_.name, spec_.history_name(), spec_.applied_name()));
  }
  *objects_ = std::move(found);
  return exists() ? RequireSameMaking() : Status::Ok();
}

// A table that was made for another task, mode or key holds rows that do not fit this one.
Status TargetTable::RequireSameMaking() {
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable table,
                        catalog_.LoadTable(objects_->internal->rid));
  std::vector<std::string> key = SpelledKey(spec_.key, table.metadata->CurrentSchema());
  if (key.empty() && spec_.mode == Mode::kMerge) {
    const auto made = table.metadata->properties.find("tarn.key");
    key = SplitKey(made == table.metadata->properties.end() ? "" : made->second);
  }
  if (key != spec_.key) {  // Only before anything runs: applies read it on their own thread.
    spec_.key = std::move(key);
  }
  for (const auto& [name, value] : MakingOf(spec_)) {
    const auto found = table.metadata->properties.find(name);
    const std::string known = found == table.metadata->properties.end() ? "" : found->second;
    if (known != value) {
      return Status::FailedPrecondition(fmt::format(
          "table {}.{} was made with {} \"{}\", not \"{}\": use another schema or prefix",
          spec_.internal_schema, spec_.internal_name(), name, Shown(known), Shown(value)));
    }
  }
  return CheckViews(*table.metadata);
}

Status TargetTable::CheckViews(const iceberg::TableMetadata& internal) {
  std::optional<ViewOrigin> origin;
  const std::optional<catalog::CatalogObject>& view = objects_->current_view;
  const bool ours = view && view->kind == catalog::ObjectKind::kView &&
                    view->writers == catalog::Writers::kProduct;
  if (ours) {
    TARN_ASSIGN_OR_RETURN(const catalog::LoadedView loaded, catalog_.LoadView(view->rid));
    TARN_ASSIGN_OR_RETURN(origin, ParseOrigin(loaded.metadata->properties));
  }
  TARN_RETURN_IF_ERROR(CheckMaking(spec_, {.internal = internal,
                                           .has_view = ours,
                                           .current_view = origin ? &*origin : nullptr,
                                           .has_applied = objects_->applied.has_value()}));
  // Rows with NULL keys that are there stay, also when no new ones are allowed.
  if (origin && origin->null_keys == NullKeys::kAllowed && spec_.null_keys != origin->null_keys) {
    spec_.null_keys = NullKeys::kAllowed;
  }
  objects_->views_differ = origin && *origin != OriginOf(spec_, TableView::kCurrent);
  return Status::Ok();
}

Status TargetTable::RenewViews(const metastore::SqlFunction& also) {
  if (!exists() || !objects_->views_differ) {
    return Status::Ok();
  }
  const std::lock_guard lock(commit_mutex_);
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable table, Load());
  TARN_ASSIGN_OR_RETURN(const std::vector<catalog::PointerMove> views,
                        RemakeViews(*table.metadata));
  TARN_RETURN_IF_ERROR(
      catalog_.deps().database.Write([&](metastore::SqlTransaction& sql) -> Status {
        if (also) {
          TARN_RETURN_IF_ERROR(also(sql));
        }
        for (const catalog::PointerMove& view : views) {
          TARN_RETURN_IF_ERROR(catalog::MovePointer(sql, view));
        }
        return Status::Ok();
      }));
  return FindObjects();
}

Status TargetTable::UseKey(const std::vector<std::string>& key) {
  if (!exists()) {
    spec_.key = key;
    return Status::Ok();
  }
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable table, Load());
  if (SpelledKey(key, table.metadata->CurrentSchema()) == spec_.key) {
    return Status::Ok();
  }
  return Status::FailedPrecondition(
      fmt::format("table {}.{} has the key {}, and its source now has the key {}: give key: in the "
                  "pipeline file, or recreate the table",
                  spec_.internal_schema, spec_.internal_name(), fmt::join(spec_.key, ", "),
                  fmt::join(key, ", ")));
}

Result<catalog::LoadedTable> TargetTable::Load() {
  if (!exists()) {
    return Status::FailedPrecondition(
        fmt::format("table {} does not exist yet: it is made with its first rows", spec_.name));
  }
  TARN_ASSIGN_OR_RETURN(catalog::LoadedTable table, catalog_.LoadTable(objects_->internal->rid));
  TARN_RETURN_IF_ERROR(RequireOurs(table));
  return table;
}

Result<TableProgress> TargetTable::ReadProgress() {
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable table, Load());
  TableProgress progress;
  const std::string copied = SummaryOf(*table.metadata, kCopyIdentifierKey);
  if (!copied.empty()) {
    TARN_ASSIGN_OR_RETURN(progress.last, ParseChangeIdentifier(copied));
  }
  progress.last.change_number = NumberOf(SummaryOf(*table.metadata, kChangeCountKey));
  progress.apply_identifier = SummaryOf(*table.metadata, kApplyIdentifierKey);
  progress.snapshot_id = table.metadata->current_snapshot_id;
  progress.schema_id = table.metadata->current_schema_id;
  return progress;
}

Result<std::optional<std::string>> TargetTable::ReadInput(const std::string& dataset) {
  std::optional<std::string> transaction;
  if (!exists()) {
    return transaction;
  }
  TARN_RETURN_IF_ERROR(catalog_.deps().database.Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(transaction, FindInput(sql, objects_->internal->uuid, dataset));
    return Status::Ok();
  }));
  return transaction;
}

Status TargetTable::Create(const iceberg::Schema& users, const metastore::SqlFunction& also) {
  const catalog::CatalogDeps& deps = catalog_.deps();
  const int64_t now_ms = ToMillis(deps.clock.Now());
  const bool merge = spec_.mode == Mode::kMerge;
  const auto location = [&](const std::string& uuid) {
    return storage::UriOf(deps.warehouse, "tables/" + uuid);
  };
  const std::string uuid = deps.uuids.NextV7().ToString();
  spec_.key = SpelledKey(spec_.key, users);
  TARN_ASSIGN_OR_RETURN(iceberg::TableMetadata internal,
                        NewInternalTable(spec_, users, location(uuid), uuid, now_ms));
  internal.properties.merge(MakingOf(spec_));
  internal.properties.merge(MakingProperties(spec_));
  std::vector<catalog::ObjectDefinition> objects;
  const auto add = [&](const std::string& name, catalog::ObjectKind kind,
                       const std::string& object_uuid, std::string metadata_location) {
    objects.push_back({.kind = kind,
                       .folder = {},
                       .name = name,
                       .uuid = object_uuid,
                       .metadata_location = std::move(metadata_location),
                       .writers = catalog::Writers::kProduct,
                       .by = place_.by});
  };
  TARN_ASSIGN_OR_RETURN(std::string internal_location, catalog_.WriteFirst(internal));
  add(spec_.internal_name(), catalog::ObjectKind::kTable, uuid, std::move(internal_location));
  const auto add_view = [&](const std::string& name, TableView view) -> Status {
    const std::string view_uuid = deps.uuids.NextV7().ToString();
    TARN_ASSIGN_OR_RETURN(const iceberg::ViewMetadata metadata,
                          MakeTableView(spec_, internal, view, nullptr, view_uuid, now_ms));
    TARN_ASSIGN_OR_RETURN(std::string view_location, catalog_.WriteFirst(metadata));
    add(name, catalog::ObjectKind::kView, view_uuid, std::move(view_location));
    return Status::Ok();
  };
  TARN_RETURN_IF_ERROR(add_view(spec_.name, TableView::kCurrent));
  if (spec_.fold.history) {
    TARN_RETURN_IF_ERROR(add_view(spec_.history_name(), TableView::kHistory));
  }
  if (merge && spec_.publish == Publish::kApplied) {
    const std::string applied_uuid = deps.uuids.NextV7().ToString();
    TARN_ASSIGN_OR_RETURN(const iceberg::TableMetadata applied,
                          NewAppliedTable(internal, location(applied_uuid), applied_uuid, now_ms));
    TARN_ASSIGN_OR_RETURN(std::string applied_location, catalog_.WriteFirst(applied));
    add(spec_.applied_name(), catalog::ObjectKind::kTable, applied_uuid,
        std::move(applied_location));
  }
  TARN_RETURN_IF_ERROR(deps.database.Write([&](metastore::SqlTransaction& sql) -> Status {
    if (also) {
      TARN_RETURN_IF_ERROR(also(sql));
    }
    TARN_ASSIGN_OR_RETURN(
        const tree::Node internal_folder,
        deps.tree.EnsureFolder(sql, place_.project, spec_.internal_schema, place_.by));
    TARN_ASSIGN_OR_RETURN(
        const tree::Node external_folder,
        deps.tree.EnsureFolder(sql, place_.project, spec_.external_schema, place_.by));
    for (size_t i = 0; i < objects.size(); ++i) {
      objects[i].folder = i == 0 ? internal_folder.rid : external_folder.rid;
      TARN_RETURN_IF_ERROR(catalog::CreateObject(sql, deps.tree, objects[i]));
    }
    return Status::Ok();
  }));
  return FindObjects();
}

namespace {

std::vector<iceberg::TableUpdate> SchemaUpdates(iceberg::Schema schema) {
  return {iceberg::table_update::AddSchema{.schema = std::move(schema), .last_column_id = {}},
          iceberg::table_update::SetCurrentSchema{.schema_id = iceberg::kLastAdded}};
}

}  // namespace

Result<std::vector<catalog::PointerMove>> TargetTable::RemakeViews(
    const iceberg::TableMetadata& internal) {
  const catalog::CatalogDeps& deps = catalog_.deps();
  std::vector<catalog::PointerMove> moves;
  const auto remake = [&](const std::optional<catalog::CatalogObject>& object,
                          TableView view) -> Status {
    if (!object) {
      return Status::Ok();
    }
    TARN_ASSIGN_OR_RETURN(const catalog::LoadedView old, catalog_.LoadView(object->rid));
    TARN_ASSIGN_OR_RETURN(const iceberg::ViewMetadata metadata,
                          MakeTableView(spec_, internal, view, old.metadata.get(),
                                        old.metadata->view_uuid, ToMillis(deps.clock.Now())));
    TARN_ASSIGN_OR_RETURN(std::string location, catalog_.WriteFirst(metadata));
    moves.push_back({.rid = object->rid,
                     .expected_location = old.object.metadata_location,
                     .next_location = std::move(location)});
    return Status::Ok();
  };
  TARN_RETURN_IF_ERROR(remake(objects_->current_view, TableView::kCurrent));
  TARN_RETURN_IF_ERROR(remake(objects_->history_view, TableView::kHistory));
  return moves;
}

Status TargetTable::EnsureColumns(const iceberg::Schema& users,
                                  const metastore::SqlFunction& also) {
  if (!exists()) {
    return Create(users, also);
  }
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable table, Load());
  TARN_ASSIGN_OR_RETURN(const iceberg::SchemaUpdate update, PlanColumns(*table.metadata, users));
  return CommitColumns(table, update, also);
}

Status TargetTable::DropColumns(const std::vector<std::string>& names,
                                const metastore::SqlFunction& also) {
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable table, Load());
  TARN_ASSIGN_OR_RETURN(const iceberg::SchemaUpdate update,
                        PlanDrops(spec_, *table.metadata, names));
  return CommitColumns(table, update, also);
}

Status TargetTable::CommitColumns(const catalog::LoadedTable& table,
                                  const iceberg::SchemaUpdate& update,
                                  const metastore::SqlFunction& also) {
  if (update.schema().HasSameColumns(table.metadata->CurrentSchema())) {
    return Status::Ok();
  }
  const std::lock_guard lock(commit_mutex_);
  iceberg::TableMetadata next = *table.metadata;
  next.schemas = {std::make_shared<const iceberg::Schema>(update.schema())};
  next.current_schema_id = update.schema().schema_id;
  TARN_ASSIGN_OR_RETURN(const std::vector<catalog::PointerMove> views, RemakeViews(next));
  std::vector<catalog::TableChange> changes;
  changes.push_back({.table = table.object,
                     .requirements = {iceberg::table_requirement::AssertCurrentSchemaId{
                         .current_schema_id = table.metadata->current_schema_id}},
                     .updates = SchemaUpdates(update.schema())});
  if (objects_->applied) {
    changes.push_back({.table = *objects_->applied,
                       .requirements = {},
                       .updates = SchemaUpdates(UserSchema(update.schema()))});
  }
  TARN_RETURN_IF_ERROR(
      catalog_.CommitTables(changes, [&](metastore::SqlTransaction& sql) -> Status {
        if (also) {
          TARN_RETURN_IF_ERROR(also(sql));
        }
        for (const catalog::PointerMove& view : views) {
          TARN_RETURN_IF_ERROR(catalog::MovePointer(sql, view));
        }
        return Status::Ok();
      }));
  return FindObjects();
}

Result<TargetTable::ChangesSession> TargetTable::OpenChanges(Timestamp now) {
  ChangesSession session;
  TARN_ASSIGN_OR_RETURN(session.table, Load());
  TARN_ASSIGN_OR_RETURN(const TableProgress progress, ReadProgress());
  session.writer = std::make_unique<ChangesWriter>(
      ChangesWriterOptions{.spec = &spec_,
                           .metadata = session.table.metadata.get(),
                           .last = progress.last,
                           .now = now},
      TableWriterDeps{catalog_.deps().warehouse, catalog_.deps().uuids});
  return session;
}

Result<iceberg::DataFile> TargetTable::WriteAssetState(const iceberg::TableMetadata& metadata,
                                                       const AssetState& state, Timestamp now) {
  arrow::FieldVector fields;
  arrow::ArrayVector columns;
  const auto add_text = [&](HeaderColumn column, const std::string& text) -> Status {
    arrow::StringBuilder builder;
    TARN_RETURN_IF_ERROR(text.empty() ? builder.AppendNull() : builder.Append(text));
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> array, builder.Finish());
    fields.push_back(arrow::field(std::string(Name(column)), array->type()));
    columns.push_back(std::move(array));
    return Status::Ok();
  };
  const auto add_time = [&](HeaderColumn column) -> Status {
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> array, MakeTimes({ToMicros(now)}));
    fields.push_back(arrow::field(std::string(Name(column)), array->type()));
    columns.push_back(std::move(array));
    return Status::Ok();
  };
  TARN_RETURN_IF_ERROR(add_time(state.apply_identifier.empty() ? HeaderColumn::kInsertedTimestamp
                                                               : HeaderColumn::kModifiedTimestamp));
  TARN_RETURN_IF_ERROR(add_text(HeaderColumn::kApplyChangeIdentifier, state.apply_identifier));
  TARN_RETURN_IF_ERROR(add_text(HeaderColumn::kCopyChangeIdentifier, state.copy_identifier));
  TableWriterOptions options;
  options.metadata = &metadata;
  options.spec_id = kInternalSpecId;
  options.partition = std::string(kAssetStatePartition);
  TableWriter writer(options, {catalog_.deps().warehouse, catalog_.deps().uuids});
  TARN_RETURN_IF_ERROR(
      writer.Write(arrow::RecordBatch::Make(arrow::schema(fields), 1, std::move(columns))));
  TARN_ASSIGN_OR_RETURN(std::vector<iceberg::DataFile> files, writer.Close());
  return files.front();
}

Result<int64_t> TargetTable::CommitAppend(AppendCommit append) {
  storage::ObjectStore& store = catalog_.deps().warehouse;
  const std::lock_guard lock(commit_mutex_);
  const bool merge = spec_.mode == Mode::kMerge;
  const std::string copied = FormatChangeIdentifier(append.written.last);
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable table, Load());
  std::vector<iceberg::DataFile> files = append.written.files;
  if (merge && !files.empty()) {
    Result<iceberg::DataFile> state = WriteAssetState(
        *table.metadata, {.apply_identifier = {}, .copy_identifier = copied}, append.now);
    if (!state.ok()) {
      RemoveFiles(store, files);
      return state.status();
    }
    files.push_back(std::move(state).value());
  }
  CrashPoint("append-after-files");
  TableCommitRequest request;
  request.internal = objects_->internal->rid;
  if (objects_->applied) {
    request.applied = objects_->applied->rid;
  }
  request.inputs = append.inputs;
  request.also = append.also;
  request.now = append.now;
  request.plan = [&](const iceberg::TableMetadata& base) -> Result<SnapshotPair> {
    SnapshotPair pair;
    pair.internal.operation = iceberg::SnapshotOperation::kAppend;
    pair.internal.added_data_files = files;
    pair.internal.summary =
        SummaryFor(append.written.last.change_number, SummaryOf(base, kApplyIdentifierKey), copied);
    for (const ConsumedInput& input : append.inputs) {
      pair.internal.summary[std::string(kInputKeyPrefix) + input.dataset] = input.transaction;
    }
    pair.internal.expiry = ExpiryOf(spec_.snapshots);
    return pair;
  };
  Result<TableCommitted> committed = CommitSnapshots(catalog_, request);
  if (!committed.ok()) {
    if (committed.status().code() != ErrorCode::kCommitStateUnknown) {
      RemoveFiles(store, files);
    }
    return committed.status().WithContext("append to " + spec_.name);
  }
  CrashPoint("append-after-commit");
  RemoveExpiredFiles(catalog_, *committed);
  return committed->snapshot_id;
}

namespace {

// The unapplied part of a snapshot: change files beyond the applied identifier.
Result<TableFiles> ListUnapplied(catalog::Catalog& catalog, const catalog::LoadedTable& table) {
  TARN_ASSIGN_OR_RETURN(TableFiles files,
                        ListTableFiles(catalog.deps().warehouse, catalog.manifest_cache(),
                                       *table.metadata, std::nullopt));
  TakeApplied(files, SummaryOf(*table.metadata, kApplyIdentifierKey));
  return files;
}

}  // namespace

Result<UnappliedWork> TargetTable::ReadUnapplied() {
  UnappliedWork work;
  if (!exists() || spec_.mode == Mode::kAppend) {
    return work;
  }
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable table, Load());
  TARN_ASSIGN_OR_RETURN(const TableFiles files, ListUnapplied(catalog_, table));
  work.rows = files.change_rows();
  work.bytes = files.change_bytes();
  work.files = static_cast<int64_t>(files.changes.size());
  work.current_rows = files.current_rows();
  if (!files.changes.empty()) {
    const std::string* lowest = files.changes.front().file.lower_bounds.Find(
        Spec(HeaderColumn::kInsertedTimestamp).field_id);
    if (lowest != nullptr) {
      TARN_ASSIGN_OR_RETURN(const iceberg::Literal micros,
                            iceberg::DecodeLiteral(iceberg::Type::TimestampTz(), *lowest));
      work.oldest = FromMicros(micros.AsLong());
    }
  }
  return work;
}

struct TargetTable::ApplyWork {
  const catalog::LoadedTable& table;
  const TableFiles& files;                   // What is applied, and to which files.
  bool removes_changes = false;              // They leave the table with this commit.
  std::vector<iceberg::DataFile> removed{};  // Of Current, with their deletes: they go as well.
  std::vector<iceberg::DataFile> removed_deletes{};
  std::vector<iceberg::DataFile> outlived{};  // That the published table does not have.
  std::optional<ChangeIdentifier> reload{};   // The last one of a reload, whose changes no
                                              // snapshot has.
  const ApplyFunction& also;
  Timestamp now;
};

// The files that an apply adds and removes.
iceberg::SnapshotUpdate TargetTable::UpdateOf(const ApplyWork& work, const ApplyResult& result,
                                              const std::vector<iceberg::DataFile>& added) {
  iceberg::SnapshotUpdate update;
  update.operation = iceberg::SnapshotOperation::kOverwrite;
  for (const iceberg::DataFile& file : added) {
    const bool deletes = file.content == iceberg::DataFileContent::kPositionDeletes;
    (deletes ? update.added_delete_files : update.added_data_files).push_back(file);
  }
  update.removed_data_files = result.removed;
  update.removed_data_files.insert(update.removed_data_files.end(), work.outlived.begin(),
                                   work.outlived.end());
  for (const FileScanTask& task : work.files.asset_state) {
    update.removed_data_files.push_back(task.file);
  }
  if (work.removes_changes) {
    for (const FileScanTask& task : work.files.changes) {
      update.removed_data_files.push_back(task.file);
    }
  }
  update.removed_delete_files = result.removed_deletes;
  return update;
}

Result<CommittedApply> TargetTable::RunAndCommit(const ApplyWork& work) {
  storage::ObjectStore& store = catalog_.deps().warehouse;
  const iceberg::TableMetadata& metadata = *work.table.metadata;
  TARN_ASSIGN_OR_RETURN(
      ApplyResult result,
      RunApply({.spec = spec_,
                .metadata = metadata,
                .files = work.files,
                .now = work.now,
                .origin = work.reload ? ChangeOrigin::kReload : ChangeOrigin::kSource},
               {store, catalog_.deps().uuids}));
  for (const iceberg::DataFile& file : work.removed) {
    result.removed.push_back(file);
    if (HoldsDeletesOnly(file)) {
      result.hidden_paths.push_back(file.file_path);
    }
  }
  result.removed_deletes.insert(result.removed_deletes.end(), work.removed_deletes.begin(),
                                work.removed_deletes.end());
  const std::lock_guard lock(commit_mutex_);
  std::vector<iceberg::DataFile> added = AddedFiles(result);
  const std::string applied = result.newest_identifier.empty()
                                  ? SummaryOf(metadata, kApplyIdentifierKey)
                                  : result.newest_identifier;
  const std::string copied = work.reload ? applied : SummaryOf(metadata, kCopyIdentifierKey);
  TARN_ASSIGN_OR_RETURN(
      const iceberg::DataFile state,
      WriteAssetState(metadata, {.apply_identifier = applied, .copy_identifier = copied},
                      work.now));
  added.push_back(state);
  TableCommitRequest request;
  request.internal = objects_->internal->rid;
  if (objects_->applied) {
    request.applied = objects_->applied->rid;
  }
  if (work.also) {
    request.also = [&](metastore::SqlTransaction& sql) { return work.also(sql, result.counts); };
  }
  request.now = work.now;
  request.plan = [&](const iceberg::TableMetadata& base) -> Result<SnapshotPair> {
    SnapshotPair pair;
    iceberg::SnapshotUpdate& update = pair.internal;
    update = UpdateOf(work, result, added);
    update.summary = SummaryFor(
        work.reload ? work.reload->change_number : NumberOf(SummaryOf(base, kChangeCountKey)),
        applied, work.reload ? copied : SummaryOf(base, kCopyIdentifierKey));
    update.expiry = ExpiryOf(spec_.snapshots);
    if (objects_->applied) {
      pair.applied = PublishedUpdate(result, base);
      pair.applied->summary = update.summary;
      pair.applied->expiry = update.expiry;
    }
    return pair;
  };
  Result<TableCommitted> committed = CommitSnapshots(catalog_, request);
  if (!committed.ok()) {
    if (committed.status().code() != ErrorCode::kCommitStateUnknown) {
      RemoveFiles(store, added);
    }
    return committed.status().WithContext("apply to " + spec_.name);
  }
  CrashPoint("apply-after-commit");
  RemoveExpiredFiles(catalog_, *committed);
  return CommittedApply{.counts = result.counts, .snapshot_id = committed->snapshot_id};
}

Result<std::optional<CommittedApply>> TargetTable::Apply(Timestamp now, const ApplyFunction& also) {
  if (!exists() || spec_.mode == Mode::kAppend) {
    return std::optional<CommittedApply>();
  }
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable table, Load());
  TARN_ASSIGN_OR_RETURN(TableFiles files,
                        ListTableFiles(catalog_.deps().warehouse, catalog_.manifest_cache(),
                                       *table.metadata, std::nullopt));
  const std::vector<FileScanTask> applied =
      TakeApplied(files, SummaryOf(*table.metadata, kApplyIdentifierKey));
  if (files.changes.empty()) {
    return std::optional<CommittedApply>();
  }
  ApplyWork work{.table = table,
                 .files = files,
                 .removes_changes = !spec_.keep_changes,
                 .also = also,
                 .now = now};
  TARN_ASSIGN_OR_RETURN(work.outlived, Outlived(applied, spec_.keep_changes, now));
  TARN_ASSIGN_OR_RETURN(CommittedApply committed, RunAndCommit(work));
  return std::optional(committed);
}

Result<CommittedApply> TargetTable::ApplyReload(const ReloadCommit& reload) {
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable table, Load());
  TARN_ASSIGN_OR_RETURN(TableFiles files, ListUnapplied(catalog_, table));
  if (!files.changes.empty()) {
    return Status(ErrorCode::kConflict, fmt::format("table {} has {} changes that are not applied",
                                                    spec_.name, files.change_rows()));
  }
  for (const iceberg::DataFile& file : reload.written.files) {
    files.changes.push_back({.file = file});
  }
  const ApplyFunction also = [&](metastore::SqlTransaction& sql, const ApplyCounts&) {
    return reload.also ? reload.also(sql) : Status::Ok();
  };
  ApplyWork work{.table = table,
                 .files = files,
                 .reload = reload.written.last,
                 .also = also,
                 .now = reload.now};
  if (reload.scope == ReloadCommit::Scope::kEverything) {
    for (std::vector<FileScanTask>* part : {&files.current, &files.prior}) {
      for (const FileScanTask& task : *part) {
        (part == &files.current ? work.removed : work.outlived).push_back(task.file);
        for (const iceberg::DeleteFilePtr& deletes : task.deletes) {
          work.removed_deletes.push_back(deletes->file);
        }
      }
      part->clear();
    }
  }
  Result<CommittedApply> committed = RunAndCommit(work);
  if (committed.ok() || committed.status().code() != ErrorCode::kCommitStateUnknown) {
    RemoveFiles(catalog_.deps().warehouse, reload.written.files);
  }
  return committed;
}

Result<std::string> TargetTable::CurrentSql(SqlDialect dialect) {
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable table, Load());
  return TableViewSql(spec_, table.metadata->CurrentSchema(), TableView::kCurrent, dialect);
}

Result<std::string> TargetTable::HistorySql(SqlDialect dialect) {
  if (!spec_.fold.history) {
    return Status::FailedPrecondition(
        fmt::format("table {} keeps no history: set history: true", spec_.name));
  }
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable table, Load());
  return TableViewSql(spec_, table.metadata->CurrentSchema(), TableView::kHistory, dialect);
}

}  // namespace tarn::lakehouse
