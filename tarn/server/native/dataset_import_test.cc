#include <arrow/array/builder_binary.h>
#include <arrow/array/builder_primitive.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>

#include "tarn/base/arrow_status.h"
#include "tarn/server/native/dataset_routes_fixture.h"

namespace tarn::server::native {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class DatasetImportTest : public DatasetRoutesFixture {
 protected:
  dataset::TransactionRid Start() {
    Result<dataset::Transaction> started = datasets_->StartTransaction(
        rid_, "master", {.type = dataset::TransactionType::kUpdate, .by = "me"});
    EXPECT_OK(started);
    return started->rid;
  }
  std::string Register(const dataset::TransactionRid& rid) {
    return Target("/transactions/" + rid.ToString() + "/files:register");
  }
};

TEST_F(DatasetImportTest, LinesAreRegisteredInBatches) {
  const std::string uri = PutObject("in/a.csv", "12345");
  const dataset::TransactionRid open = Start();
  std::string lines;
  for (int i = 0; i < 12'000; ++i) {
    lines += json{{"path", "p" + std::to_string(i)}, {"uri", uri}, {"sizeBytes", 5}}.dump() + "\n";
  }
  lines += "\n" + json{{"path", "last"},
                       {"uri", uri},
                       {"sizeBytes", "5"},
                       {"rowCount", 3},
                       {"checksum", "xxh3:0123456789abcdef"}}
                      .dump();
  const json answer = CallJson("POST", Register(open), lines);
  EXPECT_EQ(answer["registered"], 12'001) << answer;
  ASSERT_OK(datasets_->CommitTransaction(rid_, open, {}));
  ASSERT_OK_AND_ASSIGN(const auto view, datasets_->ResolveView(rid_, {}));
  ASSERT_OK_AND_ASSIGN(const dataset::File file, datasets_->StatFile(view, "last"));
  EXPECT_FALSE(file.managed);
  EXPECT_EQ(file.location, uri);
  EXPECT_EQ(file.size_bytes, 5);
  EXPECT_EQ(file.row_count, 3);
  EXPECT_EQ(file.checksum, 0x0123456789ABCDEFULL);
  EXPECT_FALSE(file.etag.empty());
}

TEST_F(DatasetImportTest, AnArrowStreamIsRegistered) {
  const std::string uri = PutObject("in/a.csv", "12345");
  const auto schema =
      arrow::schema({arrow::field("path", arrow::utf8()), arrow::field("uri", arrow::utf8()),
                     arrow::field("sizeBytes", arrow::int64())});
  arrow::StringBuilder paths;
  arrow::StringBuilder uris;
  arrow::Int64Builder sizes;
  ASSERT_OK(paths.AppendValues({"a", "b"}));
  ASSERT_OK(uris.AppendValues({uri, uri}));
  ASSERT_OK(sizes.AppendValues({5, 5}));
  const auto rows = arrow::RecordBatch::Make(
      schema, 2,
      {paths.Finish().ValueOrDie(), uris.Finish().ValueOrDie(), sizes.Finish().ValueOrDie()});
  ASSERT_OK_AND_ASSIGN(const auto out, arrow::io::BufferOutputStream::Create());
  ASSERT_OK_AND_ASSIGN(const auto writer, arrow::ipc::MakeStreamWriter(out, schema));
  ASSERT_OK(writer->WriteRecordBatch(*rows));
  ASSERT_OK(writer->Close());
  ASSERT_OK_AND_ASSIGN(const auto bytes, out->Finish());
  const Fields arrow = {{"Content-Type", "application/vnd.apache.arrow.stream"}};
  const dataset::TransactionRid open = Start();
  const http::Response response = Call("POST", Register(open), bytes->ToString(), arrow);
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(json::parse(response.body)["registered"], 2);
  const std::string whole = bytes->ToString();
  for (const size_t size : {size_t{0}, size_t{7}, whole.size() / 2}) {
    EXPECT_EQ(Call("POST", Register(open), whole.substr(0, size), arrow).status, 400) << size;
  }
}

TEST_F(DatasetImportTest, BadRowsAreNamed) {
  const std::string uri = PutObject("in/a.csv", "12345");
  const dataset::TransactionRid open = Start();
  const auto refused = [&](const json& row) {
    return CallJson("POST", Register(open), row.dump())["error"];
  };
  EXPECT_EQ(refused({{"path", "a"}, {"uri", uri}, {"sizeBytes", 6}})["name"], "ObjectSizeMismatch");
  EXPECT_EQ(refused({{"path", "a"}, {"uri", storage::UriOf(*warehouse_, "in/none")}})["name"],
            "ObjectNotFound");
  EXPECT_EQ(refused({{"path", "a"}, {"uri", "s3://elsewhere/x"}})["name"], "UnsupportedUri");
  EXPECT_EQ(refused({{"path", "a"}, {"uri", "file:///etc/passwd"}})["name"], "UnsupportedUri");
  EXPECT_EQ(refused({{"path", "../a"}, {"uri", uri}})["name"], "InvalidFilePath");
  EXPECT_THAT(refused({{"path", "a"}})["message"].get<std::string>(), HasSubstr("row 1"));
  EXPECT_THAT(
      refused({{"path", "a"}, {"uri", uri}, {"sizeBytes", -1}})["message"].get<std::string>(),
      HasSubstr("sizeBytes"));
  EXPECT_EQ(Outcome("POST", Register(open), "{\"path\":"), "400 InvalidArgument");
  for (const char* const own :
       {"tables/t/data/x.parquet", "00000000-0000-4000-8000-000000000001/2026/01/01/x"}) {
    EXPECT_EQ(refused({{"path", "a"}, {"uri", PutObject(own, "x")}})["name"],
              "ObjectNotImportable");
  }
  EXPECT_EQ(Outcome("POST", Target("/transactions/ri.x/files:register")),
            "404 TransactionNotFound");
  Become("vera", access::Role::kViewer);
  EXPECT_TRUE(Outcome("POST", Register(open)).starts_with("403"));
}

TEST_F(DatasetImportTest, ACommitInOneCallIsAllOrNothing) {
  const std::string uri = PutObject("in/a.csv", "12345");
  json body = {{"type", "APPEND"},
               {"files", {{{"path", "a"}, {"uri", uri}, {"sizeBytes", 5}}}},
               {"record", {{"by", "test"}}}};
  const json committed = Post("/commits", body);
  EXPECT_EQ(committed["status"], "COMMITTED") << committed;
  EXPECT_EQ(committed["fileCount"], 1);
  EXPECT_EQ(Outcome("POST", Target("/commits"), body.dump()), "409 AppendOverwritesExistingFiles");
  body["type"] = "UPDATE";
  body["files"].push_back({{"path", "b"}, {"uri", uri}, {"sizeBytes", 6}});
  EXPECT_EQ(Outcome("POST", Target("/commits"), body.dump()), "400 ObjectSizeMismatch");
  ASSERT_OK_AND_ASSIGN(const dataset::Branch branch, datasets_->GetBranch(rid_, "master"));
  EXPECT_FALSE(branch.open.has_value());
  EXPECT_EQ(branch.head->ToString(), committed["rid"]);
  EXPECT_EQ(Outcome("POST", Target("/commits"), R"({"type":"UPDATE"})"), "400 InvalidArgument");
}

TEST_F(DatasetImportTest, CommitsToSeveralDatasetsAreAllOrNothing) {
  ASSERT_OK_AND_ASSIGN(const dataset::DatasetRid other, MakeDataset("f", "other"));
  const std::string uri = PutObject("in/a.csv", "12345");
  const json files = {{{"path", "a"}, {"uri", uri}}};
  const json body = {{"datasets",
                      {{{"datasetRid", rid_.ToString()}, {"type", "APPEND"}, {"files", files}},
                       {{"datasetRid", other.ToString()}, {"type", "APPEND"}, {"files", files}}}}};
  const json committed = CallJson("POST", "/tarn/v1/commits", body.dump());
  ASSERT_EQ(committed["datasets"].size(), 2U) << committed;
  EXPECT_EQ(committed["datasets"][1]["datasetRid"], other.ToString());
  json second = body;
  second["datasets"][0]["type"] = "UPDATE";
  EXPECT_EQ(Outcome("POST", "/tarn/v1/commits", second.dump()),
            "409 AppendOverwritesExistingFiles");
  ASSERT_OK_AND_ASSIGN(const dataset::Branch branch, datasets_->GetBranch(rid_, "master"));
  EXPECT_EQ(branch.head->ToString(), committed["datasets"][0]["rid"]);
  EXPECT_FALSE(branch.open.has_value());
  EXPECT_EQ(Outcome("POST", "/tarn/v1/commits", "{}"), "400 InvalidArgument");
  Become("eve", access::Role::kNone);
  EXPECT_EQ(Outcome("POST", "/tarn/v1/commits", body.dump()), "404 DatasetNotFound");
}

TEST_F(DatasetImportTest, TheViewIsOneArrowStream) {
  ASSERT_OK_AND_ASSIGN(const auto first, CommitFiles({"a", "b"}, "0"));
  ASSERT_OK(CommitFiles({"c"}, "1"));
  const auto rows = [&](const std::string& query) -> int64_t {
    const http::Response response = Call("GET", Target("/view" + query));
    EXPECT_EQ(response.status, 200) << response.body;
    const auto reader = arrow::ipc::RecordBatchStreamReader::Open(
        std::make_shared<arrow::io::BufferReader>(arrow::Buffer::FromString(response.body)));
    return reader.ok() ? (*reader)->ToTable().ValueOrDie()->num_rows() : -1;
  };
  EXPECT_EQ(rows(""), 3);
  EXPECT_EQ(rows("?at=" + first.ToString()), 2);
  EXPECT_EQ(rows("?prefix=c"), 1);
  EXPECT_EQ(rows("?branch=none&fallback=master"), 3);
  EXPECT_EQ(Outcome("GET", Target("/view?branch=none")), "404 BranchNotFound");
}

}  // namespace
}  // namespace tarn::server::native
