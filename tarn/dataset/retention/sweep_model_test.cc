// Random histories against the one rule of sweeping: what a readable view or an OPEN transaction
// shows is there, always; what none shows is gone in the end.
#include <map>
#include <random>

#include "tarn/dataset/retention/retention_fixture.h"

namespace tarn::dataset::retention {
namespace {

class SweepModelTest : public RetentionFixture {
 protected:
  size_t Pick(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }

  std::vector<std::string> SomePaths() {
    std::vector<std::string> paths;
    const size_t count = 1 + Pick(3);
    for (size_t i = 0; i < count; ++i) {
      paths.push_back("p" + std::to_string(Pick(6)));
    }
    return paths;
  }

  std::string SomeBranch() {
    auto branch = branches_.begin();
    std::advance(branch, static_cast<std::ptrdiff_t>(Pick(branches_.size())));
    return branch->first;
  }

  // What the store refuses (an OPEN head, a swept start, nothing to remove) is no step.
  void Step() {
    const std::string branch = SomeBranch();
    switch (Pick(13)) {
      case 0:
      case 1:
      case 2:
        Commit(branch, TransactionType::kUpdate);
        break;
      case 3:
        Commit(branch, TransactionType::kSnapshot);
        break;
      case 4:
        Remove(branch);
        break;
      case 5:
        StartAndLeave(branch);
        break;
      case 6:
        Close(branch);
        break;
      case 7:
        MakeBranch(branch);
        break;
      case 8:
        if (branch != "master" && store_->DeleteBranch(rid_, branch).ok()) {
          branches_.erase(branch);
        }
        break;
      case 9:
        Move(branch);
        break;
      case 10:
        ASSERT_OK(store_->WriteCheckpoint(rid_, branch));
        break;
      case 11:
        ChangePolicy();
        break;
      default:
        ASSERT_OK(Upload("never registered"));
        break;
    }
  }

  void Commit(const std::string& branch, TransactionType type) {
    const auto files = UploadAll(SomePaths());
    const Result<TransactionRid> rid = Start(type, branch);
    if (!rid.ok()) {
      return;
    }
    ASSERT_OK(store_->RegisterFiles(rid_, *rid, *files));
    ASSERT_OK(store_->CommitTransaction(rid_, *rid, {}));
    committed_.push_back(*rid);
  }

  void Remove(const std::string& branch) {
    const Result<TransactionRid> rid = Start(TransactionType::kDelete, branch);
    if (!rid.ok()) {
      return;
    }
    ASSERT_OK(store_->RemoveFiles(rid_, *rid, SomePaths(), MissingPath::kIgnore));
    ASSERT_OK(store_->CommitTransaction(rid_, *rid, {}));
    committed_.push_back(*rid);
  }

  void StartAndLeave(const std::string& branch) {
    const Result<TransactionRid> rid = Start(TransactionType::kUpdate, branch);
    if (rid.ok()) {
      const auto files = UploadAll(SomePaths());
      ASSERT_OK(store_->RegisterFiles(rid_, *rid, *files));
      branches_[branch] = *rid;
    }
  }

  void Close(const std::string& branch) {
    const std::optional<TransactionRid> open = branches_[branch];
    if (!open) {
      return;
    }
    if (Pick(2) == 0) {
      (void)store_->AbortTransaction(rid_, *open, "me").ok();
    } else if (store_->CommitTransaction(rid_, *open, {}).ok()) {
      committed_.push_back(*open);
    }
    branches_[branch].reset();
  }

  void MakeBranch(const std::string& from) {
    const std::string name = "b" + std::to_string(next_branch_++);
    CreateBranchOptions options;
    if (Pick(2) == 0 || committed_.empty()) {
      options.from_branch = from;
    } else {
      options.from_transaction = committed_[Pick(committed_.size())];
    }
    if (store_->CreateBranch(rid_, name, options).ok()) {
      branches_[name];
    }
  }

  void Move(const std::string& branch) {
    if (committed_.empty()) {
      return;
    }
    const TransactionRid to = committed_[Pick(committed_.size())];
    (void)database_
        ->Write([&](metastore::SqlTransaction& sql) {
          return StatusOf(store_->ResetBranch(sql, rid_, branch, to, "me"));
        })
        .ok();
  }

  void ChangePolicy() {
    const char* const policies[] = {
        R"({"name":"p","datasets":{"all":true},"grace":"3h","transactions":{"keepNewest":2}})",
        R"({"name":"p","datasets":{"all":true},"grace":"0s","transactions":{"olderThan":"9h"}})",
        R"({"name":"p","datasets":{"all":true},"grace":"2h","transactions":{"keepViews":1}})",
        R"({"name":"p","datasets":{"all":true},"grace":"1h",
            "transactions":{"noFileInActiveView":true}})",
        R"({"name":"p","datasets":{"all":true},"grace":"1h","latestView":"delete",
            "transactions":{"olderThan":"30h","branchIn":["master"]}})"};
    ASSERT_OK(RetentionFixture::Put(policies[Pick(std::size(policies))]));
  }

  // Locations that some readable view or OPEN transaction shows.
  void ReadShown(std::set<std::string>& shown) {
    std::vector<TransactionRid> ends = committed_;
    for (const auto& [name, open] : branches_) {
      ASSERT_OK_AND_ASSIGN(const Branch branch, store_->GetBranch(rid_, name));
      for (const auto& rid : {branch.head, branch.open}) {
        if (rid) {
          ends.push_back(*rid);
        }
      }
      ViewSelector head;
      head.branch = name;
      ASSERT_OK(store_->ResolveView(rid_, head)) << "a latest view was swept";
    }
    for (const TransactionRid& end : ends) {
      ViewSelector selector;
      selector.end = end;
      const Result<FileView> view = store_->ResolveView(rid_, selector);
      if (!view.ok()) {
        ASSERT_EQ(view.status().reason(), "TransactionDataRemovedByRetention");
        continue;
      }
      ASSERT_OK(store_->StreamFiles(*view, "", [&](std::span<const File> files) {
        for (const File& file : files) {
          shown.insert(file.location);
        }
        return Status::Ok();
      }));
    }
  }

  void ExpectShownExists(std::set<std::string>& shown) {
    ASSERT_NO_FATAL_FAILURE(ReadShown(shown));
    for (const std::string& location : shown) {
      ASSERT_TRUE(Exists(location)) << location;
    }
  }

  std::mt19937 random_;
  std::map<std::string, std::optional<TransactionRid>> branches_ = {{"master", std::nullopt}};
  std::vector<TransactionRid> committed_;
  int next_branch_ = 0;
};

TEST_F(SweepModelTest, TheShownStaysAndTheRestGoes) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random_.seed(seed);
  int64_t removed = 0;
  for (int step = 0; step < 400; ++step) {
    ASSERT_NO_FATAL_FAILURE(Step()) << step;
    clock_.Advance(std::chrono::minutes(Pick(120)));
    if (Pick(4) == 0) {
      ASSERT_OK(Mark());
      SweepOptions options;
      options.age_min = std::chrono::hours(2);
      ASSERT_OK_AND_ASSIGN(const SweepReport report, RunSweep(Deps(), objects_, options));
      removed += report.removed;
      std::set<std::string> shown;
      ASSERT_NO_FATAL_FAILURE(ExpectShownExists(shown)) << step;
    }
  }
  clock_.Advance(std::chrono::hours(1000));
  ASSERT_OK(store_->PurgeDeleted(1'000'000));
  ASSERT_OK(Sweep());
  std::set<std::string> shown;
  ASSERT_NO_FATAL_FAILURE(ExpectShownExists(shown));
  EXPECT_EQ(objects_.object_count(), shown.size());
  EXPECT_GT(removed, 20);
}

// Writers go on while a sweep runs; at every look at the store, what is shown is there.
TEST_F(SweepModelTest, WritersGoOnDuringASweep) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random_.seed(seed);
  for (int round = 0; round < 30; ++round) {
    for (int step = 0; step < 10; ++step) {
      ASSERT_NO_FATAL_FAILURE(Step());
      clock_.Advance(std::chrono::hours(1));
    }
    ASSERT_OK(Mark());
    SweepOptions options;
    options.stop = [&] {
      Step();
      return false;
    };
    ASSERT_OK(RunSweep(Deps(), objects_, options));
    std::set<std::string> shown;
    ASSERT_NO_FATAL_FAILURE(ExpectShownExists(shown)) << round;
  }
}

}  // namespace
}  // namespace tarn::dataset::retention
