#include "tarn/lakehouse/key_index.h"

#include <map>
#include <random>

#include <arrow/api.h>

#include "tarn/base/arrow_status.h"
#include "test/support/matchers.h"

namespace tarn::lakehouse {
namespace {

std::shared_ptr<arrow::Array> Hashes(const std::vector<uint8_t>& firsts) {
  arrow::FixedSizeBinaryBuilder builder(arrow::fixed_size_binary(20));
  for (const uint8_t first : firsts) {
    std::array<uint8_t, 20> hash{};
    hash[0] = first;
    EXPECT_TRUE(builder.Append(hash).ok());
  }
  return builder.Finish().ValueOrDie();
}

std::shared_ptr<arrow::Array> Texts(const std::vector<std::optional<std::string>>& values) {
  arrow::StringBuilder builder;
  for (const std::optional<std::string>& value : values) {
    EXPECT_TRUE((value ? builder.Append(*value) : builder.AppendNull()).ok());
  }
  return builder.Finish().ValueOrDie();
}

std::shared_ptr<arrow::Array> Longs(const std::vector<int64_t>& values) {
  arrow::Int64Builder builder;
  EXPECT_TRUE(builder.AppendValues(values).ok());
  return builder.Finish().ValueOrDie();
}

TEST(KeyIndexTest, EqualHashesOfDifferentKeysStayApart) {
  ASSERT_OK_AND_ASSIGN(const auto batch,
                       KeyBatch::Make(Hashes({7, 7, 7}), {Texts({"a", "b", "a"})}));
  KeyIndex index;
  EXPECT_EQ(index.FindOrAdd(batch, 0), 0U);
  EXPECT_EQ(index.FindOrAdd(batch, 1), 1U);
  EXPECT_EQ(index.FindOrAdd(batch, 2), 0U);
}

TEST(KeyIndexTest, NullIsAKeyOfItsOwn) {
  ASSERT_OK_AND_ASSIGN(const auto batch, KeyBatch::Make(Hashes({1, 1, 1}),
                                                        {Texts({std::nullopt, "", std::nullopt})}));
  KeyIndex index;
  EXPECT_EQ(index.FindOrAdd(batch, 0), 0U);
  EXPECT_EQ(index.FindOrAdd(batch, 1), 1U);
  EXPECT_EQ(index.FindOrAdd(batch, 2), 0U);
}

TEST(KeyIndexTest, FindsKeysOfOtherBatchesAlsoInSlices) {
  ASSERT_OK_AND_ASSIGN(const auto first,
                       KeyBatch::Make(Hashes({1, 2}), {Longs({10, 20}), Texts({"x", "yy"})}));
  ASSERT_OK_AND_ASSIGN(const auto second, KeyBatch::Make(Hashes({9, 2, 3})->Slice(1),
                                                         {Longs({0, 20, 30})->Slice(1),
                                                          Texts({"no", "yy", "z"})->Slice(1)}));
  KeyIndex index;
  index.FindOrAdd(first, 0);
  index.FindOrAdd(first, 1);
  EXPECT_EQ(index.Find(*second, 0), 1U);
  EXPECT_EQ(index.Find(*second, 1), kNoSlot);
}

TEST(KeyIndexTest, ManyKeysEqualAMap) {
  std::mt19937_64 random(42);
  std::map<int64_t, uint32_t> model;
  KeyIndex index;
  for (int round = 0; round < 20; ++round) {
    std::vector<int64_t> keys;
    std::vector<uint8_t> hashes;
    for (int i = 0; i < 1000; ++i) {
      keys.push_back(static_cast<int64_t>(random() % 5000));
      hashes.push_back(static_cast<uint8_t>(keys.back() % 251));  // Many collisions.
    }
    ASSERT_OK_AND_ASSIGN(const auto batch, KeyBatch::Make(Hashes(hashes), {Longs(keys)}));
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto next = static_cast<uint32_t>(model.size());
      const uint32_t expected = model.try_emplace(keys[i], next).first->second;
      ASSERT_EQ(index.FindOrAdd(batch, static_cast<int64_t>(i)), expected);
    }
  }
  EXPECT_EQ(index.size(), model.size());
}

TEST(KeyIndexTest, ManyRowsAtOnceEqualOneCallEach) {
  std::mt19937_64 random(43);
  KeyIndex one;
  KeyIndex all;
  all.Reserve(4000);
  for (int round = 0; round < 8; ++round) {
    std::vector<int64_t> keys;
    std::vector<std::optional<std::string>> texts;
    std::vector<uint8_t> hashes;
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < 1001; ++i) {
      keys.push_back(static_cast<int64_t>(random() % 3000));
      texts.emplace_back(std::to_string(keys.back() % 7));
      hashes.push_back(static_cast<uint8_t>(keys.back() % 251));
      if (random() % 4 != 0) {
        rows.push_back(i);
      }
    }
    ASSERT_OK_AND_ASSIGN(const auto batch,
                         KeyBatch::Make(Hashes(hashes), {Longs(keys), Texts(texts)}));
    std::vector<uint32_t> before;
    one.FindAll(*batch, rows, before);
    ASSERT_EQ(before.size(), rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(before[i], one.Find(*batch, rows[i])) << i;
    }
    std::vector<uint32_t> slots;
    all.FindOrAddAll(batch, rows, slots);
    ASSERT_EQ(slots.size(), rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(slots[i], one.FindOrAdd(batch, rows[i])) << i;
    }
  }
  EXPECT_EQ(all.size(), one.size());
}

TEST(KeyIndexTest, RefusesWhatIsNoHash) {
  EXPECT_THAT(KeyBatch::Make(Longs({1}), {}), Fails(ErrorCode::kCorruption));
}

}  // namespace
}  // namespace tarn::lakehouse
