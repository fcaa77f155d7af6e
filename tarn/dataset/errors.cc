#include "tarn/dataset/errors.h"

#include <string>

#include "tarn/base/json_text.h"

namespace tarn::dataset {

namespace {

std::string TransactionDetails(const DatasetRid& dataset, const TransactionRid& rid,
                               std::string_view name, std::string_view value) {
  return JsonObject(
      {{"datasetRid", dataset.ToString()}, {"transactionRid", rid.ToString()}, {name, value}});
}

}  // namespace

Status DatasetNotFound(const DatasetRid& dataset) {
  return Status::NotFound("there is no dataset " + dataset.ToString())
      .WithReason("DatasetNotFound", JsonObject({{"datasetRid", dataset.ToString()}}));
}

Status BranchNotFound(const DatasetRid& dataset, std::string_view branch) {
  return Status::NotFound("dataset " + dataset.ToString() + " has no branch " + JsonString(branch))
      .WithReason("BranchNotFound",
                  JsonObject({{"datasetRid", dataset.ToString()}, {"branchName", branch}}));
}

Status TransactionNotFound(const DatasetRid& dataset, const TransactionRid& rid) {
  return Status::NotFound("dataset " + dataset.ToString() + " has no transaction " + rid.ToString())
      .WithReason("TransactionNotFound", JsonObject({{"datasetRid", dataset.ToString()},
                                                     {"transactionRid", rid.ToString()}}));
}

Status TransactionNotOpen(const DatasetRid& dataset, const TransactionRid& rid,
                          TransactionState state) {
  const std::string_view name = TransactionStateName(state);
  return Status::InvalidArgument("transaction " + rid.ToString() + " is " + std::string(name) +
                                 ", not OPEN; start another one")
      .WithReason("TransactionNotOpen",
                  TransactionDetails(dataset, rid, "transactionStatus", name));
}

Status TransactionNotCommitted(const DatasetRid& dataset, const TransactionRid& rid,
                               TransactionState state) {
  const std::string_view name = TransactionStateName(state);
  return Status::InvalidArgument("transaction " + rid.ToString() + " is " + std::string(name) +
                                 ", not COMMITTED")
      .WithReason("TransactionNotCommitted",
                  TransactionDetails(dataset, rid, "transactionStatus", name));
}

Status TransactionSwept(const DatasetRid& dataset, const TransactionRid& rid) {
  return Status::NotFound("retention took the data of transaction " + rid.ToString() +
                          "; its view can no longer be read")
      .WithReason(
          "TransactionDataRemovedByRetention",
          JsonObject({{"datasetRid", dataset.ToString()}, {"transactionRid", rid.ToString()}}));
}

Status BranchIsProtected(const DatasetRid& dataset, std::string_view branch,
                         std::string_view attempt) {
  return Status::Conflict("branch " + JsonString(branch) + " of dataset " + dataset.ToString() +
                          " is protected: " + std::string(attempt) +
                          " needs its protection taken off first")
      .WithReason("BranchIsProtected",
                  JsonObject({{"datasetRid", dataset.ToString()}, {"branchName", branch}}));
}

Status DefaultBranchStays(const DatasetRid& dataset, std::string_view branch) {
  return Status::Conflict("branch " + JsonString(branch) + " of dataset " + dataset.ToString() +
                          " is its default branch and cannot be deleted: what names no branch "
                          "reads and writes it")
      .WithReason("BranchIsProtected",
                  JsonObject({{"datasetRid", dataset.ToString()}, {"branchName", branch}}));
}

Status InvalidTransactionType(const DatasetRid& dataset, const TransactionRid& rid,
                              TransactionType type, std::string_view fault) {
  const std::string_view name = TransactionTypeName(type);
  return Status::InvalidArgument("transaction " + rid.ToString() + " of type " + std::string(name) +
                                 ": " + std::string(fault))
      .WithReason("InvalidTransactionType",
                  TransactionDetails(dataset, rid, "transactionType", name));
}

Status OpenTransactionAlreadyExists(const DatasetRid& dataset, std::string_view branch) {
  return Status::Conflict("branch " + JsonString(branch) + " of dataset " + dataset.ToString() +
                          " has an OPEN transaction; commit or abort it first")
      .WithReason("OpenTransactionAlreadyExists",
                  JsonObject({{"datasetRid", dataset.ToString()}, {"branchName", branch}}));
}

Status InvalidPageToken(std::string_view token) {
  return Status::InvalidArgument(
             "page token is not one that this listing gave out; start again "
             "without a token")
      .WithReason("InvalidPageToken", JsonObject({{"pageToken", token.substr(0, 16384)}}));
}

Status CheckPageSize(int page_size, int page_size_max) {
  if (page_size >= 1 && page_size <= page_size_max) {
    return Status::Ok();
  }
  const std::string found = std::to_string(page_size);
  return Status::InvalidArgument("page size must be 1 to " + std::to_string(page_size_max) +
                                 ", found " + found)
      .WithReason("InvalidPageSize", "{\"pageSize\":" + found + "}");
}

}  // namespace tarn::dataset
