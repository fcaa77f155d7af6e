#include "tarn/metastore/group_writer.h"

#include <algorithm>
#include <utility>

#include "tarn/base/thread_name.h"

namespace tarn::metastore {

// One call of Write, shared by its caller, who waits, and the writer thread.
struct GroupWriter::Request {
  const SqlFunction* function;
  Durability durability;
  Status result;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;  // Guarded by mutex.
};

GroupWriter::GroupWriter(GroupTransaction& transaction, GroupWriterOptions options)
    : transaction_(transaction), options_(std::move(options)) {
  thread_ = std::thread([this] { Loop(); });
}

GroupWriter::~GroupWriter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_one();
  thread_.join();
}

Status GroupWriter::Submit(const SqlFunction& function, Durability durability) {
  if (std::this_thread::get_id() == thread_.get_id()) {
    return Status::Internal(
        "Database::Write called inside a write function; it would wait for itself");
  }
  const auto request = std::make_shared<Request>();
  request->function = &function;
  request->durability = durability;
  {
    std::unique_lock lock(mutex_);
    if (!room_.wait_for(lock, options_.queue_wait_max,
                        [&] { return queue_.size() < options_.queue_max; })) {
      return {ErrorCode::kResourceExhausted, options_.name + ": " +
                                                 std::to_string(options_.queue_max) +
                                                 " writes are waiting; try again later"};
    }
    queue_.push_back(request);
  }
  work_.notify_one();
  std::unique_lock lock(request->mutex);
  request->changed.wait(lock, [&] { return request->done; });
  return std::move(request->result);
}

int64_t GroupWriter::waiting_count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(queue_.size());
}

void GroupWriter::Loop() {
  NameThisThread("metastore-write");
  Requests lazy;
  Requests durable;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock,
                 [&] { return stopping_ || !queue_.empty() || !lazy.empty() || !durable.empty(); });
      for (std::shared_ptr<Request>& request : queue_) {
        Requests& of_kind = request->durability == Durability::kLazy ? lazy : durable;
        of_kind.push_back(std::move(request));
      }
      queue_.clear();
      if (lazy.empty() && durable.empty()) {
        return;
      }
    }
    room_.notify_all();
    // Requests of one caller are never in the queue together, so the order between kinds is free:
    // the lazy ones need not wait for the sync of the others.
    RunGroup(lazy, Durability::kLazy);
    RunGroup(durable, Durability::kDurable);
    transaction_.EndRound();
  }
}

void GroupWriter::RunGroup(Requests& pending, Durability durability) {
  if (pending.empty()) {
    return;
  }
  const Status begun = transaction_.Begin(durability);
  Requests members;
  if (!begun.ok()) {
    members.swap(pending);
    for (const auto& member : members) {
      member->result = begun;
    }
    Answer(members);
    return;
  }
  RunMembers(pending, members);
  Finish(members, durability);
}

// Moves requests from `pending` to `members` and runs them in the open SQL transaction.
void GroupWriter::RunMembers(Requests& pending, Requests& members) {
  const auto start = std::chrono::steady_clock::now();
  Connection& connection = transaction_.connection();
  // A request that is alone needs no savepoint: its roll back is that of the transaction.
  const bool alone = pending.size() == 1;
  while (!pending.empty() && members.size() < options_.group_requests_max) {
    if (!members.empty() && std::chrono::steady_clock::now() - start > options_.group_time_max) {
      return;
    }
    const std::shared_ptr<Request> request = pending.front();
    pending.pop_front();
    members.push_back(request);
    requests_.fetch_add(1, std::memory_order_relaxed);
    request->result = alone ? RunFunction(connection, *request->function)
                            : transaction_.RunInSavepoint(*request->function);
    if (connection.HasFailed()) {
      return;
    }
  }
}

// Commits the members that succeeded and answers all.
void GroupWriter::Finish(Requests& members, Durability durability) {
  const bool any = std::any_of(members.begin(), members.end(),
                               [](const auto& member) { return member->result.ok(); });
  Status outcome;
  if (transaction_.connection().HasFailed()) {
    // The database, or RunInSavepoint, gave the transaction up; the last member has the cause.
    const Status& cause = members.back()->result;
    outcome = Status::Unavailable(cause.ok() ? options_.name + ": the write was rolled back"
                                             : cause.message());
    transaction_.Rollback();
  } else if (any) {
    outcome = transaction_.Commit(durability, members.size());
  } else {
    transaction_.Rollback();
  }
  if (!outcome.ok()) {
    for (const auto& member : members) {
      if (member->result.ok()) {
        member->result = outcome;
      }
    }
  }
  Answer(members);
}

void GroupWriter::Answer(Requests& members) {
  for (const auto& member : members) {
    {
      const std::lock_guard lock(member->mutex);
      member->done = true;
    }
    member->changed.notify_one();
  }
  members.clear();
}

}  // namespace tarn::metastore
