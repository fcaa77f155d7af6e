#!/usr/bin/env python3
"""Each rule of tidy.py fires on the smallest tree that breaks it, and on no clean one."""

import unittest

import cpp_text
import tidy

LAYERS = "base:\nstorage: base\nengine: storage base\nsource: base\ncmd: *\ntest: *\n"
HEADER = "// A block of bytes and its checksum.\n#pragma once\n"
CLEAN = {
    "tools/layers.txt": LAYERS,
    "tarn/base/block.h": HEADER + "struct Block {\n  int size_bytes = 0;\n};\n",
    "tarn/base/block.cc": '#include "tarn/base/block.h"\n',
    "tarn/base/block_test.cc": '#include "tarn/base/block.h"\n#include "test/support/is_ok.h"\n',
    "test/support/is_ok.h": "// Matches a Status that is OK.\n#pragma once\n",
    "cmd/tarn/main.cc": '#include "tarn/base/block.h"\nint main() {}\n',
}


def findings(changes: dict[str, str], others: set[str] = frozenset()) -> list[str]:
    """Returns "rule path:line" of what is wrong with the clean tree after `changes`."""
    tree = tidy.Tree(CLEAN | changes, {"cmd/tarn/CMakeLists.txt"} | others)
    return [f"{found.rule} {found.path}:{found.line}" for found in tidy.check(tree)]


class TidyTest(unittest.TestCase):
    def expect(self, changes: dict[str, str], *wanted: str) -> None:
        self.assertEqual(findings(changes), list(wanted))

    def in_source(self, line: str, *wanted: str) -> None:
        """Expects rules to fire on `line` in a source of base."""
        include = '#include "tarn/base/block.h"\n'
        self.expect(
            {"tarn/base/block.cc": include + line + "\n"},
            *(f"{rule} tarn/base/block.cc:2" for rule in wanted),
        )

    def in_header(self, line: str, *wanted: str) -> None:
        self.expect(
            {"tarn/base/block.h": HEADER + line + "\n"},
            *(f"{rule} tarn/base/block.h:3" for rule in wanted),
        )

    def test_clean_tree_has_no_findings(self):
        self.expect({})

    def test_include_against_the_arrows(self):
        storage = {"tarn/storage/store.h": HEADER, "tarn/storage/store.cc": "#include <map>\n"}
        upward = '#include "tarn/base/block.h"\n#include "tarn/storage/store.h"\n'
        self.expect(storage | {"tarn/base/block.cc": upward}, "layers tarn/base/block.cc:2")

    def test_include_along_the_arrows(self):
        store = '#include "tarn/base/block.h"\n#include "tarn/storage/store.h"\n'
        self.expect({"tarn/storage/store.h": HEADER, "tarn/storage/store.cc": store})

    def test_unlisted_room(self):
        self.expect({"tarn/attic/old.cc": ""}, "layers tarn/attic/old.cc:1",
                    "name tarn/attic/old.cc:1")  # fmt: skip

    def test_layers_with_a_cycle_or_a_stranger(self):
        cycle = {"tools/layers.txt": LAYERS.replace("base:\n", "base: storage\n")}
        self.expect(cycle, "layers tools/layers.txt:1")
        stranger = {"tools/layers.txt": LAYERS.replace("base:\n", "base: attic\n")}
        self.expect(stranger, "layers tools/layers.txt:1")

    def test_production_code_includes_no_test_support(self):
        self.in_source('#include "test/support/is_ok.h"', "layers")
        contract = HEADER + '#include "test/support/is_ok.h"\n'
        include = '#include "tarn/base/store_contract.h"\n'
        self.expect({"tarn/base/store_contract.h": contract, "tarn/base/block_test.cc":
                     CLEAN["tarn/base/block_test.cc"] + include})  # fmt: skip

    def test_include_that_is_no_repository_path(self):
        self.in_source('#include "block.h"', "include")
        self.in_source('#include "tarn/base/gone.h"', "include")
        self.in_source("#include <tarn/base/block.h>", "include")
        self.in_source('// #include "block.h"')

    def test_foreign_headers_outside_their_room(self):
        self.in_source("#include <duckdb.h>", "room-header")
        self.in_source("#include <librdkafka/rdkafka.h>", "room-header")
        self.in_source("#include <boost/beast/http.hpp>", "room-header")
        self.in_source("#include <sqlite3.h>", "room-header")
        self.expect({"tarn/engine/duck.cc": "#include <duckdb.h>\n"})
        self.expect({"tarn/source/kafka/consumer.cc": "#include <librdkafka/rdkafka.h>\n"})

    def test_heavy_headers_in_a_header(self):
        for heavy in ("arrow/api.h", "arrow/compute/api.h", "parquet/arrow/writer.h",
                      "nlohmann/json.hpp", "spdlog/spdlog.h"):  # fmt: skip
            self.in_header(f"#include <{heavy}>", "heavy-header")
            self.in_source(f"#include <{heavy}>")
        self.in_header("#include <arrow/type_fwd.h>")

    def test_file_lengths(self):
        blank_lines = "int x;\n"
        self.expect({"tarn/base/block.h": HEADER + blank_lines * 399},
                    "length tarn/base/block.h:401")  # fmt: skip
        self.expect({"tarn/base/block.h": HEADER + blank_lines * 398})
        self.expect({"tarn/base/block.cc": blank_lines * 801}, "length tarn/base/block.cc:801")
        self.expect({"tarn/base/block_test.cc": blank_lines * 1200,
                     "tarn/base/block.cc": '#include "test/support/is_ok.h"\n'},
                    "layers tarn/base/block.cc:1")  # fmt: skip
        self.expect({"tarn/base/block_test.cc": '#include "test/support/is_ok.h"\n'
                     + blank_lines * 1200}, "length tarn/base/block_test.cc:1201")  # fmt: skip

    def test_function_length(self):
        body = "int F(int a) {\n" + "  ++a;\n" * 69 + "}\n"
        self.expect({"tarn/base/block.cc": body}, "length tarn/base/block.cc:1")
        self.expect({"tarn/base/block.cc": body.replace("  ++a;\n", "", 1)})

    def test_python_function_length(self):
        body = "def f():\n" + "    pass\n" * 70
        self.expect({"tools/x.py": body}, "length tools/x.py:1")

    def test_line_length(self):
        self.in_source("// " + "x" * 98, "length")
        self.in_source("// " + "x" * 97)
        self.in_source("// https://example.org/" + "x" * 98)

    def test_units_in_a_folder(self):
        many = {f"tarn/base/a{chr(97 + i // 26)}{chr(97 + i % 26)}.cc": "" for i in range(30)}
        self.expect(many, "length tarn/base:1")
        many.popitem()
        self.expect(many)

    def test_banned_file_names(self):
        for name in ("string_util", "common", "manager", "block_helpers", "new_block", "block2"):
            self.expect({f"tarn/base/{name}.cc": ""}, f"name tarn/base/{name}.cc:1")
        self.expect({"tarn/base/Block.cc": ""}, "name tarn/base/Block.cc:1")
        self.expect({"tarn/base/utility_function_model.cc": ""},
                    "name tarn/base/utility_function_model.cc:1")  # fmt: skip

    def test_banned_type_names(self):
        for name in ("BlockManager", "BlockImpl", "NewBlock", "BlockInfo", "Data", "Block2"):
            self.in_source(f"class {name} final : public Block {{}};", "name")
            self.in_source(f"using {name} = int;", "name")
        self.in_source("enum class BlockUtil : int { kA };", "name")
        self.in_source("struct DataFile {}; struct Renewal {}; struct UuidV7 {};")
        self.in_source("class SchemaManager;")

    def test_banned_calls(self):
        self.in_source("auto t = std::chrono::system_clock::now();", "call")
        self.in_source('void F() { std::cout << "x"; }', "call")
        self.in_source('void F() { printf("x"); }', "call")
        self.in_source('void F() { std::fprintf(stderr, "x"); }', "call")
        self.in_source("int F() { return rand(); }", "call")
        self.in_source("void F() { throw Oops(); }", "call")
        self.in_source("int F() { return snprintf(b, 2, f) + operand(3) + x.rand(); }")
        self.in_source('const char* k = "throw std::cout rand(";')
        self.in_source("// never throw, never rand()")
        self.expect({"tarn/base/clock.cc": "auto t = std::chrono::system_clock::now();\n"})
        include = CLEAN["tarn/base/block_test.cc"]
        self.expect({"tarn/base/block_test.cc": include + "void F() { throw 1; }\n"})
        self.expect({"cmd/tarn/main.cc": "int main() { std::cerr << 1; }\n"})

    def test_test_without_a_source(self):
        self.expect({"tarn/base/orphan_test.cc": ""}, "test-name tarn/base/orphan_test.cc:1")
        self.expect({"tarn/base/block_model_test.cc": ""})

    def test_header_opening(self):
        self.expect({"tarn/base/block.h": "#pragma once\nstruct Block;\n"},
                    "header tarn/base/block.h:1")  # fmt: skip
        self.expect({"tarn/base/block.h": "// A block of bytes.\nstruct Block;\n"},
                    "header tarn/base/block.h:1")  # fmt: skip
        self.expect({"tarn/base/block.h": "#pragma once\n// A block of bytes.\n"})

    def test_dead_files(self):
        self.expect({"tarn/base/lonely.h": HEADER}, "dead-file tarn/base/lonely.h:1")
        self.expect({"bench/lonely.cc": ""}, "dead-file bench/lonely.cc:1")
        tree = tidy.Tree(CLEAN | {"bench/x.cc": ""},
                         {"bench/CMakeLists.txt", "cmd/tarn/CMakeLists.txt"})  # fmt: skip
        self.assertEqual(tidy.check(tree), [])

    def test_dead_links(self):
        page = "# Page\n\n## A heading, here\n\n"
        self.expect({"docs/a.md": page + "[x](b.md)\n"}, "docs docs/a.md:5")
        self.expect({"docs/a.md": page + "[x](#no)\n"}, "docs docs/a.md:5")
        self.expect({"docs/a.md": page + "[x](#a-heading-here) [y](../tarn/base) [z](a.md)\n"})
        self.expect({"docs/a.md": page + "[x](https://example.org/b.md)\n"})
        self.expect({"docs/a.md": page + "```\n[x](b.md)\n```\n"})
        self.expect({"docs/a.md": "no title\n"}, "docs docs/a.md:1")

    def test_decision_numbers(self):
        first = {"docs/decisions/0001-a.md": "# A\n"}
        self.expect(first | {"docs/decisions/0002-b.md": "# B\n"})
        self.expect(first | {"docs/decisions/0003-b.md": "# B\n"},
                    "docs docs/decisions/0003-b.md:1")  # fmt: skip

    def test_whitespace(self):
        self.expect({"dev": "echo"}, "whitespace dev:1")
        self.expect({"dev": "echo \n"}, "whitespace dev:1")
        self.expect({"dev": "echo\n\n"}, "whitespace dev:2")
        self.in_source("\tint x;", "whitespace")

    def test_registry_hosts(self):
        for host in ("pypi" + ".org", "registry.npmjs" + ".org", "repo1.maven" + ".org",
                     "deb.debian" + ".org", "static.crates" + ".io"):  # fmt: skip
            self.expect({"dev": f"fetch {host}/x\n"}, "host dev:1")

    def test_unfinished_marks(self):
        self.in_source("// FIX" + "ME later", "todo")
        self.in_source("// TO" + "DO later", "todo")
        self.in_source("// TO" + "DO: Read pages in parallel once the pool allows it.")

    def test_broken_python(self):
        self.expect({"tools/x.py": "def f(:\n"}, "python tools/x.py:1")

    def test_exceptions(self):
        throwing = {"tarn/base/block.cc": "void F() { throw 1; }\n"}
        listed = "call tarn/base/block.cc  # the library asks for exceptions\n"
        self.expect(throwing | {tidy.EXCEPTIONS: listed})
        self.expect({tidy.EXCEPTIONS: listed}, f"exception {tidy.EXCEPTIONS}:1")
        self.expect(throwing | {tidy.EXCEPTIONS: "call tarn/base/block.cc\n"},
                    "call tarn/base/block.cc:1", f"exception {tidy.EXCEPTIONS}:1")  # fmt: skip


class CppTextTest(unittest.TestCase):
    def heads(self, text: str) -> list[str]:
        return [f"{f.head}|{f.lines}" for f in cpp_text.functions(cpp_text.blank(text))]

    def test_blank_keeps_columns(self):
        text = 'a("}\\"", \'{\', 1\'000, R"x(} ")x"); // }\n/* {\n */ b'
        blanked = cpp_text.blank(text)
        self.assertEqual(len(blanked), len(text))
        self.assertNotIn("{", blanked)
        self.assertNotIn("}", blanked)
        self.assertIn("1'000", blanked)
        self.assertTrue(blanked.endswith("b"))

    def test_functions_in_containers(self):
        text = """
namespace a::b {
template <class T, template <class> class U>
class [[nodiscard]] C final : public D<T> {
 public:
  explicit C(int x) : x_(x) {}
 private:
  struct Inner {
    bool operator()(int a) const {
      return a > 0;
    }
  };
  int x_{3};
};
extern "C" {
void G() {}
}
}  // namespace a::b
"""
        heads = ["public: explicit C(int x) : x_(x)|2", "bool operator()(int a) const|3",
                 "void G()|1"]  # fmt: skip
        self.assertEqual(self.heads(text), heads)

    def test_braces_of_literals_are_no_functions(self):
        text = "const int k[] = {\n1,\n2};\nconst auto t = Make({\n1});\nX(A, In(B{1}, B{2}));\n"
        self.assertEqual(self.heads(text), [])

    def test_lambda_variable_is_a_function(self):
        text = "const auto f = [](int a) {\n  return a;\n};\n"
        self.assertEqual(self.heads(text), ["const auto f = [](int a)|3"])

    def test_nested_blocks_belong_to_their_function(self):
        text = 'TEST(A, B) {\n  for (;;) {\n    if (x) { y("}"); }\n  }\n}\n'
        text += "#define Z {\nvoid H() {}\n"
        self.assertEqual(self.heads(text), ["TEST(A, B)|5", "void H()|1"])

    def test_operators_and_trailing_returns(self):
        text = "bool operator==(A a, B b) {\n}\nauto F() -> std::vector<int> {\n}\n"
        self.assertEqual(
            self.heads(text), ["bool operator==(A a, B b)|2", "auto F() -> std::vector<int>|2"]
        )


if __name__ == "__main__":
    unittest.main()
