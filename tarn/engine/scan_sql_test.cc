#include "tarn/engine/scan_sql.h"

#include <array>
#include <filesystem>
#include <random>
#include <set>

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "tarn/engine/deleted_rows.h"
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

  /// Ascending positions of each file.
  void RegisterDeletes(const std::vector<std::vector<int64_t>>& files) {
    std::vector<DeletedRows> rows;
    for (const std::vector<int64_t>& positions : files) {
      rows.push_back(DeletedRows::Of(positions));
    }
    ASSERT_OK(session_->RegisterDeletedRows("Deletes", std::move(rows)));
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
  RegisterDeletes({{0}, {0}, {}, {}, {1, 2}});
  ScanRequest request = {.columns = {{.name = "v", .type = "BIGINT", .field_id = 1}},
                         .files = files,
                         .deleted_rows = "deletes",
                         .with_position = true};
  EXPECT_EQ(Rows(request, "tarn_file, tarn_pos"),
            "0,0,0;1,0,1;2,0,2;11,1,1;12,1,2;20,2,0;21,2,1;22,2,2;30,3,0;31,3,1;32,3,2;40,4,0");
  request.where = "v >= 12 AND v < 30 -- comment";
  EXPECT_EQ(Rows(request, "tarn_file, tarn_pos"), "12,1,2;20,2,0;21,2,1;22,2,2");
  ASSERT_OK_AND_ASSIGN(const std::string sql, BuildScan(request));
  EXPECT_EQ(sql.find("tarn_is_live"), sql.rfind("tarn_is_live")) << "clean files are not filtered";
}

// What a scan gives must be what a join with the deleted rows leaves.
TEST_F(ScanSqlTest, AnyDeletesLeaveWhatAnAntiJoinLeaves) {
  std::mt19937_64 random(20);
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    std::vector<ScanFile> files;
    std::vector<std::vector<int64_t>> deletes;
    std::string model;
    arrow::Int64Builder deleted_files;
    arrow::Int64Builder deleted_rows;
    const uint64_t file_count = 1 + random() % 5;
    for (uint64_t file = 0; file < file_count; ++file) {
      const uint64_t rows = random() % 3 == 0 ? random() % 200'000 : random() % 5'000;
      const std::string path = root() + "/m" + std::to_string(file) + ".parquet";
      ASSERT_OK(session_->Execute("COPY (SELECT range * 10 + " + std::to_string(file) +
                                  " AS v FROM range(" + std::to_string(rows) + ")) TO " +
                                  QuoteText(path) +
                                  " (FORMAT parquet, FIELD_IDS {v: 1}, ROW_GROUP_SIZE 2048)"));
      std::set<int64_t> positions;
      const std::array<uint64_t, 5> shares = {0, 1, 50, 900, 1000};  // Of 1,000 rows.
      const uint64_t share = shares[random() % shares.size()];
      for (uint64_t row = 0; row < rows; ++row) {
        if (random() % 1000 < share) {
          positions.insert(static_cast<int64_t>(row));
        }
      }
      positions.insert(static_cast<int64_t>(rows));  // No row of the file.
      files.push_back({.path = path, .has_deletes = share > 0});
      if (random() % 3 == 0) {
        files.back().constants = {{"c", "5"}};
      }
      deletes.emplace_back(positions.begin(), positions.end());
      model += model.empty() ? "" : " UNION ALL ";
      model += "SELECT v FROM (SELECT v, file_row_number AS n FROM read_parquet(" +
               QuoteText(path) + ")) ";
      if (share > 0) {
        for (const int64_t position : positions) {
          ASSERT_TRUE(deleted_files.Append(static_cast<int64_t>(file)).ok());
          ASSERT_TRUE(deleted_rows.Append(position).ok());
        }
        model +=
            "ANTI JOIN (SELECT n FROM model WHERE file = " + std::to_string(file) + ") USING (n)";
      }
    }
    RegisterDeletes(deletes);
    const int64_t count = deleted_rows.length();
    const auto schema =
        arrow::schema({arrow::field("file", arrow::int64()), arrow::field("n", arrow::int64())});
    ASSERT_OK(session_->RegisterBatches(
        "model", schema,
        {arrow::RecordBatch::Make(schema, count,
                                  {*deleted_files.Finish(), *deleted_rows.Finish()})}));
    ASSERT_OK_AND_ASSIGN(const std::string scan,
                         BuildScan({.columns = {{.name = "v", .type = "BIGINT", .field_id = 1},
                                                {.name = "c", .type = "BIGINT", .field_id = 2}},
                                    .files = files,
                                    .deleted_rows = "deletes"}));
    for (const char* filter :
         {"", "WHERE v % 3 = 1", "WHERE v BETWEEN 15000 AND 31000", "WHERE v = 20011"}) {
      const std::string ours = "SELECT v FROM (" + scan + ") " + filter;
      const std::string theirs = "SELECT v FROM (" + model + ") " + filter;
      for (const std::string& sql : {"(" + ours + ") EXCEPT ALL (" + theirs + ")",
                                     "(" + theirs + ") EXCEPT ALL (" + ours + ")"}) {
        ASSERT_OK_AND_ASSIGN(const auto stream, session_->Query(sql));
        ASSERT_OK_AND_ASSIGN(const auto table, ReadAll(*stream));
        EXPECT_EQ(table->num_rows(), 0) << filter;
      }
    }
  }
}

TEST_F(ScanSqlTest, DeletedRowsBelongToTheirSession) {
  const std::string path = Write("own.parquet", "SELECT range AS v FROM range(3)", "v: 1");
  ScanRequest request = {.columns = {{.name = "v", .type = "BIGINT", .field_id = 1}},
                         .files = {{.path = path, .has_deletes = true}},
                         .deleted_rows = "deletes"};
  ASSERT_OK_AND_ASSIGN(const std::string sql, BuildScan(request));
  EXPECT_THAT(session_->Query(sql), FailsWith(ErrorCode::kInvalidArgument, "no deleted rows"));
  RegisterDeletes({{1}});
  EXPECT_EQ(Rows(request), "0;2");
  ASSERT_OK_AND_ASSIGN(const auto other, engine_->OpenSession());
  EXPECT_THAT(other->Query(sql), FailsWith(ErrorCode::kInvalidArgument, "no deleted rows"));
  RegisterDeletes({{0}});
  EXPECT_EQ(Rows(request), "1;2");
  request.files.push_back(request.files.front());
  EXPECT_THAT(Rows(request), ::testing::HasSubstr("are of 1 files, there is no 1"));
  ASSERT_OK(session_->RegisterDeletedRows("deletes", {}));
  EXPECT_THAT(session_->Query(sql), FailsWith(ErrorCode::kInvalidArgument, "no deleted rows"));
  EXPECT_THAT(session_->RegisterDeletedRows("", {}), Fails(ErrorCode::kInvalidArgument));
}

TEST_F(ScanSqlTest, WrongReferencesToDeletesAreRefused) {
  RegisterDeletes({{1}, {}, {0}});
  for (const char* text :
       {"", " deletes", "x deletes", "0", "0-", "0- deletes", "0;1 deletes", "2-1 deletes",
        "0-3 deletes", "0,3 deletes", "-1 deletes", "99999999999999999999 deletes", "0 other"}) {
    EXPECT_THAT(session_->Query("SELECT tarn_is_live(" + QuoteText(text) + ", 0::UBIGINT, 1)"),
                Fails(ErrorCode::kInvalidArgument))
        << text;
  }
  EXPECT_THAT(session_->Query("SELECT tarn_is_live(x, 0::UBIGINT, 1) FROM (SELECT 'a' || i AS x "
                              "FROM range(3) t(i))"),
              Fails(ErrorCode::kInvalidArgument));
  ASSERT_OK_AND_ASSIGN(const auto stream,
                       session_->Query("SELECT list(tarn_is_live('2,0-1 deletes', i::UBIGINT, 0) "
                                       "ORDER BY i)::VARCHAR FROM range(3) t(i)"));
  ASSERT_OK_AND_ASSIGN(const auto table, ReadAll(*stream));
  EXPECT_EQ((*table->column(0)->GetScalar(0))->ToString(), "[false, true, true]");
  EXPECT_THAT(session_->Execute("SELECT tarn_is_live('0-2 deletes', (i + 2)::UBIGINT, 0) FROM "
                                "range(3) t(i)"),
              FailsWith(ErrorCode::kInvalidArgument, "has no file 3"));
}

TEST_F(ScanSqlTest, AStatementKeepsTheDeletesItBeganWith) {
  const std::string path = Write("big.parquet", "SELECT range AS v FROM range(300000)", "v: 1");
  RegisterDeletes({{1}});
  ASSERT_OK_AND_ASSIGN(const std::string sql,
                       BuildScan({.columns = {{.name = "v", .type = "BIGINT", .field_id = 1}},
                                  .files = {{.path = path, .has_deletes = true}},
                                  .deleted_rows = "deletes"}));
  ASSERT_OK_AND_ASSIGN(auto stream, session_->Query(sql));
  session_.reset();  // Forgets what it registered; the stream goes on.
  int64_t rows = 0;
  while (true) {
    ASSERT_OK_AND_ASSIGN(const auto batch, stream->Next());
    if (batch == nullptr) {
      break;
    }
    rows += batch->num_rows();
  }
  EXPECT_EQ(rows, 299'999);
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
  RegisterDeletes({{1}});
  for (const char* file : {"plain.parquet", "it's [1] *?.parquet", "[a].parquet", "p=1,q=2.parquet",
                           "new\nline.parquet", "100%20.parquet"}) {
    SCOPED_TRACE(file);
    const std::string path = Write(file, select, ids);
    EXPECT_EQ(Rows({.columns = columns,
                    .files = {{.path = path, .has_deletes = true}},
                    .deleted_rows = "deletes",
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
              FailsWith(ErrorCode::kInvalidArgument, "deleted_rows"));
  EXPECT_THAT(BuildScan({.columns = one, .files = {{.path = "a", .constants = {{"x", "1"}}}}}),
              FailsWith(ErrorCode::kInvalidArgument, "\"x\""));
  EXPECT_THAT(BuildScan({.columns = one, .files = {{.path = "file://host/a"}}}),
              Fails(ErrorCode::kInvalidArgument));
}

}  // namespace
}  // namespace tarn::engine
