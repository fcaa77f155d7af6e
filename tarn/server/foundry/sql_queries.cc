#include "tarn/server/foundry/sql_queries.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <thread>
#include <utility>

#include "tarn/base/json_text.h"

namespace tarn::server::foundry {

namespace {

constexpr size_t kPieceBytes = 256 << 10;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using TemporaryFile = std::unique_ptr<std::FILE, CloseFile>;

Status NotFound(const std::string& id) {
  return Status::NotFound("there is no query " + JsonString(id) + "; queries end with the server")
      .WithReason("SqlQueryNotFound", JsonObject({{"queryId", id}}));
}

Status Refused(std::string message, const char* reason, const std::string& id) {
  std::string details = JsonObject({{"queryId", id}, {"errorMessage", message}});
  return Status::InvalidArgument(std::move(message)).WithReason(reason, std::move(details));
}

}  // namespace

/// One statement and its rows.
class SqlQueries::Entry {
 public:
  Entry(std::string user_id, QueryStarter start)
      : user_id_(std::move(user_id)), start_(std::move(start)) {}
  ~Entry() { Cancel(); }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  [[nodiscard]] const std::string& user_id() const { return user_id_; }

  void Run(query::ResultFormat format, int64_t bytes_max) {
    thread_ = std::jthread([this, format, bytes_max] { Finish(StartAndWrite(format, bytes_max)); });
  }
  void Wait(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    finished_.wait_for(lock, time, [this] { return status_.state != QueryState::kRunning; });
  }
  QueryStatus status() {
    const std::lock_guard lock(mutex_);
    return status_;
  }
  /// Why the statement did not even start; OK while it might.
  Status start_failure() {
    const std::lock_guard lock(mutex_);
    return start_failure_;
  }
  void Cancel() {
    {
      const std::lock_guard lock(mutex_);
      if (status_.state != QueryState::kRunning) {
        return;
      }
      status_ = {.state = QueryState::kCanceled, .message = "the query was canceled"};
    }
    stop_.request_stop();
    finished_.notify_all();
  }
  [[nodiscard]] int64_t size_bytes() const { return size_bytes_; }
  /// Errors: kInternal when the file cannot be read.
  Status Copy(http::BodySink& sink) const {
    std::string piece(kPieceBytes, '\0');
    for (int64_t done = 0; done < size_bytes_;) {
      const ssize_t count = ::pread(::fileno(file_.get()), piece.data(), piece.size(), done);
      if (count <= 0) {
        return Status::Internal("read the rows of a query: the temporary file is broken");
      }
      TARN_RETURN_IF_ERROR(sink.Write(std::string_view(piece.data(), static_cast<size_t>(count))));
      done += count;
    }
    return Status::Ok();
  }

 private:
  Status StartAndWrite(query::ResultFormat format, int64_t bytes_max) {
    const Result<std::unique_ptr<query::RunningQuery>> query = start_(stop_.get_token());
    if (!query.ok()) {
      const std::lock_guard lock(mutex_);
      start_failure_ = query.status();
      return query.status();
    }
    const std::stop_callback interrupt(stop_.get_token(), [&query] { (*query)->Interrupt(); });
    return Write(**query, format, bytes_max);
  }
  Status Write(query::RunningQuery& query, query::ResultFormat format, int64_t bytes_max) {
    file_.reset(std::tmpfile());
    if (file_ == nullptr) {
      return Status::Unavailable("no temporary file for the rows can be made");
    }
    int64_t written = 0;
    TARN_RETURN_IF_ERROR(query::WriteResult(query, format, [&](std::string_view bytes) {
      written += static_cast<int64_t>(bytes.size());
      if (written > bytes_max) {
        return Status(ErrorCode::kResourceExhausted, "the result is larger than is kept");
      }
      return std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size()
                 ? Status::Ok()
                 : Status::Unavailable("the temporary file of the rows cannot be written");
    }));
    if (std::fflush(file_.get()) != 0) {
      return Status::Unavailable("the temporary file of the rows cannot be written");
    }
    size_bytes_ = written;
    return Status::Ok();
  }
  void Finish(const Status& written) {
    {
      const std::lock_guard lock(mutex_);
      if (status_.state == QueryState::kRunning) {
        status_ = {.state = written.ok() ? QueryState::kSucceeded : QueryState::kFailed,
                   .message = written.message()};
      }
    }
    finished_.notify_all();
  }

  const std::string user_id_;
  const QueryStarter start_;
  std::stop_source stop_;
  TemporaryFile file_;      // Of the thread until the state says that it is done.
  int64_t size_bytes_ = 0;  // Likewise.
  std::mutex mutex_;
  std::condition_variable finished_;
  QueryStatus status_;    // Guarded by mutex_.
  Status start_failure_;  // Likewise.
  std::jthread thread_;   // Last: joined before anything it uses goes.
};

SqlQueries::SqlQueries(SqlQueriesOptions options, UuidGenerator& uuids, const Clock& clock)
    : options_(options), uuids_(uuids), clock_(clock) {}

SqlQueries::~SqlQueries() = default;

void SqlQueries::DropOld() {
  const Uuid youngest_dead = [&] {
    // Ids begin with 48 bits of milliseconds.
    Uuid limit{};
    const auto millis = static_cast<uint64_t>(ToMillis(clock_.Now() - options_.lifetime));
    for (size_t i = 0; i < 6; ++i) {
      limit.bytes[i] = static_cast<uint8_t>(millis >> (8 * (5 - i)));
    }
    return limit;
  }();
  const std::string limit = youngest_dead.ToString();
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const bool is_old = entry->first < limit || entries_.size() > options_.kept_max;
    if (is_old && entry->second->status().state != QueryState::kRunning) {
      entry = entries_.erase(entry);
    } else {
      ++entry;
    }
  }
}

Result<std::string> SqlQueries::Start(const std::string& user_id, QueryStarter start,
                                      query::ResultFormat format) {
  auto entry = std::make_shared<Entry>(user_id, std::move(start));
  const std::string id = uuids_.NextV7().ToString();
  {
    const std::lock_guard lock(mutex_);
    DropOld();
    const auto running = std::ranges::count_if(entries_, [](const auto& one) {
      return one.second->status().state == QueryState::kRunning;
    });
    if (running >= options_.running_max) {
      return Status(ErrorCode::kResourceExhausted,
                    "as many queries run as may at once; wait for one or cancel one");
    }
    entry->Run(format, options_.result_bytes_max);
    entries_.emplace(id, entry);
  }
  entry->Wait(options_.patience);
  const Status failure = entry->start_failure();
  if (!failure.ok()) {
    const std::lock_guard lock(mutex_);
    entries_.erase(id);
    return failure;
  }
  return id;
}

Result<std::shared_ptr<SqlQueries::Entry>> SqlQueries::Find(const std::string& user_id,
                                                            const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second->user_id() != user_id) {
    return NotFound(id);
  }
  return found->second;
}

Result<QueryStatus> SqlQueries::GetStatus(const std::string& user_id, const std::string& id) {
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, Find(user_id, id));
  return entry->status();
}

Status SqlQueries::Cancel(const std::string& user_id, const std::string& id) {
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, Find(user_id, id));
  entry->Cancel();
  return Status::Ok();
}

Result<http::Response> SqlQueries::OpenResult(const std::string& user_id, const std::string& id) {
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, Find(user_id, id));
  const QueryStatus status = entry->status();
  switch (status.state) {
    case QueryState::kRunning:
      return Refused("query " + id + " is running", "QueryRunning", id);
    case QueryState::kFailed:
      return Refused(status.message, "QueryFailed", id);
    case QueryState::kCanceled:
      return Refused(status.message, "QueryCanceled", id);
    case QueryState::kSucceeded:
      break;
  }
  http::Response response;
  response.headers.Set("Content-Type", "application/octet-stream");
  response.headers.Set("X-Content-Type-Options", "nosniff");
  response.content_length = static_cast<uint64_t>(entry->size_bytes());
  response.producer = [entry](http::BodySink& sink) { return entry->Copy(sink); };
  return response;
}

}  // namespace tarn::server::foundry
