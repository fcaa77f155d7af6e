#include "tarn/metastore/connection.h"

#include <exception>

namespace tarn::metastore {

namespace {

// A transaction as functions see it.
class RememberingTransaction final : public SqlTransaction {
 public:
  explicit RememberingTransaction(Connection& connection) : connection_(connection) {}

  Result<int64_t> Execute(std::string_view sql, const SqlArguments& arguments) override {
    TARN_RETURN_IF_ERROR(failure_);
    Result<int64_t> result = connection_.Execute(sql, arguments);
    Remember(result.status());
    return result;
  }

  Status Query(std::string_view sql, const SqlArguments& arguments,
               const RowCallback& row) override {
    TARN_RETURN_IF_ERROR(failure_);
    bool from_callback = false;
    Status status = connection_.Query(sql, arguments, [&](const SqlRow& current) {
      Result<RowAction> action = row(current);
      from_callback = !action.ok();
      return action;
    });
    if (!from_callback) {
      Remember(status);
    }
    return status;
  }

  int64_t LastInsertId() override {
    const Result<int64_t> id = connection_.LastInsertId();
    Remember(id.status());
    return id.ok() ? *id : 0;
  }

  [[nodiscard]] const Status& failure() const { return failure_; }

 private:
  void Remember(const Status& status) {
    // A violated constraint undoes its statement alone and is an answer, not a failure.
    const bool answer =
        status.code() == ErrorCode::kAlreadyExists || status.code() == ErrorCode::kInvalidArgument;
    if (!status.ok() && failure_.ok() && (!answer || connection_.HasFailed())) {
      failure_ = status;
    }
  }

  Connection& connection_;
  Status failure_;
};

}  // namespace

Status RunFunction(Connection& connection, const SqlFunction& function) {
  RememberingTransaction transaction(connection);
  Status status;
  try {
    status = function(transaction);
  } catch (const std::exception& error) {
    status = Status::Internal(std::string("exception in a metastore function: ") + error.what());
  } catch (...) {
    status = Status::Internal("unknown exception in a metastore function");
  }
  return transaction.failure().ok() ? status : transaction.failure();
}

}  // namespace tarn::metastore
