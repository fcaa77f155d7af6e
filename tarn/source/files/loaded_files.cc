#include "tarn/source/files/loaded_files.h"

#include <memory>

#include "tarn/base/hash.h"
#include "tarn/storage/object_key.h"

namespace tarn::source::files {

namespace {

constexpr uint64_t kCopyPieceBytes = 1ULL << 20;

bool IsLoadedVersion(const storage::ObjectMeta& meta, const FileVersion& loaded, VersionKind kind) {
  const bool same_state =
      kind == VersionKind::kEtag ? meta.etag == loaded.etag : meta.modified == loaded.modified;
  return same_state && meta.size_bytes == loaded.size_bytes;
}

// What lies there now, compared with what was loaded.
Removal LookUp(storage::ObjectStore& store, const LedgerEntry& entry, VersionKind kind) {
  const Result<storage::ObjectMeta> meta = store.Head(entry.key);
  if (meta.status().code() == ErrorCode::kNotFound) {
    return {entry.key, RemovalOutcome::kAlreadyGone, {}};
  }
  if (!meta.ok()) {
    return {entry.key, RemovalOutcome::kFailed, meta.status()};
  }
  if (!entry.loaded || entry.outcome != FileOutcome::kLoaded ||
      !IsLoadedVersion(*meta, entry.version, kind)) {
    return {entry.key, RemovalOutcome::kChanged, {}};
  }
  return {entry.key, RemovalOutcome::kRemoved, {}};
}

// Calls `piece` with the whole object, bit by bit.
template <typename Function>
Status ReadInPieces(storage::ObjectReader& reader, const Function& piece) {
  const uint64_t size = reader.meta().size_bytes;
  std::string buffer(std::min(size, kCopyPieceBytes), '\0');
  for (uint64_t offset = 0; offset < size;) {
    TARN_ASSIGN_OR_RETURN(const size_t count, reader.ReadAt(offset, buffer.size(), buffer.data()));
    if (count == 0) {
      return Status::Unavailable("file " + storage::QuoteKey(reader.meta().key) +
                                 " became shorter while it was read");
    }
    TARN_RETURN_IF_ERROR(piece(std::string_view(buffer).substr(0, count)));
    offset += count;
  }
  return Status::Ok();
}

Result<uint64_t> HashOf(storage::ObjectStore& store, std::string_view key) {
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<storage::ObjectReader> reader, store.OpenReader(key));
  Xxh3Stream hash;
  TARN_RETURN_IF_ERROR(ReadInPieces(*reader, [&hash](std::string_view bytes) {
    hash.Update(bytes);
    return Status::Ok();
  }));
  return hash.Digest();
}

// A crash between copy and removal leaves both; the copy is then found here.
Status CheckCopy(storage::ObjectStore& store, const std::string& from, const std::string& to) {
  TARN_ASSIGN_OR_RETURN(const uint64_t from_hash, HashOf(store, from));
  TARN_ASSIGN_OR_RETURN(const uint64_t to_hash, HashOf(store, to));
  if (from_hash != to_hash) {
    return Status::AlreadyExists("cannot move " + storage::QuoteKey(from) +
                                 ": another file is at " + storage::QuoteKey(to));
  }
  return Status::Ok();
}

Status Copy(storage::ObjectStore& store, const LedgerEntry& entry, VersionKind kind,
            const std::string& to) {
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<storage::ObjectReader> reader,
                        store.OpenReader(entry.key));
  if (!IsLoadedVersion(reader->meta(), entry.version, kind)) {
    return Status::Conflict("file " + storage::QuoteKey(entry.key) + " changed");
  }
  Result<std::unique_ptr<storage::ObjectWriter>> writer =
      store.OpenWriter(to, storage::WriteMode::kPutIfAbsent);
  if (writer.status().code() == ErrorCode::kAlreadyExists) {
    return CheckCopy(store, entry.key, to);
  }
  TARN_RETURN_IF_ERROR(writer);
  TARN_RETURN_IF_ERROR(
      ReadInPieces(*reader, [&writer](std::string_view bytes) { return (*writer)->Write(bytes); }));
  const Result<storage::ObjectMeta> closed = (*writer)->Close();
  return closed.status().code() == ErrorCode::kAlreadyExists ? CheckCopy(store, entry.key, to)
                                                             : closed.status();
}

// Runs one step of a removal; its failure becomes the outcome.
void Apply(Removal& removal, const Status& status) {
  if (status.code() == ErrorCode::kConflict) {
    removal.outcome = RemovalOutcome::kChanged;
  } else if (!status.ok()) {
    removal.outcome = RemovalOutcome::kFailed;
    removal.status = status;
  }
}

}  // namespace

std::vector<Removal> RemoveLoaded(storage::ObjectStore& store,
                                  const std::vector<LedgerEntry>& loaded, VersionKind kind,
                                  RunMode mode) {
  std::vector<Removal> removals;
  for (const LedgerEntry& entry : loaded) {
    Removal removal = LookUp(store, entry, kind);
    if (removal.outcome == RemovalOutcome::kRemoved && mode == RunMode::kDoIt) {
      Apply(removal, store.Delete(entry.key));
    }
    removals.push_back(std::move(removal));
  }
  return removals;
}

Result<std::vector<Removal>> MoveLoaded(storage::ObjectStore& store,
                                        const std::vector<LedgerEntry>& loaded, VersionKind kind,
                                        std::string_view prefix, RunMode mode) {
  std::string folder(prefix);
  if (folder.ends_with('/')) {
    folder.pop_back();
  }
  TARN_RETURN_IF_ERROR(storage::CheckKey(folder));
  std::vector<Removal> removals;
  for (const LedgerEntry& entry : loaded) {
    Removal removal = LookUp(store, entry, kind);
    if (removal.outcome == RemovalOutcome::kRemoved && mode == RunMode::kDoIt) {
      Apply(removal, Copy(store, entry, kind, folder + "/" + entry.key));
      // The file may have been written again while it was copied.
      if (removal.outcome == RemovalOutcome::kRemoved) {
        removal = LookUp(store, entry, kind);
      }
      if (removal.outcome == RemovalOutcome::kRemoved) {
        Apply(removal, store.Delete(entry.key));
      }
    }
    removals.push_back(std::move(removal));
  }
  return removals;
}

}  // namespace tarn::source::files
