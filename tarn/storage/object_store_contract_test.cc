#include "tarn/storage/object_store_contract.h"

#include "tarn/storage/faulty_store.h"
#include "tarn/storage/local_store.h"
#include "tarn/storage/memory_store.h"
#include "test/support/temporary_directory.h"

namespace tarn::storage {
namespace {

struct LocalPlace {
  TemporaryDirectory directory;
  std::unique_ptr<LocalStore> store;
};

std::shared_ptr<ObjectStore> MakeLocalStore() {
  const auto place = std::make_shared<LocalPlace>();
  place->store = LocalStore::Open({.root = place->directory.path() / "root"}).value();
  return {place, place->store.get()};
}

struct MemoryPlace {
  SystemClock clock;
  MemoryStore store{clock};
};

std::shared_ptr<ObjectStore> MakeMemoryStore() {
  const auto place = std::make_shared<MemoryPlace>();
  return {place, &place->store};
}

// A store that never fails must be like the one behind it.
struct FaultyPlace {
  MemoryPlace memory;
  FaultyStore store{memory.store, {}};
};

std::shared_ptr<ObjectStore> MakeFaultyStore() {
  const auto place = std::make_shared<FaultyPlace>();
  return {place, &place->store};
}

INSTANTIATE_TEST_SUITE_P(Local, ObjectStoreContract, ::testing::Values(&MakeLocalStore));
INSTANTIATE_TEST_SUITE_P(Memory, ObjectStoreContract, ::testing::Values(&MakeMemoryStore));
INSTANTIATE_TEST_SUITE_P(Faulty, ObjectStoreContract, ::testing::Values(&MakeFaultyStore));

}  // namespace
}  // namespace tarn::storage
