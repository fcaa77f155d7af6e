// What every Source promises, as tests: instantiate SourceContract with a way to make one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tarn/source/source.h"
#include "test/support/matchers.h"

namespace tarn::source {

/// A place that a source reads from, under the control of a test.
class SourcePlace {
 public:
  virtual ~SourcePlace() = default;
  /// Puts payload there that the source has not seen; later calls come later in its order.
  virtual void Add(const std::string& payload) = 0;
  /// A source that starts where Commit was called last.
  virtual std::unique_ptr<Source> Open() = 0;
  /// Stores the positions of a batch, as landing does.
  virtual void Commit(const SourceBatch& batch) = 0;
  virtual MemoryBudget& budget() = 0;
  /// False where an item is one payload, however large.
  [[nodiscard]] virtual bool cuts_items() const { return true; }
};

using SourcePlaceFactory = std::unique_ptr<SourcePlace> (*)();

class SourceContract : public ::testing::TestWithParam<SourcePlaceFactory> {
 protected:
  static constexpr BatchLimits kLimits{
      .bytes_max = 64, .items_max = 10, .wait_max = std::chrono::milliseconds(20)};

  static std::string PayloadOf(const SourceBatch& batch) {
    std::string payload;
    for (const SourceItem& item : batch.items) {
      payload += item.payload;
    }
    return payload;
  }

  // All payload up to the first caught-up batch.
  std::string ReadAll(Source& source, const BatchLimits& limits = kLimits, bool commit = false) {
    std::string payload;
    for (int i = 0; i < 10'000; ++i) {
      const Result<SourceBatch> batch = source.Next(limits);
      EXPECT_OK(batch);
      if (!batch.ok()) {
        return payload;
      }
      payload += PayloadOf(*batch);
      if (commit) {
        place_->Commit(*batch);
      }
      if (batch->caught_up) {
        return payload;
      }
    }
    ADD_FAILURE() << "never caught up";
    return payload;
  }

  std::unique_ptr<SourcePlace> place_ = GetParam()();
};

TEST_P(SourceContract, HandsOverEverythingInOrderAndOnce) {
  place_->Add("one;");
  place_->Add("two;");
  const auto source = place_->Open();
  EXPECT_EQ(ReadAll(*source), "one;two;");
  EXPECT_EQ(ReadAll(*source), "");
  place_->Add("three;");
  EXPECT_EQ(ReadAll(*source), "three;");
}

TEST_P(SourceContract, BatchesKeepToTheirLimits) {
  std::string expected;
  for (int i = 0; i < 20; ++i) {
    const std::string payload(static_cast<size_t>(i) * 10 + 1, static_cast<char>('a' + i));
    place_->Add(payload);
    expected += payload;
  }
  const auto source = place_->Open();
  std::string payload;
  for (bool more = true; more;) {
    ASSERT_OK_AND_ASSIGN(const SourceBatch batch, source->Next(kLimits));
    EXPECT_LE(batch.items.size(), kLimits.items_max);
    if (place_->cuts_items() || batch.items.size() > 1) {
      EXPECT_LE(PayloadOf(batch).size(), kLimits.bytes_max);
    }
    EXPECT_EQ(batch.memory.bytes(), PayloadOf(batch).size());
    payload += PayloadOf(batch);
    more = !batch.caught_up;
  }
  EXPECT_EQ(payload, expected);
  EXPECT_THAT(source->Next({.bytes_max = 0}), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(source->Next({.items_max = 0}), Fails(ErrorCode::kInvalidArgument));
}

TEST_P(SourceContract, ANewSourceGoesOnAfterTheLastCommit) {
  for (const char* payload : {"one;", "two;", "three;"}) {
    place_->Add(payload);
  }
  {
    const auto source = place_->Open();
    EXPECT_EQ(ReadAll(*source), "one;two;three;");  // Nothing committed.
  }
  std::string committed;
  for (int restarts = 0; committed.size() < 14; ++restarts) {
    ASSERT_LT(restarts, 100);
    const auto source = place_->Open();
    ASSERT_OK_AND_ASSIGN(const SourceBatch batch, source->Next({.bytes_max = 5}));
    place_->Commit(batch);
    committed += PayloadOf(batch);
    ASSERT_OK(source->Next({.bytes_max = 5}));  // Read, lost with the process.
  }
  EXPECT_EQ(committed, "one;two;three;");
  place_->Add("four;");
  EXPECT_EQ(ReadAll(*place_->Open(), kLimits, /*commit=*/true), "four;");
  EXPECT_EQ(ReadAll(*place_->Open()), "");
}

TEST_P(SourceContract, PausesWhileThereIsNoMemory) {
  place_->Add("payload");
  const auto source = place_->Open();
  {
    ASSERT_OK_AND_ASSIGN(const Reservation all,
                         place_->budget().TryReserve(place_->budget().limit_bytes(), "a test"));
    for (int i = 0; i < 2; ++i) {
      ASSERT_OK_AND_ASSIGN(
          const SourceBatch batch,
          source->Next({.bytes_max = 64, .wait_max = std::chrono::milliseconds(1)}));
      EXPECT_TRUE(batch.items.empty());
      EXPECT_FALSE(batch.caught_up);
    }
  }
  EXPECT_EQ(ReadAll(*source), "payload");
  EXPECT_EQ(place_->budget().used_bytes(), 0u);
}

TEST_P(SourceContract, CancelEndsIt) {
  place_->Add("payload");
  const auto source = place_->Open();
  source->Cancel();
  EXPECT_THAT(source->Next(kLimits), Fails(ErrorCode::kCancelled));
  EXPECT_THAT(source->Next(kLimits), Fails(ErrorCode::kCancelled));
  EXPECT_EQ(place_->budget().used_bytes(), 0u);
}

TEST_P(SourceContract, AnEmptyPlaceIsCaughtUpAtOnce) {
  const auto source = place_->Open();
  EXPECT_EQ(ReadAll(*source), "");
}

}  // namespace tarn::source
