// Manifests and manifest lists as Avro files: written in version 2 or 3 form, read in all.
//
// Files of other writers are resolved by field id, so unknown fields are passed over, missing
// optional ones are empty and names do not matter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/manifest.h"

namespace tarn::iceberg {

struct ManifestHeader {
  int32_t format_version = 2;
  ManifestContent content = ManifestContent::kData;
  Schema schema;       // Of the table when the manifest was written.
  PartitionSpec spec;  // All files of a manifest have one spec.
};

/// An encoded manifest, and what the manifest list must say of it. The path, the length and the
/// sequence numbers that are inherited (-1) are filled in by the caller.
struct EncodedManifest {
  std::string bytes;
  ManifestFile file;
};

/// Sequence number of what gets the number of the snapshot that is being written.
inline constexpr int64_t kUnassignedSequenceNumber = -1;

/// Encodes entries as given; ADDED ones without numbers inherit. `snapshot_id`: added_snapshot_id.
/// Errors: kInvalidArgument naming a file whose partition values do not fit the spec, or an
/// EXISTING or DELETED entry without numbers.
Result<EncodedManifest> EncodeManifest(const ManifestHeader& header, int64_t snapshot_id,
                                       const std::vector<ManifestEntry>& entries);

/// Entries as stored, without inheritance. Errors: kCorruption; kUnimplemented.
struct DecodedManifest {
  int32_t format_version = 1;
  ManifestContent content = ManifestContent::kData;
  std::vector<ManifestEntry> entries;
};
/// `spec`: gives the order of the partition values; `spec_id` of every file is that of it.
Result<DecodedManifest> DecodeManifest(std::string_view bytes, const PartitionSpec& spec);

/// Fills in what entries inherit from their manifest. Errors: kCorruption for an EXISTING or
/// DELETED entry without numbers in a version 2 manifest.
Status InheritFrom(const ManifestFile& manifest, int32_t format_version,
                   std::vector<ManifestEntry>& entries);

struct ManifestListHeader {
  int32_t format_version = 2;
  int64_t snapshot_id = 0;
  std::optional<int64_t> parent_snapshot_id;
  int64_t sequence_number = 0;
  std::optional<int64_t> first_row_id;  // Version 3.
};
/// Sequence numbers that are unassigned become the snapshot's.
std::string EncodeManifestList(const ManifestListHeader& header,
                               const std::vector<ManifestFile>& manifests);
Result<std::vector<ManifestFile>> DecodeManifestList(std::string_view bytes);

}  // namespace tarn::iceberg
