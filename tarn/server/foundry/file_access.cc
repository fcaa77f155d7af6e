#include "tarn/server/foundry/file_access.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "tarn/base/hash.h"
#include "tarn/base/json_text.h"
#include "tarn/dataset/errors.h"
#include "tarn/dataset/logical_path.h"
#include "tarn/dataset/upload.h"
#include "tarn/server/foundry/byte_range.h"

namespace tarn::server::foundry {

using dataset::DatasetRid;
using dataset::TransactionRid;
using dataset::TransactionState;
using dataset::TransactionType;

namespace {

constexpr size_t kPieceBytes = 256 << 10;

/// What an upload asks for, checked as far as the query alone tells.
struct UploadTarget {
  std::string path;
  std::optional<TransactionRid> transaction;  // Empty: one of its own.
  std::string branch;
  TransactionType type = TransactionType::kUpdate;
};

Denial UploadDenial(const DatasetRid& dataset, std::string_view transaction,
                    std::string_view path) {
  return {.name = "UploadFilePermissionDenied",
          .parameters = {{"datasetRid", dataset.ToString()},
                         {"transactionRid", std::string(transaction)},
                         {"path", std::string(path)}}};
}

Result<UploadTarget> ReadUploadTarget(const FoundryDeps& deps, const RequestContext& context,
                                      const DatasetRid& dataset) {
  UploadTarget target;
  target.path = context.Path("filePath");
  TARN_RETURN_IF_ERROR(dataset::CheckLogicalPath(target.path));
  const std::optional<std::string> transaction = context.query.Find("transactionRid");
  const std::optional<std::string> type = context.query.Find("transactionType");
  if (transaction && (type || context.query.Find("branchName"))) {
    std::vector<std::string> provided = {"transactionRid"};
    for (const char* name : {"branchName", "transactionType"}) {
      if (context.query.Find(name)) {
        provided.emplace_back(name);
      }
    }
    return InvalidParameterCombination({{},
                                        {"branchName"},
                                        {"transactionType"},
                                        {"branchName", "transactionType"},
                                        {"transactionRid"}},
                                       provided);
  }
  TARN_ASSIGN_OR_RETURN(target.branch, BranchNameOf(context));
  if (transaction) {
    TARN_ASSIGN_OR_RETURN(target.transaction, TransactionOf(dataset, *transaction));
  }
  if (type) {
    TARN_ASSIGN_OR_RETURN(target.type, dataset::ParseTransactionType(*type));
    if (target.type == TransactionType::kDelete) {
      return dataset::InvalidTransactionType(dataset, {.uuid = deps.uuids.NextV7()}, target.type,
                                             "files cannot be uploaded");
    }
  }
  return target;
}

/// Refuses before the body is read what would be refused after it; the last word is spoken when
/// the file is registered.
Status CheckUpload(const FoundryDeps& deps, const RequestContext& context,
                   const DatasetRid& dataset, const UploadTarget& target) {
  return deps.database.Read([&](metastore::SqlTransaction& sql) -> Status {
    const TransactionRid rid =
        target.transaction.value_or(TransactionRid{.uuid = deps.uuids.NextV7()});
    TARN_RETURN_IF_ERROR(RequireDataset(deps, sql, context, dataset, access::Role::kEditor,
                                        UploadDenial(dataset, rid.ToString(), target.path)));
    TARN_RETURN_IF_ERROR(RefuseView(sql, dataset));
    if (!target.transaction) {
      TARN_ASSIGN_OR_RETURN(const dataset::Branch branch,
                            deps.datasets.GetBranch(sql, dataset, target.branch));
      return branch.open ? dataset::OpenTransactionAlreadyExists(dataset, target.branch)
                         : Status::Ok();
    }
    TARN_ASSIGN_OR_RETURN(const dataset::Transaction open,
                          deps.datasets.GetTransaction(sql, dataset, rid));
    if (open.state != TransactionState::kOpen) {
      return dataset::TransactionNotOpen(dataset, rid, open.state);
    }
    return open.type == TransactionType::kDelete
               ? dataset::InvalidTransactionType(dataset, rid, open.type,
                                                 "files cannot be uploaded")
               : Status::Ok();
  });
}

Result<dataset::StoredFile> StoreBody(const FoundryDeps& deps, RequestContext& context,
                                      const DatasetRid& dataset, const std::string& path) {
  std::string piece(kPieceBytes, '\0');
  return dataset::UploadFile(
      deps.store, deps.uuids, dataset, path, [&]() -> Result<std::string_view> {
        TARN_ASSIGN_OR_RETURN(const size_t count,
                              context.http.body->Read(piece.data(), piece.size()));
        return std::string_view(piece.data(), count);
      });
}

/// Makes a stored file part of its transaction; returns the transaction.
Result<TransactionRid> Register(const FoundryDeps& deps, const RequestContext& context,
                                const DatasetRid& dataset, const UploadTarget& target,
                                const dataset::StoredFile& file) {
  TransactionRid rid = target.transaction.value_or(TransactionRid{.uuid = deps.uuids.NextV7()});
  const Denial denial = UploadDenial(dataset, rid.ToString(), target.path);
  if (target.transaction) {
    TARN_RETURN_IF_ERROR(deps.database.Write(
        [&](metastore::SqlTransaction& sql) -> Status {
          TARN_RETURN_IF_ERROR(
              RequireDataset(deps, sql, context, dataset, access::Role::kEditor, denial));
          return deps.datasets.RegisterFiles(sql, dataset, rid, std::span(&file, 1));
        },
        metastore::Durability::kLazy));
    return rid;
  }
  dataset::CommitFilesRequest request{.dataset = dataset,
                                      .branch = target.branch,
                                      .type = target.type,
                                      .files = {file},
                                      .commit = {}};
  request.commit.by = context.principal.user_id;
  TARN_RETURN_IF_ERROR(Mutate(deps, context, dataset, denial, "file.upload",
                              metastore::Durability::kDurable,
                              [&](metastore::SqlTransaction& sql) -> Status {
                                TARN_ASSIGN_OR_RETURN(const dataset::Transaction committed,
                                                      deps.datasets.CommitFiles(sql, request));
                                rid = committed.rid;
                                return Status::Ok();
                              }));
  return rid;
}

std::string EtagOf(const dataset::File& file) {
  // Content-addressed where the checksum is known: the same bytes have the same tag everywhere.
  return "\"" +
         (file.checksum ? FormatXxh3(*file.checksum)
                        : file.transaction.ToString() + ":" + file.etag) +
         "\"";
}

/// The key behind a file. Errors: kUnimplemented for objects outside the store.
Result<std::string> KeyOfFile(const storage::ObjectStore& store, const dataset::File& file) {
  if (file.managed) {
    return file.location;
  }
  Result<std::string> key = storage::KeyOf(store, file.location);
  if (!key.ok()) {
    return Status::Unimplemented("read " + JsonString(file.path) + ": its bytes are at " +
                                 file.location + ", outside " + store.base_uri());
  }
  return key;
}

http::BodyProducer StreamRange(std::shared_ptr<storage::ObjectReader> reader, RangeOfBytes range) {
  return [reader = std::move(reader), range](http::BodySink& sink) -> Status {
    std::string piece(std::min<uint64_t>(kPieceBytes, std::max<uint64_t>(range.size_bytes, 1)),
                      '\0');
    for (uint64_t done = 0; done < range.size_bytes;) {
      const size_t wanted =
          static_cast<size_t>(std::min<uint64_t>(piece.size(), range.size_bytes - done));
      TARN_ASSIGN_OR_RETURN(const size_t count,
                            reader->ReadAt(range.first + done, wanted, piece.data()));
      if (count == 0) {
        return Status::Corruption(
            fmt::format("read {}: it ends at byte {}", reader->meta().key, range.first + done));
      }
      TARN_RETURN_IF_ERROR(sink.Write(std::string_view(piece.data(), count)));
      done += count;
    }
    return Status::Ok();
  };
}

/// The view that the query selects, if its parameters are one of `valid`.
Result<dataset::ViewSelector> SelectView(const FoundryDeps& deps, const RequestContext& context,
                                         const DatasetRid& dataset, const Denial& denial,
                                         const std::vector<std::vector<std::string>>& valid) {
  TARN_RETURN_IF_ERROR(RequireViewer(deps, context, dataset, denial));
  std::vector<std::string> provided;
  for (const char* name : {"branchName", "startTransactionRid", "endTransactionRid"}) {
    if (context.query.Find(name)) {
      provided.emplace_back(name);
    }
  }
  if (std::ranges::find(valid, provided) == valid.end()) {
    return InvalidParameterCombination(valid, provided);
  }
  dataset::ViewSelector selector;
  TARN_ASSIGN_OR_RETURN(selector.branch, BranchNameOf(context));
  if (const auto start = context.query.Find("startTransactionRid")) {
    TARN_ASSIGN_OR_RETURN(selector.start, TransactionOf(dataset, *start));
  }
  const auto end = context.query.Find("endTransactionRid");
  if (!end) {
    return selector;
  }
  TARN_ASSIGN_OR_RETURN(selector.end, TransactionOf(dataset, *end));
  TARN_RETURN_IF_ERROR(deps.database.Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const dataset::Transaction transaction,
                          deps.datasets.GetTransaction(sql, dataset, *selector.end));
    return transaction.state == TransactionState::kOpen
               ? RequireDataset(deps, sql, context, dataset, access::Role::kEditor, denial)
               : Status::Ok();
  }));
  return selector;
}

}  // namespace

Result<dataset::ViewSelector> AuthorizeRead(const FoundryDeps& deps, const RequestContext& context,
                                            const DatasetRid& dataset, const Denial& denial) {
  return SelectView(
      deps, context, dataset, denial,
      {{}, {"branchName"}, {"endTransactionRid"}, {"startTransactionRid", "endTransactionRid"}});
}

Result<dataset::ViewSelector> AuthorizeTableRead(const FoundryDeps& deps,
                                                 const RequestContext& context,
                                                 const DatasetRid& dataset, const Denial& denial) {
  return SelectView(deps, context, dataset, denial,
                    {{},
                     {"branchName"},
                     {"endTransactionRid"},
                     {"branchName", "endTransactionRid"},
                     {"startTransactionRid", "endTransactionRid"},
                     {"branchName", "startTransactionRid", "endTransactionRid"}});
}

Result<dataset::File> StatIn(const FoundryDeps& deps, const DatasetRid& dataset,
                             const dataset::ViewSelector& selector, std::string_view path) {
  if (path.empty()) {
    return dataset::CheckLogicalPath(path);
  }
  dataset::File file;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const dataset::FileView view,
                          deps.datasets.ResolveView(sql, dataset, selector));
    TARN_ASSIGN_OR_RETURN(file, deps.datasets.StatFile(sql, view, path));
    return Status::Ok();
  }));
  return file;
}

Result<http::Response> ContentResponse(storage::ObjectStore& store, const DatasetRid& dataset,
                                       const dataset::File& file, const http::Headers& request) {
  const std::string etag = EtagOf(file);
  http::Response response;
  response.headers = {{"ETag", etag},
                      {"Accept-Ranges", "bytes"},
                      {"Content-Type", "application/octet-stream"},
                      {"Content-Disposition", "attachment"},
                      {"X-Content-Type-Options", "nosniff"}};
  if (request.HasToken("If-None-Match", etag)) {
    response.status = 304;
    return response;
  }
  TARN_ASSIGN_OR_RETURN(const std::string key, KeyOfFile(store, file));
  Result<std::unique_ptr<storage::ObjectReader>> opened = store.OpenReader(key);
  if (opened.status().code() == ErrorCode::kNotFound) {
    return Status::NotFound("read " + JsonString(file.path) + " of dataset " + dataset.ToString() +
                            ": its bytes are gone; retention or somebody removed them")
        .WithReason("FileContentGone",
                    JsonObject({{"datasetRid", dataset.ToString()}, {"filePath", file.path}}));
  }
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<storage::ObjectReader> reader, std::move(opened));
  const auto size_bytes = static_cast<uint64_t>(file.size_bytes);
  RangeOfBytes range{.first = 0, .size_bytes = size_bytes};
  const auto condition = request.Find("If-Range");
  if (const auto field = request.Find("Range"); field && (!condition || *condition == etag)) {
    TARN_ASSIGN_OR_RETURN(const std::optional<RangeOfBytes> part, ParseRange(*field, size_bytes));
    if (part) {
      range = *part;
      response.status = 206;
      response.headers.Set("Content-Range",
                           fmt::format("bytes {}-{}/{}", range.first,
                                       range.first + range.size_bytes - 1, size_bytes));
    }
  }
  response.content_length = range.size_bytes;
  response.producer = StreamRange(std::move(reader), range);
  return response;
}

Result<dataset::File> UploadFile(const FoundryDeps& deps, RequestContext& context,
                                 const DatasetRid& dataset) {
  // Hidden datasets stay hidden whatever else is wrong with the request.
  TARN_RETURN_IF_ERROR(
      RequireViewer(deps, context, dataset,
                    UploadDenial(dataset, TransactionRid{.uuid = deps.uuids.NextV7()}.ToString(),
                                 context.Path("filePath"))));
  TARN_ASSIGN_OR_RETURN(const UploadTarget target, ReadUploadTarget(deps, context, dataset));
  TARN_RETURN_IF_ERROR(CheckUpload(deps, context, dataset, target));
  TARN_ASSIGN_OR_RETURN(const dataset::StoredFile stored,
                        StoreBody(deps, context, dataset, target.path));
  const Result<TransactionRid> registered = Register(deps, context, dataset, target, stored);
  if (!registered.ok()) {
    // In doubt the bytes may be part of a commit; the sweep decides later.
    if (registered.status().code() != ErrorCode::kCommitStateUnknown) {
      const Status ignored = deps.store.Delete(stored.location);
      static_cast<void>(ignored.ok());  // What stays is swept.
    }
    return registered.status();
  }
  dataset::ViewSelector own;
  own.end = *registered;
  own.start = *registered;
  return StatIn(deps, dataset, own, target.path);
}

}  // namespace tarn::server::foundry
