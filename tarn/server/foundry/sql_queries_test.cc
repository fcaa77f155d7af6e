#include "tarn/server/foundry/sql_queries.h"

#include <atomic>
#include <semaphore>
#include <thread>

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "test/support/matchers.h"

namespace tarn::server::foundry {
namespace {

using std::chrono::minutes;

/// Gives one row when it is let, or fails; ends when it is interrupted.
class ScriptedQuery final : public query::RunningQuery {
 public:
  explicit ScriptedQuery(std::shared_ptr<std::binary_semaphore> let, Status failure = {})
      : let_(std::move(let)), failure_(std::move(failure)) {}

  [[nodiscard]] const std::shared_ptr<arrow::Schema>& schema() const override { return schema_; }
  Result<std::shared_ptr<arrow::RecordBatch>> Next() override {
    if (done_) {
      return std::shared_ptr<arrow::RecordBatch>();
    }
    if (let_ != nullptr) {
      let_->acquire();
    }
    if (interrupted_) {
      return Status(ErrorCode::kCancelled, "interrupted");
    }
    TARN_RETURN_IF_ERROR(failure_);
    done_ = true;
    arrow::Int64Builder builder;
    EXPECT_TRUE(builder.Append(7).ok());
    return arrow::RecordBatch::Make(schema_, 1, {builder.Finish().ValueOrDie()});
  }
  void Interrupt() override {
    interrupted_ = true;
    if (let_ != nullptr) {
      let_->release();
    }
  }

 private:
  const std::shared_ptr<arrow::Schema> schema_ = arrow::schema({arrow::field("n", arrow::int64())});
  const std::shared_ptr<std::binary_semaphore> let_;
  const Status failure_;
  std::atomic<bool> interrupted_ = false;
  bool done_ = false;
};

class SqlQueriesTest : public ::testing::Test {
 protected:
  static QueryStarter Starter(std::shared_ptr<std::binary_semaphore> let, Status failure = {}) {
    return [let = std::move(let), failure = std::move(failure)](const std::stop_token&) {
      return Result<std::unique_ptr<query::RunningQuery>>(
          std::make_unique<ScriptedQuery>(let, failure));
    };
  }
  std::string Start(std::shared_ptr<std::binary_semaphore> let = nullptr, Status failure = {},
                    const std::string& user = "u") {
    const Result<std::string> id = queries_.Start(user, Starter(std::move(let), std::move(failure)),
                                                  query::ResultFormat::kCsv);
    EXPECT_OK(id);
    return id.ok() ? *id : "";
  }
  std::string StartAndFinish() {
    std::string id = Start();
    while (StateOf(id) == QueryState::kRunning) {
      std::this_thread::yield();
    }
    return id;
  }
  QueryState StateOf(const std::string& id) {
    const Result<QueryStatus> status = queries_.GetStatus("u", id);
    EXPECT_OK(status);
    return status.ok() ? status->state : QueryState::kFailed;
  }
  std::string RowsOf(const std::string& id) {
    struct Sink final : http::BodySink {
      Status Write(std::string_view bytes) override {
        text += bytes;
        return Status::Ok();
      }
      std::string text;
    } sink;
    const Result<http::Response> response = queries_.OpenResult("u", id);
    EXPECT_OK(response);
    if (response.ok()) {
      EXPECT_OK(response->producer(sink));
      EXPECT_EQ(response->content_length, sink.text.size());
    }
    return sink.text;
  }
  static std::shared_ptr<std::binary_semaphore> MakeGate() {
    return std::make_shared<std::binary_semaphore>(0);
  }

  ManualClock clock_{FromMillis(1'800'000'000'000)};
  UuidGenerator uuids_{clock_};
  SqlQueries queries_{{.running_max = 2,
                       .kept_max = 3,
                       .lifetime = minutes(10),
                       .result_bytes_max = 1000,
                       .patience = std::chrono::milliseconds(20)},
                      uuids_,
                      clock_};
};

TEST_F(SqlQueriesTest, RowsAreFetchedAsOftenAsWanted) {
  const std::string id = Start();
  while (StateOf(id) == QueryState::kRunning) {
    std::this_thread::yield();
  }
  EXPECT_EQ(StateOf(id), QueryState::kSucceeded);
  EXPECT_EQ(RowsOf(id), "n\r\n7\r\n");
  EXPECT_EQ(RowsOf(id), "n\r\n7\r\n");
  EXPECT_OK(queries_.Cancel("u", id));
  EXPECT_EQ(StateOf(id), QueryState::kSucceeded);
}

TEST_F(SqlQueriesTest, FailuresAreKept) {
  const std::string id = Start(nullptr, Status::InvalidArgument("no number"));
  while (StateOf(id) == QueryState::kRunning) {
    std::this_thread::yield();
  }
  EXPECT_EQ(StateOf(id), QueryState::kFailed);
  const Status failed = queries_.OpenResult("u", id).status();
  EXPECT_EQ(failed.reason(), "QueryFailed");
  EXPECT_EQ(failed.message(), "no number");
}

TEST_F(SqlQueriesTest, OthersDoNotSeeThem) {
  const std::string id = Start();
  EXPECT_THAT(queries_.GetStatus("other", id), Fails(ErrorCode::kNotFound));
  EXPECT_THAT(queries_.OpenResult("other", id), Fails(ErrorCode::kNotFound));
  EXPECT_THAT(queries_.Cancel("other", id), Fails(ErrorCode::kNotFound));
  EXPECT_THAT(queries_.GetStatus("u", "none"), Fails(ErrorCode::kNotFound));
}

TEST_F(SqlQueriesTest, RunningOnesAreCanceledAndLimited) {
  const auto first = MakeGate();
  const auto second = MakeGate();
  const std::string a = Start(first);
  const std::string b = Start(second);
  EXPECT_EQ(queries_.OpenResult("u", a).status().reason(), "QueryRunning");
  EXPECT_THAT(queries_.Start("u", Starter(nullptr), query::ResultFormat::kCsv),
              Fails(ErrorCode::kResourceExhausted));
  ASSERT_OK(queries_.Cancel("u", a));
  EXPECT_EQ(StateOf(a), QueryState::kCanceled);
  EXPECT_EQ(queries_.OpenResult("u", a).status().reason(), "QueryCanceled");
  EXPECT_NE(Start(), "");
  EXPECT_EQ(StateOf(b), QueryState::kRunning);  // Ended by the destructor.
}

TEST_F(SqlQueriesTest, AStartThatFailsIsAnError) {
  const auto fail = [](const std::stop_token&) -> Result<std::unique_ptr<query::RunningQuery>> {
    return Status::InvalidArgument("no such word");
  };
  SqlQueries patient{{.patience = minutes(5)}, uuids_, clock_};
  EXPECT_THAT(patient.Start("u", fail, query::ResultFormat::kCsv),
              Fails(ErrorCode::kInvalidArgument));
}

TEST_F(SqlQueriesTest, AStartThatTakesLongIsCanceled) {
  const auto slow =
      [](const std::stop_token& stop) -> Result<std::unique_ptr<query::RunningQuery>> {
    while (!stop.stop_requested()) {
      std::this_thread::yield();
    }
    return Status(ErrorCode::kCancelled, "stopped");
  };
  ASSERT_OK_AND_ASSIGN(const std::string id, queries_.Start("u", slow, query::ResultFormat::kCsv));
  EXPECT_EQ(StateOf(id), QueryState::kRunning);
  ASSERT_OK(queries_.Cancel("u", id));
  EXPECT_EQ(StateOf(id), QueryState::kCanceled);
}

TEST_F(SqlQueriesTest, OldOnesAreForgotten) {
  const std::string old = StartAndFinish();
  clock_.Advance(minutes(11));
  const std::string fresh = StartAndFinish();
  EXPECT_THAT(queries_.GetStatus("u", old), Fails(ErrorCode::kNotFound));
  for (int i = 0; i < 4; ++i) {
    clock_.Advance(std::chrono::seconds(1));
    StartAndFinish();
  }
  EXPECT_THAT(queries_.GetStatus("u", fresh), Fails(ErrorCode::kNotFound));
}

}  // namespace
}  // namespace tarn::server::foundry
