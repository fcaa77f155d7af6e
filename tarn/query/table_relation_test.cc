#include "tarn/query/table_relation.h"

#include <map>
#include <random>

#include "tarn/lakehouse/table_files.h"
#include "tarn/lakehouse/table_views.h"
#include "tarn/query/query_fixture.h"

namespace tarn::query {

namespace {

using lakehouse::Operation;
using nlohmann::json;

// What the rules of docs/formats/internal_table.md make of changes, one key at a time.
struct ModelVersion {
  std::optional<std::string> name;
  std::string region;
  std::string operation;
  int64_t from_ms = 0;
  std::optional<int64_t> to_ms;
};

struct ModelKey {
  std::optional<ModelVersion> current;  // Also a row that soft_delete keeps.
  std::optional<int64_t> deleted_ms;    // From of the newest D row in Prior.
  std::vector<ModelVersion> prior;
};

class Model {
 public:
  explicit Model(lakehouse::FoldOptions fold) : fold_(fold) {}

  void Take(const TestChange& change) {
    ModelKey& key = keys_[change.id];
    const bool live = key.current && key.current->operation != "D";
    if (change.operation == Operation::kDelete) {
      if (live) {
        Delete(key, change.time_ms);
      }
      return;
    }
    ModelVersion next{.name = change.name,
                      .region = change.region,
                      .operation = change.operation == Operation::kLoad ? "L"
                                   : live                               ? "U"
                                                                        : "I",
                      .from_ms = change.time_ms};
    if (key.current) {
      next.from_ms = std::max(next.from_ms, key.current->from_ms);
      Supersede(key, live ? next.from_ms : key.current->from_ms);
    } else if (key.deleted_ms) {
      next.from_ms = std::max(next.from_ms, *key.deleted_ms);
    }
    key.current = next;
  }

  [[nodiscard]] std::vector<json> Current() const {
    std::vector<json> rows;
    for (const auto& [id, key] : keys_) {
      if (key.current && key.current->operation != "D") {
        rows.push_back(Row(id, *key.current));
      }
    }
    return Sorted(std::move(rows));
  }

  [[nodiscard]] std::vector<json> History() const {
    std::vector<json> rows;
    const auto add = [&](std::optional<int64_t> id, const ModelVersion& version,
                         const char* store) {
      json row = Row(id, version);
      row["store"] = store;
      row["operation"] = version.operation;
      row["deleted"] = version.operation == "D";
      row["from_ms"] = version.from_ms;
      row["to_ms"] = version.to_ms ? json(*version.to_ms) : json();
      rows.push_back(std::move(row));
    };
    for (const auto& [id, key] : keys_) {
      for (const ModelVersion& version : key.prior) {
        add(id, version, "PRIOR");
      }
      if (key.current) {
        add(id, *key.current, "CURRENT");
      }
    }
    return Sorted(std::move(rows));
  }

 private:
  void Supersede(ModelKey& key, int64_t to_ms) const {
    if (fold_.history) {
      ModelVersion version = *key.current;
      version.to_ms = to_ms;
      key.prior.push_back(std::move(version));
    }
  }

  void Delete(ModelKey& key, int64_t time_ms) const {
    ModelVersion deleted = *key.current;
    deleted.operation = "D";
    deleted.from_ms = std::max(time_ms, deleted.from_ms);
    deleted.to_ms = deleted.from_ms;
    Supersede(key, deleted.from_ms);
    if (fold_.soft_delete) {
      key.current = deleted;
      return;
    }
    key.current.reset();
    if (fold_.history) {
      key.prior.push_back(deleted);
      key.deleted_ms = deleted.from_ms;
    }
  }

  static json Row(std::optional<int64_t> id, const ModelVersion& version) {
    return {{"id", id ? json(*id) : json()},
            {"name", version.name ? json(*version.name) : json()},
            {"region", version.region}};
  }
  static std::vector<json> Sorted(std::vector<json> rows) {
    std::sort(rows.begin(), rows.end(),
              [](const json& a, const json& b) { return a.dump() < b.dump(); });
    return rows;
  }

  lakehouse::FoldOptions fold_;
  std::map<std::optional<int64_t>, ModelKey> keys_;
};

constexpr const char* kCurrentSql = "SELECT * FROM shop.orders";
constexpr const char* kHistorySql =
    "SELECT id, name, region, hdr__store AS store, hdr__operation AS operation, hdr__deleted AS "
    "deleted, epoch_ms(hdr__from_timestamp) AS from_ms, epoch_ms(hdr__to_timestamp) AS to_ms FROM "
    "shop.orders__history";
// All columns that an apply must not change.
constexpr const char* kLawSql =
    "SELECT * EXCLUDE (hdr__was_current_from_timestamp, hdr__was_current_to_timestamp) FROM "
    "shop.orders__history";

struct ModelCase {
  const char* name;
  lakehouse::FoldOptions fold;
  lakehouse::NullKeys null_keys = lakehouse::NullKeys::kRejected;
  std::vector<std::string> partition_by{};
};

void PrintTo(const ModelCase& model, std::ostream* out) { *out << model.name; }

class TableRelationModelTest : public QueryFixture,
                               public ::testing::WithParamInterface<ModelCase> {
 protected:
  std::vector<TestChange> RandomChanges(std::mt19937_64& random) const {
    std::vector<TestChange> changes(1 + random() % 9);
    for (TestChange& change : changes) {
      const uint64_t kind = random() % 10;
      change.operation = kind < 3   ? Operation::kDelete
                         : kind < 4 ? Operation::kLoad
                         : kind < 7 ? Operation::kUpdate
                                    : Operation::kInsert;
      const bool null_key =
          GetParam().null_keys == lakehouse::NullKeys::kAllowed && random() % 5 == 0;
      if (!null_key) {
        change.id = static_cast<int64_t>(random() % 7);
      }
      if (random() % 6 != 0) {
        change.name = "n" + std::to_string(random() % 100);
      }
      change.region = random() % 2 == 0 ? "eu" : "us";
      change.time_ms = 1'000'000 + static_cast<int64_t>(random() % 40) * 1000;
    }
    return changes;
  }

  void ExpectModel(const Model& model) {
    ASSERT_OK_AND_ASSIGN(const std::vector<json> current, Rows(kCurrentSql));
    ASSERT_EQ(json(current), json(model.Current()));
    if (GetParam().fold.history) {
      ASSERT_OK_AND_ASSIGN(const std::vector<json> history, Rows(kHistorySql));
      ASSERT_EQ(json(history), json(model.History()));
    }
  }

  void RunHistory(uint64_t seed) {
    SCOPED_TRACE("TARN_TEST_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed);
    lakehouse::TableSpec spec = MakeSpec("orders");
    spec.fold = GetParam().fold;
    spec.null_keys = GetParam().null_keys;
    spec.partition_by = GetParam().partition_by;
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<lakehouse::TargetTable> table, OpenTarget(spec));
    Model model(spec.fold);
    std::map<int64_t, std::vector<json>> current_of_snapshot;
    for (int step = 0; step < 14; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      if (random() % 3 != 0) {
        const std::vector<TestChange> changes = RandomChanges(random);
        ASSERT_OK_AND_ASSIGN(const int64_t snapshot, Append(*table, changes));
        for (const TestChange& change : changes) {
          model.Take(change);
        }
        current_of_snapshot[snapshot] = model.Current();
        ASSERT_NO_FATAL_FAILURE(ExpectModel(model));
      } else {
        std::vector<json> before;
        if (spec.fold.history) {
          ASSERT_OK_AND_ASSIGN(before, Rows(kLawSql));
        }
        ASSERT_OK(Apply(*table));
        ASSERT_NO_FATAL_FAILURE(ExpectModel(model));
        if (spec.fold.history) {
          ASSERT_OK_AND_ASSIGN(const std::vector<json> after, Rows(kLawSql));
          ASSERT_EQ(json(after), json(before));
        }
      }
    }
    for (const auto& [snapshot, rows] : current_of_snapshot) {
      ASSERT_OK_AND_ASSIGN(const std::vector<json> then,
                           Rows(kCurrentSql, std::to_string(snapshot)));
      ASSERT_EQ(json(then), json(rows)) << "at snapshot " << snapshot;
    }
  }
};

TEST_P(TableRelationModelTest, ViewsShowWhatTheRulesSayBeforeAndAfterApplies) {
  const char* const given = std::getenv("TARN_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::stoull(given) : std::random_device{}();
  RecordProperty("seed", std::to_string(seed));
  RunHistory(seed);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, TableRelationModelTest,
    ::testing::Values(
        ModelCase{.name = "Plain", .fold = {}},
        ModelCase{.name = "SoftDelete", .fold = {.soft_delete = true}},
        ModelCase{.name = "History", .fold = {.history = true}},
        ModelCase{.name = "HistorySoftDelete", .fold = {.history = true, .soft_delete = true}},
        ModelCase{.name = "HistoryNullKeys",
                  .fold = {.history = true},
                  .null_keys = lakehouse::NullKeys::kAllowed},
        ModelCase{
            .name = "HistoryPartitioned", .fold = {.history = true}, .partition_by = {"region"}},
        ModelCase{.name = "SoftDeleteNullKeysPartitioned",
                  .fold = {.history = true, .soft_delete = true},
                  .null_keys = lakehouse::NullKeys::kAllowed,
                  .partition_by = {"region", "bucket(4, id)"}}),
    [](const auto& kind) { return std::string(kind.param.name); });

class TableRelationTest : public QueryFixture {};

TestChange Insert(int64_t id, const std::string& name) {
  return {.operation = Operation::kInsert, .id = id, .name = name, .time_ms = 1000};
}

TEST_F(TableRelationTest, TableWithoutRowsIsEmpty) {
  ASSERT_OK(OpenTarget(MakeSpec("orders")));
  EXPECT_THAT(Rows(kCurrentSql), IsOkAndHolds(std::vector<json>{}));
  EXPECT_THAT(Rows("SELECT * FROM shop_internal.orders_internal"),
              IsOkAndHolds(std::vector<json>{}));
}

TEST_F(TableRelationTest, AppliedTableStandsStillBetweenApplies) {
  ASSERT_OK_AND_ASSIGN(const auto table, OpenTarget(MakeSpec("orders")));
  ASSERT_OK(Append(*table, {Insert(1, "a")}));
  EXPECT_THAT(Rows("SELECT * FROM shop.orders__applied"), IsOkAndHolds(std::vector<json>{}));
  ASSERT_OK(Apply(*table));
  ASSERT_OK(Append(*table, {Insert(1, "b")}));
  const std::vector<json> applied = {{{"id", 1}, {"name", "a"}, {"region", "eu"}}};
  EXPECT_THAT(Rows("SELECT * FROM shop.orders__applied"), IsOkAndHolds(applied));
  const std::vector<json> current = {{{"id", 1}, {"name", "b"}, {"region", "eu"}}};
  EXPECT_THAT(Rows(kCurrentSql), IsOkAndHolds(current));
}

TEST_F(TableRelationTest, AppendModeShowsEveryRow) {
  lakehouse::TableSpec spec = MakeSpec("orders");
  spec.mode = lakehouse::Mode::kAppend;
  spec.key = {};
  ASSERT_OK_AND_ASSIGN(const auto table, OpenTarget(spec));
  ASSERT_OK(Append(*table, {Insert(1, "a"), Insert(1, "a")}));
  ASSERT_OK(Append(*table, {Insert(2, "b")}));
  const std::vector<json> rows = {{{"n", 3}, {"keys", 2}}};
  EXPECT_THAT(Rows("SELECT count(*) AS n, count(DISTINCT id) AS keys FROM shop.orders"),
              IsOkAndHolds(rows));
}

TEST_F(TableRelationTest, TimePicksTheSnapshotOfThen) {
  ASSERT_OK_AND_ASSIGN(const auto table, OpenTarget(MakeSpec("orders")));
  const Timestamp before = clock_.Now();
  ASSERT_OK(Append(*table, {Insert(1, "a")}));
  const std::string first = FormatTimestamp(clock_.Now());
  ASSERT_OK(Apply(*table));
  ASSERT_OK(Append(*table, {Insert(1, "b")}));
  const std::vector<json> a = {{{"name", "a"}}};
  const std::vector<json> b = {{{"name", "b"}}};
  EXPECT_THAT(Rows("SELECT name FROM shop.orders", first), IsOkAndHolds(a));
  EXPECT_THAT(Rows("SELECT name FROM shop.orders AT (TIMESTAMP => '" + first + "')"),
              IsOkAndHolds(a));
  EXPECT_THAT(Rows("SELECT name FROM shop.orders"), IsOkAndHolds(b));
  EXPECT_THAT(Rows("SELECT name FROM shop.orders", FormatTimestamp(before)),
              FailsWith(ErrorCode::kNotFound, "oldest"));
  EXPECT_THAT(Rows("SELECT name FROM shop.orders", "12345"),
              FailsWith(ErrorCode::kNotFound, "snapshot 12345"));
}

TEST_F(TableRelationTest, TooOldTimePointsToTheHistoryView) {
  lakehouse::TableSpec spec = MakeSpec("orders");
  spec.fold.history = true;
  ASSERT_OK_AND_ASSIGN(const auto table, OpenTarget(spec));
  const std::string before = FormatTimestamp(clock_.Now());
  ASSERT_OK(Append(*table, {Insert(1, "a")}));
  EXPECT_THAT(Rows(kCurrentSql, before), FailsWith(ErrorCode::kNotFound, "orders__history"));
}

TEST_F(TableRelationTest, LandingTransactionPicksItsSnapshot) {
  ASSERT_OK_AND_ASSIGN(const auto table, OpenTarget(MakeSpec("orders")));
  const dataset::TransactionRid landed{.uuid = uuids_.NextV7()};
  ASSERT_OK(Append(*table, {Insert(1, "a")},
                   {{.dataset = "ri.foundry.main.dataset.x", .transaction = landed.ToString()}}));
  ASSERT_OK(Append(*table, {Insert(2, "b")}));
  const std::vector<json> one = {{{"id", 1}}};
  EXPECT_THAT(Rows("SELECT id FROM shop.orders", landed.ToString()), IsOkAndHolds(one));
  const dataset::TransactionRid other{.uuid = uuids_.NextV7()};
  EXPECT_THAT(Rows("SELECT id FROM shop.orders", other.ToString()),
              FailsWith(ErrorCode::kNotFound, other.ToString()));
}

TEST_F(TableRelationTest, NothingUnappliedNeedsNoJoin) {
  ASSERT_OK_AND_ASSIGN(const auto table, OpenTarget(MakeSpec("orders")));
  ASSERT_OK(Append(*table, {Insert(1, "a")}));
  ASSERT_OK(Apply(*table));
  const std::vector<json> rows = {{{"id", 1}, {"name", "a"}, {"region", "eu"}}};
  EXPECT_THAT(Rows(kCurrentSql), IsOkAndHolds(rows));
  // Change files that stay after an apply are not unapplied.
  lakehouse::TableSpec kept = MakeSpec("kept");
  kept.keep_changes = std::chrono::hours(1);
  ASSERT_OK_AND_ASSIGN(const auto keeping, OpenTarget(kept));
  ASSERT_OK(Append(*keeping, {Insert(1, "a")}));
  ASSERT_OK(Apply(*keeping));
  ASSERT_OK(Append(*keeping, {{.operation = Operation::kDelete, .id = 1, .time_ms = 2000}}));
  ASSERT_OK(Apply(*keeping));
  EXPECT_THAT(Rows("SELECT * FROM shop.kept"), IsOkAndHolds(std::vector<json>{}));
}

TEST_F(TableRelationTest, NewColumnIsNullInOlderRows) {
  ASSERT_OK_AND_ASSIGN(const auto table, OpenTarget(MakeSpec("orders")));
  ASSERT_OK_AND_ASSIGN(const int64_t old, Append(*table, {Insert(1, "a")}));
  ASSERT_OK(Apply(*table));
  iceberg::Schema wider = UserColumns();
  iceberg::SchemaField price;
  price.id = 4;
  price.name = "price";
  price.type = iceberg::Type::Decimal(10, 2);
  wider.fields.push_back(price);
  ASSERT_OK(table->EnsureColumns(wider));
  const std::vector<json> rows = {{{"id", 1}, {"name", "a"}, {"region", "eu"}, {"price", nullptr}}};
  EXPECT_THAT(Rows(kCurrentSql), IsOkAndHolds(rows));
  const std::vector<json> then = {{{"id", 1}, {"name", "a"}, {"region", "eu"}}};
  EXPECT_THAT(Rows(kCurrentSql, std::to_string(old)), IsOkAndHolds(then));
}

using lakehouse::SqlDialect;

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// All but what the apply itself sets.
constexpr const char* kHeadersSql =
    "SELECT hex(hdr__key_hash) AS hash, hdr__operation AS op, epoch_us(hdr__from_timestamp) AS "
    "since, epoch_us(hdr__inserted_timestamp) AS inserted, id, name FROM ";

class TargetViewsTest : public QueryFixture {
 protected:
  static lakehouse::TableSpec SpecWithHeaders(lakehouse::FoldOptions fold) {
    lakehouse::TableSpec spec = MakeSpec("orders");
    spec.fold = fold;
    for (const std::string_view header : lakehouse::ViewHeaders()) {
      spec.view_headers.emplace_back(header);
    }
    return spec;
  }

  // The stored text of the view, so that this engine reads it: nothing but its words is changed.
  static std::string TextForThisEngine(std::string text, SqlDialect dialect) {
    if (dialect == SqlDialect::kSpark) {
      text = Replaced(std::move(text), "`", "\"");
      text = Replaced(std::move(text), "LEFT ANTI JOIN", "ANTI JOIN");
      text = Replaced(std::move(text), "NULL AS TIMESTAMP", "NULL AS TIMESTAMP WITH TIME ZONE");
    }
    return text;
  }

  // The current view, as planned from files and as each of the stored texts shows it.
  Result<std::vector<json>> Headers(lakehouse::TargetTable& table) {
    TARN_ASSIGN_OR_RETURN(std::vector<json> rows, Rows(kHeadersSql + std::string("shop.orders")));
    for (const SqlDialect dialect : {SqlDialect::kDuckDb, SqlDialect::kTrino, SqlDialect::kSpark}) {
      TARN_ASSIGN_OR_RETURN(const std::string text, table.CurrentSql(dialect));
      TARN_ASSIGN_OR_RETURN(
          const std::vector<json> other,
          Rows(kHeadersSql + ("(" + TextForThisEngine(text, dialect) + ") AS s")));
      EXPECT_EQ(json(other), json(rows)) << text;
    }
    return rows;
  }

  static std::vector<TestChange> RandomChanges(std::mt19937& random) {
    std::vector<TestChange> changes(1 + random() % 9);
    for (TestChange& change : changes) {
      change.operation = static_cast<Operation>("DDDLUUIIII"[random() % 10]);
      change.id = static_cast<int64_t>(random() % 5);
      change.name = "n" + std::to_string(random() % 100);
      change.time_ms = 1'000'000 + static_cast<int64_t>(random() % 40) * 1000;
    }
    return changes;
  }
};

TEST_F(TargetViewsTest, HeadersOfUnappliedRowsAreThoseTheApplyWrites) {
  ASSERT_OK_AND_ASSIGN(const auto table, OpenTarget(SpecWithHeaders({})));
  ASSERT_OK(
      Append(*table, {{.operation = Operation::kInsert, .id = 1, .name = "a", .time_ms = 9},
                      {.operation = Operation::kInsert, .id = 2, .name = "b", .time_ms = 9}}));
  const int64_t inserted = ToMicros(clock_.Now());
  ASSERT_OK(Apply(*table));
  const int64_t applied = ToMicros(clock_.Now());
  // An update that is older than its row; a row that dies and comes back with an older time.
  ASSERT_OK(
      Append(*table, {{.operation = Operation::kUpdate, .id = 1, .name = "c", .time_ms = 5},
                      {.operation = Operation::kDelete, .id = 2, .time_ms = 8},
                      {.operation = Operation::kInsert, .id = 2, .name = "d", .time_ms = 4}}));
  const int64_t again = ToMicros(clock_.Now());
  const std::string sql =
      "SELECT id, hdr__operation AS op, epoch_us(hdr__from_timestamp) AS since, "
      "epoch_us(hdr__inserted_timestamp) AS inserted, epoch_us(hdr__modified_timestamp) AS "
      "modified "
      "FROM shop.orders";
  const auto row = [](int64_t id, const char* op, int64_t since, int64_t born, json modified) {
    return json{{"id", id},
                {"op", op},
                {"since", since},
                {"inserted", born},
                {"modified", std::move(modified)}};
  };
  ASSERT_OK_AND_ASSIGN(const std::vector<json> before, Rows(sql));
  EXPECT_EQ(json(before),
            json({row(1, "U", 9000, inserted, nullptr), row(2, "I", 4000, again, nullptr)}));
  ASSERT_OK_AND_ASSIGN(const std::vector<json> folded, Headers(*table));
  ASSERT_OK(Apply(*table));
  EXPECT_GT(ToMicros(clock_.Now()), applied);
  const json now = ToMicros(clock_.Now());
  ASSERT_OK_AND_ASSIGN(const std::vector<json> after, Rows(sql));
  EXPECT_EQ(json(after), json({row(1, "U", 9000, inserted, now), row(2, "I", 4000, again, now)}));
  ASSERT_OK_AND_ASSIGN(const std::vector<json> stored, Headers(*table));
  EXPECT_EQ(json(stored), json(folded));
}

class HeadersLawTest : public TargetViewsTest,
                       public ::testing::WithParamInterface<lakehouse::FoldOptions> {};

TEST_P(HeadersLawTest, AnApplyChangesNoHeaderInAnyText) {
  const char* const given = std::getenv("TARN_TEST_SEED");
  const auto seed =
      given != nullptr ? static_cast<uint32_t>(std::stoul(given)) : std::random_device{}();
  SCOPED_TRACE("TARN_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  ASSERT_OK_AND_ASSIGN(const auto table, OpenTarget(SpecWithHeaders(GetParam())));
  for (int round = 0; round < 4; ++round) {
    for (size_t appends = 1 + random() % 2; appends > 0; --appends) {
      ASSERT_OK(Append(*table, RandomChanges(random)));
    }
    ASSERT_OK_AND_ASSIGN(const std::vector<json> before, Headers(*table));
    ASSERT_OK(Apply(*table));
    ASSERT_OK_AND_ASSIGN(const std::vector<json> after, Headers(*table));
    ASSERT_EQ(json(after), json(before)) << "round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, HeadersLawTest,
    ::testing::Values(lakehouse::FoldOptions{}, lakehouse::FoldOptions{.history = true},
                      lakehouse::FoldOptions{.soft_delete = true},
                      lakehouse::FoldOptions{.history = true, .soft_delete = true}));

TEST_F(TargetViewsTest, TheStoredSchemaHasTheHeadersFirst) {
  const lakehouse::TableSpec spec = SpecWithHeaders({});
  ASSERT_OK_AND_ASSIGN(const auto table, OpenTarget(spec));
  ASSERT_OK_AND_ASSIGN(const catalog::LoadedTable loaded, table->Load());
  const iceberg::Schema view = lakehouse::TableViewSchema(spec, loaded.metadata->CurrentSchema(),
                                                          lakehouse::TableView::kCurrent);
  std::vector<std::string> names;
  for (const iceberg::SchemaField& field : view.fields) {
    names.push_back(field.name);
  }
  EXPECT_THAT(names, ::testing::ElementsAre("hdr__key_hash", "hdr__operation",
                                            "hdr__from_timestamp", "hdr__inserted_timestamp",
                                            "hdr__modified_timestamp", "id", "name", "region"));
  EXPECT_EQ(view.fields[0].type, iceberg::Type::Fixed(20));
}

TEST_F(TargetViewsTest, ViewsOfATableAreMadeAnewForOtherHeadersAndNullKeys) {
  lakehouse::TableSpec spec = MakeSpec("orders");
  {
    ASSERT_OK_AND_ASSIGN(const auto table, OpenTarget(spec));
    ASSERT_OK(Append(*table, {{.id = 1, .name = "a", .time_ms = 3}}));
  }
  spec.view_headers = {"hdr__from_timestamp"};
  spec.null_keys = lakehouse::NullKeys::kAllowed;
  {
    ASSERT_OK_AND_ASSIGN(const auto table, OpenTarget(spec));
    const Status refused = table->RenewViews(
        [](metastore::SqlTransaction&) { return Status::Internal("no longer ours"); });
    EXPECT_THAT(refused, Fails(ErrorCode::kInternal));
    ASSERT_OK_AND_ASSIGN(const std::vector<json> still, Rows("SELECT * FROM shop.orders"));
    EXPECT_FALSE(still.at(0).contains("hdr__from_timestamp"));
    ASSERT_OK(table->RenewViews());
    ASSERT_OK(Append(*table, {{.id = std::nullopt, .name = "none", .time_ms = 4}}));
    ASSERT_OK(Apply(*table));
    ASSERT_OK(Append(*table, {{.id = std::nullopt, .name = "other", .time_ms = 5}}));
  }
  spec.null_keys = lakehouse::NullKeys::kRejected;
  ASSERT_OK_AND_ASSIGN(const auto table, OpenTarget(spec));
  EXPECT_EQ(table->spec().null_keys, lakehouse::NullKeys::kAllowed) << "there are rows with NULL";
  ASSERT_OK(table->RenewViews());
  ASSERT_OK_AND_ASSIGN(
      const std::vector<json> rows,
      Rows("SELECT name, epoch_us(hdr__from_timestamp) AS since FROM shop.orders"));
  EXPECT_EQ(json(rows),
            json({{{"name", "a"}, {"since", 3000}}, {{"name", "other"}, {"since", 5000}}}));
}

TEST_F(TargetViewsTest, WhatOnlyANewTableCanTakeIsRefused) {
  lakehouse::TableSpec made = MakeSpec("orders");
  made.owner = "p.orders";
  made.fold = {.history = true};
  made.partition_by = {"bucket(4, id)"};
  made.sort_by = {"name desc"};
  made.table_properties = {{"a", "1"}};
  ASSERT_OK(OpenTarget(made));
  lakehouse::TableSpec same = made;
  same.partition_by = {"bucket( 4,id )"};
  EXPECT_OK(OpenTarget(same));
  const auto refused = [&](const auto& change, const std::string& text) {
    lakehouse::TableSpec spec = made;
    change(spec);
    EXPECT_THAT(OpenTarget(spec), FailsWith(ErrorCode::kFailedPrecondition, text));
    EXPECT_THAT(OpenTarget(spec),
                FailsWith(ErrorCode::kFailedPrecondition, "tarn task recreate p.orders"));
  };
  using Spec = lakehouse::TableSpec;
  refused([](Spec& s) { s.external_schema = "other"; }, "schema: shop, and now other");
  refused([](Spec& s) { s.history_suffix = "_h"; }, "history_suffix: __history, and now _h");
  refused([](Spec& s) { s.publish = lakehouse::Publish::kNone; }, "publish: applied, and now none");
  refused([](Spec& s) { s.partition_by = {"region", "bucket(8, id)"}; },
          "partition_by: [bucket(4, id)], and now [region, bucket(8, id)]");
  refused([](Spec& s) { s.partition_by = {"day(gone)"}; }, "and now [day(gone)]");
  refused([](Spec& s) { s.sort_by = {"name"}; }, "sort_by: [name desc], and now [name]");
  refused([](Spec& s) { s.table_properties = {}; }, R"(table_properties: {"a":"1"}, and now {})");
}

TEST_F(TargetViewsTest, KeptChangesLeaveTheTableWhenTheyAreOldEnough) {
  lakehouse::TableSpec spec = MakeSpec("orders");
  spec.fold = {.history = true};
  spec.keep_changes = std::chrono::minutes(10);
  ASSERT_OK_AND_ASSIGN(auto table, OpenTarget(spec));
  const auto change_rows = [&]() -> Result<int64_t> {
    TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable loaded, table->Load());
    TARN_ASSIGN_OR_RETURN(const lakehouse::TableFiles files,
                          lakehouse::ListTableFiles(*warehouse_, catalog_->manifest_cache(),
                                                    *loaded.metadata, std::nullopt));
    return files.change_rows();
  };
  const std::string current = "SELECT * FROM shop.orders";
  const std::string history =
      "SELECT * EXCLUDE (hdr__was_current_from_timestamp, hdr__was_current_to_timestamp) FROM "
      "shop.orders__history";
  const auto apply = [&]() -> Status {
    TARN_ASSIGN_OR_RETURN(const std::vector<json> rows, Rows(current));
    TARN_ASSIGN_OR_RETURN(const std::vector<json> versions, Rows(history));
    TARN_RETURN_IF_ERROR(Apply(*table));
    EXPECT_THAT(Rows(current), IsOkAndHolds(rows));
    EXPECT_THAT(Rows(history), IsOkAndHolds(versions));
    return Status::Ok();
  };
  ASSERT_OK(Append(*table, {{.id = 1, .name = "a", .time_ms = 1}}));
  ASSERT_OK(apply());
  clock_.Advance(std::chrono::minutes(9));
  ASSERT_OK(Append(*table, {{.id = 1, .name = "b", .time_ms = 2}, {.id = 2, .time_ms = 2}}));
  ASSERT_OK(apply());
  EXPECT_THAT(change_rows(), IsOkAndHolds(3)) << "the first is not ten minutes old";
  clock_.Advance(std::chrono::minutes(2));
  ASSERT_OK(Append(*table, {{.id = 3, .name = "c", .time_ms = 3}}));
  EXPECT_THAT(change_rows(), IsOkAndHolds(4));
  ASSERT_OK(apply());
  EXPECT_THAT(change_rows(), IsOkAndHolds(3)) << "the first was";
  // Switched off, nothing stays.
  spec.keep_changes.reset();
  ASSERT_OK_AND_ASSIGN(table, OpenTarget(spec));
  ASSERT_OK(Append(*table, {{.operation = Operation::kDelete, .id = 2, .time_ms = 9}}));
  ASSERT_OK(apply());
  EXPECT_THAT(change_rows(), IsOkAndHolds(0));
}

}  // namespace

}  // namespace tarn::query
