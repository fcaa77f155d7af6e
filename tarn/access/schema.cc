#include "tarn/access/schema.h"

#include "tarn/base/uuid.h"

namespace tarn::access {

namespace {

constexpr std::string_view kPrincipals = R"(
CREATE TABLE access_stamp (
  one INTEGER NOT NULL PRIMARY KEY,
  stamp BIGINT NOT NULL
);
INSERT INTO access_stamp (one, stamp) VALUES (1, 0);
CREATE TABLE access_organizations (
  rid TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  marking_id TEXT NOT NULL
);
CREATE TABLE access_users (
  id TEXT NOT NULL PRIMARY KEY,
  username TEXT NOT NULL,
  given_name TEXT NOT NULL,
  family_name TEXT NOT NULL,
  email TEXT NOT NULL,
  kind INTEGER NOT NULL,
  status INTEGER NOT NULL,
  created BIGINT NOT NULL,
  client_secret_hash BYTEA
);
CREATE UNIQUE INDEX access_users_by_name ON access_users (username) WHERE status = 0;
CREATE TABLE access_groups (
  id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  description TEXT NOT NULL,
  created BIGINT NOT NULL
);
CREATE TABLE access_members (
  group_id TEXT NOT NULL REFERENCES access_groups (id),
  principal_id TEXT NOT NULL,
  kind INTEGER NOT NULL,
  expiration BIGINT,
  PRIMARY KEY (group_id, principal_id)
);
CREATE INDEX access_members_by_principal ON access_members (principal_id);
)";

constexpr std::string_view kRights = R"(
CREATE TABLE access_tokens (
  id TEXT NOT NULL PRIMARY KEY,
  hash BYTEA NOT NULL UNIQUE,
  user_id TEXT NOT NULL REFERENCES access_users (id),
  name TEXT NOT NULL,
  scopes TEXT NOT NULL,
  created BIGINT NOT NULL,
  expires BIGINT,
  revoked BIGINT
);
CREATE INDEX access_tokens_by_user ON access_tokens (user_id);
CREATE TABLE access_grants (
  resource TEXT NOT NULL,
  principal_id TEXT NOT NULL,
  role INTEGER NOT NULL,
  granted_by TEXT NOT NULL,
  granted BIGINT NOT NULL,
  PRIMARY KEY (resource, principal_id, role)
);
CREATE INDEX access_grants_by_principal ON access_grants (principal_id);
CREATE TABLE access_audit (
  id INTEGER PRIMARY KEY,
  time BIGINT NOT NULL,
  user_id TEXT NOT NULL,
  token_id TEXT NOT NULL,
  action TEXT NOT NULL,
  resource TEXT NOT NULL,
  outcome INTEGER NOT NULL,
  details TEXT NOT NULL
);
)";

constexpr std::string_view kOrganizations = R"(
ALTER TABLE access_organizations ADD COLUMN host TEXT NOT NULL DEFAULT '';
ALTER TABLE access_organizations ADD COLUMN created BIGINT NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX access_organizations_by_name ON access_organizations (name);
ALTER TABLE access_groups ADD COLUMN attributes TEXT NOT NULL DEFAULT '{}';
CREATE TABLE access_group_organizations (
  group_id TEXT NOT NULL REFERENCES access_groups (id),
  organization TEXT NOT NULL REFERENCES access_organizations (rid),
  PRIMARY KEY (group_id, organization)
);
)";

}  // namespace

std::vector<metastore::Migration> Migrations() {
  return {{.room = "access", .version = 1, .sql = std::string(kPrincipals).append(kRights)},
          {.room = "access", .version = 2, .sql = std::string(kOrganizations)}};
}

Result<int64_t> ReadAccessStamp(metastore::SqlTransaction& sql) {
  int64_t stamp = 0;
  TARN_RETURN_IF_ERROR(sql.Query("SELECT stamp FROM access_stamp WHERE one = 1", {},
                                 [&](const metastore::SqlRow& row) {
                                   stamp = row.Int(0);
                                   return Result<metastore::RowAction>(metastore::RowAction::kStop);
                                 }));
  return stamp;
}

Status RenewAccessStamp(metastore::SqlTransaction& sql) {
  int64_t stamp = 0;
  FillSecureRandom(reinterpret_cast<uint8_t*>(&stamp), sizeof(stamp));
  return sql.Execute("UPDATE access_stamp SET stamp = ?1 WHERE one = 1", {stamp}).status();
}

}  // namespace tarn::access
