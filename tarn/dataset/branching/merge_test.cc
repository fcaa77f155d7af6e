#include "tarn/dataset/branching/merge.h"

#include <random>
#include <set>

#include "tarn/dataset/dataset_fixture.h"

namespace tarn::dataset::branching {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Files = std::map<std::string, std::string>;

class MergeTest : public DatasetFixture {
 protected:
  MergeRequest Request(const std::string& target, const std::string& source) {
    MergeRequest request;
    request.dataset = rid_;
    request.target = target;
    request.source.branch = source;
    request.now = clock_.Now();
    request.by = "me";
    return request;
  }
  Result<MergeReport> Merge(const std::string& target, const std::string& source) {
    return MergeBranch(*database_, *store_, Request(target, source));
  }
  void MakeBranch(const std::string& name, const std::string& from = "master") {
    ASSERT_OK(store_->CreateBranch(rid_, name, {.from_branch = from}));
  }
  Result<Files> FilesOf(const std::string& branch) {
    ViewSelector selector;
    selector.branch = branch;
    TARN_ASSIGN_OR_RETURN(const FileView view, store_->ResolveView(rid_, selector));
    Files files;
    TARN_RETURN_IF_ERROR(store_->StreamFiles(view, "", [&](std::span<const File> batch) {
      for (const File& file : batch) {
        files[file.path] = file.location;
      }
      return Status::Ok();
    }));
    return files;
  }
  void Put(const std::string& branch, const std::vector<std::string>& paths,
           const std::string& version) {
    ASSERT_OK(Commit(TransactionType::kUpdate, MakeFiles(paths, version), branch));
  }
};

TEST_F(MergeTest, DisjointChangesAlwaysMerge) {
  Put("master", {"a", "b", "c"}, "0");
  MakeBranch("dev");
  Put("dev", {"a", "d"}, "1");
  ASSERT_OK(CommitRemoval({"b"}, false, "dev"));
  Put("master", {"c", "e"}, "2");
  ASSERT_OK_AND_ASSIGN(const MergeReport report, Merge("master", "dev"));
  EXPECT_EQ(report.outcome, MergeOutcome::kMerged);
  EXPECT_EQ(report.put, 2);
  EXPECT_EQ(report.removed, 1);
  EXPECT_EQ(report.conflicts, 0);
  EXPECT_THAT(FilesOf("master"),
              IsOkAndHolds(Files{{"a", "a@1"}, {"c", "c@2"}, {"d", "d@1"}, {"e", "e@2"}}));
  ASSERT_OK_AND_ASSIGN(const MergeReport again, Merge("master", "dev"));
  EXPECT_EQ(again.outcome, MergeOutcome::kUpToDate);
}

TEST_F(MergeTest, ConflictsNeedAChoicePerPath) {
  Put("master", {"a", "b", "c", "same"}, "0");
  MakeBranch("dev");
  Put("dev", {"a", "b", "same"}, "1");
  ASSERT_OK(CommitRemoval({"c"}, false, "dev"));
  Put("master", {"a", "b", "c"}, "2");
  Put("master", {"same"}, "1");
  const Status refused = StatusOf(Merge("master", "dev"));
  EXPECT_THAT(refused, Fails(ErrorCode::kConflict));
  EXPECT_EQ(refused.reason(), "MergeConflicts");
  EXPECT_THAT(refused.message(), HasSubstr(R"(3 path(s) differently: "a", "b", "c"; choose)"));
  EXPECT_THAT(refused.details(), HasSubstr(R"("paths":["a","b","c"],"count":3)"));
  MergeRequest request = Request("master", "dev");
  request.mode = MergeMode::kDryRun;
  ASSERT_OK_AND_ASSIGN(const MergeReport planned, MergeBranch(*database_, *store_, request));
  EXPECT_EQ(planned.outcome, MergeOutcome::kConflicts);
  EXPECT_THAT(planned.unresolved, ElementsAre("a", "b", "c"));
  request.mode = MergeMode::kDo;
  request.choices = {{"a", MergeSide::kSource}, {"b", MergeSide::kTarget}};
  EXPECT_EQ(StatusOf(MergeBranch(*database_, *store_, request)).reason(), "MergeConflicts");
  request.otherwise = MergeSide::kSource;
  ASSERT_OK(MergeBranch(*database_, *store_, request));
  EXPECT_THAT(FilesOf("master"),
              IsOkAndHolds(Files{{"a", "a@1"}, {"b", "b@2"}, {"same", "same@1"}}));
}

TEST_F(MergeTest, AChainIsMovedForward) {
  Put("master", {"a"}, "0");
  MakeBranch("dev");
  Put("dev", {"b"}, "1");
  ASSERT_OK_AND_ASSIGN(const MergeReport report, Merge("master", "dev"));
  EXPECT_EQ(report.outcome, MergeOutcome::kFastForward);
  ASSERT_OK_AND_ASSIGN(const Branch dev, store_->GetBranch(rid_, "dev"));
  EXPECT_EQ(report.head, dev.head);
  EXPECT_THAT(FilesOf("master"), IsOkAndHolds(Files{{"a", "a@0"}, {"b", "b@1"}}));
  ASSERT_OK_AND_ASSIGN(const MergeReport back, Merge("dev", "master"));
  EXPECT_EQ(back.outcome, MergeOutcome::kUpToDate);
}

// Earlier merges count: what was merged once is no conflict when it changes again on one side.
TEST_F(MergeTest, MergesBothWaysKnowOfEachOther) {
  Put("master", {"a", "b"}, "0");
  MakeBranch("dev");
  Put("dev", {"a"}, "1");
  Put("master", {"b"}, "1");
  ASSERT_OK(Merge("master", "dev"));
  Put("dev", {"a"}, "2");
  ASSERT_OK_AND_ASSIGN(const MergeReport second, Merge("master", "dev"));
  EXPECT_EQ(second.conflicts, 0);
  EXPECT_THAT(FilesOf("master"), IsOkAndHolds(Files{{"a", "a@2"}, {"b", "b@1"}}));
  Put("master", {"a", "b"}, "3");
  ASSERT_OK_AND_ASSIGN(const MergeReport back, Merge("dev", "master"));
  EXPECT_EQ(back.conflicts, 0);
  EXPECT_THAT(FilesOf("dev"), IsOkAndHolds(Files{{"a", "a@3"}, {"b", "b@3"}}));
}

TEST_F(MergeTest, WithoutACommonBaseEveryPathIsNew) {
  Put("master", {"a", "b"}, "0");
  ASSERT_OK(store_->CreateBranch(rid_, "root", {}));
  Put("root", {"b", "c"}, "1");
  EXPECT_EQ(StatusOf(Merge("master", "root")).reason(), "MergeConflicts");
  MergeRequest request = Request("master", "root");
  request.choices = {{"b", MergeSide::kTarget}};
  ASSERT_OK(MergeBranch(*database_, *store_, request));
  EXPECT_THAT(FilesOf("master"), IsOkAndHolds(Files{{"a", "a@0"}, {"b", "b@0"}, {"c", "c@1"}}));
  ASSERT_OK(store_->CreateBranch(rid_, "empty", {}));
  ASSERT_OK_AND_ASSIGN(const MergeReport report, Merge("empty", "master"));
  EXPECT_EQ(report.outcome, MergeOutcome::kFastForward);
  EXPECT_EQ(FilesOf("empty").value(), FilesOf("master").value());
}

TEST_F(MergeTest, ASnapshotOnEitherSideIsADifferenceByPath) {
  Put("master", {"a", "b"}, "0");
  MakeBranch("dev");
  ASSERT_OK(Commit(TransactionType::kSnapshot, MakeFiles({"b", "c"}, "0"), "dev"));
  Put("master", {"d"}, "1");
  ASSERT_OK(Merge("master", "dev"));
  EXPECT_THAT(FilesOf("master"), IsOkAndHolds(Files{{"b", "b@0"}, {"c", "c@0"}, {"d", "d@1"}}));
}

TEST_F(MergeTest, BusyAndMissingSidesAreRefused) {
  Put("master", {"a"}, "0");
  MakeBranch("dev");
  EXPECT_EQ(StatusOf(Merge("master", "none")).reason(), "BranchNotFound");
  EXPECT_EQ(StatusOf(Merge("none", "master")).reason(), "BranchNotFound");
  ASSERT_OK(Start(TransactionType::kUpdate));
  EXPECT_EQ(StatusOf(Merge("master", "dev")).reason(), "OpenTransactionAlreadyExists");
}

TEST_F(MergeTest, ManyChangesGoInBatches) {
  std::vector<std::string> paths;
  for (int i = 0; i < 7000; ++i) {
    paths.push_back("f" + std::to_string(i));
  }
  Put("master", {"a"}, "0");
  MakeBranch("dev");
  ASSERT_OK(Commit(TransactionType::kUpdate, MakeFiles(paths, "1"), "dev"));
  Put("master", {"b"}, "1");
  ASSERT_OK_AND_ASSIGN(const MergeReport report, Merge("master", "dev"));
  EXPECT_EQ(report.put, 7000);
  ASSERT_OK_AND_ASSIGN(const Files merged, FilesOf("master"));
  EXPECT_EQ(merged.size(), 7002U);
  ASSERT_OK_AND_ASSIGN(const Transaction transaction, store_->GetTransaction(rid_, *report.head));
  EXPECT_EQ(transaction.file_count, 7000);
}

class MergeFaultTest : public MergeTest, public ::testing::WithParamInterface<metastore::Fault> {};

TEST_P(MergeFaultTest, EveryFailureLeavesTheTargetOldOrNew) {
  Put("master", {"a", "b"}, "0");
  MakeBranch("dev");
  Put("dev", {"a"}, "1");
  Put("master", {"b"}, "2");
  const Files old_files = {{"a", "a@0"}, {"b", "b@2"}};
  const Files merged = {{"a", "a@1"}, {"b", "b@2"}};
  bool passed = false;
  for (int64_t n = 1; !passed && n < 300; ++n) {
    database_->FailAt(n, GetParam());
    const Result<MergeReport> report = Merge("master", "dev");
    passed = !database_->fired();
    database_->FailAt(0, GetParam());
    ASSERT_OK_AND_ASSIGN(const Files files, FilesOf("master"));
    ASSERT_TRUE(files == merged || (!report.ok() && files == old_files)) << n;
    ASSERT_OK_AND_ASSIGN(const Branch branch, store_->GetBranch(rid_, "master"));
    ASSERT_FALSE(branch.open.has_value()) << n;
  }
  EXPECT_TRUE(passed);
}

INSTANTIATE_TEST_SUITE_P(Faults, MergeFaultTest,
                         ::testing::Values(metastore::Fault::kBefore, metastore::Fault::kAfter));

// Random branches and merges against maps, with the base of each merge kept by the model: the
// newest state that both sides contain, by sets of commits.
class MergeModelTest : public MergeTest {
 protected:
  struct Commit {
    Files files;
    std::set<int> contains;  // Commits, itself included.
    TransactionRid rid;
  };
  struct Decided {
    Files files;
    int64_t conflicts = 0;
  };

  static std::optional<std::string> At(const Files& files, const std::string& path) {
    const auto found = files.find(path);
    return found == files.end() ? std::nullopt : std::optional<std::string>(found->second);
  }

  // Three-way by path; conflicts go to the source.
  static Decided Decide(const Files& base, const Files& target, const Files& source) {
    Decided decided{.files = target};
    for (int i = 0; i < 6; ++i) {
      const std::string path = "p" + std::to_string(i);
      const auto from = At(base, path);
      const auto ours = At(target, path);
      const auto theirs = At(source, path);
      if (ours == theirs || theirs == from) {
        continue;
      }
      decided.conflicts += ours == from ? 0 : 1;
      if (theirs) {
        decided.files[path] = *theirs;
      } else {
        decided.files.erase(path);
      }
    }
    return decided;
  }
};

TEST_F(MergeModelTest, MergesAgreeWithTheModel) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  Put("master", {"p0", "p1", "p2"}, "0");
  std::vector<Commit> commits = {{.files = *FilesOf("master"), .contains = {0}, .rid = {}}};
  std::map<std::string, int> heads = {{"master", 0}, {"b0", 0}, {"b1", 0}};
  MakeBranch("b0");
  MakeBranch("b1");
  for (int step = 1; step < 250; ++step) {
    auto target = std::next(heads.begin(), random() % 3);
    Commit next = commits[static_cast<size_t>(target->second)];
    if (random() % 3 != 0) {
      const std::string path = "p" + std::to_string(random() % 6);
      if (next.files.contains(path) && random() % 3 == 0) {
        ASSERT_OK(CommitRemoval({path}, false, target->first));
        next.files.erase(path);
      } else {
        Put(target->first, {path}, std::to_string(step));
        next.files[path] = path + "@" + std::to_string(step);
      }
      next.contains.insert(static_cast<int>(commits.size()));
    } else {
      const auto source = std::next(heads.begin(), random() % 3);
      const Commit& other = commits[static_cast<size_t>(source->second)];
      MergeRequest request = Request(target->first, source->first);
      request.otherwise = MergeSide::kSource;
      ASSERT_OK_AND_ASSIGN(const MergeReport report, MergeBranch(*database_, *store_, request));
      if (next.contains.contains(source->second)) {
        ASSERT_EQ(report.outcome, MergeOutcome::kUpToDate) << step;
        continue;
      }
      if (report.outcome == MergeOutcome::kFastForward) {
        ASSERT_TRUE(other.contains.contains(target->second)) << step;
        target->second = source->second;
        continue;
      }
      // The model's base: the newest commit that both contain.
      int base = 0;
      for (const int commit : next.contains) {
        base = other.contains.contains(commit) ? std::max(base, commit) : base;
      }
      const Decided decided =
          Decide(commits[static_cast<size_t>(base)].files, next.files, other.files);
      ASSERT_EQ(FilesOf(target->first).value(), decided.files) << step;
      ASSERT_EQ(report.conflicts, decided.conflicts) << step;
      next.files = decided.files;
      next.contains.insert(other.contains.begin(), other.contains.end());
      next.contains.insert(static_cast<int>(commits.size()));
    }
    commits.push_back(next);
    target->second = static_cast<int>(commits.size()) - 1;
  }
}

}  // namespace
}  // namespace tarn::dataset::branching
