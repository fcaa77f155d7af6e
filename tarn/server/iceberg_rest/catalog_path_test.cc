#include "tarn/server/iceberg_rest/catalog_path.h"

#include "test/support/matchers.h"

namespace tarn::server::iceberg_rest {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CatalogPathTest, PartsAreFound) {
  ASSERT_OK_AND_ASSIGN(const CatalogPath list, ParseCatalogPath("/iceberg/v1/namespaces?parent=x"));
  EXPECT_EQ(list.prefix, "");
  EXPECT_THAT(list.levels, IsEmpty());
  ASSERT_OK_AND_ASSIGN(const CatalogPath table,
                       ParseCatalogPath("/iceberg/v1/namespaces/shop/tables/orders?snapshots=all"));
  EXPECT_EQ(table.prefix, "");
  EXPECT_THAT(table.levels, ElementsAre("shop"));
  EXPECT_EQ(table.name, "orders");
  ASSERT_OK_AND_ASSIGN(const CatalogPath prefixed,
                       ParseCatalogPath("/iceberg/v1/p/namespaces/shop/views/orders"));
  EXPECT_EQ(prefixed.prefix, "p");
  EXPECT_THAT(prefixed.levels, ElementsAre("shop"));
  EXPECT_EQ(prefixed.name, "orders");
}

TEST(CatalogPathTest, NamespaceMayBeCalledNamespaces) {
  ASSERT_OK_AND_ASSIGN(const CatalogPath path,
                       ParseCatalogPath("/iceberg/v1/namespaces/namespaces/tables/tables"));
  EXPECT_EQ(path.prefix, "");
  EXPECT_THAT(path.levels, ElementsAre("namespaces"));
  EXPECT_EQ(path.name, "tables");
}

TEST(CatalogPathTest, PartsAreDecodedAsFormFields) {
  ASSERT_OK_AND_ASSIGN(const CatalogPath path,
                       ParseCatalogPath("/iceberg/v1/namespaces/a.b%1Fc%2Fd+e%2Bf/tables/x%20y"));
  EXPECT_THAT(path.levels, ElementsAre("a.b", "c/d e+f"));
  EXPECT_EQ(path.name, "x y");
  EXPECT_EQ(path.identifier().ToString(), "a.b.c/d e+f.x y");
  EXPECT_THAT(ParseCatalogPath("/iceberg/v1/namespaces/%zz"), Fails(ErrorCode::kInvalidArgument));
}

}  // namespace

}  // namespace tarn::server::iceberg_rest
