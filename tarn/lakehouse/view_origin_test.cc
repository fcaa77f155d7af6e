#include "tarn/lakehouse/view_origin.h"

#include "test/support/matchers.h"

namespace tarn::lakehouse {

namespace {

TableSpec SomeSpec() {
  TableSpec spec;
  spec.name = "orders";
  spec.external_schema = "shop";
  spec.internal_schema = "shop_internal";
  spec.key = {"id", "line \"two\""};
  spec.null_keys = NullKeys::kAllowed;
  spec.fold = {.history = true, .soft_delete = true};
  spec.view_headers = {"hdr__key_hash"};
  return spec;
}

TEST(ViewOriginTest, PropertiesComeBackAsTheyWere) {
  const TableSpec merged = SomeSpec();
  TableSpec appended = SomeSpec();
  appended.mode = Mode::kAppend;
  appended.key = {};
  appended.fold = {};
  appended.null_keys = NullKeys::kRejected;
  for (const TableSpec& spec : {merged, appended}) {
    for (const TableView view : {TableView::kCurrent, TableView::kHistory}) {
      const ViewOrigin origin = OriginOf(spec, view);
      ASSERT_OK_AND_ASSIGN(const std::optional<ViewOrigin> parsed,
                           ParseOrigin(FormatOrigin(origin)));
      EXPECT_EQ(parsed, origin);
    }
  }
}

TEST(ViewOriginTest, OtherViewsHaveNone) {
  ASSERT_OK_AND_ASSIGN(const std::optional<ViewOrigin> parsed,
                       ParseOrigin({{"comment", "by hand"}}));
  EXPECT_EQ(parsed, std::nullopt);
}

TEST(ViewOriginTest, EachBrokenPropertyIsNamed) {
  const std::map<std::string, std::string> good =
      FormatOrigin(OriginOf(SomeSpec(), TableView::kCurrent));
  for (const auto& [name, value] : good) {
    if (name == "tarn.view") {
      continue;
    }
    std::map<std::string, std::string> lacking = good;
    lacking.erase(name);
    EXPECT_THAT(ParseOrigin(lacking), FailsWith(ErrorCode::kCorruption, name));
    if (name == "tarn.internal-schema" || name == "tarn.internal-table" ||
        name == "tarn.history-view") {
      continue;  // Any text will do.
    }
    std::map<std::string, std::string> broken = good;
    broken[name] = "[1]";
    EXPECT_THAT(ParseOrigin(broken), FailsWith(ErrorCode::kCorruption, name));
  }
  EXPECT_THAT(ParseOrigin({{"tarn.view", "sideways"}}),
              FailsWith(ErrorCode::kCorruption, "sideways"));
}

}  // namespace

}  // namespace tarn::lakehouse
