#include "tarn/dataset/upload.h"

#include "tarn/dataset/dataset_fixture.h"
#include "tarn/storage/faulty_store.h"
#include "tarn/storage/memory_store.h"

namespace tarn::dataset {
namespace {

class UploadTest : public DatasetFixture {
 protected:
  // Gives `pieces` one by one, then the end.
  static BodyReader Body(std::vector<std::string> pieces) {
    auto held = std::make_shared<std::vector<std::string>>(std::move(pieces));
    return [held, next = size_t{0}]() mutable -> Result<std::string_view> {
      return next < held->size() ? std::string_view((*held)[next++]) : std::string_view();
    };
  }

  storage::MemoryStore objects_{clock_};
};

TEST_F(UploadTest, BytesSizeAndChecksumAreRecorded) {
  ASSERT_OK_AND_ASSIGN(const StoredFile file,
                       UploadFile(objects_, uuids_, rid_, "a/b.csv", Body({"1,2\n", "3,4\n"})));
  EXPECT_EQ(file.path, "a/b.csv");
  EXPECT_EQ(file.size_bytes, 8);
  EXPECT_EQ(file.checksum, Xxh3("1,2\n3,4\n"));
  EXPECT_TRUE(file.managed);
  EXPECT_TRUE(file.location.starts_with(rid_.uuid.ToString() + "/"));
  EXPECT_TRUE(file.location.ends_with(".csv"));
  EXPECT_THAT(storage::ReadObject(objects_, file.location),
              IsOkAndHolds(std::string("1,2\n3,4\n")));
}

// V100: a file of no bytes is a file.
TEST_F(UploadTest, AnEmptyBodyIsAFile) {
  ASSERT_OK_AND_ASSIGN(const StoredFile file,
                       UploadFile(objects_, uuids_, rid_, "empty", Body({})));
  EXPECT_EQ(file.size_bytes, 0);
  EXPECT_EQ(file.checksum, Xxh3(""));
  ASSERT_OK(Commit(TransactionType::kAppend, {file}));
  ASSERT_OK_AND_ASSIGN(const FileView view, store_->ResolveView(rid_, {}));
  ASSERT_OK_AND_ASSIGN(const File read, store_->StatFile(view, "empty"));
  EXPECT_EQ(read.size_bytes, 0);
}

TEST_F(UploadTest, TheSamePathTwiceIsTwoObjects) {
  ASSERT_OK_AND_ASSIGN(const StoredFile first,
                       UploadFile(objects_, uuids_, rid_, "a", Body({"1"})));
  ASSERT_OK_AND_ASSIGN(const StoredFile second,
                       UploadFile(objects_, uuids_, rid_, "a", Body({"2"})));
  EXPECT_NE(first.location, second.location);
  EXPECT_EQ(objects_.object_count(), 2);
}

TEST_F(UploadTest, ABadPathWritesNothing) {
  EXPECT_EQ(StatusOf(UploadFile(objects_, uuids_, rid_, "a/../b", Body({"1"}))).reason(),
            "InvalidFilePath");
  EXPECT_EQ(objects_.object_count(), 0);
}

TEST_F(UploadTest, ABrokenBodyLeavesNothing) {
  int pieces = 0;
  const BodyReader broken = [&]() -> Result<std::string_view> {
    if (++pieces == 3) {
      return Status::Unavailable("the client went away");
    }
    return std::string_view("piece");
  };
  EXPECT_THAT(UploadFile(objects_, uuids_, rid_, "a", broken), Fails(ErrorCode::kUnavailable));
  EXPECT_EQ(objects_.object_count(), 0);
  {
    ASSERT_OK_AND_ASSIGN(const auto upload, FileUpload::Open(objects_, uuids_, rid_, "a"));
    ASSERT_OK(upload->Write("half"));
  }
  EXPECT_EQ(objects_.object_count(), 0);
}

TEST_F(UploadTest, EveryFailureOfTheStoreIsReported) {
  bool passed = false;
  for (int64_t n = 1; !passed && n < 20; ++n) {
    storage::FaultyStore faulty(objects_, {.fail_at = n,
                                           .fail_count = 1,
                                           .mode = storage::FaultMode::kBeforeEffect,
                                           .code = ErrorCode::kUnavailable,
                                           .only = std::nullopt});
    const size_t before = objects_.object_count();
    const Status status = StatusOf(UploadFile(faulty, uuids_, rid_, "a", Body({"1", "2", "3"})));
    passed = !faulty.failed();
    EXPECT_EQ(status.ok(), passed) << n;
    EXPECT_EQ(objects_.object_count(), before + (passed ? 1 : 0)) << n;
  }
  EXPECT_TRUE(passed);
}

}  // namespace
}  // namespace tarn::dataset
