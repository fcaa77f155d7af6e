#include "tarn/dataset/dataset_fixture.h"

namespace tarn::dataset {
namespace {

class StoreSchemasTest : public DatasetFixture {
 protected:
  static std::string SchemaOf(const std::string& column) {
    return R"({"fieldSchemaList":[{"type":"LONG","name":")" + column + R"("}],"extra":1})";
  }
  Result<StoredSchema> Put(const std::string& column, const std::string& branch = "master",
                           const std::optional<TransactionRid>& end = {}) {
    PutSchemaOptions options;
    options.branch = branch;
    options.end = end;
    options.by = "me";
    return store_->PutSchema(rid_, SchemaOf(column), options);
  }
  // Name of the only column, or the reason there is none.
  std::string Get(const std::string& branch = "master",
                  const std::optional<TransactionRid>& end = {}) {
    GetSchemaOptions options;
    options.branch = branch;
    options.end = end;
    const Result<StoredSchema> read = store_->GetSchema(rid_, options);
    return read.ok() ? read->schema.fields[0].name : read.status().reason();
  }
  void MakeChild(const std::string& name, const std::string& parent) {
    CreateBranchOptions options;
    options.from_branch = parent;
    ASSERT_OK(store_->CreateBranch(rid_, name, options));
  }
};

TEST_F(StoreSchemasTest, ABranchWithoutTransactionsHasNoView) {
  EXPECT_EQ(StatusOf(Put("a")).reason(), "DatasetViewNotFound");
  EXPECT_EQ(Get(), "DatasetViewNotFound");
  ASSERT_OK(Commit(TransactionType::kAppend, {}));
  EXPECT_EQ(Get(), "SchemaNotFound");
}

TEST_F(StoreSchemasTest, TheNewestPutAtOrBeforeTheEndIsRead) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid first, Commit(TransactionType::kSnapshot, {}));
  ASSERT_OK_AND_ASSIGN(const StoredSchema put, Put("a"));
  EXPECT_EQ(put.end_transaction, first);
  ASSERT_OK_AND_ASSIGN(const TransactionRid second, Commit(TransactionType::kAppend, {}));
  EXPECT_EQ(Get(), "a");
  ASSERT_OK(Put("b"));
  ASSERT_OK(Put("c"));
  EXPECT_EQ(Get(), "c");
  EXPECT_EQ(Get("master", first), "a");
  EXPECT_EQ(Get("master", second), "c");
  GetSchemaOptions options;
  options.version = put.version;
  ASSERT_OK_AND_ASSIGN(const StoredSchema old, store_->GetSchema(rid_, options));
  EXPECT_EQ(old.schema, put.schema);
  EXPECT_EQ(old.version, put.version);
  EXPECT_EQ(old.put_by, "me");
  options.version = uuids_.NextV4();
  EXPECT_EQ(StatusOf(store_->GetSchema(rid_, options)).reason(), "SchemaNotFound");
}

TEST_F(StoreSchemasTest, ASnapshotStartsWithoutOne) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid first, Commit(TransactionType::kSnapshot, {}));
  ASSERT_OK(Put("a"));
  ASSERT_OK(Commit(TransactionType::kSnapshot, {}));
  EXPECT_EQ(Get(), "SchemaNotFound");
  EXPECT_EQ(Get("master", first), "a");
  DatasetSettings settings;
  settings.inherit_schema_on_snapshot = true;
  ASSERT_OK(database_->Write(
      [&](metastore::SqlTransaction& sql) { return store_->UpdateSettings(sql, rid_, settings); }));
  EXPECT_EQ(Get(), "a");
}

TEST_F(StoreSchemasTest, APutOnAChildNeverChangesTheParent) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid shared, Commit(TransactionType::kSnapshot, {}));
  ASSERT_OK(Put("parent"));
  MakeChild("dev", "master");
  EXPECT_EQ(Get("dev"), "parent");
  ASSERT_OK(Put("child", "dev"));
  EXPECT_EQ(Get("dev"), "child");
  EXPECT_EQ(Get(), "parent");
  // The ancestor's as it was when the branch was made.
  MakeChild("other", "master");
  ASSERT_OK(Put("later"));
  EXPECT_EQ(Get(), "later");
  EXPECT_EQ(Get("other"), "parent");
  // Siblings are no ancestors, at the shared transaction neither.
  EXPECT_EQ(Get("other", shared), "parent");
}

TEST_F(StoreSchemasTest, AncestorsStayVisibleAfterTheirBranchIsGone) {
  ASSERT_OK(Commit(TransactionType::kSnapshot, {}));
  ASSERT_OK(Put("root"));
  MakeChild("mid", "master");
  ASSERT_OK(Commit(TransactionType::kAppend, {}, "mid"));
  ASSERT_OK(Put("mid", "mid"));
  MakeChild("leaf", "mid");
  ASSERT_OK(store_->DeleteBranch(rid_, "mid"));
  ASSERT_OK(Commit(TransactionType::kAppend, {}, "leaf"));
  EXPECT_EQ(Get("leaf"), "mid");
  EXPECT_EQ(Get(), "root");
}

TEST_F(StoreSchemasTest, WhatAResetLeftBehindIsNotRead) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid first, Commit(TransactionType::kSnapshot, {}));
  ASSERT_OK(Put("first"));
  ASSERT_OK_AND_ASSIGN(const TransactionRid second, Commit(TransactionType::kAppend, {}));
  ASSERT_OK(Put("second"));
  ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) {
    return StatusOf(store_->ResetBranch(sql, rid_, "master", first, "me"));
  }));
  ASSERT_OK(Commit(TransactionType::kAppend, {}));
  EXPECT_EQ(Get(), "first");
  EXPECT_EQ(Get("master", second), "second");
  EXPECT_EQ(StatusOf(Put("x", "master", second)).reason(), "TransactionNotFound");
}

TEST_F(StoreSchemasTest, AnInvalidSchemaIsNotStored) {
  ASSERT_OK(Commit(TransactionType::kSnapshot, {}));
  EXPECT_EQ(StatusOf(store_->PutSchema(rid_, "{}", {})).reason(), "InvalidSchema");
  EXPECT_EQ(Get(), "SchemaNotFound");
}

}  // namespace
}  // namespace tarn::dataset
