#include "tarn/tree/lookup.h"

#include <set>

#include "tarn/access/schema.h"
#include "tarn/base/hash.h"
#include "tarn/tree/tree.h"
#include "test/support/matchers.h"
#include "test/support/metastore_fixture.h"

namespace tarn::tree {
namespace {

using metastore::SqlTransaction;

class LookupTest : public MetastoreFixture {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(OpenWith({access::Migrations(), Migrations()}));
    ASSERT_OK(Do([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(project_, tree_.Bootstrap(sql, "admin"));
      return {};
    }));
  }

  Rid Make(const Rid& parent, const std::string& name, NodeType type = NodeType::kFolder) {
    Rid rid;
    EXPECT_OK(Do([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const Node node,
                            tree_.Create(sql, {.parent = parent, .name = name, .type = type}));
      rid = node.rid;
      return {};
    }));
    return rid;
  }
  void Trash(const Rid& rid) {
    EXPECT_OK(Do([&](SqlTransaction& sql) { return tree_.Trash(sql, rid, "x"); }));
  }
  Result<Rid> AtPath(const std::string& path) {
    Rid rid;
    TARN_RETURN_IF_ERROR(database_->Read([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const Node node, GetByPath(sql, path));
      rid = node.rid;
      return {};
    }));
    return rid;
  }
  Result<ChildrenPage> List(const ChildrenRequest& request) {
    ChildrenPage page;
    TARN_RETURN_IF_ERROR(database_->Read([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(page, ListChildren(sql, request));
      return {};
    }));
    return page;
  }
  static std::vector<std::string> NamesIn(const ChildrenPage& page) {
    std::vector<std::string> names;
    for (const Node& node : page.nodes) {
      names.push_back(node.name);
    }
    return names;
  }

  Tree tree_{ids_, clock_};
  Rid project_;
};

TEST_F(LookupTest, PathsNameWhatIsNotInTheTrash) {
  const Rid folder = Make(project_, "a b");
  const Rid dataset = Make(folder, "%2F ü", NodeType::kDataset);
  EXPECT_THAT(AtPath("/Default/default"), IsOkAndHolds(project_));
  EXPECT_THAT(AtPath("Default/default/a b"), IsOkAndHolds(folder));
  EXPECT_THAT(AtPath("/Default/default/a b/%2F ü"), IsOkAndHolds(dataset));
  EXPECT_THAT(AtPath("/"), IsOkAndHolds(RootRid()));
  Trash(folder);
  EXPECT_EQ(AtPath("/Default/default/a b/%2F ü").status().reason(), "PathNotFound");
}

TEST_F(LookupTest, BadPathsAreToldFromMissingOnes) {
  for (const char* path : {"", "//", "/Default//default", "/Default/", "/nowhere//x"}) {
    EXPECT_EQ(AtPath(path).status().reason(), "InvalidPath") << path;
  }
  for (const char* path : {"/nowhere", "/default/default", "/Default/default/x/y", "/Default/."}) {
    EXPECT_EQ(AtPath(path).status().reason(), "PathNotFound") << path;
  }
  EXPECT_EQ(AtPath("/nowhere").status().details(), R"({"path":"/nowhere"})");
}

TEST_F(LookupTest, TheChainOfAncestorsEndsAtTheRoot) {
  const Rid folder = Make(project_, "f");
  const Rid table = Make(folder, "t", NodeType::kTable);
  ASSERT_OK(database_->Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const LocatedNode located, LocateNode(sql, table));
    EXPECT_THAT(AncestorChain(sql, table), IsOkAndHolds(::testing::ElementsAre(
                                               table, folder, project_, located.space, RootRid())));
    EXPECT_THAT(AncestorChain(sql, RootRid()), IsOkAndHolds(::testing::ElementsAre(RootRid())));
    EXPECT_THAT(AncestorChain(sql, NewRid(NodeType::kTable, ids_)),
                IsOkAndHolds(::testing::IsEmpty()));
    return {};
  }));
}

TEST_F(LookupTest, AncestorsThatDoNotEndAtTheRootAreCorruption) {
  const Rid a = Make(project_, "a");
  const Rid b = Make(a, "b");
  for (const std::string& parent : {b.ToString(), NewRid(NodeType::kFolder, ids_).ToString()}) {
    ASSERT_OK(Do([&](SqlTransaction& sql) {
      return sql.Execute("UPDATE tree_nodes SET parent = ?2 WHERE rid = ?1", {a.ToString(), parent})
          .status();
    }));
    ASSERT_OK(database_->Read([&](SqlTransaction& sql) -> Status {
      EXPECT_THAT(AncestorChain(sql, b), Fails(ErrorCode::kCorruption));
      EXPECT_THAT(LocateNode(sql, b), Fails(ErrorCode::kCorruption));
      return {};
    }));
  }
}

TEST_F(LookupTest, ARowThatIsNoNodeIsCorruption) {
  const Rid a = Make(project_, "a");
  ASSERT_OK(Do([&](SqlTransaction& sql) {
    return sql.Execute("UPDATE tree_nodes SET parent = 'garbage' WHERE rid = ?1", {a.ToString()})
        .status();
  }));
  ASSERT_OK(database_->Read([&](SqlTransaction& sql) -> Status {
    EXPECT_THAT(GetNode(sql, a), FailsWith(ErrorCode::kCorruption, "garbage"));
    return {};
  }));
}

TEST_F(LookupTest, TheRootLocatesItself) {
  ASSERT_OK(database_->Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const LocatedNode root, LocateNode(sql, RootRid()));
    EXPECT_EQ(root.path, "/");
    EXPECT_TRUE(root.space.empty());
    EXPECT_TRUE(root.project.empty());
    return {};
  }));
}

TEST_F(LookupTest, PagesListEveryChildOnceByBytesOfItsName) {
  for (const char* name : {"b", "B", "ä", "a", "a b", "line\nbreak", "_"}) {
    Make(project_, name);
  }
  const std::vector<std::string> sorted = {"B", "_", "a", "a b", "b", "line\nbreak", "ä"};
  for (const int64_t size : {1, 2, 3, 6, 7, 100, 1'000'000}) {
    std::vector<std::string> names;
    ChildrenRequest request{.parent = project_, .page_size = size};
    do {
      ASSERT_OK_AND_ASSIGN(const ChildrenPage page, List(request));
      EXPECT_LE(static_cast<int64_t>(page.nodes.size()), size);
      EXPECT_FALSE(page.nodes.empty()) << "no empty last page";
      for (const std::string& name : NamesIn(page)) {
        names.push_back(name);
      }
      request.page_token = page.next_page_token;
    } while (!request.page_token.empty());
    EXPECT_EQ(names, sorted) << size;
  }
}

TEST_F(LookupTest, PagesStayRightWhileChildrenComeAndGo) {
  const Rid b = Make(project_, "b");
  Make(project_, "d");
  Make(project_, "f");
  ASSERT_OK_AND_ASSIGN(const ChildrenPage first, List({.parent = project_, .page_size = 1}));
  EXPECT_THAT(NamesIn(first), ::testing::ElementsAre("b"));
  Trash(b);
  Make(project_, "a");
  Make(project_, "e");
  ASSERT_OK_AND_ASSIGN(const ChildrenPage rest,
                       List({.parent = project_, .page_token = first.next_page_token}));
  EXPECT_THAT(NamesIn(rest), ::testing::ElementsAre("d", "e", "f"));
}

TEST_F(LookupTest, TheTrashIsListedOnDemand) {
  Trash(Make(project_, "a"));
  Trash(Make(project_, "a"));
  Make(project_, "a");
  ASSERT_OK_AND_ASSIGN(const ChildrenPage page, List({.parent = project_}));
  EXPECT_EQ(page.nodes.size(), 1U);
  std::set<Rid> all;
  ChildrenRequest request{.parent = project_, .page_size = 1, .trashed = Trashed::kInclude};
  do {
    ASSERT_OK_AND_ASSIGN(const ChildrenPage one, List(request));
    all.insert(one.nodes.at(0).rid);
    request.page_token = one.next_page_token;
  } while (!request.page_token.empty());
  EXPECT_EQ(all.size(), 3U) << "three of one name, each listed";
}

TEST_F(LookupTest, BadPagesAreRefused) {
  const Rid other = Make(project_, "x");
  Make(other, "1");
  Make(other, "2");
  ASSERT_OK_AND_ASSIGN(const ChildrenPage page, List({.parent = other, .page_size = 1}));
  const auto reason = [&](const std::string& token) {
    return List({.parent = project_, .page_token = token}).status().reason();
  };
  EXPECT_EQ(reason("?"), "InvalidPageToken");
  EXPECT_EQ(reason(EncodeBase64("1\n" + project_.ToString() + "\nno rid\nx")), "InvalidPageToken");
  EXPECT_EQ(reason(EncodeBase64("1\n" + project_.ToString())), "InvalidPageToken");
  EXPECT_EQ(reason(page.next_page_token), "InvalidPageToken") << "of another folder";
  EXPECT_EQ(List({.parent = project_, .page_size = 0}).status().reason(), "InvalidPageSize");
  EXPECT_EQ(List({.parent = project_, .page_size = -1}).status().details(), R"({"pageSize":-1})");
  EXPECT_EQ(List({.parent = NewRid(NodeType::kFolder, ids_)}).status().reason(), "FolderNotFound");
  EXPECT_EQ(List({.parent = Make(project_, "d", NodeType::kDataset)}).status().reason(),
            "InvalidFolder");
}

}  // namespace
}  // namespace tarn::tree
