#include "tarn/tree/tree.h"

#include <atomic>
#include <thread>

#include "tarn/access/grant.h"
#include "tarn/access/schema.h"
#include "tarn/metastore/faulty_database.h"
#include "test/support/matchers.h"
#include "test/support/metastore_fixture.h"

namespace tarn::tree {
namespace {

using metastore::SqlTransaction;
using std::chrono::seconds;

class TreeTest : public MetastoreFixture {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(OpenWith({access::Migrations(), Migrations()}));
    ASSERT_OK_AND_ASSIGN(
        project_, In<Rid>([&](SqlTransaction& sql) { return tree_.Bootstrap(sql, "admin"); }));
    ASSERT_FALSE(project_.empty());
  }

  Result<Node> Create(const Rid& parent, const std::string& name,
                      NodeType type = NodeType::kFolder) {
    return In<Node>([&](SqlTransaction& sql) {
      return tree_.Create(sql, {.parent = parent, .name = name, .type = type, .by = "alice"});
    });
  }
  Rid Make(const Rid& parent, const std::string& name, NodeType type = NodeType::kFolder) {
    const Result<Node> node = Create(parent, name, type);
    EXPECT_THAT(node, IsOk());
    return node.ok() ? node->rid : Rid();
  }
  Result<LocatedNode> Locate(const Rid& rid) {
    return In<LocatedNode>([&](SqlTransaction& sql) { return LocateNode(sql, rid); });
  }
  Status Trash(const Rid& rid) {
    return Do([&](SqlTransaction& sql) { return tree_.Trash(sql, rid, "bob"); });
  }
  Status Restore(const Rid& rid) {
    return Do([&](SqlTransaction& sql) { return tree_.Restore(sql, rid, "bob"); });
  }
  Result<Node> Move(const Rid& rid, const Rid& parent) {
    return In<Node>([&](SqlTransaction& sql) { return tree_.Move(sql, rid, parent, "bob"); });
  }
  Result<Node> Rename(const Rid& rid, const std::string& name) {
    return In<Node>([&](SqlTransaction& sql) { return tree_.Rename(sql, rid, name, "bob"); });
  }
  Result<std::vector<Node>> Remove(const Rid& rid) {
    return In<std::vector<Node>>(
        [&](SqlTransaction& sql) { return tree_.PermanentlyDelete(sql, rid); });
  }
  TrashStatus TrashOf(const Rid& rid) {
    const Result<LocatedNode> located = Locate(rid);
    EXPECT_THAT(located, IsOk());
    return located->trash_status;
  }
  Rid SpaceRid() { return Locate(project_)->space; }

  Tree tree_{ids_, clock_};
  Rid project_;
};

TEST_F(TreeTest, BootstrapMakesSpaceAndProjectOnce) {
  ASSERT_OK_AND_ASSIGN(const LocatedNode located, Locate(project_));
  EXPECT_EQ(located.path, "/Default/default");
  EXPECT_EQ(located.node.type, NodeType::kProject);
  EXPECT_EQ(located.node.parent, located.space);
  EXPECT_EQ(located.project, project_);
  EXPECT_THAT(In<Rid>([&](SqlTransaction& sql) { return tree_.Bootstrap(sql, "x"); }),
              IsOkAndHolds(project_));
}

TEST_F(TreeTest, BootstrapRespectsWhatPeopleDidWithTheirSpaces) {
  ASSERT_OK(Rename(SpaceRid(), "Ours"));
  EXPECT_THAT(In<Rid>([&](SqlTransaction& sql) { return tree_.Bootstrap(sql, "x"); }),
              IsOkAndHolds(Rid()));
}

TEST_F(TreeTest, AnEmptySpaceCanBeRemovedAndAFullOneNot) {
  const Rid space = SpaceRid();
  const Status status = Do([&](SqlTransaction& sql) { return tree_.DeleteSpace(sql, space); });
  EXPECT_EQ(status.reason(), "SpaceNotEmpty");
  const Rid other = Make(RootRid(), "Other", NodeType::kSpace);
  EXPECT_OK(Do([&](SqlTransaction& sql) { return tree_.DeleteSpace(sql, other); }));
  EXPECT_THAT(Do([&](SqlTransaction& sql) { return tree_.DeleteSpace(sql, other); }),
              Fails(ErrorCode::kNotFound));
  EXPECT_EQ(Do([&](SqlTransaction& sql) { return tree_.DeleteSpace(sql, project_); }).reason(),
            "SpaceNotFound");
}

TEST_F(TreeTest, CreatesNodesWithWhatWasAskedFor) {
  ASSERT_OK_AND_ASSIGN(const Node node, In<Node>([&](SqlTransaction& sql) {
                         return tree_.Create(sql, {.parent = project_,
                                                   .name = "orders ü",
                                                   .type = NodeType::kDataset,
                                                   .description = "all of them",
                                                   .by = "alice"});
                       }));
  const Node expected{.rid = node.rid,
                      .parent = project_,
                      .name = "orders ü",
                      .type = NodeType::kDataset,
                      .description = "all of them",
                      .created_by = "alice",
                      .created = clock_.Now(),
                      .updated_by = "alice",
                      .updated = clock_.Now()};
  EXPECT_EQ(node, expected);
  EXPECT_THAT(In<Node>([&](SqlTransaction& sql) { return GetNode(sql, node.rid); }),
              IsOkAndHolds(expected));
}

TEST_F(TreeTest, ATakenNameIsToldWithAllItsParameters) {
  const Rid first = Make(project_, "a");
  const Status status = Create(project_, "a", NodeType::kDataset).status();
  EXPECT_THAT(status, Fails(ErrorCode::kAlreadyExists));
  EXPECT_EQ(status.reason(), "ResourceNameAlreadyExists");
  EXPECT_EQ(status.details(), R"({"parentFolderRid":")" + project_.ToString() +
                                  R"(","displayName":"a","resourceName":"a"})");
  EXPECT_OK(Create(project_, "A")) << "names are exact";
  EXPECT_OK(Create(first, "a")) << "unique per folder only";
  const Status project = Create(SpaceRid(), "default", NodeType::kProject).status();
  EXPECT_EQ(project.reason(), "ProjectNameAlreadyExists");
  EXPECT_EQ(project.details(),
            R"({"displayName":"default","spaceRid":")" + SpaceRid().ToString() + R"("})");
}

TEST_F(TreeTest, AGivenRidIsUsedOnce) {
  const Rid rid = NewRid(NodeType::kTable, ids_);
  const auto create = [&](const std::string& name) {
    return In<Node>([&](SqlTransaction& sql) {
      return tree_.Create(sql,
                          {.rid = rid, .parent = project_, .name = name, .type = NodeType::kTable});
    });
  };
  ASSERT_OK_AND_ASSIGN(const Node node, create("a"));
  EXPECT_EQ(node.rid, rid);
  EXPECT_THAT(create("b"), FailsWith(ErrorCode::kAlreadyExists, rid.ToString()));
}

TEST_F(TreeTest, EveryKindHasItsPlace) {
  const Rid folder = Make(project_, "folder");
  const Rid dataset = Make(folder, "dataset", NodeType::kDataset);
  const Rid space = SpaceRid();
  const auto reason = [&](const Rid& parent, NodeType type) {
    return Create(parent, "x", type).status().reason();
  };
  EXPECT_EQ(reason(space, NodeType::kFolder), "CreateFolderOutsideProjectNotSupported");
  EXPECT_EQ(reason(RootRid(), NodeType::kDataset), "CreateFolderOutsideProjectNotSupported");
  EXPECT_EQ(reason(dataset, NodeType::kFolder), "InvalidFolder");
  EXPECT_EQ(reason(project_, NodeType::kProject), "ProjectCreationNotSupported");
  EXPECT_EQ(reason(project_, NodeType::kSpace), "SpaceInvalidArgument");
  EXPECT_EQ(reason(project_, NodeType::kRoot), "SpaceInvalidArgument");
  EXPECT_EQ(reason(NewRid(NodeType::kFolder, ids_), NodeType::kFolder), "FolderNotFound");
  EXPECT_EQ(Create(project_, "a/b").status().reason(), "InvalidDisplayName");
}

TEST_F(TreeTest, OfFiftyThreadsOneCreatesTheName) {
  std::atomic<int> won{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 50; ++i) {
    threads.emplace_back([&] {
      const Status status = Create(project_, "same", NodeType::kDataset).status();
      won += status.ok() ? 1 : 0;
      refused += status.reason() == "ResourceNameAlreadyExists" ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(won, 1);
  EXPECT_EQ(refused, 49);
}

TEST_F(TreeTest, EnsureFolderMakesOneFolder) {
  const auto ensure = [&](const std::string& name) {
    return In<Node>(
        [&](SqlTransaction& sql) { return tree_.EnsureFolder(sql, project_, name, "alice"); });
  };
  ASSERT_OK_AND_ASSIGN(const Node made, ensure("landing"));
  ASSERT_OK_AND_ASSIGN(const Node found, ensure("landing"));
  EXPECT_EQ(made, found);
  Make(project_, "file", NodeType::kDataset);
  EXPECT_EQ(ensure("file").status().reason(), "ResourceNameAlreadyExists");
}

TEST_F(TreeTest, MovingAndRenamingKeepTheRid) {
  const Rid a = Make(project_, "a");
  const Rid b = Make(project_, "b");
  const Rid table = Make(a, "t", NodeType::kTable);
  clock_.Advance(seconds(1));
  ASSERT_OK_AND_ASSIGN(const Node moved, Move(table, b));
  EXPECT_EQ(moved.updated, clock_.Now());
  EXPECT_EQ(moved.updated_by, "bob");
  EXPECT_EQ(Locate(table)->path, "/Default/default/b/t");
  ASSERT_OK(Rename(b, "c"));
  EXPECT_EQ(Locate(table)->path, "/Default/default/c/t");
  EXPECT_OK(Rename(b, "c")) << "its own name is not taken";
  EXPECT_EQ(Rename(b, "a").status().reason(), "ResourceNameAlreadyExists");
  Make(a, "t", NodeType::kView);
  EXPECT_EQ(Move(table, a).status().reason(), "ResourceNameAlreadyExists");
}

TEST_F(TreeTest, MovesThatMakeNoSenseAreRefused) {
  const Rid a = Make(project_, "a");
  const Rid below = Make(a, "below");
  const Rid dataset = Make(project_, "d", NodeType::kDataset);
  EXPECT_EQ(Move(a, below).status().reason(), "CircularDependency");
  EXPECT_EQ(Move(a, a).status().reason(), "CircularDependency");
  EXPECT_EQ(Move(a, dataset).status().reason(), "InvalidParentFolder");
  EXPECT_EQ(Move(a, SpaceRid()).status().reason(), "InvalidParentFolder");
  EXPECT_EQ(Move(project_, Make(RootRid(), "Other", NodeType::kSpace)).status().reason(),
            "InvalidParentFolder");
  EXPECT_EQ(Move(a, NewRid(NodeType::kFolder, ids_)).status().reason(), "FolderNotFound");
  EXPECT_THAT(Move(NewRid(NodeType::kFolder, ids_), a), Fails(ErrorCode::kNotFound));
  EXPECT_THAT(Rename(RootRid(), "x"), Fails(ErrorCode::kNotFound));
}

TEST_F(TreeTest, TheTreeHasALimitedDepth) {
  Rid deepest = project_;
  for (int level = 3; level < kDepthMax; ++level) {
    deepest = Make(deepest, "d");
  }
  EXPECT_THAT(Create(deepest, "one more"),
              FailsWith(ErrorCode::kInvalidArgument, "101 levels deep"));
  const Rid tall = Make(project_, "tall");
  Make(tall, "inner");
  ASSERT_OK_AND_ASSIGN(const LocatedNode located, Locate(deepest));
  EXPECT_THAT(Move(tall, located.node.parent), Fails(ErrorCode::kInvalidArgument));
}

TEST_F(TreeTest, DescribeChangesTheTextsItIsGiven) {
  const Rid a = Make(project_, "a");
  const auto describe = [&](const Tree::Texts& texts) {
    return In<Node>([&](SqlTransaction& sql) { return tree_.Describe(sql, a, texts, "bob"); });
  };
  ASSERT_OK(describe({.description = "short", .documentation = "long"}));
  ASSERT_OK_AND_ASSIGN(const Node node, describe({.description = ""}));
  EXPECT_EQ(node.description, "");
  EXPECT_EQ(node.documentation, "long");
}

TEST_F(TreeTest, TrashingReachesDownAndFreesTheName) {
  const Rid a = Make(project_, "a");
  const Rid inside = Make(a, "t", NodeType::kTable);
  ASSERT_OK(Trash(a));
  EXPECT_OK(Trash(a)) << "again";
  EXPECT_EQ(TrashOf(a), TrashStatus::kDirectlyTrashed);
  EXPECT_EQ(TrashOf(inside), TrashStatus::kAncestorTrashed);
  EXPECT_THAT(Create(a, "x"), Fails(ErrorCode::kFailedPrecondition));
  EXPECT_THAT(Rename(inside, "x"), Fails(ErrorCode::kFailedPrecondition));
  EXPECT_EQ(Restore(inside).reason(), "ResourceNotDirectlyTrashed");
  ASSERT_OK(Create(project_, "a"));
  const Status taken = Restore(a);
  EXPECT_EQ(taken.reason(), "ResourceNameAlreadyExists");
  EXPECT_EQ(TrashOf(a), TrashStatus::kDirectlyTrashed);
}

TEST_F(TreeTest, RestoringAlsoRestoresTrashedAncestors) {
  const Rid a = Make(project_, "a");
  const Rid inside = Make(a, "t", NodeType::kTable);
  ASSERT_OK(Trash(inside));
  ASSERT_OK(Trash(a));
  EXPECT_EQ(TrashOf(inside), TrashStatus::kDirectlyTrashed);
  ASSERT_OK(Restore(inside));
  EXPECT_EQ(TrashOf(inside), TrashStatus::kNotTrashed);
  EXPECT_EQ(TrashOf(a), TrashStatus::kNotTrashed);
  EXPECT_OK(Restore(inside)) << "not in the trash: nothing to do";
}

TEST_F(TreeTest, SpacesAreNotTrashed) {
  EXPECT_EQ(Trash(SpaceRid()).reason(), "TrashingSpaceNotSupported");
  EXPECT_THAT(Trash(NewRid(NodeType::kFolder, ids_)), Fails(ErrorCode::kNotFound));
}

TEST_F(TreeTest, PermanentDeletionTakesTheSubtreeAndItsGrants) {
  const Rid a = Make(project_, "a");
  const Rid b = Make(a, "b");
  const Rid t = Make(b, "t", NodeType::kTable);
  ASSERT_OK(Do([&](SqlTransaction& sql) {
    return access::AddGrant(sql,
                            {.resource = t,
                             .principal_id = std::string(access::kEveryone),
                             .role = access::Role::kViewer},
                            "alice", clock_.Now());
  }));
  EXPECT_EQ(Remove(a).status().reason(), "ResourceNotTrashed");
  ASSERT_OK(Trash(a));
  EXPECT_EQ(Remove(b).status().reason(), "ResourceNotTrashed");
  ASSERT_OK_AND_ASSIGN(const std::vector<Node> removed, Remove(a));
  std::vector<Rid> rids;
  for (const Node& node : removed) {
    rids.push_back(node.rid);
  }
  EXPECT_THAT(rids, ::testing::ElementsAre(t, b, a));
  EXPECT_THAT(Locate(t), Fails(ErrorCode::kNotFound));
  EXPECT_THAT(In<std::vector<access::Grant>>(
                  [&](SqlTransaction& sql) { return access::ListGrants(sql, t); }),
              IsOkAndHolds(::testing::IsEmpty()));
}

TEST_F(TreeTest, EachFailedOperationOfAChangeLeavesTheOldTree) {
  const Rid a = Make(project_, "a");
  const Rid b = Make(a, "b");
  ASSERT_OK(Trash(b));
  ASSERT_OK(Trash(a));
  metastore::FaultyDatabase faulty(*database_);
  int64_t n = 1;
  for (;; ++n) {
    ASSERT_LT(n, 100);
    faulty.FailAt(n, metastore::Fault::kBefore);
    const Status status =
        faulty.Write([&](SqlTransaction& sql) { return tree_.Restore(sql, b, "bob"); });
    if (!faulty.fired()) {
      ASSERT_OK(status);
      break;
    }
    EXPECT_THAT(status, Fails(ErrorCode::kUnavailable)) << n;
    EXPECT_EQ(TrashOf(a), TrashStatus::kDirectlyTrashed) << n;
    EXPECT_EQ(TrashOf(b), TrashStatus::kDirectlyTrashed) << n;
  }
  EXPECT_GT(n, 6);
  EXPECT_EQ(TrashOf(b), TrashStatus::kNotTrashed);
}

}  // namespace
}  // namespace tarn::tree
