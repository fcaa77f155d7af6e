#include "tarn/iceberg/codec/name_mapping.h"

#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

TEST(NameMappingTest, FieldsAreFoundByAnyOfTheirNames) {
  ASSERT_OK_AND_ASSIGN(
      const NameMapping mapping,
      ParseNameMapping(R"([{"field-id":1,"names":["id","ID"]},{"field-id":2,"names":["tags"],)"
                       R"("fields":[{"field-id":3,"names":["element"]}]},{"names":["x"]}])"));
  EXPECT_EQ(FindMapped(mapping, "ID")->field_id, 1);
  EXPECT_EQ(FindMapped(FindMapped(mapping, "tags")->fields, "element")->field_id, 3);
  EXPECT_EQ(FindMapped(mapping, "x")->field_id, std::nullopt);
  EXPECT_EQ(FindMapped(mapping, "y"), nullptr);
}

TEST(NameMappingTest, BadTextNamesTheProperty) {
  TableMetadata metadata;
  EXPECT_THAT(NameMappingOf(metadata), IsOkAndHolds(std::optional<NameMapping>()));
  for (const char* text : {"", "{}", "[1]", R"([{"names":"a"}])",
                           R"([{"field-id":1,"names":["a"]},{"field-id":2,"names":["a"]}])"}) {
    metadata.properties[std::string(kNameMappingProperty)] = text;
    EXPECT_THAT(NameMappingOf(metadata),
                FailsWith(ErrorCode::kInvalidArgument, "schema.name-mapping.default"));
  }
}

}  // namespace
}  // namespace tarn::iceberg
