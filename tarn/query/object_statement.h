// ObjectStatement: CREATE SCHEMA, DROP SCHEMA, DROP TABLE and DROP VIEW of people.
//
// A schema is a folder of the tree. What a pipeline made is dropped with its pipeline, never alone:
// its task would find a table that lacks what it wrote.
#pragma once

#include "tarn/access/principal.h"
#include "tarn/base/status.h"
#include "tarn/query/change_statement.h"
#include "tarn/query/run_sql.h"

namespace tarn::query {

/// Makes an empty folder. The caller must be Editor of the folder or project around it, which is
/// there already. Errors: kAlreadyExists, but for IF NOT EXISTS; kNotFound for the parent;
/// kPermissionDenied.
Status CreateSchema(const CreateSchemaStatement& statement, const QueryRequest& request,
                    const access::Principal& principal, const QueryDeps& deps);

/// Takes a table or view out of the catalog and of the tree, or removes a folder without anything
/// in it. The caller must be Editor of it. The files of a table stay, but with PURGE, which needs
/// the role Owner. Errors: kNotFound, but for IF EXISTS; kInvalidArgument for another kind of
/// object; kConflict, reason FolderNotEmpty, for a folder that is not; kPermissionDenied, also for
/// what belongs to a pipeline, naming it.
Status DropObject(const DropStatement& statement, const QueryRequest& request,
                  const access::Principal& principal, const QueryDeps& deps);

}  // namespace tarn::query
