// The tables of this room. SQL that SQLite and PostgreSQL share, but for three words that the
// PostgreSQL side replaces: AUTOINCREMENT (identity), BLOB (bytea), WITHOUT ROWID (nothing).
#include "tarn/dataset/dataset_store.h"

namespace tarn::dataset {

namespace {

constexpr const char* kVersion1 = R"sql(
CREATE TABLE dataset_datasets (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  uuid BLOB NOT NULL UNIQUE,
  base_uri TEXT NOT NULL,
  inherit_schema INTEGER NOT NULL DEFAULT 0,
  validate INTEGER NOT NULL DEFAULT 0,
  idle_abort_seconds INTEGER,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  deleted_at INTEGER
);
CREATE TABLE dataset_branches (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  dataset_id INTEGER NOT NULL,
  name BLOB NOT NULL,
  parent_id INTEGER,
  ancestry TEXT NOT NULL,
  head_id INTEGER,
  open_id INTEGER,
  line INTEGER NOT NULL DEFAULT 0,
  next_ordinal INTEGER NOT NULL DEFAULT 0,
  moved_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  UNIQUE (dataset_id, name)
);
CREATE TABLE dataset_transactions (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  uuid BLOB NOT NULL UNIQUE,
  dataset_id INTEGER NOT NULL,
  branch_id INTEGER NOT NULL,
  type INTEGER NOT NULL,
  state INTEGER NOT NULL,
  shared INTEGER NOT NULL DEFAULT 0,
  parent_id INTEGER,
  depth INTEGER NOT NULL,
  jump_id INTEGER,
  jump_depth INTEGER NOT NULL,
  view_start_id INTEGER,
  view_start_depth INTEGER NOT NULL,
  root INTEGER NOT NULL,
  line INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  lineage TEXT NOT NULL,
  base_overwritten INTEGER NOT NULL,
  base_removed INTEGER NOT NULL,
  file_count INTEGER NOT NULL DEFAULT 0,
  overwritten_count INTEGER NOT NULL DEFAULT 0,
  removed_count INTEGER NOT NULL DEFAULT 0,
  size_bytes INTEGER NOT NULL DEFAULT 0,
  by_retention INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  touched_at INTEGER NOT NULL,
  closed_at INTEGER,
  created_by TEXT NOT NULL,
  record TEXT,
  provenance TEXT
);
CREATE INDEX dataset_transactions_of_dataset ON dataset_transactions (dataset_id, id);
CREATE TABLE dataset_lines (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  dataset_id INTEGER NOT NULL,
  checkpoint_of INTEGER,
  base TEXT,
  published INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX dataset_lines_of_dataset ON dataset_lines (dataset_id, id);
CREATE TABLE dataset_files (
  root INTEGER NOT NULL,
  path BLOB NOT NULL,
  line INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  operation INTEGER NOT NULL,
  replaces INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  managed INTEGER NOT NULL,
  checksum INTEGER,
  row_count INTEGER,
  transaction_uuid BLOB NOT NULL,
  location TEXT NOT NULL,
  etag TEXT,
  statistics BLOB,
  PRIMARY KEY (root, path, line, ordinal)
) WITHOUT ROWID;
CREATE INDEX dataset_files_of_transaction ON dataset_files (line, ordinal, path);
CREATE TABLE dataset_reflog (
  branch_id INTEGER NOT NULL,
  moved_at INTEGER NOT NULL,
  from_id INTEGER,
  to_id INTEGER,
  moved_by TEXT NOT NULL,
  PRIMARY KEY (branch_id, moved_at)
) WITHOUT ROWID;
CREATE TABLE dataset_schemas (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  dataset_id INTEGER NOT NULL,
  branch_id INTEGER NOT NULL,
  transaction_id INTEGER NOT NULL,
  version BLOB NOT NULL UNIQUE,
  json TEXT NOT NULL,
  put_at INTEGER NOT NULL,
  put_by TEXT NOT NULL
);
CREATE INDEX dataset_schemas_of_branch ON dataset_schemas (branch_id, transaction_id, id);
CREATE TABLE dataset_checkpoint_requests (
  branch_id INTEGER PRIMARY KEY,
  dataset_id INTEGER NOT NULL,
  requested_at INTEGER NOT NULL
);
CREATE TABLE dataset_garbage (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  dataset_id INTEGER,
  line INTEGER,
  ordinal INTEGER
)
)sql";

// Retention, tags, protected branches, and what is left of deleted datasets.
constexpr const char* kVersion2 = R"sql(
ALTER TABLE dataset_transactions ADD COLUMN swept_at INTEGER;
CREATE INDEX dataset_transactions_of_root ON dataset_transactions (root, id);
ALTER TABLE dataset_branches ADD COLUMN protected INTEGER NOT NULL DEFAULT 0;
CREATE TABLE dataset_tags (
  dataset_id INTEGER NOT NULL,
  name BLOB NOT NULL,
  transaction_id INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  PRIMARY KEY (dataset_id, name)
) WITHOUT ROWID;
CREATE TABLE dataset_remains (
  uuid BLOB PRIMARY KEY,
  base_uri TEXT NOT NULL,
  deleted_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE dataset_retention_policies (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  json TEXT NOT NULL,
  put_at INTEGER NOT NULL,
  put_by TEXT NOT NULL
);
CREATE TABLE dataset_retention_marks (
  transaction_id INTEGER PRIMARY KEY,
  dataset_id INTEGER NOT NULL,
  policy_id INTEGER NOT NULL,
  marked_at INTEGER NOT NULL,
  sweep_at INTEGER NOT NULL
);
CREATE INDEX dataset_retention_marks_due ON dataset_retention_marks (sweep_at, transaction_id);
CREATE TABLE dataset_retention_kept (
  transaction_id INTEGER PRIMARY KEY,
  dataset_id INTEGER NOT NULL,
  kept_at INTEGER NOT NULL,
  kept_by TEXT NOT NULL
)
)sql";

// What a merge took in: the second parent of its transaction.
constexpr const char* kVersion3 = "ALTER TABLE dataset_transactions ADD COLUMN merged_id INTEGER";

// Lists of changed paths instead of an index of file rows by transaction. Copies of checkpoints
// have no list.
constexpr const char* kVersion4 = R"sql(
CREATE TABLE dataset_changes (
  line INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  first_path BLOB NOT NULL,
  replaced INTEGER NOT NULL,
  more BLOB,
  PRIMARY KEY (line, ordinal, first_path)
) WITHOUT ROWID;
INSERT INTO dataset_changes (line, ordinal, first_path, replaced)
  SELECT f.line, f.ordinal, f.path, CASE WHEN f.operation = 0 THEN f.replaces ELSE 0 END
  FROM dataset_files f WHERE f.root <> f.line OR NOT EXISTS (SELECT 1 FROM dataset_lines l WHERE
  l.id = f.line AND l.checkpoint_of IS NOT NULL) ORDER BY f.line, f.ordinal, f.path;
DROP INDEX dataset_files_of_transaction;
ALTER TABLE dataset_garbage ADD COLUMN root INTEGER;
UPDATE dataset_garbage SET root = COALESCE((SELECT t.root FROM dataset_transactions t WHERE
  t.line = dataset_garbage.line AND t.ordinal = dataset_garbage.ordinal), line)
  WHERE line IS NOT NULL
)sql";

}  // namespace

std::vector<metastore::Migration> Migrations() {
  return {{.room = "dataset", .version = 1, .sql = kVersion1},
          {.room = "dataset", .version = 2, .sql = kVersion2},
          {.room = "dataset", .version = 3, .sql = kVersion3},
          {.room = "dataset", .version = 4, .sql = kVersion4}};
}

}  // namespace tarn::dataset
