#include "tarn/dataset/schema.h"

#include <string>

#include "test/support/matchers.h"

namespace tarn::dataset {
namespace {

std::string Column(const std::string& members) {
  return R"({"fieldSchemaList":[{)" + members + "}]}";
}

TEST(SchemaTest, AllTypesAreRead) {
  const char* const json = R"({"fieldSchemaList":[
    {"type":"BOOLEAN","name":"a","nullable":false},{"type":"BYTE","name":"b"},
    {"type":"SHORT","name":"c"},{"type":"INTEGER","name":"d"},{"type":"LONG","name":"e"},
    {"type":"FLOAT","name":"f"},{"type":"DOUBLE","name":"g"},
    {"type":"DECIMAL","name":"h","precision":38,"scale":18},{"type":"STRING","name":"i"},
    {"type":"MAP","name":"j","mapKeyType":{"type":"STRING"},"mapValueType":{"type":"LONG"}},
    {"type":"ARRAY","name":"k","arraySubtype":{"type":"DATE"}},
    {"type":"STRUCT","name":"l","subSchemas":[{"type":"LONG","name":"x"}]},
    {"type":"BINARY","name":"m"},{"type":"DATE","name":"n"},{"type":"TIMESTAMP","name":"o"}]})";
  ASSERT_OK_AND_ASSIGN(const DatasetSchema schema, ParseDatasetSchema(json));
  ASSERT_EQ(schema.fields.size(), 15);
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    EXPECT_EQ(schema.fields[i].type, static_cast<FieldType>(i));
    EXPECT_EQ(schema.fields[i].nullable, i != 0);
  }
  EXPECT_EQ(schema.fields[7].precision, 38);
  EXPECT_EQ(schema.fields[7].scale, 18);
  EXPECT_EQ(schema.fields[9].children.size(), 2);
  EXPECT_EQ(schema.fields[10].children[0].type, FieldType::kDate);
  EXPECT_EQ(schema.fields[11].children[0].name, "x");
}

TEST(SchemaTest, UnknownKeysAreEchoedInTheirOrder) {
  const std::string json =
      R"({"zeta":[1,{"q":null}],"fieldSchemaList":[{"type":"STRING","name":"\u00e4",)"
      R"("nullable":null,)"
      R"("userDefinedTypeClass":"u","customMetadata":{"k":1},"later":true}],)"
      R"("dataFrameReaderClass":"c.TextDataFrameReader","customMetadata":{"textParserParams":{}}})";
  ASSERT_OK_AND_ASSIGN(const DatasetSchema schema, ParseDatasetSchema(json));
  EXPECT_EQ(schema.json.find(R"({"zeta":[1,{"q":null}],"fieldSchemaList")"), 0);
  EXPECT_NE(schema.json.find(R"("later":true)"), std::string::npos);
  EXPECT_EQ(schema.reader_class, "c.TextDataFrameReader");
  EXPECT_EQ(schema.custom_metadata_json, R"({"textParserParams":{}})");
  EXPECT_EQ(schema.fields[0].name, "\xC3\xA4");
  EXPECT_EQ(schema.fields[0].user_defined_type_class, "u");
  EXPECT_EQ(schema.fields[0].custom_metadata_json, R"({"k":1})");
  EXPECT_THAT(ParseDatasetSchema(schema.json), IsOkAndHolds(schema));
}

TEST(SchemaTest, WrongSchemasAreRefused) {
  std::string deep = R"({"type":"LONG"})";
  for (int i = 0; i < 100; ++i) {
    deep = R"({"type":"ARRAY","arraySubtype":)" + deep + "}";
  }
  for (const std::string& json :
       {std::string(),
        std::string("{"),
        std::string("[]"),
        std::string("{}"),
        std::string(R"({"fieldSchemaList":{}})"),
        Column(R"("name":"a")"),
        Column(R"("type":"TEXT","name":"a")"),
        Column(R"("type":7,"name":"a")"),
        Column(R"("type":"LONG")"),
        Column(R"("type":"LONG","name":7)"),
        Column(R"("type":"LONG","name":"a","nullable":"yes")"),
        Column(R"("type":"DECIMAL","name":"a")"),
        Column(R"("type":"DECIMAL","name":"a","precision":39,"scale":0)"),
        Column(R"("type":"DECIMAL","name":"a","precision":0,"scale":0)"),
        Column(R"("type":"DECIMAL","name":"a","precision":5,"scale":6)"),
        Column(R"("type":"DECIMAL","name":"a","precision":5)"),
        Column(R"("type":"ARRAY","name":"a")"),
        Column(R"("type":"MAP","name":"a","mapKeyType":{"type":"LONG"})"),
        Column(R"("type":"STRUCT","name":"a","subSchemas":[]) "),
        Column(R"("type":"STRUCT","name":"a","subSchemas":[{"type":"LONG"}])"),
        Column(R"("type":"LONG","name":"a","customMetadata":[])"),
        std::string(
            R"({"fieldSchemaList":[{"type":"LONG","name":"a"},{"type":"LONG","name":"a"}]})"),
        std::string(R"({"fieldSchemaList":[7]})"),
        R"({"fieldSchemaList":[{"type":"ARRAY","name":"a","arraySubtype":)" + deep + "}]}"}) {
    const Status status = StatusOf(ParseDatasetSchema(json));
    EXPECT_THAT(status, Fails(ErrorCode::kInvalidArgument)) << json;
    EXPECT_EQ(status.reason(), "InvalidSchema") << json;
    EXPECT_NE(status.details().find("\"message\""), std::string::npos) << json;
  }
}

TEST(SchemaTest, NoColumnsIsASchema) { EXPECT_OK(ParseDatasetSchema(R"({"fieldSchemaList":[]})")); }

}  // namespace
}  // namespace tarn::dataset
