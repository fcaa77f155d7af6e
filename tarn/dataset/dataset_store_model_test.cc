// Random schedules against a small model in memory: every historical view, ranges, views by time,
// increments and comparisons must agree. The seed is printed; give it back in TARN_TEST_SEED.
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "tarn/dataset/dataset_fixture.h"

namespace tarn::dataset {
namespace {

using Files = std::map<std::string, std::string>;  // Path to location.

struct ModelTransaction {
  TransactionRid rid;
  TransactionType type = TransactionType::kUpdate;
  TransactionState state = TransactionState::kOpen;
  std::optional<size_t> parent;
  std::string owner;
  Files puts;
  std::set<std::string> removals;
  bool by_retention = false;
  Timestamp closed_at{};
};

struct ModelBranch {
  std::optional<size_t> head;
  std::optional<size_t> open;
  Timestamp moved_at{};
  std::vector<std::pair<Timestamp, std::optional<size_t>>> reflog;
};

// What the specification says, in its own words and without any index.
struct Model {
  std::vector<ModelTransaction> transactions;
  std::map<std::string, ModelBranch> branches;

  [[nodiscard]] std::vector<size_t> PathTo(size_t end) const {
    std::vector<size_t> path;
    for (std::optional<size_t> at = end; at; at = transactions[*at].parent) {
      path.insert(path.begin(), *at);
    }
    return path;
  }
  static void ApplyTo(const ModelTransaction& transaction, Files& files) {
    if (transaction.type == TransactionType::kSnapshot) {
      files.clear();
    }
    for (const auto& [path, location] : transaction.puts) {
      files[path] = location;
    }
    for (const std::string& path : transaction.removals) {
      files.erase(path);
    }
  }
  [[nodiscard]] Files View(std::optional<size_t> end, std::optional<size_t> start = {}) const {
    Files files;
    if (!end) {
      return files;
    }
    bool inside = !start.has_value();
    for (const size_t i : PathTo(*end)) {
      inside = inside || i == *start;
      if (inside) {
        ApplyTo(transactions[i], files);
      }
    }
    return files;
  }
  [[nodiscard]] bool IsAncestor(size_t ancestor, size_t end) const {
    const std::vector<size_t> path = PathTo(end);
    return std::find(path.begin(), path.end(), ancestor) != path.end();
  }
  [[nodiscard]] std::optional<size_t> At(const ModelBranch& branch, Timestamp time) const {
    std::optional<size_t> found;
    bool known = false;
    for (const auto& [moved_at, head] : branch.reflog) {
      if (moved_at <= time) {
        found = head;
        known = true;
      }
    }
    if (known) {
      return found;
    }
    for (std::optional<size_t> i = branch.reflog.front().second; i; i = transactions[*i].parent) {
      if (transactions[*i].closed_at <= time) {
        return i;
      }
    }
    return std::nullopt;
  }
};

class DatasetStoreModelTest : public DatasetFixture, public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    DatasetFixture::SetUp();
    const char* const given = std::getenv("TARN_TEST_SEED");
    seed_ = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    seed_ += static_cast<uint64_t>(GetParam());
    random_.seed(seed_);
    RecordProperty("seed", std::to_string(seed_));
    ModelBranch master;
    master.moved_at = clock_.Now();
    master.reflog = {{clock_.Now(), std::nullopt}};
    model_.branches["master"] = master;
  }

  int Pick(int count) { return static_cast<int>(random_() % static_cast<uint64_t>(count)); }
  bool Chance(int percent) { return Pick(100) < percent; }
  std::string PickPath() { return "p" + std::string(1, static_cast<char>('a' + Pick(12))); }
  std::string PickBranch() {
    auto branch = model_.branches.begin();
    std::advance(branch, Pick(static_cast<int>(model_.branches.size())));
    return branch->first;
  }
  std::optional<size_t> PickCommitted() {
    std::vector<size_t> committed;
    for (size_t i = 0; i < model_.transactions.size(); ++i) {
      if (model_.transactions[i].state == TransactionState::kCommitted) {
        committed.push_back(i);
      }
    }
    if (committed.empty()) {
      return std::nullopt;
    }
    return committed[static_cast<size_t>(Pick(static_cast<int>(committed.size())))];
  }
  std::optional<size_t> PickOpen() {
    for (int attempt = 0; attempt < 4; ++attempt) {
      const ModelBranch& branch = model_.branches[PickBranch()];
      if (branch.open) {
        return branch.open;
      }
    }
    return std::nullopt;
  }

  // One durable write per step would be a test of the disk.
  template <typename Function>
  Status Lazily(const Function& function) {
    return database_->Write([&](metastore::SqlTransaction& sql) { return StatusOf(function(sql)); },
                            metastore::Durability::kLazy);
  }

  void CreateBranch();
  void DeleteBranch();
  void StartOne();
  void RegisterSome();
  void RemoveSome();
  void UnregisterSome();
  void SetType();
  void CommitOne();
  void AbortOne();
  void MoveBranch();
  void Checkpoint();
  void Step();

  void CheckView(std::optional<size_t> end, std::optional<size_t> start = {});
  void CheckTime();
  void CheckIncrement();
  void CheckCompare();
  void CheckEverything();

  void Abort(size_t index);
  Files ListInPages(const ViewSelector& selector);
  Files CollectIncrement(const IncrementPage& page, char kind);

  Model model_;
  std::mt19937_64 random_;
  uint64_t seed_ = 0;
  int serial_ = 0;
};

void DatasetStoreModelTest::CreateBranch() {
  const std::string name = "b" + std::to_string(Pick(6));
  CreateBranchOptions options;
  ModelBranch made;
  if (Chance(45)) {
    options.from_branch = PickBranch();
    made = model_.branches[*options.from_branch];
  } else if (const std::optional<size_t> from = PickCommitted(); from && Chance(70)) {
    options.from_transaction = model_.transactions[*from].rid;
    made.head = from;
    made.moved_at = model_.transactions[*from].closed_at;
  }
  made.moved_at = std::max(made.moved_at, clock_.Now());
  made.reflog = {{made.moved_at, made.head}};
  const Status status = Lazily([&](metastore::SqlTransaction& sql) {
    return store_->CreateBranch(sql, rid_, name, options);
  });
  if (model_.branches.contains(name)) {
    EXPECT_EQ(status.reason(), "BranchAlreadyExists");
    return;
  }
  ASSERT_OK(status);
  model_.branches[name] = made;
}

void DatasetStoreModelTest::Abort(size_t index) {
  model_.transactions[index].state = TransactionState::kAborted;
  for (auto& [name, branch] : model_.branches) {
    if (branch.open == index) {
      branch.open.reset();
    }
  }
}

void DatasetStoreModelTest::DeleteBranch() {
  const std::string name = PickBranch();
  if (name == "master" || Chance(40)) {
    return;
  }
  ASSERT_OK(Lazily(
      [&](metastore::SqlTransaction& sql) { return store_->DeleteBranch(sql, rid_, name); }));
  const std::optional<size_t> open = model_.branches[name].open;
  model_.branches.erase(name);
  if (open && std::none_of(model_.branches.begin(), model_.branches.end(),
                           [&](const auto& item) { return item.second.open == open; })) {
    Abort(*open);
  }
}

void DatasetStoreModelTest::StartOne() {
  const std::string name = PickBranch();
  ModelBranch& branch = model_.branches[name];
  ModelTransaction transaction;
  const int type = Pick(10);
  transaction.type = type == 0   ? TransactionType::kSnapshot
                     : type <= 3 ? TransactionType::kAppend
                     : type <= 7 ? TransactionType::kUpdate
                                 : TransactionType::kDelete;
  transaction.parent = branch.head;
  transaction.owner = name;
  const Result<Transaction> started =
      store_->StartTransaction(rid_, name, {.type = transaction.type, .by = "me"});
  if (branch.open) {
    EXPECT_EQ(StatusOf(started).reason(), "OpenTransactionAlreadyExists");
    return;
  }
  ASSERT_OK(started);
  transaction.rid = started->rid;
  branch.open = model_.transactions.size();
  model_.transactions.push_back(transaction);
}

void DatasetStoreModelTest::RegisterSome() {
  const std::optional<size_t> open = PickOpen();
  if (!open) {
    return;
  }
  ModelTransaction& transaction = model_.transactions[*open];
  std::vector<StoredFile> files;
  const int count = 1 + Pick(4);
  for (int i = 0; i < count; ++i) {
    const std::string path = PickPath();
    const Files below = model_.View(transaction.parent);
    const bool same = below.contains(path) && Chance(10);
    files.push_back(MakeFile(path, same ? below.at(path) : "L" + std::to_string(++serial_)));
  }
  const Status status = store_->RegisterFiles(rid_, transaction.rid, files);
  if (transaction.type == TransactionType::kDelete) {
    EXPECT_EQ(status.reason(), "InvalidTransactionType");
    return;
  }
  ASSERT_OK(status);
  for (const StoredFile& file : files) {
    transaction.puts[file.path] = file.location;
  }
}

void DatasetStoreModelTest::RemoveSome() {
  const std::optional<size_t> open = PickOpen();
  if (!open || model_.transactions[*open].type != TransactionType::kDelete) {
    return;
  }
  ModelTransaction& transaction = model_.transactions[*open];
  const Files below = model_.View(transaction.parent);
  const std::vector<std::string> paths = {PickPath(), PickPath()};
  const bool refuse = Chance(50);
  const bool missing = !below.contains(paths[0]) || !below.contains(paths[1]);
  const Status status = StatusOf(store_->RemoveFiles(
      rid_, transaction.rid, paths, refuse ? MissingPath::kRefuse : MissingPath::kIgnore));
  if (refuse && missing) {
    EXPECT_EQ(status.reason(), "FileNotFoundOnBranch");
    return;
  }
  ASSERT_OK(status);
  for (const std::string& path : paths) {
    if (below.contains(path)) {
      transaction.removals.insert(path);
    }
  }
}

void DatasetStoreModelTest::UnregisterSome() {
  const std::optional<size_t> open = PickOpen();
  if (!open) {
    return;
  }
  ModelTransaction& transaction = model_.transactions[*open];
  const std::vector<std::string> paths = {PickPath(), PickPath()};
  ASSERT_OK(Lazily([&](metastore::SqlTransaction& sql) {
    return store_->UnregisterFiles(sql, rid_, transaction.rid, paths);
  }));
  for (const std::string& path : paths) {
    transaction.puts.erase(path);
    transaction.removals.erase(path);
  }
}

void DatasetStoreModelTest::SetType() {
  const std::optional<size_t> open = PickOpen();
  if (!open) {
    return;
  }
  ModelTransaction& transaction = model_.transactions[*open];
  const auto type = static_cast<TransactionType>(Pick(4));
  const Status status = Lazily([&](metastore::SqlTransaction& sql) {
    return store_->SetTransactionType(sql, rid_, transaction.rid, type);
  });
  const bool has_files = !transaction.puts.empty() || !transaction.removals.empty();
  const auto starts_view = [&](TransactionType one) {
    return one == TransactionType::kSnapshot || !transaction.parent;
  };
  if (has_files && type != transaction.type &&
      (type == TransactionType::kDelete || transaction.type == TransactionType::kDelete ||
       starts_view(type) != starts_view(transaction.type))) {
    EXPECT_EQ(status.reason(), "InvalidTransactionType");
    return;
  }
  ASSERT_OK(status);
  transaction.type = type;
}

void DatasetStoreModelTest::CommitOne() {
  const std::optional<size_t> open = PickOpen();
  if (!open) {
    return;
  }
  ModelTransaction& transaction = model_.transactions[*open];
  CommitOptions options;
  options.by_retention = transaction.type == TransactionType::kDelete && Chance(50);
  Result<Transaction> committed = Status::Internal("not run");
  const Status status = Lazily([&](metastore::SqlTransaction& sql) {
    committed = store_->CommitTransaction(sql, rid_, transaction.rid, options);
    return committed;
  });
  const Files below = model_.View(transaction.parent);
  const bool clash = std::any_of(transaction.puts.begin(), transaction.puts.end(),
                                 [&](const auto& put) { return below.contains(put.first); });
  if (transaction.type == TransactionType::kAppend && clash) {
    EXPECT_EQ(status.reason(), "AppendOverwritesExistingFiles");
    return;
  }
  ASSERT_OK(status);
  transaction.state = TransactionState::kCommitted;
  transaction.by_retention = options.by_retention;
  transaction.closed_at = clock_.Now();
  for (auto& [name, branch] : model_.branches) {
    if (branch.open == open) {
      transaction.closed_at =
          std::max(transaction.closed_at, branch.moved_at + std::chrono::milliseconds(1));
    }
  }
  for (auto& [name, branch] : model_.branches) {
    if (branch.open == open) {
      branch.open.reset();
      branch.head = open;
      branch.moved_at = transaction.closed_at;
      branch.reflog.emplace_back(branch.moved_at, open);
    }
  }
  EXPECT_EQ(committed->closed_at, transaction.closed_at);
}

void DatasetStoreModelTest::AbortOne() {
  const std::optional<size_t> open = PickOpen();
  if (!open || Chance(50)) {
    return;
  }
  ASSERT_OK(Lazily([&](metastore::SqlTransaction& sql) {
    return store_->AbortTransaction(sql, rid_, model_.transactions[*open].rid, "me");
  }));
  Abort(*open);
}

void DatasetStoreModelTest::MoveBranch() {
  const std::optional<size_t> target = PickCommitted();
  if (!target) {
    return;
  }
  const std::string name = PickBranch();
  ModelBranch& branch = model_.branches[name];
  const bool forward = Chance(60);
  const Status status = Lazily([&](metastore::SqlTransaction& sql) {
    const TransactionRid& rid = model_.transactions[*target].rid;
    return forward ? store_->FastForwardBranch(sql, rid_, name, rid, "me")
                   : store_->ResetBranch(sql, rid_, name, rid, "me");
  });
  if (branch.open) {
    EXPECT_EQ(status.reason(), "OpenTransactionAlreadyExists");
    return;
  }
  if (forward && branch.head && !model_.IsAncestor(*branch.head, *target)) {
    EXPECT_EQ(status.reason(), "NotAFastForward");
    return;
  }
  ASSERT_OK(status);
  branch.head = target;
  branch.moved_at = std::max({clock_.Now(), branch.moved_at + std::chrono::milliseconds(1),
                              model_.transactions[*target].closed_at});
  branch.reflog.emplace_back(branch.moved_at, target);
}

void DatasetStoreModelTest::Checkpoint() {
  const std::string name = PickBranch();
  ASSERT_OK_AND_ASSIGN(const CheckpointOutcome outcome, store_->WriteCheckpoint(rid_, name));
  const ModelBranch& branch = model_.branches[name];
  if (branch.head && !branch.open) {
    EXPECT_EQ(outcome, CheckpointOutcome::kPublished);
  } else {
    EXPECT_NE(outcome, CheckpointOutcome::kPublished);
  }
}

Files DatasetStoreModelTest::ListInPages(const ViewSelector& selector) {
  Files files;
  ListOptions options;
  options.page_size = 1 + Pick(5);
  do {
    const Result<FilePage> page = store_->ListFiles(rid_, selector, options);
    EXPECT_OK(page);
    if (!page.ok()) {
      return files;
    }
    for (const File& file : page->files) {
      EXPECT_TRUE(files.empty() || files.rbegin()->first < file.path);
      files[file.path] = file.location;
    }
    options.page_token = page->next_page_token.value_or("");
  } while (!options.page_token.empty());
  return files;
}

void DatasetStoreModelTest::CheckView(std::optional<size_t> end, std::optional<size_t> start) {
  const Files expected = model_.View(end, start);
  ViewSelector selector;
  selector.end = model_.transactions[*end].rid;
  if (start) {
    selector.start = model_.transactions[*start].rid;
  }
  ASSERT_OK_AND_ASSIGN(const FileView view, store_->ResolveView(rid_, selector));
  Files streamed;
  ASSERT_OK(store_->StreamFiles(view, "", [&](std::span<const File> files) {
    for (const File& file : files) {
      streamed[file.path] = file.location;
    }
    return Status::Ok();
  }));
  ASSERT_EQ(streamed, expected) << "end " << *end << " start " << start.value_or(-1);
  const std::string path = PickPath();
  const Result<File> stat = store_->StatFile(view, path);
  ASSERT_EQ(stat.ok(), expected.contains(path));
  if (stat.ok()) {
    EXPECT_EQ(stat->location, expected.at(path));
  }
  if (Chance(20)) {
    EXPECT_EQ(ListInPages(selector), expected);
  }
}

void DatasetStoreModelTest::CheckTime() {
  const std::optional<size_t> near = PickCommitted();
  if (!near) {
    return;
  }
  ViewSelector selector;
  selector.branch = PickBranch();
  selector.at = model_.transactions[*near].closed_at + std::chrono::milliseconds(Pick(3) - 1);
  const ModelBranch& branch = model_.branches[selector.branch];
  EXPECT_EQ(ListInPages(selector), model_.View(model_.At(branch, *selector.at)));
}

Files DatasetStoreModelTest::CollectIncrement(const IncrementPage& page, char kind) {
  const std::vector<File>& list = kind == 'a'   ? page.added
                                  : kind == 'c' ? page.changed
                                  : kind == 'r' ? page.removed
                                                : page.removed_by_retention;
  Files files;
  for (const File& file : list) {
    files[file.path] = file.location;
  }
  return files;
}

void DatasetStoreModelTest::CheckIncrement() {
  const std::optional<size_t> since = PickCommitted();
  const std::string name = PickBranch();
  const std::optional<size_t> head = model_.branches[name].head;
  if (!since || !head) {
    return;
  }
  std::map<char, Files> expected;
  IncrementReason reason = IncrementReason::kNone;
  const std::vector<size_t> path = model_.PathTo(*head);
  const auto found = std::find(path.begin(), path.end(), *since);
  if (found == path.end()) {
    reason = IncrementReason::kDiverged;
  } else if (std::any_of(found + 1, path.end(), [&](size_t i) {
               return model_.transactions[i].type == TransactionType::kSnapshot;
             })) {
    reason = IncrementReason::kSnapshot;
  } else {
    const Files before = model_.View(since);
    const Files after = model_.View(head);
    for (const auto& [file, location] : after) {
      if (!before.contains(file)) {
        expected['a'][file] = location;
      } else if (before.at(file) != location) {
        expected['c'][file] = location;
      }
    }
    for (const auto& [file, location] : before) {
      if (!after.contains(file)) {
        const auto by = std::find_if(path.rbegin(), path.rend(), [&](size_t i) {
          return model_.transactions[i].removals.contains(file);
        });
        expected[model_.transactions[*by].by_retention ? 't' : 'r'][file] = location;
      }
    }
    reason = !expected['c'].empty()   ? IncrementReason::kOverwrite
             : !expected['r'].empty() ? IncrementReason::kDelete
                                      : IncrementReason::kNone;
  }
  std::map<char, Files> given;
  IncrementOptions options;
  options.page_size = 1 + Pick(5);
  do {
    ASSERT_OK_AND_ASSIGN(
        const IncrementPage page,
        store_->ReadIncrement(rid_, name, model_.transactions[*since].rid, options));
    ASSERT_EQ(page.reason, reason);
    EXPECT_EQ(page.incremental, reason == IncrementReason::kNone);
    EXPECT_EQ(page.head, model_.transactions[*head].rid);
    for (const char kind : {'a', 'c', 'r', 't'}) {
      for (const auto& [file, location] : CollectIncrement(page, kind)) {
        EXPECT_TRUE(given[kind].emplace(file, location).second) << file << " given twice";
      }
    }
    options.page_token = page.next_page_token.value_or("");
  } while (!options.page_token.empty());
  for (const char kind : {'a', 'c', 'r', 't'}) {
    EXPECT_EQ(given[kind], expected[kind]) << kind;
  }
}

void DatasetStoreModelTest::CheckCompare() {
  const std::optional<size_t> from = PickCommitted();
  const std::optional<size_t> to = PickCommitted();
  if (!from || !to) {
    return;
  }
  const Files before = model_.View(from);
  const Files after = model_.View(to);
  std::map<std::string, std::pair<std::string, std::string>> expected;
  for (const auto& [path, location] : before) {
    if (!after.contains(path) || after.at(path) != location) {
      expected[path].first = location;
    }
  }
  for (const auto& [path, location] : after) {
    if (!before.contains(path) || before.at(path) != location) {
      expected[path].second = location;
    }
  }
  std::map<std::string, std::pair<std::string, std::string>> given;
  ViewSelector from_selector;
  from_selector.end = model_.transactions[*from].rid;
  ViewSelector to_selector;
  to_selector.end = model_.transactions[*to].rid;
  std::string token;
  const int page_size = 1 + Pick(5);
  do {
    ASSERT_OK_AND_ASSIGN(const ComparePage page,
                         store_->CompareViews(rid_, from_selector, to_selector, page_size, token));
    for (const FileDifference& difference : page.differences) {
      EXPECT_FALSE(given.contains(difference.path()));
      given[difference.path()] = {difference.before ? difference.before->location : "",
                                  difference.after ? difference.after->location : ""};
    }
    token = page.next_page_token.value_or("");
  } while (!token.empty());
  EXPECT_EQ(given, expected);
}

void DatasetStoreModelTest::CheckEverything() {
  for (size_t i = 0; i < model_.transactions.size(); ++i) {
    if (model_.transactions[i].state == TransactionState::kCommitted) {
      CheckView(i);
      const std::vector<size_t> path = model_.PathTo(i);
      CheckView(i, path[static_cast<size_t>(Pick(static_cast<int>(path.size())))]);
      if (HasFatalFailure()) {
        return;
      }
    }
  }
  for (const auto& [name, branch] : model_.branches) {
    ASSERT_OK_AND_ASSIGN(const Branch read, store_->GetBranch(rid_, name));
    EXPECT_EQ(read.head.has_value(), branch.head.has_value());
    if (branch.head) {
      EXPECT_EQ(read.head, model_.transactions[*branch.head].rid);
    }
    EXPECT_EQ(read.open.has_value(), branch.open.has_value());
  }
  for (int i = 0; i < 60; ++i) {
    CheckTime();
    CheckIncrement();
    CheckCompare();
  }
}

void DatasetStoreModelTest::Step() {
  clock_.Advance(std::chrono::microseconds(Pick(2500)));
  const int what = Pick(100);
  if (what < 22) {
    StartOne();
  } else if (what < 47) {
    RegisterSome();
  } else if (what < 54) {
    RemoveSome();
  } else if (what < 57) {
    UnregisterSome();
  } else if (what < 60) {
    SetType();
  } else if (what < 82) {
    CommitOne();
  } else if (what < 85) {
    AbortOne();
  } else if (what < 90) {
    CreateBranch();
  } else if (what < 92) {
    DeleteBranch();
  } else if (what < 96) {
    MoveBranch();
  } else {
    Checkpoint();
  }
}

TEST_P(DatasetStoreModelTest, EveryViewAgreesWithTheModel) {
  constexpr int kSteps = 800;
  SCOPED_TRACE("TARN_TEST_SEED=" + std::to_string(seed_ - static_cast<uint64_t>(GetParam())));
  for (int step = 0; step < kSteps; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    Step();
    if (step % 10 == 0) {
      CheckIncrement();
      CheckCompare();
      CheckTime();
    }
    if (step % 200 == 199) {
      CheckEverything();
    }
    if (HasFailure()) {
      return;
    }
  }
  ASSERT_OK(store_->PurgeDeleted(1'000'000));
  CheckEverything();
}

INSTANTIATE_TEST_SUITE_P(Schedules, DatasetStoreModelTest, ::testing::Range(0, 3));

}  // namespace
}  // namespace tarn::dataset
