// FaultyDatabase: a database of which one chosen operation fails. For tests of commit paths:
// fail operation 1, 2, 3 … until the path passes, and look at the state after each.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tarn/metastore/database.h"

namespace tarn::metastore {

enum class Fault {
  kBefore,  // The operation does not happen: kUnavailable.
  kAfter,   // It happens and its reply is lost: kUnavailable, for a commit kCommitStateUnknown.
};

/// Operations, in the order they are counted: the start of a Read or Write, each statement inside
/// it, the commit of a Write. A failed statement fails its whole function, even if that swallows
/// the error. Threads: any.
class FaultyDatabase final : public Database {
 public:
  /// `inner` must outlive this. No fault is armed.
  explicit FaultyDatabase(Database& inner);
  ~FaultyDatabase() override;

  /// Arms the n-th operation from now (from 1); 0 disarms. It fails once.
  void FailAt(int64_t n, Fault fault);
  /// True after the armed operation was reached.
  [[nodiscard]] bool fired() const;
  /// Operations since construction.
  [[nodiscard]] int64_t operation_count() const;

  Status Read(const SqlFunction& function) override;
  Status Write(const SqlFunction& function, Durability durability) override;
  using Database::Write;
  /// Not counted.
  Status Migrate(const std::vector<Migration>& migrations) override;

 private:
  class State;
  Database& inner_;
  std::unique_ptr<State> state_;
};

}  // namespace tarn::metastore
