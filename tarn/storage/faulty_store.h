// FaultyStore: fails chosen operations of another store, for tests of what comes after a failure.
//
//   for (int64_t n = 1;; ++n) {            // The loop that every commit path must survive.
//     FaultyStore faulty(store, {.fail_at = n, .mode = FaultMode::kAfterEffect});
//     const Status status = Commit(faulty);
//     ExpectOldOrNewState(store);
//     if (!faulty.failed()) { break; }     // Fewer than n operations: done.
//   }
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "tarn/storage/object_store.h"

namespace tarn::storage {

enum class StoreOperation {
  kHead,
  kOpenReader,
  kReadAt,
  kOpenWriter,
  kWrite,
  kClose,
  kList,
  kDelete,
};

enum class FaultMode {
  kBeforeEffect,  // Nothing happened: kUnavailable (or FaultPlan::code).
  kAfterEffect,   // It happened, but the caller hears of a failure. Close: kCommitStateUnknown.
  kShortWrite,    // Write stores half of the bytes, then fails; other operations: kBeforeEffect.
};

struct FaultPlan {
  int64_t fail_at = 0;     // The n-th operation that counts, from 1; 0 = never.
  int64_t fail_count = 1;  // So many in a row from there.
  FaultMode mode = FaultMode::kBeforeEffect;
  ErrorCode code = ErrorCode::kUnavailable;
  std::optional<StoreOperation> only;  // Counts this kind only; empty = all.
};

/// Threads: any. The store behind it must outlive it; so must it outlive its readers and writers.
class FaultyStore final : public ObjectStore {
 public:
  FaultyStore(ObjectStore& store, const FaultPlan& plan) : store_(store), plan_(plan) {}

  [[nodiscard]] Capabilities capabilities() const override { return store_.capabilities(); }
  [[nodiscard]] const std::string& base_uri() const override { return store_.base_uri(); }
  Result<ObjectMeta> Head(std::string_view key) override;
  Result<std::unique_ptr<ObjectReader>> OpenReader(std::string_view key) override;
  Result<std::unique_ptr<ObjectWriter>> OpenWriter(std::string_view key, WriteMode mode) override;
  Result<ListPage> List(const ListRequest& request) override;
  Status Delete(std::string_view key) override;
  Result<std::string> Presign(std::string_view key, std::chrono::seconds valid_for) override;

  /// Operations that counted so far.
  [[nodiscard]] int64_t operation_count() const;
  /// True once an operation has failed by plan.
  [[nodiscard]] bool failed() const;
  /// Starts counting from zero under another plan.
  void Rearm(const FaultPlan& plan);

 private:
  class Reader;
  class Writer;

  // Counts one operation; how it fails, if it does.
  std::optional<FaultMode> Count(StoreOperation operation);
  [[nodiscard]] Status Failure(StoreOperation operation, std::string_view key) const;

  ObjectStore& store_;
  mutable std::mutex mutex_;
  FaultPlan plan_;  // Guarded by mutex_, as all below.
  int64_t operation_count_ = 0;
  bool failed_ = false;
};

}  // namespace tarn::storage
