#include "tarn/storage/arrow_file.h"

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>

#include "tarn/base/arrow_status.h"
#include "tarn/storage/faulty_store.h"
#include "tarn/storage/memory_store.h"
#include "test/support/matchers.h"

namespace tarn::storage {
namespace {

class ArrowFileTest : public ::testing::Test {
 protected:
  SystemClock clock_;
  MemoryStore store_{clock_};
};

TEST_F(ArrowFileTest, ReadsAtPositionsAndInSequence) {
  EXPECT_OK(WriteObject(store_, "a", "0123456789", WriteMode::kOverwrite));
  ASSERT_OK_AND_ASSIGN(const auto file, OpenArrowInput(store_, "a"));
  EXPECT_EQ(file->GetSize().ValueOrDie(), 10);
  EXPECT_EQ(file->ReadAt(3, 4).ValueOrDie()->ToString(), "3456");
  EXPECT_EQ(file->Read(2).ValueOrDie()->ToString(), "01");
  EXPECT_EQ(file->Tell().ValueOrDie(), 2);
  EXPECT_TRUE(file->Seek(8).ok());
  EXPECT_EQ(file->Read(100).ValueOrDie()->ToString(), "89");
  EXPECT_EQ(file->Read(100).ValueOrDie()->size(), 0);
  EXPECT_EQ(file->ReadAt(1LL << 40, 1LL << 40).ValueOrDie()->size(), 0);
  EXPECT_FALSE(file->Seek(-1).ok());
  EXPECT_TRUE(file->Close().ok());
  EXPECT_TRUE(file->closed());
  EXPECT_FALSE(file->ReadAt(0, 1).ok());
}

TEST_F(ArrowFileTest, AMissingObjectIsNotFound) {
  EXPECT_THAT(OpenArrowInput(store_, "a"), Fails(ErrorCode::kNotFound));
}

TEST_F(ArrowFileTest, ClosingTheStreamLeavesTheDecisionToTheWriter) {
  ASSERT_OK_AND_ASSIGN(const auto writer, store_.OpenWriter("a", WriteMode::kOverwrite));
  const auto stream = ArrowOutput(*writer);
  EXPECT_TRUE(stream->Write("abc").ok());
  EXPECT_TRUE(stream->Write(arrow::Buffer::FromString("def")).ok());
  EXPECT_EQ(stream->Tell().ValueOrDie(), 6);
  EXPECT_TRUE(stream->Close().ok());
  EXPECT_FALSE(stream->Write("more").ok());
  EXPECT_EQ(store_.object_count(), 0u);
  EXPECT_OK(writer->Close());
  EXPECT_THAT(ReadObject(store_, "a"), IsOkAndHolds(std::string("abcdef")));
}

TEST_F(ArrowFileTest, FailuresOfTheStoreKeepTheirCode) {
  EXPECT_OK(WriteObject(store_, "a", "x", WriteMode::kOverwrite));
  FaultyStore faulty(
      store_,
      {.fail_at = 1, .code = ErrorCode::kResourceExhausted, .only = StoreOperation::kReadAt});
  ASSERT_OK_AND_ASSIGN(const auto file, OpenArrowInput(faulty, "a"));
  EXPECT_THAT(FromArrow(file->ReadAt(0, 1).status()),
              FailsWith(ErrorCode::kResourceExhausted, "\"a\""));
  faulty.Rearm(
      {.fail_at = 1, .code = ErrorCode::kPermissionDenied, .only = StoreOperation::kWrite});
  ASSERT_OK_AND_ASSIGN(const auto writer, faulty.OpenWriter("b", WriteMode::kOverwrite));
  EXPECT_THAT(FromArrow(ArrowOutput(*writer)->Write("x")), Fails(ErrorCode::kPermissionDenied));
}

}  // namespace
}  // namespace tarn::storage
