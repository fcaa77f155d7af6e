#include "tarn/query/dataset_files.h"

#include <span>

#include <fmt/format.h>

namespace tarn::query {

namespace {

using dataset::File;

bool IsHidden(std::string_view path) {
  const size_t slash = path.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  return name.starts_with('_') || name.starts_with('.');
}

Result<std::string> KeyOfFile(const storage::ObjectStore& store, const File& file) {
  if (file.managed) {
    return file.location;
  }
  Result<std::string> key = storage::KeyOf(store, file.location);
  if (!key.ok()) {
    return Status::Unimplemented(fmt::format("file {} was imported from {}, which SQL cannot read",
                                             file.path, file.location));
  }
  return key;
}

Result<dataset::ViewSelector> SelectorOf(const DatasetRelation& relation) {
  dataset::ViewSelector selector;
  selector.branch = relation.branch;
  selector.start = relation.start;
  if (const auto* time = std::get_if<Timestamp>(&relation.point)) {
    selector.at = *time;
  } else if (const auto* end = std::get_if<dataset::TransactionRid>(&relation.point)) {
    selector.end = *end;
  } else if (const auto* id = std::get_if<SnapshotId>(&relation.point)) {
    return Status::InvalidArgument(fmt::format(
        "snapshot {}: datasets have no snapshots, give a time or a transaction", id->value));
  }
  return selector;
}

}  // namespace

Result<DatasetFiles> ListDatasetFiles(dataset::DatasetStore& datasets, storage::ObjectStore& store,
                                      const DatasetRelation& relation) {
  TARN_ASSIGN_OR_RETURN(const dataset::ViewSelector selector, SelectorOf(relation));
  TARN_ASSIGN_OR_RETURN(const dataset::Dataset dataset, datasets.GetDataset(relation.dataset));
  if (!dataset.base_uri.empty() && dataset.base_uri != store.base_uri()) {
    return Status::Unimplemented(
        fmt::format("its files are in {}, which SQL cannot read", dataset.base_uri));
  }
  DatasetFiles read;
  TARN_ASSIGN_OR_RETURN(read.view, datasets.ResolveView(relation.dataset, selector));
  if (read.view.absent()) {
    return read;
  }
  TARN_RETURN_IF_ERROR(
      datasets.StreamFiles(read.view, "", [&](std::span<const File> files) -> Status {
        for (const File& file : files) {
          if (IsHidden(file.path)) {
            continue;
          }
          TARN_ASSIGN_OR_RETURN(std::string key, KeyOfFile(store, file));
          read.files.push_back(
              {.path = file.path, .key = std::move(key), .empty = file.size_bytes == 0});
        }
        return Status::Ok();
      }));
  return read;
}

}  // namespace tarn::query
