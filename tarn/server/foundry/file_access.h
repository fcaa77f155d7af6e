// Files behind the routes: which view a request means, and the bytes in both directions.
#pragma once

#include <string>
#include <string_view>

#include "tarn/server/foundry/foundry_api.h"

namespace tarn::server::foundry {

/// The view that branchName, startTransactionRid and endTransactionRid select, after checking that
/// the caller may read it: Viewer, and Editor for the files of an OPEN transaction.
/// Errors: DatasetNotFound, `denial`, InvalidParameterCombination, InvalidBranchName,
/// TransactionNotFound.
Result<dataset::ViewSelector> AuthorizeRead(const FoundryDeps& deps, const RequestContext& context,
                                            const dataset::DatasetRid& dataset,
                                            const Denial& denial);

/// The same for the rows of a table, which branchName may name beside the transactions.
Result<dataset::ViewSelector> AuthorizeTableRead(const FoundryDeps& deps,
                                                 const RequestContext& context,
                                                 const dataset::DatasetRid& dataset,
                                                 const Denial& denial);

/// One file of the view, read in one SQL transaction. Errors: InvalidFilePath on an empty path;
/// FileNotFoundOnBranch, FileNotFoundOnTransactionRange.
Result<dataset::File> StatIn(const FoundryDeps& deps, const dataset::DatasetRid& dataset,
                             const dataset::ViewSelector& selector, std::string_view path);

/// Streams a file's bytes: 200, 206 for one range, 304 for an ETag that the client has. Never
/// rendered by a browser as part of this origin.
Result<http::Response> ContentResponse(storage::ObjectStore& store,
                                       const dataset::DatasetRid& dataset,
                                       const dataset::File& file, const http::Headers& request);

/// Streams the request's body into the store, then makes it part of the OPEN transaction that the
/// query names, or of a transaction of its own that is committed at once. On failure nothing of it
/// is visible or left open.
Result<dataset::File> UploadFile(const FoundryDeps& deps, RequestContext& context,
                                 const dataset::DatasetRid& dataset);

}  // namespace tarn::server::foundry
