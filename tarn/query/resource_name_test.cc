#include "tarn/query/resource_name.h"

#include "tarn/query/query_fixture.h"

namespace tarn::query {

namespace {

class ResourceNameTest : public QueryFixture {
 protected:
  Result<tree::Node> Find(const std::vector<std::string>& parts,
                          std::vector<std::string> folders = {}) {
    std::optional<Result<tree::Node>> found;
    const Status status = database_->Read([&](metastore::SqlTransaction& sql) {
      found = FindResource(
          sql,
          {.principal = admin_, .authorizer = authorizer_, .project = project_, .folders = folders},
          parts);
      return Status::Ok();
    });
    return status.ok() ? *found : Result<tree::Node>(status);
  }

  Result<tree::Node> Project(const std::string& name) {
    std::optional<Result<tree::Node>> found;
    const Status status = database_->Read([&](metastore::SqlTransaction& sql) {
      found = FindProject(sql, name);
      return Status::Ok();
    });
    return status.ok() ? *found : Result<tree::Node>(status);
  }

  Status Make(const Rid& parent, const std::string& name, tree::NodeType type,
              Rid* made = nullptr) {
    return database_->Write([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(
          const tree::Node node,
          tree_.Create(sql, {.parent = parent, .name = name, .type = type, .by = "me"}));
      if (made != nullptr) {
        *made = node.rid;
      }
      return Status::Ok();
    });
  }
};

TEST_F(ResourceNameTest, ShortNameThatFitsSeveralNamesThem) {
  ASSERT_OK_AND_ASSIGN(const dataset::DatasetRid one, MakeDataset("landing", "orders"));
  ASSERT_OK(MakeDataset("shop", "orders"));
  EXPECT_THAT(Find({"orders"}), FailsWith(ErrorCode::kInvalidArgument,
                                          "/Default/default/landing/orders (dataset), "
                                          "/Default/default/shop/orders (dataset)"));
  ASSERT_OK_AND_ASSIGN(const tree::Node beside, Find({"orders"}, {"landing"}));
  EXPECT_EQ(beside.rid, one.ToRid());
  ASSERT_OK_AND_ASSIGN(const tree::Node qualified, Find({"landing", "orders"}));
  EXPECT_EQ(qualified.rid, one.ToRid());
}

TEST_F(ResourceNameTest, NestedFoldersAreParts) {
  Rid outer;
  Rid inner;
  Rid dataset;
  ASSERT_OK(Make(project_, "a", tree::NodeType::kFolder, &outer));
  ASSERT_OK(Make(outer, "b", tree::NodeType::kFolder, &inner));
  ASSERT_OK(Make(inner, "t", tree::NodeType::kDataset, &dataset));
  ASSERT_OK_AND_ASSIGN(const tree::Node found, Find({"a", "b", "t"}));
  EXPECT_EQ(found.rid, dataset);
  EXPECT_THAT(Find({"a", "b"}), FailsWith(ErrorCode::kInvalidArgument, "folder"));
  EXPECT_THAT(Find({"a", "x", "t"}), FailsWith(ErrorCode::kNotFound, "a.x.t"));
}

TEST_F(ResourceNameTest, TrashIsNotRead) {
  ASSERT_OK_AND_ASSIGN(const dataset::DatasetRid rid, MakeDataset("landing", "orders"));
  ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> folder,
                          tree::FindChild(sql, project_, "landing"));
    return tree_.Trash(sql, folder->rid, "me");
  }));
  EXPECT_THAT(Find({rid.ToString()}), FailsWith(ErrorCode::kNotFound, "trash"));
  EXPECT_THAT(Find({"landing", "orders"}), Fails(ErrorCode::kNotFound));
}

TEST_F(ResourceNameTest, ProjectsAreFoundByNamePathAndRid) {
  for (const std::string& name : {std::string("default"), std::string("/Default/default"),
                                  std::string("Default/default"), project_.ToString()}) {
    ASSERT_OK_AND_ASSIGN(const tree::Node node, Project(name));
    EXPECT_EQ(node.rid, project_) << name;
  }
  EXPECT_THAT(Project("moon"), FailsWith(ErrorCode::kNotFound, "moon"));
  EXPECT_THAT(Project("/Default"), Fails(ErrorCode::kNotFound));
  Rid space;
  ASSERT_OK(Make(tree::RootRid(), "Other", tree::NodeType::kSpace, &space));
  ASSERT_OK(Make(space, "default", tree::NodeType::kProject));
  EXPECT_THAT(Project("default"), FailsWith(ErrorCode::kInvalidArgument, "Space/default"));
  EXPECT_OK(Project("Other/default"));
}

}  // namespace

}  // namespace tarn::query
