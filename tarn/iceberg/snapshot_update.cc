#include "tarn/iceberg/snapshot_update.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "tarn/iceberg/manifest_avro.h"
#include "tarn/iceberg/metadata_builder.h"
#include "tarn/iceberg/update/manifest_file_writer.h"
#include "tarn/iceberg/update/manifest_filter.h"
#include "tarn/iceberg/update/manifest_merge.h"
#include "tarn/iceberg/update/snapshot_summary.h"
#include "tarn/iceberg/update/snapshot_validation.h"

namespace tarn::iceberg {
namespace {

constexpr size_t kEntriesPerManifestMax = 20'000;

std::string RandomUuid() {
  Uuid uuid;
  FillSecureRandom(uuid.bytes.data(), uuid.bytes.size());
  uuid.bytes[6] = static_cast<uint8_t>((uuid.bytes[6] & 0x0F) | 0x40);
  uuid.bytes[8] = static_cast<uint8_t>((uuid.bytes[8] & 0x3F) | 0x80);
  return uuid.ToString();
}

std::string FolderProperty(const TableMetadata& metadata, const std::string& key,
                           const std::string& otherwise) {
  const auto at = metadata.properties.find(key);
  std::string folder = at == metadata.properties.end() ? metadata.location + otherwise : at->second;
  while (folder.size() > 1 && folder.back() == '/') {
    folder.pop_back();
  }
  return folder;
}

// Smallest data sequence number among live data files; `own` for files of this commit.
int64_t MinDataSequenceNumber(const std::vector<ManifestFile>& manifests, int64_t own) {
  int64_t min = own;
  for (const ManifestFile& manifest : manifests) {
    if (manifest.content == ManifestContent::kData && manifest.has_live_files() &&
        manifest.min_sequence_number != kUnassignedSequenceNumber) {
      min = std::min(min, manifest.min_sequence_number);
    }
  }
  return min;
}

}  // namespace

std::string MetadataFolder(const TableMetadata& metadata) {
  return FolderProperty(metadata, "write.metadata.path", "/metadata");
}

std::string DataFolder(const TableMetadata& metadata) {
  return FolderProperty(metadata, "write.data.path", "/data");
}

struct SnapshotProducer::State {
  State(SnapshotUpdate u, SnapshotProducerDeps d)
      : update(std::move(u)), deps(d), writer(d.store, MakeSnapshotId(), RandomUuid()) {}

  SnapshotUpdate update;
  SnapshotProducerDeps deps;
  ManifestFileWriter writer;
  int attempt = 0;
  std::map<std::string, std::vector<std::string>> used_by_list;  // Manifests by manifest list.

  // Everything of one attempt that is derived from the head.
  struct Plan {
    const Snapshot* parent = nullptr;
    int64_t sequence_number = 0;
    std::vector<ManifestFile> manifests;
    SnapshotSummary summary;
    int64_t created = 0;
    int64_t kept = 0;
    int64_t replaced = 0;
  };

  Status WriteAdded(const TableMetadata& base, const std::vector<DataFile>& files,
                    ManifestContent content, Plan& plan);
  Status FilterExisting(const TableMetadata& base, Plan& plan);
  Status FilterObsolete(const TableMetadata& base, std::vector<ManifestFile>& manifests,
                        Plan& plan);
  Status Merge(const TableMetadata& base, std::vector<ManifestFile>& manifests, Plan& plan);
  Result<ManifestFile> MergeGroup(const TableMetadata& base,
                                  const std::vector<const ManifestFile*>& group);
  Result<Plan> MakePlan(const TableMetadata& base);
  Snapshot MakeSnapshot(const TableMetadata& base, const Plan& plan, int64_t now_ms) const;
};

Status SnapshotProducer::State::WriteAdded(const TableMetadata& base,
                                           const std::vector<DataFile>& files,
                                           ManifestContent content, Plan& plan) {
  std::map<int32_t, std::vector<const DataFile*>> by_spec;
  for (const DataFile& file : files) {
    by_spec[file.spec_id].push_back(&file);
    plan.summary.Add(file);
  }
  for (const auto& [spec_id, members] : by_spec) {
    for (size_t first = 0; first < members.size(); first += kEntriesPerManifestMax) {
      const size_t last = std::min(members.size(), first + kEntriesPerManifestMax);
      const std::string key =
          fmt::format("added|{}|{}|{}", static_cast<int>(content), spec_id, first);
      if (const ManifestFile* found = writer.Find(key)) {
        plan.manifests.push_back(*found);
        ++plan.created;
        continue;
      }
      std::vector<ManifestEntry> entries;
      for (size_t i = first; i < last; ++i) {
        ManifestEntry entry{.status = ManifestStatus::kAdded, .data_file = *members[i]};
        entry.snapshot_id = writer.snapshot_id();
        if (content == ManifestContent::kData) {
          entry.sequence_number = update.data_sequence_number;
        }
        entries.push_back(std::move(entry));
      }
      TARN_ASSIGN_OR_RETURN(ManifestFile manifest,
                            writer.Write(base, content, spec_id, entries, key));
      plan.manifests.push_back(std::move(manifest));
      ++plan.created;
    }
  }
  return Status::Ok();
}

Status SnapshotProducer::State::FilterObsolete(const TableMetadata& base,
                                               std::vector<ManifestFile>& manifests, Plan& plan) {
  FileRemoval removal{.files = update.removed_delete_files};
  for (const DataFile& file : update.removed_data_files) {
    removal.removed_data_files.insert(file.file_path);
  }
  for (const DataFile& file : update.added_delete_files) {
    if (file.is_deletion_vector()) {
      removal.vectors_for.insert(file.referenced_data_file.value_or(""));
    }
  }
  std::vector<ManifestFile> data = manifests;
  data.insert(data.end(), plan.manifests.begin(), plan.manifests.end());
  removal.obsolete_below = MinDataSequenceNumber(data, plan.sequence_number);
  std::vector<ManifestFile> deletes;
  std::vector<ManifestFile> others;
  for (ManifestFile& manifest : manifests) {
    (manifest.content == ManifestContent::kDeletes ? deletes : others)
        .push_back(std::move(manifest));
  }
  TARN_ASSIGN_OR_RETURN(FilterResult result, FilterManifests(deletes, removal, base, deps.store,
                                                             deps.cache, writer, plan.summary));
  plan.replaced += result.rewritten_count;
  manifests = std::move(others);
  manifests.insert(manifests.end(), std::make_move_iterator(result.manifests.begin()),
                   std::make_move_iterator(result.manifests.end()));
  return Status::Ok();
}

Status SnapshotProducer::State::FilterExisting(const TableMetadata& base, Plan& plan) {
  std::vector<ManifestFile> existing;
  if (plan.parent != nullptr) {
    TARN_ASSIGN_OR_RETURN(const ManifestList list,
                          deps.cache.ReadList(deps.store, base, *plan.parent));
    existing = *list;
  }
  if (update.operation != SnapshotOperation::kAppend && !update.merge_all_manifests) {
    std::vector<ManifestFile> data;
    std::vector<ManifestFile> deletes;
    for (ManifestFile& manifest : existing) {
      (manifest.content == ManifestContent::kData ? data : deletes).push_back(std::move(manifest));
    }
    TARN_ASSIGN_OR_RETURN(FilterResult filtered,
                          FilterManifests(data, {.files = update.removed_data_files}, base,
                                          deps.store, deps.cache, writer, plan.summary));
    plan.replaced += filtered.rewritten_count;
    existing = std::move(filtered.manifests);
    existing.insert(existing.end(), deletes.begin(), deletes.end());
    TARN_RETURN_IF_ERROR(FilterObsolete(base, existing, plan));
  }
  TARN_RETURN_IF_ERROR(Merge(base, existing, plan));
  for (ManifestFile& manifest : existing) {
    // A manifest without live files tells of removals only in the snapshot that removed them.
    const bool own = manifest.added_snapshot_id == writer.snapshot_id();
    if (own || manifest.has_live_files()) {
      plan.kept += own ? 0 : 1;
      plan.created += own ? 1 : 0;
      plan.manifests.push_back(std::move(manifest));
    }
  }
  return Status::Ok();
}

Result<ManifestFile> SnapshotProducer::State::MergeGroup(
    const TableMetadata& base, const std::vector<const ManifestFile*>& group) {
  std::string key = "merged";
  for (const ManifestFile* manifest : group) {
    key += "|" + manifest->manifest_path;
  }
  if (const ManifestFile* found = writer.Find(key)) {
    return *found;
  }
  std::vector<ManifestEntry> entries;
  for (const ManifestFile* manifest : group) {
    TARN_ASSIGN_OR_RETURN(const ManifestEntries read,
                          deps.cache.ReadManifest(deps.store, base, *manifest));
    for (const ManifestEntry& entry : *read) {
      if (entry.is_live()) {
        entries.push_back(entry);
        entries.back().status = ManifestStatus::kExisting;
      }
    }
  }
  return writer.Write(base, group[0]->content, group[0]->partition_spec_id, entries, key);
}

Status SnapshotProducer::State::Merge(const TableMetadata& base,
                                      std::vector<ManifestFile>& manifests, Plan& plan) {
  const MergeOptions options = MergeOptions::FromProperties(base);
  if (!options.enabled && !update.merge_all_manifests) {
    return Status::Ok();
  }
  // Manifests of this commit hold DELETED entries that must stay visible.
  std::vector<ManifestFile> candidates;
  std::vector<ManifestFile> rest;
  for (ManifestFile& manifest : manifests) {
    const bool candidate =
        manifest.added_snapshot_id != writer.snapshot_id() && manifest.has_live_files();
    (candidate ? candidates : rest).push_back(std::move(manifest));
  }
  std::unordered_set<size_t> merged;
  for (const std::vector<size_t>& group :
       PlanManifestMerge(candidates, options, update.merge_all_manifests)) {
    std::vector<const ManifestFile*> members;
    for (const size_t i : group) {
      members.push_back(&candidates[i]);
      merged.insert(i);
    }
    TARN_ASSIGN_OR_RETURN(ManifestFile manifest, MergeGroup(base, members));
    rest.push_back(std::move(manifest));
    plan.replaced += static_cast<int64_t>(group.size());
  }
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!merged.contains(i)) {
      rest.push_back(std::move(candidates[i]));
    }
  }
  manifests = std::move(rest);
  return Status::Ok();
}

Result<SnapshotProducer::State::Plan> SnapshotProducer::State::MakePlan(const TableMetadata& base) {
  Plan plan;
  plan.parent = base.FindSnapshotOf(update.branch);
  if (plan.parent == nullptr && !base.refs.contains(update.branch)) {
    plan.parent = base.CurrentSnapshot();  // A new branch starts at the head of main.
  }
  plan.sequence_number = base.last_sequence_number + 1;
  TARN_RETURN_IF_ERROR(ValidateHistory(update, base, plan.parent, deps.store, deps.cache));
  TARN_RETURN_IF_ERROR(WriteAdded(base, update.added_data_files, ManifestContent::kData, plan));
  TARN_RETURN_IF_ERROR(
      WriteAdded(base, update.added_delete_files, ManifestContent::kDeletes, plan));
  TARN_RETURN_IF_ERROR(FilterExisting(base, plan));
  for (ManifestFile& manifest : plan.manifests) {
    if (manifest.sequence_number == kUnassignedSequenceNumber) {
      manifest.sequence_number = plan.sequence_number;
    }
    if (manifest.min_sequence_number == kUnassignedSequenceNumber) {
      manifest.min_sequence_number = plan.sequence_number;
    }
  }
  return plan;
}

Snapshot SnapshotProducer::State::MakeSnapshot(const TableMetadata& base, const Plan& plan,
                                               int64_t now_ms) const {
  Snapshot snapshot;
  snapshot.snapshot_id = writer.snapshot_id();
  snapshot.sequence_number = plan.sequence_number;
  snapshot.timestamp_ms = std::max(now_ms, base.last_updated_ms);
  if (plan.parent != nullptr) {
    snapshot.parent_snapshot_id = plan.parent->snapshot_id;
    snapshot.timestamp_ms = std::max(snapshot.timestamp_ms, plan.parent->timestamp_ms + 1);
  }
  snapshot.operation = update.operation;
  snapshot.summary = plan.summary.Build(update.summary, plan.parent);
  snapshot.summary["manifests-created"] = std::to_string(plan.created);
  snapshot.summary["manifests-kept"] = std::to_string(plan.kept);
  snapshot.summary["manifests-replaced"] = std::to_string(plan.replaced);
  snapshot.schema_id = base.current_schema_id;
  return snapshot;
}

namespace {

// Version 3: every data manifest without a first row id gets one. Returns the rows they take.
int64_t AssignRowIds(std::vector<ManifestFile>& manifests, int64_t first_row_id) {
  int64_t next = first_row_id;
  for (ManifestFile& manifest : manifests) {
    if (manifest.content == ManifestContent::kData && !manifest.first_row_id) {
      manifest.first_row_id = next;
      next += manifest.added_rows_count.value_or(0) + manifest.existing_rows_count.value_or(0);
    }
  }
  return next - first_row_id;
}

Status AddExpiry(const TableMetadata& base, const ExpiryOptions& options, int64_t now_ms,
                 PreparedSnapshot& prepared) {
  TARN_ASSIGN_OR_RETURN(const UpdateResult interim, ApplyUpdates(&base, prepared.updates, now_ms));
  const ExpiryPlan plan = PlanExpiry(interim.metadata, options, now_ms);
  for (TableUpdate& update : UpdatesFor(plan)) {
    prepared.updates.push_back(std::move(update));
  }
  prepared.expired_snapshot_ids = plan.snapshot_ids;
  return Status::Ok();
}

}  // namespace

SnapshotProducer::SnapshotProducer(SnapshotUpdate update, SnapshotProducerDeps deps)
    : state_(std::make_unique<State>(std::move(update), deps)) {}
SnapshotProducer::~SnapshotProducer() = default;

const SnapshotUpdate& SnapshotProducer::update() const { return state_->update; }

Result<PreparedSnapshot> SnapshotProducer::Prepare(const TableMetadata& base, int64_t now_ms) {
  State& state = *state_;
  const SnapshotUpdate& update = state.update;
  if (base.format_version < 2) {
    return Status(ErrorCode::kUnimplemented,
                  "tables of format version 1 are read only: upgrade the table to version 2 first");
  }
  const auto ref = base.refs.find(update.branch);
  if (ref != base.refs.end() && ref->second.type == SnapshotRefType::kTag) {
    return Status::InvalidArgument(
        fmt::format("{} is a tag, not a branch: it cannot be committed to", update.branch));
  }
  if (base.FindSnapshot(state.writer.snapshot_id()) != nullptr) {
    return Status::InvalidArgument(
        fmt::format("snapshot {} is committed already", state.writer.snapshot_id()));
  }
  TARN_RETURN_IF_ERROR(ValidateUpdate(update, base));
  const size_t written_before = state.writer.written().size();
  TARN_ASSIGN_OR_RETURN(State::Plan plan, state.MakePlan(base));
  Snapshot snapshot = state.MakeSnapshot(base, plan, now_ms);
  if (base.format_version >= 3) {
    snapshot.first_row_id = base.next_row_id;
    snapshot.added_rows = AssignRowIds(plan.manifests, base.next_row_id);
  }
  TARN_ASSIGN_OR_RETURN(snapshot.manifest_list,
                        state.writer.WriteList(base, snapshot, ++state.attempt, plan.manifests));
  std::vector<std::string>& used = state.used_by_list[snapshot.manifest_list];
  for (const ManifestFile& manifest : plan.manifests) {
    used.push_back(manifest.manifest_path);
  }
  PreparedSnapshot prepared;
  SnapshotRef new_ref = ref == base.refs.end() ? SnapshotRef{} : ref->second;
  new_ref.snapshot_id = snapshot.snapshot_id;
  prepared.updates = {table_update::AddSnapshot{snapshot},
                      table_update::SetSnapshotRef{update.branch, new_ref}};
  prepared.requirements = RequirementsFor(&base, prepared.updates);
  if (update.expiry) {
    TARN_RETURN_IF_ERROR(AddExpiry(base, *update.expiry, snapshot.timestamp_ms, prepared));
  }
  prepared.snapshot = std::move(snapshot);
  const std::vector<std::string>& written = state.writer.written();
  prepared.attempt_files.assign(written.begin() + static_cast<std::ptrdiff_t>(written_before),
                                written.end());
  return prepared;
}

void SnapshotProducer::CleanUp(const Snapshot* committed) {
  std::unordered_set<std::string> used;
  if (committed != nullptr) {
    used.insert(committed->manifest_list);
    const auto at = state_->used_by_list.find(committed->manifest_list);
    if (at == state_->used_by_list.end()) {
      return;  // Not a snapshot of this producer: what it uses is not known.
    }
    used.insert(at->second.begin(), at->second.end());
  }
  for (const std::string& uri : state_->writer.written()) {
    if (used.contains(uri)) {
      continue;
    }
    const Result<std::string> key = KeyOf(state_->deps.store, uri);
    if (key.ok()) {
      // What cannot be deleted now is an orphan, found by its age later.
      const Status ignored = state_->deps.store.Delete(*key);
      (void)ignored;
    }
  }
  state_->writer.Forget();
}

}  // namespace tarn::iceberg
