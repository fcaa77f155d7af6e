#include "tarn/engine/scan_sql.h"

#include <filesystem>
#include <random>

#include <arrow/api.h>
#include <arrow/json/from_string.h>
#include <gtest/gtest.h>

#include "tarn/engine/engine.h"
#include "tarn/engine/quoting.h"
#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::engine {
namespace {

class ScanSqlTest : public ::testing::Test {
 protected:
  ScanSqlTest() {
    auto engine = Engine::Open({.allowed_directories = {root()}});
    EXPECT_TRUE(engine.ok()) << engine.status().ToString();
    engine_ = std::move(engine).value();
    session_ = std::move(engine_->OpenSession()).value();
  }

  std::string root() const { return directory_.path().string(); }

  /// Writes a file by SQL and returns its path.
  std::string Write(const std::string& name, const std::string& select, const std::string& ids) {
    const std::string path = root() + "/" + name;
    const Status status = session_->Execute("COPY (" + select + ") TO " + QuoteText(path) +
                                            " (FORMAT parquet, FIELD_IDS {" + ids + "})");
    EXPECT_TRUE(status.ok()) << status.ToString();
    return path;
  }

  /// All rows as text, columns by ',', rows by ';', NULL as '-'.
  std::string Rows(const ScanRequest& request, const std::string& order = "ALL") {
    const auto sql = BuildScan(request);
    if (!sql.ok()) {
      return sql.status().ToString();
    }
    const auto stream =
        session_->Query("SELECT COLUMNS(*)::VARCHAR FROM (" + *sql + ") ORDER BY " + order);
    if (!stream.ok()) {
      return stream.status().ToString() + "\n" + *sql;
    }
    const auto table = ReadAll(**stream);
    if (!table.ok()) {
      return table.status().ToString();
    }
    std::string out;
    for (int64_t row = 0; row < (*table)->num_rows(); ++row) {
      out += row > 0 ? ";" : "";
      for (int c = 0; c < (*table)->num_columns(); ++c) {
        const auto scalar = *(*table)->column(c)->GetScalar(row);
        out += (c > 0 ? "," : "") + (scalar->is_valid ? scalar->ToString() : "-");
      }
    }
    return out;
  }

  void RegisterDeletes(const std::string& json) {
    const auto schema = arrow::schema(
        {arrow::field("file_index", arrow::int64()), arrow::field("pos", arrow::int64())});
    const auto rows = *arrow::json::ArrayFromJSONString(arrow::struct_(schema->fields()), json);
    ASSERT_OK(
        session_->RegisterBatches("deletes", schema, {*arrow::RecordBatch::FromStructArray(rows)}));
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Session> session_;
};

TEST_F(ScanSqlTest, ColumnsAreFoundByFieldId) {
  const std::string older =
      Write("a.parquet", "SELECT 1::INT AS id, 'x' AS gone", "id: 1, gone: 2");
  const std::string newer =
      Write("b.parquet", "SELECT 2::BIGINT AS renamed, 7 AS extra", "renamed: 1, extra: 3");
  const ScanRequest request = {
      .columns = {{.name = "extra", .type = "INTEGER", .field_id = 3, .default_text = "42"},
                  {.name = "key", .type = "BIGINT", .field_id = 1},
                  {.name = "gone", .type = "VARCHAR", .field_id = 9}},
      .files = {{.path = older}, {.path = "file://" + newer}}};
  EXPECT_EQ(Rows(request), "42,1,-;7,2,-");
}

TEST_F(ScanSqlTest, FilesWithoutIdsAreReadByName) {
  const std::string path = root() + "/n.parquet";
  ASSERT_OK(session_->Execute("COPY (SELECT 1 AS a, 'x' AS b) TO " + QuoteText(path)));
  const ScanRequest request = {
      .columns = {{.name = "first", .type = "BIGINT", .field_id = 1, .file_name = "a"},
                  {.name = "b", .type = "VARCHAR", .field_id = 2},
                  {.name = "c", .type = "DATE", .field_id = 3}},
      .match = ScanMatch::kName,
      .files = {{.path = path}}};
  EXPECT_EQ(Rows(request), "1,x,-");
}

TEST_F(ScanSqlTest, DeletedRowsOfTheRightFileAreLeftOut) {
  std::vector<ScanFile> files;
  for (int i = 0; i < 5; ++i) {
    const std::string number = std::to_string(i);
    files.push_back(
        {.path = Write(number + ".parquet",
                       "SELECT " + number + " * 10 + i AS v FROM range(3) t(i)", "v: 1"),
         .has_deletes = i == 1 || i == 4});
  }
  RegisterDeletes(R"([{"file_index": 1, "pos": 0}, {"file_index": 4, "pos": 2},
                      {"file_index": 4, "pos": 1}, {"file_index": 0, "pos": 0}])");
  ScanRequest request = {.columns = {{.name = "v", .type = "BIGINT", .field_id = 1}},
                         .files = files,
                         .deletes_view = "deletes",
                         .with_position = true};
  EXPECT_EQ(Rows(request, "tarn_file, tarn_pos"),
            "0,0,0;1,0,1;2,0,2;11,1,1;12,1,2;20,2,0;21,2,1;22,2,2;30,3,0;31,3,1;32,3,2;40,4,0");
  request.where = "v >= 12 AND v < 30 -- comment";
  EXPECT_EQ(Rows(request, "tarn_file, tarn_pos"), "12,1,2;20,2,0;21,2,1;22,2,2");
  ASSERT_OK_AND_ASSIGN(const std::string sql, BuildScan(request));
  EXPECT_EQ(sql.find("ANTI JOIN"), sql.rfind("ANTI JOIN")) << "clean files join nothing";
}

TEST_F(ScanSqlTest, ConstantsReplaceWhatAFileHolds) {
  const std::string path = Write("c.parquet", "SELECT 1 AS v, 'file' AS p", "v: 1, p: 2");
  const std::vector<ScanColumn> columns = {{.name = "v", .type = "BIGINT", .field_id = 1},
                                           {.name = "p", .type = "VARCHAR", .field_id = 2}};
  EXPECT_EQ(Rows({.columns = columns,
                  .files = {{.path = path, .constants = {{"p", "it's"}}},
                            {.path = path, .constants = {{"p", std::nullopt}}},
                            {.path = path, .constants = {{"p", "x"}, {"v", "9"}}},
                            {.path = path}}}),
            "1,file;1,it's;1,-;9,x");
}

TEST_F(ScanSqlTest, NoFilesIsAnEmptyRelation) {
  ScanRequest request = {
      .columns = {{.name = "v", .type = "DECIMAL(10,2)", .field_id = 1},
                  {.name = "s", .type = "STRUCT(\"a b\" BIGINT)", .field_id = 2}}};
  EXPECT_EQ(Rows(request), "");
  request.with_position = true;
  ASSERT_OK_AND_ASSIGN(const std::string sql, BuildScan(request));
  ASSERT_OK_AND_ASSIGN(const auto schema, session_->Describe(sql));
  EXPECT_EQ(schema->ToString(),
            "v: decimal128(10, 2)\ns: struct<a b: int64>\ntarn_file: int64\ntarn_pos: int64");
}

TEST_F(ScanSqlTest, HostileNamesAndPathsAreLiteral) {
  const std::vector<std::string> names = {"file_index",
                                          "file_row_number",
                                          "filename",
                                          "a\"b",
                                          "x'); DROP TABLE t; --",
                                          "line\nbreak",
                                          "日本",
                                          "c0",
                                          "f"};
  std::string select;
  std::string ids;
  std::vector<ScanColumn> columns;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string number = std::to_string(i);
    select += (i > 0 ? ", " : "SELECT ") + number + " AS n" + number;
    ids += (i > 0 ? ", n" : "n") + number + ": " + std::to_string(i + 1);
    columns.push_back(
        {.name = names[i], .type = "BIGINT", .field_id = static_cast<int32_t>(i + 1)});
  }
  RegisterDeletes(R"([{"file_index": 0, "pos": 1}])");
  for (const char* file : {"plain.parquet", "it's [1] *?.parquet", "[a].parquet", "p=1,q=2.parquet",
                           "new\nline.parquet", "100%20.parquet"}) {
    SCOPED_TRACE(file);
    const std::string path = Write(file, select, ids);
    EXPECT_EQ(Rows({.columns = columns,
                    .files = {{.path = path, .has_deletes = true}},
                    .deletes_view = "deletes",
                    .with_position = true}),
              "0,1,2,3,4,5,6,7,8,0,0");
  }
}

TEST_F(ScanSqlTest, RandomNamesNeverBreakOut) {
  std::mt19937 random(7);
  const std::string alphabet = "'\"\\;-/*$%{}[]()\n\t ax.,`?=#@!\xc3\xa4";
  const std::string path = Write("r.parquet", "SELECT 5 AS v", "v: 1");
  for (int round = 0; round < 200; ++round) {
    std::string name;
    for (size_t size = 1 + random() % 12; size > 0; --size) {
      const char c = alphabet[random() % alphabet.size()];
      if (static_cast<uint8_t>(c) < 0x80) {
        name += c;
      }
    }
    if (name.empty()) {
      continue;
    }
    SCOPED_TRACE(name);
    ASSERT_EQ(
        Rows({.columns =
                  {{.name = name, .type = "BIGINT", .field_id = 1},
                   {.name = name + "2", .type = "VARCHAR", .field_id = 2, .default_text = name}},
              .files = {{.path = path}}}),
        "5," + name);
  }
}

TEST_F(ScanSqlTest, BadRequestsAreRefused) {
  const std::vector<ScanColumn> one = {{.name = "v", .type = "BIGINT", .field_id = 1}};
  EXPECT_THAT(BuildScan({.columns = {}}), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(BuildScan({.columns = {one[0], {.name = "V", .type = "INT", .field_id = 2}}}),
              FailsWith(ErrorCode::kInvalidArgument, "\"V\" twice"));
  EXPECT_THAT(BuildScan({.columns = {one[0], {.name = "w", .type = "INT", .field_id = 1}}}),
              Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(BuildScan({.columns = one, .files = {{.path = "a", .has_deletes = true}}}),
              FailsWith(ErrorCode::kInvalidArgument, "deletes_view"));
  EXPECT_THAT(BuildScan({.columns = one, .files = {{.path = "a", .constants = {{"x", "1"}}}}}),
              FailsWith(ErrorCode::kInvalidArgument, "\"x\""));
  EXPECT_THAT(BuildScan({.columns = one, .files = {{.path = "file://host/a"}}}),
              Fails(ErrorCode::kInvalidArgument));
}

}  // namespace
}  // namespace tarn::engine
