// A catalog on a metastore and a store of its own, for tests of the room.
#pragma once

#include <memory>
#include <string>

#include "tarn/access/schema.h"
#include "tarn/catalog/catalog.h"
#include "tarn/iceberg/metadata_builder.h"
#include "tarn/metastore/faulty_database.h"
#include "tarn/storage/memory_store.h"
#include "test/support/metastore_fixture.h"

namespace tarn::catalog {

class CatalogFixture : public MetastoreFixture {
 protected:
  void SetUp() override {
    OpenWith({access::Migrations(), tree::Migrations(), Migrations()});
    ASSERT_OK(Do([&](metastore::SqlTransaction& sql) -> Status {
      Result<Rid> project = tree_.Bootstrap(sql, "test");
      TARN_RETURN_IF_ERROR(project);
      TARN_ASSIGN_OR_RETURN(const tree::Node folder,
                            tree_.EnsureFolder(sql, *project, "shop", "test"));
      folder_rid_ = folder.rid;
      return Status::Ok();
    }));
    faulty_ = std::make_unique<metastore::FaultyDatabase>(*database_);
    catalog_ = std::make_unique<Catalog>(CatalogOptions{},
                                         CatalogDeps{*faulty_, store_, tree_, ids_, clock_});
  }

  CatalogObject MakeTable(const std::string& name) {
    iceberg::TableDefinition definition;
    definition.table_uuid = ids_.NextV7().ToString();
    definition.location = "memory://store/tables/" + name;
    iceberg::SchemaField field;
    field.id = 1;
    field.name = "id";
    field.type = iceberg::Type::Long();
    definition.schema.fields = {field};
    const iceberg::TableMetadata metadata = iceberg::MakeTableMetadata(definition, 1000).value();
    const std::string location = catalog_->WriteFirst(metadata).value();
    return In<CatalogObject>([&](metastore::SqlTransaction& sql) {
             return CreateObject(sql, tree_,
                                 {.kind = ObjectKind::kTable,
                                  .folder = folder_rid_,
                                  .name = name,
                                  .uuid = definition.table_uuid,
                                  .metadata_location = location,
                                  .by = "test"});
           })
        .value();
  }

  static TableChange SetProperty(const CatalogObject& table, const std::string& value) {
    return {.table = table,
            .requirements = {},
            .updates = {iceberg::table_update::SetProperties{.updates = {{"p", value}}}}};
  }

  std::string PropertyOf(const CatalogObject& table) {
    const LoadedTable loaded = catalog_->LoadTable(table.rid).value();
    const auto found = loaded.metadata->properties.find("p");
    return found == loaded.metadata->properties.end() ? "" : found->second;
  }

  /// Metadata of a table with one column, at a location of its own.
  iceberg::TableMetadata MakeMetadata(const std::string& location) {
    iceberg::TableDefinition definition;
    definition.table_uuid = ids_.NextV7().ToString();
    definition.location = location;
    iceberg::SchemaField field;
    field.id = 1;
    field.name = "id";
    field.type = iceberg::Type::Long();
    definition.schema.fields = {field};
    return iceberg::MakeTableMetadata(definition, ToMillis(clock_.Now())).value();
  }

  [[nodiscard]] ObjectPlace At(const std::string& name) const {
    return {.folder = folder_rid_, .name = name, .by = "test"};
  }

  storage::MemoryStore store_{clock_};
  tree::Tree tree_{ids_, clock_};
  Rid folder_rid_;
  std::unique_ptr<metastore::FaultyDatabase> faulty_;
  std::unique_ptr<Catalog> catalog_;
};

}  // namespace tarn::catalog
