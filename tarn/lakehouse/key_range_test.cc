#include "tarn/lakehouse/key_range.h"

#include <arrow/api.h>
#include <arrow/compute/initialize.h>
#include <arrow/json/from_string.h>
#include <gtest/gtest.h>

#include "tarn/base/arrow_status.h"
#include "tarn/iceberg/literal.h"
#include "test/support/matchers.h"

namespace tarn::lakehouse {
namespace {

using iceberg::Literal;
using iceberg::Type;

std::shared_ptr<arrow::Array> Array(const std::shared_ptr<arrow::DataType>& type,
                                    const std::string& json) {
  return arrow::json::ArrayFromJSONString(type, json).ValueOrDie();
}

class KeyRangeTest : public ::testing::Test {
 protected:
  KeyRangeTest() {
    EXPECT_TRUE(arrow::compute::Initialize().ok());
    iceberg::SchemaField id;
    id.id = 101;
    id.name = "id";
    id.type = Type::Long();
    iceberg::SchemaField name;
    name.id = 102;
    name.name = "name";
    name.type = Type::String();
    schema_.fields = {id, name};
  }

  // A file of ten rows whose columns lie between the bounds.
  static iceberg::DataFile File(int64_t id_low, int64_t id_high, const std::string& name_low,
                                const std::string& name_high, int64_t null_names) {
    iceberg::DataFile file;
    file.record_count = 10;
    file.value_counts = {{101, 10}, {102, 10}};
    file.null_value_counts = {{101, 0}, {102, null_names}};
    const auto id = [](int64_t value) {
      return iceberg::EncodeLiteral(Type::Long(), Literal::Long(value)).value();
    };
    const auto name = [](const std::string& value) {
      return iceberg::EncodeLiteral(Type::String(), Literal::String(value)).value();
    };
    file.lower_bounds = {{101, id(id_low)}, {102, name(name_low)}};
    file.upper_bounds = {{101, id(id_high)}, {102, name(name_high)}};
    return file;
  }

  bool MayHold(const KeyRange& range, const iceberg::DataFile& file) {
    return iceberg::MayMatchFile(range.Filter().value(), schema_, file);
  }

  iceberg::Schema schema_;
};

TEST_F(KeyRangeTest, FilesBesideTheRangeAreLeftOut) {
  KeyRange range(schema_, {"id"});
  EXPECT_TRUE(MayHold(range, File(0, 5, "a", "b", 0))) << "nothing is known yet";
  ASSERT_OK(range.Add({Array(arrow::int64(), "[20, 10]")}));
  ASSERT_OK(range.Add({Array(arrow::int64(), "[30]")}));
  EXPECT_FALSE(MayHold(range, File(0, 9, "a", "b", 0)));
  EXPECT_FALSE(MayHold(range, File(31, 40, "a", "b", 0)));
  EXPECT_TRUE(MayHold(range, File(0, 10, "a", "b", 0)));
  EXPECT_TRUE(MayHold(range, File(30, 40, "a", "b", 0)));
  EXPECT_TRUE(MayHold(range, File(0, 100, "a", "b", 0)));
}

TEST_F(KeyRangeTest, AllColumnsOfAKeyMustFit) {
  KeyRange range(schema_, {"id", "name"});
  ASSERT_OK(range.Add({Array(arrow::int64(), "[1, 9]"), Array(arrow::utf8(), R"(["m", "k"])")}));
  EXPECT_TRUE(MayHold(range, File(0, 5, "a", "k", 0)));
  EXPECT_FALSE(MayHold(range, File(0, 5, "n", "z", 0)));
  EXPECT_FALSE(MayHold(range, File(10, 50, "a", "z", 0)));
}

TEST_F(KeyRangeTest, NullIsAKeyToo) {
  KeyRange range(schema_, {"name"});
  ASSERT_OK(range.Add({Array(arrow::utf8(), R"(["m", null])")}));
  EXPECT_TRUE(MayHold(range, File(0, 5, "x", "z", 1)));
  EXPECT_FALSE(MayHold(range, File(0, 5, "x", "z", 0)));
  KeyRange nulls(schema_, {"name"});
  ASSERT_OK(nulls.Add({Array(arrow::utf8(), "[null]")}));
  EXPECT_TRUE(MayHold(nulls, File(0, 5, "x", "z", 1)));
}

}  // namespace
}  // namespace tarn::lakehouse
