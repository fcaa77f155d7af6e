// The metastore of a home whose server does not run: export, import, check.
#pragma once

#include <string>

#include "tarn/base/status.h"
#include "tarn/cli/command_line.h"

namespace tarn {

/// Writes everything that the metastore holds to the file (metastore/bundle.h). Files of datasets
/// and tables stay where they are: the bundle names them.
/// Errors: kFailedPrecondition while a server runs on the home; kNotFound without a metastore;
/// those of ExportBundle. Returns what was done, for people.
Result<std::string> ExportMetastore(const cli::MetastoreOptions& options);

/// Makes the metastore of a home that has none from such a file. It is there whole or not at all,
/// also after a crash. Errors: kAlreadyExists when the home has one; those of ImportBundle.
Result<std::string> ImportMetastore(const cli::MetastoreOptions& options);

/// Reads every page, and looks for rows that name missing ones. Errors: kCorruption with what is
/// wrong; kFailedPrecondition when a newer program wrote it.
Result<std::string> CheckMetastore(const cli::MetastoreOptions& options);

}  // namespace tarn
