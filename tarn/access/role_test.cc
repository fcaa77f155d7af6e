#include "tarn/access/role.h"

#include "test/support/matchers.h"

namespace tarn::access {
namespace {

TEST(RoleTest, NamesAndIdentifiersRoundTrip) {
  for (const Role role : {Role::kDiscoverer, Role::kViewer, Role::kEditor, Role::kOwner}) {
    EXPECT_THAT(ParseRole(RoleId(role)), IsOkAndHolds(role));
    EXPECT_THAT(ParseRole(RoleName(role)), IsOkAndHolds(role));
  }
  EXPECT_EQ(RoleId(Role::kOwner), "compass:manage");
  EXPECT_EQ(RoleId(Role::kNone), "");
  EXPECT_LT(Role::kViewer, Role::kEditor);
}

TEST(RoleTest, OtherTextsAreRefused) {
  for (const char* text : {"", "None", "owner", "compass:", "compass:manage "}) {
    EXPECT_EQ(ParseRole(text).status().reason(), "InvalidRoleIds") << text;
  }
  EXPECT_EQ(ParseRole("boss\"").status().details(), R"({"requestedRoleIds":["boss\""]})");
}

}  // namespace
}  // namespace tarn::access
