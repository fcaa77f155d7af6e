// PlainTables: a home with Iceberg tables that belong to no pipeline, for tests.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <arrow/compute/initialize.h>
#include <arrow/record_batch.h>

#include "tarn/catalog/catalog.h"
#include "tarn/engine/engine.h"
#include "tarn/lakehouse/scan/snapshot_commit.h"
#include "tarn/lakehouse/scan/table_rows.h"
#include "tarn/lakehouse/table_inputs.h"
#include "tarn/lakehouse/table_writer.h"
#include "tarn/metastore/sqlite_database.h"
#include "tarn/storage/local_store.h"
#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::lakehouse {

/// Rows of a SELECT of the engine into a table, as one append snapshot.
inline Result<int64_t> AppendSelect(catalog::Catalog& catalog, engine::Engine& engine,
                                    const Rid& rid, const std::string& select) {
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable table, catalog.LoadTable(rid));
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<engine::Session> session, engine.OpenSession());
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<engine::ArrowStream> stream, session->Query(select));
  TableWriter writer({.metadata = table.metadata.get(),
                      .spec_id = table.metadata->default_spec_id,
                      .partition = {}},
                     {catalog.deps().warehouse, catalog.deps().uuids});
  while (true) {
    TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> batch, stream->Next());
    if (batch == nullptr) {
      break;
    }
    TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> rows,
                          AsTableRows(table.metadata->CurrentSchema().fields, batch));
    TARN_RETURN_IF_ERROR(writer.Write(rows));
  }
  iceberg::SnapshotUpdate update;
  TARN_ASSIGN_OR_RETURN(update.added_data_files, writer.Close());
  TARN_ASSIGN_OR_RETURN(const SnapshotCommit commit, CommitSnapshot(catalog, rid, update));
  return commit.snapshot_id;
}

/// A table (id long, p string), partitioned by p when asked.
inline iceberg::TableDefinition PlainDefinition(int format_version, bool partitioned) {
  iceberg::TableDefinition definition;
  for (const auto& [id, name, type] :
       {std::tuple(1, "id", iceberg::Type::Long()), std::tuple(2, "p", iceberg::Type::String())}) {
    iceberg::SchemaField field;
    field.id = id;
    field.name = name;
    field.type = type;
    definition.schema.fields.push_back(std::move(field));
  }
  if (partitioned) {
    definition.spec.fields = {{.source_id = 2, .field_id = 1000, .name = "p"}};
  }
  definition.properties["format-version"] = std::to_string(format_version);
  return definition;
}

class PlainTables {
 public:
  PlainTables() : uuids_(clock_), tree_(uuids_, clock_) {
    TARN_CHECK(arrow::compute::Initialize().ok());
    database_ =
        metastore::SqliteDatabase::Open({.path = directory_.path() / "metastore.db"}).value();
    std::vector<metastore::Migration> migrations;
    for (const std::vector<metastore::Migration>& room :
         {tree::Migrations(), catalog::Migrations(), lakehouse::Migrations()}) {
      migrations.insert(migrations.end(), room.begin(), room.end());
    }
    TARN_CHECK(database_->Migrate(migrations).ok());
    TARN_CHECK(database_
                   ->Write([&](metastore::SqlTransaction& sql) -> Status {
                     TARN_ASSIGN_OR_RETURN(const Rid project, tree_.Bootstrap(sql, "test"));
                     TARN_ASSIGN_OR_RETURN(const tree::Node node,
                                           tree_.EnsureFolder(sql, project, "shop", "test"));
                     folder_ = node.rid;
                     return Status::Ok();
                   })
                   .ok());
    store_ = storage::LocalStore::Open({.root = directory_.path() / "warehouse"}).value();
    engine_ = engine::Engine::Open({.allowed_directories = {store_->root_path()}}).value();
    catalog_ = std::make_unique<catalog::Catalog>(
        catalog::CatalogOptions{},
        catalog::CatalogDeps{*database_, *store_, tree_, uuids_, clock_});
  }

  Result<Rid> Make(const std::string& name, int format_version = 2, bool partitioned = false,
                   std::map<std::string, std::string> properties = {}) {
    iceberg::TableDefinition definition = PlainDefinition(format_version, partitioned);
    definition.table_uuid = uuids_.NextV7().ToString();
    definition.location = storage::UriOf(*store_, "tables/" + name);
    definition.properties.merge(properties);
    TARN_ASSIGN_OR_RETURN(const iceberg::TableMetadata metadata,
                          iceberg::MakeTableMetadata(definition, ToMillis(clock_.Now())));
    TARN_ASSIGN_OR_RETURN(
        const catalog::LoadedTable table,
        catalog_->CreateTable({.folder = folder_, .name = name, .by = "test"}, metadata));
    return table.object.rid;
  }

  Result<int64_t> Append(const Rid& table, const std::string& select) {
    clock_.Advance(std::chrono::seconds(1));
    return AppendSelect(*catalog_, *engine_, table, select);
  }

  [[nodiscard]] iceberg::TableMetadata Metadata(const Rid& table) {
    return *catalog_->LoadTable(table).value().metadata;
  }

  ManualClock& clock() { return clock_; }
  storage::LocalStore& store() { return *store_; }
  catalog::Catalog& catalog() { return *catalog_; }
  engine::Engine& engine() { return *engine_; }
  UuidGenerator& uuids() { return uuids_; }

 private:
  TemporaryDirectory directory_;
  ManualClock clock_{FromMillis(1'800'000'000'000)};
  UuidGenerator uuids_;
  tree::Tree tree_;
  std::unique_ptr<metastore::SqliteDatabase> database_;
  std::unique_ptr<storage::LocalStore> store_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<catalog::Catalog> catalog_;
  Rid folder_;
};

}  // namespace tarn::lakehouse
