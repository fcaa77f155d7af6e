#include "tarn/lakehouse/fold.h"

#include <map>
#include <random>
#include <string>
#include <tuple>

#include "test/support/matchers.h"

namespace tarn::lakehouse {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAreArray;

ChangeRow Change(char operation, int64_t timestamp, int64_t inserted = 0, uint32_t slot = 0) {
  return {slot, static_cast<Operation>(operation), timestamp, inserted};
}

TEST(FoldTest, FirstChangeOfAnUnknownKeyIsAnInsertTheNextAnUpdate) {
  const std::vector<ChangeRow> rows = {Change('U', 10, 1), Change('I', 20, 2)};
  const std::vector<SlotStart> starts(1);
  const FoldResult result = FoldChanges(rows, starts, {.history = true});
  EXPECT_EQ(result.changes[0].operation, Operation::kInsert);
  EXPECT_EQ(result.changes[0].to_micros, 20);
  EXPECT_FALSE(result.changes[0].newest);
  EXPECT_EQ(result.changes[1].operation, Operation::kUpdate);
  EXPECT_EQ(result.changes[1].inserted_micros, 1);
  EXPECT_EQ(result.changes[1].to_micros, kOpenEnd);
}

TEST(FoldTest, DeleteOfAnUnknownKeyChangesNothingAndIsCounted) {
  const std::vector<ChangeRow> rows = {Change('D', 10), Change('D', 11)};
  const std::vector<SlotStart> starts(1);
  const FoldResult result = FoldChanges(rows, starts, {});
  EXPECT_EQ(result.noop_delete_count, 2);
  EXPECT_FALSE(result.slots[0].touched);
  EXPECT_EQ(DestinationOf(result.changes[0], {.history = true}), Destination::kNowhere);
}

TEST(FoldTest, FromNeverGoesBackBeforeTheVersionItFollows) {
  const std::vector<ChangeRow> rows = {Change('U', 5), Change('U', 50), Change('U', 7)};
  const std::vector<SlotStart> starts = {
      {.base = BaseVersion{true, 30, 3}, .deleted_from_micros = {}}};
  const FoldResult result = FoldChanges(rows, starts, {.history = true});
  EXPECT_EQ(result.changes[0].from_micros, 30);
  EXPECT_EQ(result.changes[1].from_micros, 50);
  EXPECT_EQ(result.changes[2].from_micros, 50);
  EXPECT_EQ(result.slots[0].base_to_micros, 30);
}

TEST(FoldTest, HardDeleteEndsTheChainOnlyWithoutHistory) {
  const std::vector<ChangeRow> rows = {Change('D', 40), Change('I', 7, 9)};
  const std::vector<SlotStart> starts = {
      {.base = BaseVersion{true, 30, 3}, .deleted_from_micros = {}}};
  EXPECT_EQ(FoldChanges(rows, starts, {}).changes[1].from_micros, 7);
  EXPECT_EQ(FoldChanges(rows, starts, {.history = true}).changes[1].from_micros, 40);
  EXPECT_EQ(FoldChanges(rows, starts, {.soft_delete = true}).changes[1].from_micros, 40);
  EXPECT_EQ(FoldChanges(rows, starts, {}).changes[1].inserted_micros, 9);
}

TEST(FoldTest, DeleteShowsTheValuesOfThePreviousVersion) {
  const std::vector<ChangeRow> rows = {Change('U', 1), Change('D', 2), Change('I', 3),
                                       Change('D', 4)};
  const std::vector<SlotStart> starts = {
      {.base = BaseVersion{true, 0, 0}, .deleted_from_micros = {}}};
  const FoldResult result = FoldChanges(rows, starts, {.history = true});
  EXPECT_EQ(result.changes[1].values_row, 0U);
  EXPECT_EQ(result.changes[3].values_row, 2U);
  const FoldResult first = FoldChanges(std::vector<ChangeRow>{Change('D', 2)}, starts, {});
  EXPECT_EQ(first.changes[0].values_row, kValuesOfBase);
}

TEST(FoldTest, DeletedFromOfPriorBoundsTheNextVersion) {
  const std::vector<ChangeRow> rows = {Change('I', 5)};
  const std::vector<SlotStart> starts = {{.base = {}, .deleted_from_micros = 60}};
  EXPECT_EQ(FoldChanges(rows, starts, {.history = true}).changes[0].from_micros, 60);
}

// The rules once more, key by key and version by version, for comparison with random histories.
using Row = std::tuple<uint32_t, char, int64_t, int64_t, int64_t>;  // key, op, from, to, values

struct ModelVersion {
  char operation;
  int64_t from;
  int64_t inserted;
  int64_t values;
};

class Model {
 public:
  explicit Model(FoldOptions options) : options_(options) {}

  void Change(uint32_t key, char operation, int64_t timestamp, int64_t inserted, int64_t values) {
    const auto found = current_.find(key);
    const bool known = found != current_.end();
    const bool live = known && found->second.operation != 'D';
    if (operation == 'D' && !live) {
      return;
    }
    int64_t from = timestamp;
    if (known) {
      from = std::max(from, found->second.from);
    } else if (options_.history && deleted_.contains(key)) {
      from = std::max(from, deleted_[key]);
    }
    if (known) {
      const ModelVersion& old = found->second;
      Supersede(key, old, old.operation == 'D' ? old.from : from);
    }
    if (operation == 'D') {
      Delete(key, from);
      return;
    }
    const char final_operation = operation == 'L' ? 'L' : (live ? 'U' : 'I');
    current_[key] = {final_operation, from, live ? found->second.inserted : inserted, values};
  }

  std::vector<Row> Current() const {
    std::vector<Row> rows;
    for (const auto& [key, version] : current_) {
      rows.emplace_back(key, version.operation, version.from, version.inserted, version.values);
    }
    return rows;
  }
  const std::vector<Row>& prior() const { return prior_; }
  const std::map<uint32_t, ModelVersion>& current() const { return current_; }
  const std::map<uint32_t, int64_t>& deleted() const { return deleted_; }

 private:
  void Supersede(uint32_t key, const ModelVersion& old, int64_t to) {
    if (options_.history) {
      prior_.emplace_back(key, old.operation, old.from, to, old.values);
    }
  }
  void Delete(uint32_t key, int64_t from) {
    const ModelVersion old = current_[key];
    if (options_.soft_delete) {
      current_[key] = {'D', from, old.inserted, old.values};
      return;
    }
    current_.erase(key);
    if (options_.history) {
      prior_.emplace_back(key, 'D', from, from, old.values);
      deleted_[key] = from;
    }
  }

  FoldOptions options_;
  std::map<uint32_t, ModelVersion> current_;
  std::map<uint32_t, int64_t> deleted_;
  std::vector<Row> prior_;
};

constexpr uint32_t kKeys = 4;

// Folds the pending changes over what `tables` holds and stores the outcome there.
struct Tables {
  FoldOptions options;
  std::map<uint32_t, ModelVersion> current;
  std::map<uint32_t, int64_t> deleted;
  std::vector<Row> prior;

  void Apply(const std::vector<ChangeRow>& rows, const std::vector<int64_t>& values) {
    std::vector<SlotStart> starts(kKeys);
    for (uint32_t key = 0; key < kKeys; ++key) {
      if (const auto found = current.find(key); found != current.end()) {
        starts[key].base =
            BaseVersion{found->second.operation != 'D', found->second.from, found->second.inserted};
      } else if (options.history && deleted.contains(key)) {
        starts[key].deleted_from_micros = deleted[key];
      }
    }
    const FoldResult result = FoldChanges(rows, starts, options);
    const std::map<uint32_t, ModelVersion> bases = current;
    for (uint32_t key = 0; key < kKeys; ++key) {
      if (!result.slots[key].touched || !starts[key].base) {
        continue;
      }
      const ModelVersion& base = bases.at(key);
      if (options.history) {
        prior.emplace_back(key, base.operation, base.from, result.slots[key].base_to_micros,
                           base.values);
      }
      current.erase(key);
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      Store(rows[i].slot, result.changes[i], values, bases);
    }
  }

  void Store(uint32_t key, const FoldedChange& change, const std::vector<int64_t>& values,
             const std::map<uint32_t, ModelVersion>& bases) {
    const Destination destination = DestinationOf(change, options);
    if (destination == Destination::kNowhere) {
      return;
    }
    const int64_t shown =
        change.values_row == kValuesOfBase ? bases.at(key).values : values[change.values_row];
    const char operation = static_cast<char>(change.operation);
    if (destination == Destination::kCurrent) {
      current[key] = {operation, change.from_micros, change.inserted_micros, shown};
      return;
    }
    prior.emplace_back(key, operation, change.from_micros, change.to_micros, shown);
    if (operation == 'D' && !options.soft_delete) {
      deleted[key] = std::max(deleted[key], change.from_micros);
    }
  }

  std::vector<Row> Current() const {
    std::vector<Row> rows;
    for (const auto& [key, version] : current) {
      rows.emplace_back(key, version.operation, version.from, version.inserted, version.values);
    }
    return rows;
  }
};

void RunHistory(uint32_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto pick = [&](uint32_t below) { return static_cast<uint32_t>(random() % below); };
  const FoldOptions options{.history = pick(2) == 0, .soft_delete = pick(2) == 0};
  Model model(options);
  Tables tables{.options = options, .current = {}, .deleted = {}, .prior = {}};
  for (uint32_t apply = 0; apply < 6; ++apply) {
    std::vector<ChangeRow> rows;
    std::vector<int64_t> values;
    for (uint32_t count = pick(15); count > 0; --count) {
      const uint32_t key = pick(kKeys);
      const char operation = "IUDDL"[pick(5)];
      rows.push_back(Change(operation, pick(50), apply, key));
      values.push_back(pick(10));
      model.Change(key, operation, rows.back().timestamp_micros, apply, values.back());
    }
    tables.Apply(rows, values);
    ASSERT_EQ(tables.Current(), model.Current());
    ASSERT_THAT(tables.prior, UnorderedElementsAreArray(model.prior()));
  }
}

TEST(FoldTest, RandomHistoriesEqualTheModelWhereverAppliesFall) {
  for (uint32_t seed = 1; seed <= 3000; ++seed) {
    RunHistory(seed);
    if (HasFatalFailure()) {
      return;
    }
  }
}

}  // namespace
}  // namespace tarn::lakehouse
