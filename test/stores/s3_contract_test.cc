// The contract of ObjectStore on servers that speak S3, also over a network that keeps breaking.
#include "tarn/storage/object_store_contract.h"
#include "tarn/storage/s3/s3_store.h"
#include "test/stores/faulty_proxy.h"
#include "test/stores/store_server.h"

namespace tarn::storage {
namespace {

using s3::S3Access;
using s3::S3Options;
using s3::S3Store;

struct Place {
  SystemClock clock;
  SystemSleeper sleeper;
  std::unique_ptr<test::FaultyProxy> proxy;
  std::unique_ptr<S3Store> store;
};

std::shared_ptr<ObjectStore> MakeStore(const test::StoreServer& server, s3::ListOrder order) {
  const auto place = std::make_shared<Place>();
  S3Options options = test::NewBucket(server);
  test::MakeBucket(options);
  options.list_order = order;
  place->store =
      S3Store::Open(options, S3Access::kReadWrite, {place->clock, place->sleeper}).value();
  return {place, place->store.get()};
}

std::shared_ptr<ObjectStore> MakeVersitygw() {
  return MakeStore(test::Versitygw(), s3::ListOrder::kKeys);
}
std::shared_ptr<ObjectStore> MakeSeaweedfs() {
  return MakeStore(test::Seaweedfs(), s3::ListOrder::kFolders);
}

// Every fifth request breaks, each time in another way.
test::Decision BreakSome(const test::Seen& seen) {
  constexpr std::array<test::Fault, 7> kFaults = {
      test::Fault::kDropRequest, test::Fault::kLoseReply, test::Fault::kCutReply,
      test::Fault::kTwice,       test::Fault::kError500,  test::Fault::kActAnd500,
      test::Fault::kSlowDown};
  const auto number = static_cast<size_t>(seen.number);
  return number % 5 == 0 ? kFaults[number / 5 % kFaults.size()] : test::Fault::kNone;
}

std::shared_ptr<ObjectStore> MakeBroken() {
  const auto place = std::make_shared<Place>();
  S3Options options = test::NewBucket(test::Versitygw());
  test::MakeBucket(options);
  place->proxy = std::make_unique<test::FaultyProxy>(test::Versitygw(), &BreakSome);
  options.endpoint = place->proxy->address().endpoint;
  place->store =
      S3Store::Open(options, S3Access::kReadWrite, {place->clock, place->sleeper}).value();
  return {place, place->store.get()};
}

INSTANTIATE_TEST_SUITE_P(Versitygw, ObjectStoreContract, ::testing::Values(&MakeVersitygw));
// It takes backslashes for slashes.
INSTANTIATE_TEST_SUITE_P(Seaweedfs, ObjectStoreContract,
                         ::testing::Values(StoreCase(&MakeSeaweedfs, {"a\\b"})));
INSTANTIATE_TEST_SUITE_P(Broken, ObjectStoreContract, ::testing::Values(&MakeBroken));

}  // namespace
}  // namespace tarn::storage
