#include "tarn/storage/faulty_store.h"

#include <array>

#include "tarn/storage/object_key.h"

namespace tarn::storage {

namespace {

std::string_view NameOf(StoreOperation operation) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "Head", "OpenReader", "ReadAt", "OpenWriter", "Write", "Close", "List", "Delete"};
  return kNames.at(static_cast<size_t>(operation));
}

}  // namespace

class FaultyStore::Reader final : public ObjectReader {
 public:
  Reader(FaultyStore& store, std::unique_ptr<ObjectReader> reader)
      : store_(store), reader_(std::move(reader)) {}
  [[nodiscard]] const ObjectMeta& meta() const override { return reader_->meta(); }
  Result<size_t> ReadAt(uint64_t offset_bytes, size_t size, void* out) override {
    if (store_.Count(StoreOperation::kReadAt)) {
      return store_.Failure(StoreOperation::kReadAt, meta().key);
    }
    return reader_->ReadAt(offset_bytes, size, out);
  }

 private:
  FaultyStore& store_;
  const std::unique_ptr<ObjectReader> reader_;
};

class FaultyStore::Writer final : public ObjectWriter {
 public:
  Writer(FaultyStore& store, std::string key, std::unique_ptr<ObjectWriter> writer)
      : store_(store), key_(std::move(key)), writer_(std::move(writer)) {}

  Status Write(std::string_view bytes) override {
    if (broken_) {
      return Status::FailedPrecondition("writer of " + QuoteKey(key_) + " has failed before");
    }
    const std::optional<FaultMode> fault = store_.Count(StoreOperation::kWrite);
    if (!fault) {
      return writer_->Write(bytes);
    }
    broken_ = true;
    if (*fault != FaultMode::kBeforeEffect) {
      const size_t stored = *fault == FaultMode::kShortWrite ? bytes.size() / 2 : bytes.size();
      TARN_RETURN_IF_ERROR(writer_->Write(bytes.substr(0, stored)));
    }
    return store_.Failure(StoreOperation::kWrite, key_);
  }

  Result<ObjectMeta> Close() override {
    if (broken_) {
      writer_->Abort();
      return Status::FailedPrecondition("writer of " + QuoteKey(key_) + " has failed before");
    }
    const std::optional<FaultMode> fault = store_.Count(StoreOperation::kClose);
    if (!fault) {
      return writer_->Close();
    }
    broken_ = true;
    if (*fault == FaultMode::kAfterEffect) {
      TARN_ASSIGN_OR_RETURN([[maybe_unused]] const ObjectMeta meta, writer_->Close());
      return Status(ErrorCode::kCommitStateUnknown,
                    "injected: no answer to Close of " + QuoteKey(key_));
    }
    writer_->Abort();
    return store_.Failure(StoreOperation::kClose, key_);
  }

  void Abort() override { writer_->Abort(); }

 private:
  FaultyStore& store_;
  const std::string key_;
  const std::unique_ptr<ObjectWriter> writer_;
  bool broken_ = false;
};

Result<ObjectMeta> FaultyStore::Head(std::string_view key) {
  if (Count(StoreOperation::kHead)) {
    return Failure(StoreOperation::kHead, key);
  }
  return store_.Head(key);
}

Result<std::unique_ptr<ObjectReader>> FaultyStore::OpenReader(std::string_view key) {
  if (Count(StoreOperation::kOpenReader)) {
    return Failure(StoreOperation::kOpenReader, key);
  }
  TARN_ASSIGN_OR_RETURN(std::unique_ptr<ObjectReader> reader, store_.OpenReader(key));
  return std::make_unique<Reader>(*this, std::move(reader));
}

Result<std::unique_ptr<ObjectWriter>> FaultyStore::OpenWriter(std::string_view key,
                                                              WriteMode mode) {
  if (Count(StoreOperation::kOpenWriter)) {
    return Failure(StoreOperation::kOpenWriter, key);
  }
  TARN_ASSIGN_OR_RETURN(std::unique_ptr<ObjectWriter> writer, store_.OpenWriter(key, mode));
  return std::make_unique<Writer>(*this, std::string(key), std::move(writer));
}

Result<ListPage> FaultyStore::List(const ListRequest& request) {
  if (Count(StoreOperation::kList)) {
    return Failure(StoreOperation::kList, request.prefix);
  }
  return store_.List(request);
}

Status FaultyStore::Delete(std::string_view key) {
  const std::optional<FaultMode> fault = Count(StoreOperation::kDelete);
  if (!fault || *fault == FaultMode::kAfterEffect) {
    TARN_RETURN_IF_ERROR(store_.Delete(key));
  }
  return fault ? Failure(StoreOperation::kDelete, key) : Status::Ok();
}

Result<std::string> FaultyStore::Presign(std::string_view key, std::chrono::seconds valid_for) {
  return store_.Presign(key, valid_for);
}

int64_t FaultyStore::operation_count() const {
  const std::lock_guard lock(mutex_);
  return operation_count_;
}

bool FaultyStore::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

void FaultyStore::Rearm(const FaultPlan& plan) {
  const std::lock_guard lock(mutex_);
  plan_ = plan;
  operation_count_ = 0;
  failed_ = false;
}

std::optional<FaultMode> FaultyStore::Count(StoreOperation operation) {
  const std::lock_guard lock(mutex_);
  if (plan_.only && *plan_.only != operation) {
    return std::nullopt;
  }
  ++operation_count_;
  if (plan_.fail_at == 0 || operation_count_ < plan_.fail_at ||
      operation_count_ >= plan_.fail_at + plan_.fail_count) {
    return std::nullopt;
  }
  failed_ = true;
  return plan_.mode;
}

Status FaultyStore::Failure(StoreOperation operation, std::string_view key) const {
  const std::lock_guard lock(mutex_);
  return {plan_.code,
          "injected: " + std::string(NameOf(operation)) + " of " + QuoteKey(key) + " failed"};
}

}  // namespace tarn::storage
