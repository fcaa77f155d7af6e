#include "tarn/metastore/faulty_database.h"

#include <mutex>

namespace tarn::metastore {

namespace {
Status Injected(int64_t operation) {
  return Status::Unavailable("injected fault at operation " + std::to_string(operation));
}
}  // namespace

class FaultyDatabase::State {
 public:
  // What becomes of the next operation.
  struct Verdict {
    int64_t operation = 0;
    bool fails_before = false;
    bool fails_after = false;
  };

  Verdict Next() {
    const std::lock_guard lock(mutex_);
    ++count_;
    Verdict verdict{.operation = count_};
    if (armed_at_ == count_) {
      armed_at_ = 0;
      fired_ = true;
      (fault_ == Fault::kBefore ? verdict.fails_before : verdict.fails_after) = true;
    }
    return verdict;
  }

  void Arm(int64_t n, Fault fault) {
    const std::lock_guard lock(mutex_);
    armed_at_ = n > 0 ? count_ + n : 0;
    fault_ = fault;
    fired_ = false;
  }

  bool fired() {
    const std::lock_guard lock(mutex_);
    return fired_;
  }

  int64_t count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;
  int64_t count_ = 0;
  int64_t armed_at_ = 0;  // 0 = not armed.
  Fault fault_ = Fault::kBefore;
  bool fired_ = false;
};

namespace {

// Counts the statements of one function. `State` is FaultyDatabase::State, which has no name here.
template <typename State>
class FaultyTransaction final : public SqlTransaction {
 public:
  FaultyTransaction(SqlTransaction& inner, State& state) : inner_(inner), state_(state) {}

  Result<int64_t> Execute(std::string_view sql, const SqlArguments& arguments) override {
    TARN_RETURN_IF_ERROR(failure_);
    const auto verdict = state_.Next();
    if (verdict.fails_before) {
      return failure_ = Injected(verdict.operation);
    }
    Result<int64_t> result = inner_.Execute(sql, arguments);
    if (verdict.fails_after) {
      return failure_ = Injected(verdict.operation);
    }
    return result;
  }

  Status Query(std::string_view sql, const SqlArguments& arguments,
               const RowCallback& row) override {
    TARN_RETURN_IF_ERROR(failure_);
    const auto verdict = state_.Next();
    if (verdict.fails_before) {
      return failure_ = Injected(verdict.operation);
    }
    Status status = inner_.Query(sql, arguments, row);
    if (verdict.fails_after) {
      return failure_ = Injected(verdict.operation);
    }
    return status;
  }

  int64_t LastInsertId() override { return inner_.LastInsertId(); }

  Status Run(const SqlFunction& function) {
    Status status = function(*this);
    return failure_.ok() ? status : failure_;
  }

 private:
  SqlTransaction& inner_;
  State& state_;
  Status failure_;
};

}  // namespace

FaultyDatabase::FaultyDatabase(Database& inner)
    : inner_(inner), state_(std::make_unique<State>()) {}
FaultyDatabase::~FaultyDatabase() = default;

void FaultyDatabase::FailAt(int64_t n, Fault fault) { state_->Arm(n, fault); }
bool FaultyDatabase::fired() const { return state_->fired(); }
int64_t FaultyDatabase::operation_count() const { return state_->count(); }

Status FaultyDatabase::Read(const SqlFunction& function) {
  const State::Verdict start = state_->Next();
  if (start.fails_before) {
    return Injected(start.operation);
  }
  const SqlFunction counted = [&](SqlTransaction& sql) {
    return FaultyTransaction<State>(sql, *state_).Run(function);
  };
  TARN_RETURN_IF_ERROR(inner_.Read(counted));
  return start.fails_after ? Injected(start.operation) : Status();
}

Status FaultyDatabase::Write(const SqlFunction& function, Durability durability) {
  const State::Verdict start = state_->Next();
  if (start.fails_before || start.fails_after) {
    // The start of a write has no effect of its own that a lost reply could leave behind.
    return Injected(start.operation);
  }
  State::Verdict commit;
  const SqlFunction counted = [&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(FaultyTransaction<State>(sql, *state_).Run(function));
    commit = state_->Next();
    return commit.fails_before ? Injected(commit.operation) : Status();
  };
  TARN_RETURN_IF_ERROR(inner_.Write(counted, durability));
  if (commit.fails_after) {
    return {ErrorCode::kCommitStateUnknown, Injected(commit.operation).message()};
  }
  return {};
}

Status FaultyDatabase::Migrate(const std::vector<Migration>& migrations) {
  return inner_.Migrate(migrations);
}

}  // namespace tarn::metastore
