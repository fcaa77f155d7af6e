#include "tarn/cli/output.h"

#include <nlohmann/json.hpp>

#include "test/support/matchers.h"

namespace tarn::cli {
namespace {

using nlohmann::json;

TEST(OutputTest, TablesAlignAndEscape) {
  const Table table{.columns = {"NAME", "SIZE"}, .rows = {{"a\nb", "1"}, {"größe", "22"}, {"x"}}};
  EXPECT_EQ(FormatTable(table), "NAME   SIZE\na\\nb   1\ngröße  22\nx\n");
  EXPECT_EQ(FormatTable({.columns = {"A", "B"}, .rows = {}}), "A  B\n");
  EXPECT_EQ(FormatTable({.columns = {"\x1b[31mA"}, .rows = {}}), "\\x1b[31mA\n");
}

TEST(OutputTest, ControlCharactersNeverReachTheTerminal) {
  EXPECT_EQ(EscapeForTerminal("\x1b[31m\x7f\r\t\\é"), "\\x1b[31m\\x7f\\r\\t\\\\é");
}

TEST(OutputTest, CellsOfObjects) {
  const Table table = TableOf(json::parse(R"([{"a":"x","b":1},{"b":null},7])"), {"a", "b"});
  EXPECT_EQ(table.rows, (std::vector<std::vector<std::string>>{{"x", "1"}, {"", ""}, {"", ""}}));
}

TEST(OutputTest, JsonModePrintsOneDocument) {
  std::FILE* const file = std::tmpfile();
  Output output(OutputFormat::kJson, file);
  EXPECT_OK(output.Show(json{{"a", 1}}, "line for people"));
  std::rewind(file);
  std::string text(100, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  EXPECT_EQ(json::parse(text), json({{"a", 1}}));
}

}  // namespace
}  // namespace tarn::cli
