#include "tarn/iceberg/codec/roaring.h"

#include <random>
#include <set>

#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

constexpr uint64_t kMany = 10'000'000;

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

std::vector<int64_t> Range(int64_t first, int64_t count, int64_t step = 1) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(first + i * step);
  }
  return values;
}

// The bytes are those that CRoaring writes.
TEST(RoaringTest, BytesAreThoseOfOtherWriters) {
  std::vector<int64_t> runs = Range(10, 2000);
  runs.push_back(5000);
  const std::vector<std::pair<std::vector<int64_t>, std::string>> cases = {
      {{}, "0000000000000000"},
      {{1, 5, 9}, "0100000000000000000000003a300000010000000000020010000000010005000900"},
      {{0, 65536, 1LL << 32, (1LL << 32) + 7},
       "0200000000000000000000003a300000020000000000000001000000180000001a00000000000000010000003a"
       "30000001000000000001001000000000000700"},
      {runs, "0100000000000000000000003b300000010000d00702000a00cf0788130000"}};
  for (const auto& [values, hex] : cases) {
    EXPECT_EQ(EncodeRoaring64(values), FromHex(hex));
    EXPECT_THAT(DecodeRoaring64(FromHex(hex), kMany), IsOkAndHolds(values));
  }
}

TEST(RoaringTest, EveryFormOfContainerComesBack) {
  std::vector<int64_t> values = Range(3, 4096, 2);         // Array.
  for (const int64_t value : Range(1 << 17, 20'000, 3)) {  // Bits.
    values.push_back(value);
  }
  for (const int64_t value : Range(1 << 20, 200'000)) {  // Runs.
    values.push_back(value);
  }
  for (const int64_t value : Range((5LL << 32) + 65'530, 65'536 * 3)) {  // Whole containers.
    values.push_back(value);
  }
  values.push_back((static_cast<int64_t>(INT32_MAX) << 32) | 0xFFFFFFFF);  // The greatest there is.
  EXPECT_THAT(DecodeRoaring64(EncodeRoaring64(values), kMany), IsOkAndHolds(values));
}

TEST(RoaringTest, RandomSetsComeBack) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 50; ++round) {
    std::set<int64_t> set;
    const int64_t span = int64_t{1} << (random() % 40);
    for (int i = 0; i < 3000; ++i) {
      set.insert(static_cast<int64_t>(random() % static_cast<uint64_t>(span)));
    }
    const std::vector<int64_t> values(set.begin(), set.end());
    EXPECT_THAT(DecodeRoaring64(EncodeRoaring64(values), kMany), IsOkAndHolds(values));
  }
}

TEST(RoaringTest, BrokenBytesAreErrors) {
  std::vector<int64_t> values = Range(0, 100, 3);
  for (const int64_t value : Range(1 << 16, 9000, 2)) {
    values.push_back(value);
  }
  const std::string whole = EncodeRoaring64(values);
  for (size_t size = 0; size < whole.size(); size += 7) {
    EXPECT_THAT(DecodeRoaring64(whole.substr(0, size), kMany), Fails(ErrorCode::kCorruption));
  }
  EXPECT_THAT(DecodeRoaring64(whole + "x", kMany), FailsWith(ErrorCode::kCorruption, "left over"));
  EXPECT_THAT(DecodeRoaring64(whole, 99), Fails(ErrorCode::kResourceExhausted));
  std::mt19937_64 random(11);
  for (int round = 0; round < 2000; ++round) {
    std::string broken = whole.substr(0, 400);
    broken[random() % broken.size()] = static_cast<char>(random());
    const auto decoded = DecodeRoaring64(broken, kMany);  // Any outcome but a crash.
    EXPECT_TRUE(!decoded.ok() || std::is_sorted(decoded->begin(), decoded->end()));
  }
}

TEST(RoaringTest, ClaimsAreNotBelieved) {
  const std::string one = EncodeRoaring64({1, 5, 9});
  const auto with = [&](size_t at, std::string_view bytes) {
    std::string copy = one;
    copy.replace(at, bytes.size(), bytes);
    return DecodeRoaring64(copy, kMany);
  };
  EXPECT_THAT(with(0, "\xFF\xFF\xFF\xFF"), FailsWith(ErrorCode::kCorruption, "bitmaps"));
  EXPECT_THAT(with(8, "\xFF\xFF\xFF\xFF"), FailsWith(ErrorCode::kCorruption, "key"));
  EXPECT_THAT(with(12, "abcd"), FailsWith(ErrorCode::kCorruption, "cookie"));
  EXPECT_THAT(with(16, "\xFF\xFF\xFF\x7F"), FailsWith(ErrorCode::kCorruption, "containers"));
  EXPECT_THAT(with(28, std::string_view("\x09\x00\x05\x00", 4)),
              FailsWith(ErrorCode::kCorruption, "order"));
}

}  // namespace
}  // namespace tarn::iceberg
