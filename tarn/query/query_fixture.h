// A whole home for tests of queries: metastore, warehouse, catalog, datasets and engine.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <arrow/api.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tarn/access/bootstrap.h"
#include "tarn/access/schema.h"
#include "tarn/base/arrow_status.h"
#include "tarn/catalog/catalog.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/format/parquet_writer.h"
#include "tarn/lakehouse/change_batch.h"
#include "tarn/lakehouse/target_table.h"
#include "tarn/metastore/sqlite_database.h"
#include "tarn/query/result_format.h"
#include "tarn/query/run_sql.h"
#include "tarn/query/union_view.h"
#include "tarn/storage/local_store.h"
#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::query {

/// One change of a row (id, name, region); `name` absent = NULL.
struct TestChange {
  lakehouse::Operation operation = lakehouse::Operation::kInsert;
  std::optional<int64_t> id;
  std::optional<std::string> name{};
  std::string region = "eu";
  int64_t time_ms = 0;
};

class QueryFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(
        database_, metastore::SqliteDatabase::Open({.path = directory_.path() / "metastore.db"}));
    for (const auto& migrations : {access::Migrations(), tree::Migrations(), dataset::Migrations(),
                                   catalog::Migrations(), lakehouse::Migrations(), Migrations()}) {
      ASSERT_OK(database_->Migrate(migrations));
    }
    ASSERT_OK_AND_ASSIGN(warehouse_,
                         storage::LocalStore::Open({.root = directory_.path() / "warehouse"}));
    ASSERT_OK_AND_ASSIGN(engine_,
                         engine::Engine::Open({.allowed_directories = {warehouse_->root_path()}}));
    catalog_ = std::make_unique<catalog::Catalog>(
        catalog::CatalogOptions{},
        catalog::CatalogDeps{*database_, *warehouse_, tree_, uuids_, clock_});
    datasets_ = std::make_unique<dataset::DatasetStore>(*database_, clock_, uuids_);
    ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const std::optional<access::Bootstrapped> made,
                            access::Bootstrap(sql, tree::RootRid(), uuids_, clock_));
      admin_ = {.user_id = made->admin.id,
                .username = made->admin.username,
                .scopes = access::ScopeSet::All()};
      TARN_ASSIGN_OR_RETURN(project_, tree_.Bootstrap(sql, admin_.user_id));
      return Status::Ok();
    }));
  }

  [[nodiscard]] QueryDeps deps() { return {authorizer_, *catalog_, *datasets_, *engine_}; }

  /// A user without any grant.
  access::Principal MakeUser(const std::string& name) {
    access::Principal principal;
    access::Directory directory(uuids_, clock_);
    EXPECT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const access::User user, directory.CreateUser(sql, {.username = name}));
      principal = {
          .user_id = user.id, .username = user.username, .scopes = access::ScopeSet::All()};
      return Status::Ok();
    }));
    return principal;
  }

  /// The rows as JSON objects, sorted by their text.
  Result<std::vector<nlohmann::json>> Rows(const QueryRequest& request,
                                           const access::Principal& principal) {
    TARN_ASSIGN_OR_RETURN(const std::unique_ptr<RunningQuery> query,
                          RunSql(request, principal, deps()));
    std::string text;
    TARN_RETURN_IF_ERROR(WriteResult(*query, ResultFormat::kJson, [&](std::string_view piece) {
      text += piece;
      return Status::Ok();
    }));
    nlohmann::json rows = nlohmann::json::parse(text);
    std::sort(rows.begin(), rows.end(),
              [](const nlohmann::json& a, const nlohmann::json& b) { return a.dump() < b.dump(); });
    return std::vector<nlohmann::json>(rows.begin(), rows.end());
  }
  Result<std::vector<nlohmann::json>> Rows(const std::string& sql, const std::string& at = "") {
    return Rows({.sql = sql, .at = at}, admin_);
  }

  static iceberg::Schema UserColumns() {
    iceberg::Schema schema;
    const auto add = [&](int32_t id, const char* name, iceberg::Type type) {
      iceberg::SchemaField field;
      field.id = id;
      field.name = name;
      field.type = std::move(type);
      schema.fields.push_back(std::move(field));
    };
    add(1, "id", iceberg::Type::Long());
    add(2, "name", iceberg::Type::String());
    add(3, "region", iceberg::Type::String());
    return schema;
  }

  static lakehouse::TableSpec MakeSpec(const std::string& name) {
    lakehouse::TableSpec spec;
    spec.name = name;
    spec.external_schema = "shop";
    spec.internal_schema = "shop_internal";
    spec.key = {"id"};
    return spec;
  }

  Result<std::unique_ptr<lakehouse::TargetTable>> OpenTarget(const lakehouse::TableSpec& spec) {
    TARN_ASSIGN_OR_RETURN(
        std::unique_ptr<lakehouse::TargetTable> table,
        lakehouse::TargetTable::Open(spec, {.project = project_, .by = admin_.user_id}, *catalog_));
    TARN_RETURN_IF_ERROR(table->EnsureColumns(UserColumns()));
    return table;
  }

  static Result<lakehouse::ChangeBatch> MakeBatch(const std::vector<TestChange>& changes,
                                                  Timestamp now) {
    lakehouse::ChangeBatch batch;
    arrow::Int64Builder ids;
    arrow::StringBuilder names;
    arrow::StringBuilder regions;
    for (const TestChange& change : changes) {
      TARN_RETURN_IF_ERROR(change.id ? ids.Append(*change.id) : ids.AppendNull());
      TARN_RETURN_IF_ERROR(change.name ? names.Append(*change.name) : names.AppendNull());
      TARN_RETURN_IF_ERROR(regions.Append(change.region));
      batch.operations.push_back(change.operation);
      batch.timestamps_micros.push_back(change.time_ms * 1000);
      batch.landed_micros.push_back(ToMicros(now));
      batch.source_micros.push_back(ToMicros(now));
    }
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> id, ids.Finish());
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> name, names.Finish());
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> region, regions.Finish());
    batch.rows = arrow::RecordBatch::Make(
        arrow::schema({arrow::field("id", arrow::int64()), arrow::field("name", arrow::utf8()),
                       arrow::field("region", arrow::utf8())}),
        static_cast<int64_t>(changes.size()), {id, name, region});
    return batch;
  }

  /// Appends changes as one batch; returns the snapshot id.
  Result<int64_t> Append(lakehouse::TargetTable& table, const std::vector<TestChange>& changes,
                         std::vector<lakehouse::ConsumedInput> inputs = {}) {
    clock_.Advance(std::chrono::seconds(1));
    TARN_ASSIGN_OR_RETURN(lakehouse::TargetTable::ChangesSession session,
                          table.OpenChanges(clock_.Now()));
    TARN_ASSIGN_OR_RETURN(const lakehouse::ChangeBatch batch, MakeBatch(changes, clock_.Now()));
    TARN_RETURN_IF_ERROR(session.writer->Write(batch));
    TARN_ASSIGN_OR_RETURN(lakehouse::WrittenChanges written, session.writer->Close());
    return table.CommitAppend({.written = std::move(written),
                               .inputs = std::move(inputs),
                               .also = {},
                               .now = clock_.Now()});
  }

  Status Apply(lakehouse::TargetTable& table) {
    clock_.Advance(std::chrono::seconds(1));
    return StatusOf(table.Apply(clock_.Now()));
  }

  Result<dataset::DatasetRid> MakeDataset(const std::string& folder, const std::string& name) {
    Rid parent;
    TARN_RETURN_IF_ERROR(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const tree::Node node,
                            tree_.EnsureFolder(sql, project_, folder, admin_.user_id));
      parent = node.rid;
      return Status::Ok();
    }));
    TARN_ASSIGN_OR_RETURN(
        const dataset::Dataset dataset,
        datasets_->CreateDataset({.parent_folder = parent, .name = name, .by = admin_.user_id}));
    return dataset.rid;
  }

  Result<dataset::StoredFile> WriteParquet(const std::string& path,
                                           const std::shared_ptr<arrow::RecordBatch>& rows) {
    const std::string key = "datasets/" + uuids_.NextV7().ToString() + ".parquet";
    TARN_ASSIGN_OR_RETURN(std::unique_ptr<storage::ObjectWriter> object,
                          warehouse_->OpenWriter(key, storage::WriteMode::kOverwrite));
    TARN_ASSIGN_OR_RETURN(const std::unique_ptr<format::ParquetWriter> writer,
                          format::ParquetWriter::Open(std::move(object), rows->schema()));
    TARN_RETURN_IF_ERROR(writer->Write(*rows));
    TARN_RETURN_IF_ERROR(writer->Close());
    dataset::StoredFile file;
    file.path = path;
    file.location = key;
    file.size_bytes = 1;
    return file;
  }

  Result<dataset::TransactionRid> CommitFiles(
      const dataset::DatasetRid& rid, std::vector<dataset::StoredFile> files,
      const std::string& branch = "master",
      dataset::TransactionType type = dataset::TransactionType::kAppend) {
    clock_.Advance(std::chrono::seconds(1));
    dataset::TransactionRid committed;
    TARN_RETURN_IF_ERROR(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(
          const dataset::Transaction transaction,
          datasets_->CommitFiles(
              sql, {.dataset = rid, .branch = branch, .type = type, .files = files, .commit = {}}));
      committed = transaction.rid;
      return Status::Ok();
    }));
    return committed;
  }

  TemporaryDirectory directory_;
  ManualClock clock_{FromMillis(1'800'000'000'000)};
  UuidGenerator uuids_{clock_};
  tree::Tree tree_{uuids_, clock_};
  access::Authorizer authorizer_{clock_};
  std::unique_ptr<metastore::SqliteDatabase> database_;
  std::unique_ptr<storage::LocalStore> warehouse_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::unique_ptr<dataset::DatasetStore> datasets_;
  access::Principal admin_;
  Rid project_;
};

}  // namespace tarn::query
