#include "tarn/dataset/file_scan.h"

#include "tarn/dataset/dataset_fixture.h"
#include "tarn/dataset/view_lineage.h"

namespace tarn::dataset {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FileScanTest : public DatasetFixture {};

TEST_F(FileScanTest, ThePrefixEndsBeforeTheNextByteString) {
  EXPECT_EQ(EndOfPrefix("a"), "b");
  EXPECT_EQ(EndOfPrefix("a\xFF"), "b");
  EXPECT_EQ(EndOfPrefix("a\xFF\x01"), "a\xFF\x02");
  EXPECT_EQ(EndOfPrefix("\xFF\xFF"), "");
  EXPECT_EQ(EndOfPrefix(""), "");
  EXPECT_EQ(EndOfPrefix("\x7F"), "\x80");
}

TEST_F(FileScanTest, NothingLiesBetweenAPathAndItsSuccessor) {
  EXPECT_LT(std::string("a"), After("a"));
  EXPECT_LT(After("a"), std::string("a\x01"));
}

// The merge of the rows before and after a checkpoint, in batches of every size.
TEST_F(FileScanTest, RangesAcrossACheckpointMergeTheirRoots) {
  ASSERT_OK(Commit(TransactionType::kSnapshot, MakeFiles({"z"})));
  ASSERT_OK_AND_ASSIGN(const TransactionRid start,
                       Commit(TransactionType::kAppend, MakeFiles({"a", "b", "c", "d"}, "1")));
  ASSERT_OK(store_->WriteCheckpoint(rid_, "master"));
  ASSERT_OK(Commit(TransactionType::kUpdate, MakeFiles({"b", "e"}, "2")));
  ASSERT_OK(CommitRemoval({"c", "z"}));
  ViewSelector selector;
  selector.start = start;
  ASSERT_OK_AND_ASSIGN(const FileView view, store_->ResolveView(rid_, selector));
  for (size_t files_max = 1; files_max < 7; ++files_max) {
    FileScan scan(view.lineage, "", "");
    std::vector<std::string> names;
    while (!scan.done()) {
      ASSERT_OK(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(const std::span<const File> files, scan.Next(sql, files_max, 1));
        for (const File& file : files) {
          names.push_back(file.location);
        }
        return Status::Ok();
      }));
    }
    EXPECT_THAT(names, ElementsAre("a@1", "b@2", "d@1", "e@2"));
  }
}

// A new scan from `position` goes on where another stopped.
TEST_F(FileScanTest, PositionIsWhereAnotherScanGoesOn) {
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"a", "ab", "b", "c", "d"})));
  ASSERT_OK_AND_ASSIGN(const FileView view, store_->ResolveView(rid_, {}));
  std::vector<std::string> paths;
  std::string from;
  bool done = false;
  while (!done) {
    FileScan scan(view.lineage, "", from);
    ASSERT_OK(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const std::span<const File> files, scan.Next(sql, 1, 100));
      for (const File& file : files) {
        paths.push_back(file.path);
      }
      return Status::Ok();
    }));
    done = scan.done();
    from = scan.position();
  }
  EXPECT_THAT(paths, ElementsAre("a", "ab", "b", "c", "d"));
}

TEST_F(FileScanTest, AnEmptyLineageHasNoFiles) {
  FileScan scan({}, "", "");
  EXPECT_TRUE(scan.done());
  ASSERT_OK(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const std::optional<File> file, FindFile(sql, {}, "a"));
    EXPECT_FALSE(file.has_value());
    return Status::Ok();
  }));
}

// Paths that one lineage wrote, page by page of every size, each row once, in commit order.
TEST_F(FileScanTest, ChangedPathsResumeInsideATransaction) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid since,
                       Commit(TransactionType::kSnapshot, MakeFiles({"z"})));
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"c", "a", "b"})));
  ASSERT_OK(Commit(TransactionType::kAppend, {}));
  ASSERT_OK(Commit(TransactionType::kUpdate, MakeFiles({"b", "d"}, "2")));
  ASSERT_OK_AND_ASSIGN(const FileView to, store_->ResolveView(rid_, {}));
  ViewSelector selector;
  selector.end = since;
  ASSERT_OK_AND_ASSIGN(const FileView from, store_->ResolveView(rid_, selector));
  const Lineage changes = Subtract(to.lineage, from.lineage);
  for (size_t page = 1; page < 7; ++page) {
    std::vector<std::string> paths;
    ChangedPaths::Position position;
    bool more = true;
    while (more) {
      ChangedPaths scan(changes, position);
      ASSERT_OK(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(const std::vector<ChangedPaths::Change> found, scan.Next(sql, page));
        more = !found.empty();
        for (const ChangedPaths::Change& change : found) {
          paths.push_back(change.path);
        }
        return Status::Ok();
      }));
      position = scan.position();
    }
    EXPECT_THAT(paths, ElementsAre("a", "b", "c", "b", "d")) << page;
  }
}

}  // namespace
}  // namespace tarn::dataset
