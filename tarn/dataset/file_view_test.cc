#include "tarn/dataset/file_view.h"

#include "tarn/dataset/dataset_fixture.h"

namespace tarn::dataset {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FileViewTest : public DatasetFixture {
 protected:
  Result<std::vector<std::string>> List(const ListOptions& options,
                                        const ViewSelector& selector = {}) {
    TARN_ASSIGN_OR_RETURN(const FilePage page, store_->ListFiles(rid_, selector, options));
    std::vector<std::string> paths;
    for (const File& file : page.files) {
      paths.push_back(file.path);
    }
    return paths;
  }
};

TEST_F(FileViewTest, AFileComesBackAsItWasRegistered) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kAppend));
  StoredFile file;
  file.path = "dir/part.parquet";
  file.location = "s3://elsewhere/x";
  file.managed = false;
  file.size_bytes = (5LL << 30) + 7;
  file.checksum = 0xFEDCBA9876543210ULL;
  file.etag = "\"abc\"";
  file.row_count = 12;
  file.statistics = std::string("\0\1", 2);
  ASSERT_OK(store_->RegisterFiles(rid_, open, {&file, 1}));
  ASSERT_OK(store_->CommitTransaction(rid_, open, {}));
  ASSERT_OK_AND_ASSIGN(const FileView view, store_->ResolveView(rid_, {}));
  ASSERT_OK_AND_ASSIGN(File read, store_->StatFile(view, "dir/part.parquet"));
  const File expected{.path = file.path,
                      .transaction = open,
                      .size_bytes = file.size_bytes,
                      .updated_at = clock_.Now(),
                      .location = file.location,
                      .managed = false,
                      .checksum = file.checksum,
                      .etag = file.etag,
                      .row_count = 12,
                      .statistics = {}};
  EXPECT_EQ(read, expected);
  ASSERT_OK(store_->StreamFiles(
      view, "",
      [&](std::span<const File> files) {
        read = files[0];
        return Status::Ok();
      },
      FileDetail::kWithStatistics));
  EXPECT_EQ(read.statistics, *file.statistics);
}

TEST_F(FileViewTest, ListingIsSortedByBytes) {
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"b", "a", "a/b", "a.csv", "B", "\xC3\xA4",
                                                        "a\xCC\x88", "z\xF0\x9F\x98\x80"})));
  EXPECT_THAT(Paths({}), IsOkAndHolds(ElementsAre("B", "a", "a.csv", "a/b", "a\xCC\x88", "b",
                                                  "z\xF0\x9F\x98\x80", "\xC3\xA4")));
}

TEST_F(FileViewTest, PrefixesAreLiteral) {
  ASSERT_OK(Commit(TransactionType::kAppend,
                   MakeFiles({"a/1", "a/2", "a%", "ab", "a[1].csv", "*", "b"})));
  ListOptions options;
  options.prefix = "a/";
  EXPECT_THAT(List(options), IsOkAndHolds(ElementsAre("a/1", "a/2")));
  options.prefix = "a%";
  EXPECT_THAT(List(options), IsOkAndHolds(ElementsAre("a%")));
  options.prefix = "a[";
  EXPECT_THAT(List(options), IsOkAndHolds(ElementsAre("a[1].csv")));
  options.prefix = "*";
  EXPECT_THAT(List(options), IsOkAndHolds(ElementsAre("*")));
  options.prefix = "c";
  EXPECT_THAT(List(options), IsOkAndHolds(IsEmpty()));
}

TEST_F(FileViewTest, APrefixThatIsAFileIsThatFileAlone) {
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"a", "a/b", "ab"})));
  ListOptions options;
  options.prefix = "a";
  EXPECT_THAT(List(options), IsOkAndHolds(ElementsAre("a")));
}

TEST_F(FileViewTest, PagesPinTheirEndWhileOthersCommit) {
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"a", "c", "e", "g"})));
  ListOptions options;
  options.page_size = 2;
  ASSERT_OK_AND_ASSIGN(const FilePage first, store_->ListFiles(rid_, {}, options));
  ASSERT_TRUE(first.next_page_token.has_value());
  ASSERT_OK(CommitRemoval({"e"}));
  ASSERT_OK(Commit(TransactionType::kSnapshot, MakeFiles({"z"})));
  options.page_token = *first.next_page_token;
  ASSERT_OK_AND_ASSIGN(const FilePage second, store_->ListFiles(rid_, {}, options));
  ASSERT_THAT(second.files, SizeIs(2));
  EXPECT_EQ(second.files[0].path, "e");
  EXPECT_EQ(second.files[1].path, "g");
  EXPECT_FALSE(second.next_page_token.has_value());
}

TEST_F(FileViewTest, TokensOfOtherListingsAreRefused) {
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"a", "b", "c"})));
  ListOptions options;
  options.page_size = 1;
  ASSERT_OK_AND_ASSIGN(const FilePage page, store_->ListFiles(rid_, {}, options));
  options.page_token = *page.next_page_token;
  options.prefix = "other";
  EXPECT_EQ(StatusOf(store_->ListFiles(rid_, {}, options)).reason(), "InvalidPageToken");
  options.prefix.clear();
  const DatasetRid other = MakeDataset();
  EXPECT_EQ(StatusOf(store_->ListFiles(other, {}, options)).reason(), "InvalidPageToken");
  options.page_token += "x";
  EXPECT_EQ(StatusOf(store_->ListFiles(rid_, {}, options)).reason(), "InvalidPageToken");
  options.page_token.clear();
  options.page_size = 0;
  EXPECT_EQ(StatusOf(store_->ListFiles(rid_, {}, options)).reason(), "InvalidPageSize");
}

TEST_F(FileViewTest, AMissingFileIsNamedByBranchOrByRange) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid end,
                       Commit(TransactionType::kAppend, MakeFiles({"a"})));
  ASSERT_OK_AND_ASSIGN(FileView view, store_->ResolveView(rid_, {}));
  EXPECT_EQ(StatusOf(store_->StatFile(view, "b")).reason(), "FileNotFoundOnBranch");
  ViewSelector selector;
  selector.end = end;
  ASSERT_OK_AND_ASSIGN(view, store_->ResolveView(rid_, selector));
  const Status status = StatusOf(store_->StatFile(view, "b"));
  EXPECT_EQ(status.reason(), "FileNotFoundOnTransactionRange");
  EXPECT_THAT(status.details(), HasSubstr("endTransactionRid"));
}

TEST_F(FileViewTest, AnOpenTransactionShowsItsFilesOnlyWhenItIsTheEnd) {
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"a"})));
  ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kUpdate));
  ASSERT_OK(store_->RegisterFiles(rid_, open, MakeFiles({"b"})));
  EXPECT_THAT(Paths({}), IsOkAndHolds(ElementsAre("a")));
  EXPECT_THAT(PathsAt(open), IsOkAndHolds(ElementsAre("a", "b")));
}

TEST_F(FileViewTest, StartMustBeAnAncestorOfEnd) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid base,
                       Commit(TransactionType::kAppend, MakeFiles({"a"})));
  CreateBranchOptions from;
  from.from_branch = "master";
  ASSERT_OK(store_->CreateBranch(rid_, "dev", from));
  ASSERT_OK_AND_ASSIGN(const TransactionRid left,
                       Commit(TransactionType::kAppend, MakeFiles({"l"})));
  ASSERT_OK_AND_ASSIGN(const TransactionRid right,
                       Commit(TransactionType::kAppend, MakeFiles({"r"}), "dev"));
  ViewSelector selector;
  selector.start = left;
  selector.end = right;
  EXPECT_EQ(StatusOf(Paths(selector)).reason(), "InvalidParameterCombination");
  selector.start = right;
  selector.end = base;
  EXPECT_EQ(StatusOf(Paths(selector)).reason(), "InvalidParameterCombination");
  selector.end = left;
  selector.start.reset();
  selector.at = clock_.Now();
  EXPECT_EQ(StatusOf(Paths(selector)).reason(), "InvalidParameterCombination");
}

// Views of a branch that was deleted stay readable by their transactions.
TEST_F(FileViewTest, AnEndOutlivesItsBranch) {
  CreateBranchOptions nothing;
  ASSERT_OK(store_->CreateBranch(rid_, "dev", nothing));
  ASSERT_OK_AND_ASSIGN(const TransactionRid end,
                       Commit(TransactionType::kAppend, MakeFiles({"a"}), "dev"));
  ASSERT_OK(store_->DeleteBranch(rid_, "dev"));
  EXPECT_THAT(PathsAt(end), IsOkAndHolds(ElementsAre("a")));
}

// A thousand versions of one path: listing seeks instead of reading them all.
TEST_F(FileViewTest, ManyVersionsOfOnePathAreSkipped) {
  ASSERT_OK(Commit(TransactionType::kUpdate, MakeFiles({"a", "z"})));
  for (int i = 0; i < 300; ++i) {
    ASSERT_OK(database_->Write(
        [&](metastore::SqlTransaction& sql) {
          CommitFilesRequest request;
          request.dataset = rid_;
          request.type = TransactionType::kUpdate;
          request.files = MakeFiles({"m"}, std::to_string(i));
          return StatusOf(store_->CommitFiles(sql, request));
        },
        metastore::Durability::kLazy));
  }
  ASSERT_OK_AND_ASSIGN(const FilePage page, store_->ListFiles(rid_, {}, {}));
  ASSERT_THAT(page.files, SizeIs(3));
  EXPECT_EQ(page.files[1].location, "m@299");
  EXPECT_LT(page.rows_examined, 30);
}

// Streams re-open by key: more files than one batch, each once, in order.
TEST_F(FileViewTest, StreamsOfManyBatchesAreComplete) {
  std::vector<StoredFile> files;
  for (int i = 0; i < 20'000; ++i) {
    files.push_back(MakeFile("f" + std::to_string(1'000'000 + i)));
  }
  ASSERT_OK(Commit(TransactionType::kAppend, files));
  ASSERT_OK_AND_ASSIGN(const FileView view, store_->ResolveView(rid_, {}));
  size_t count = 0;
  int batches = 0;
  ASSERT_OK(store_->StreamFiles(view, "f10", [&](std::span<const File> batch) {
    for (const File& file : batch) {
      EXPECT_EQ(file.path, files[count].path);
      ++count;
    }
    ++batches;
    return Status::Ok();
  }));
  EXPECT_EQ(count, files.size());
  EXPECT_GT(batches, 2);
  EXPECT_THAT(store_->StreamFiles(view, "",
                                  [](std::span<const File>) {
                                    return Status::Unavailable("the reader went away");
                                  }),
              Fails(ErrorCode::kUnavailable));
}

}  // namespace
}  // namespace tarn::dataset
