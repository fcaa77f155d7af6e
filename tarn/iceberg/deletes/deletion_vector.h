// Deletion vectors: the deleted rows of one data file as a bitmap in a Puffin file (format version
// 3). A data file has at most one live vector, which holds every position deleted so far.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/manifest.h"
#include "tarn/iceberg/partition_spec.h"
#include "tarn/iceberg/position_delete.h"
#include "tarn/storage/object_store.h"

namespace tarn::iceberg {

/// The blob: length, magic, bitmap, CRC-32. `positions`: ascending, each once, none negative.
std::string EncodeDeletionVector(const Positions& positions);
/// Errors: kCorruption when length, magic, checksum or bitmap are wrong; kResourceExhausted above
/// `count_max` positions.
Result<Positions> DecodeDeletionVector(std::string_view blob, uint64_t count_max);

/// One vector to write.
struct DeletionVector {
  std::string data_file_path;  // As the manifest of the data file spells it.
  int32_t spec_id = 0;         // Spec and partition of the data file.
  PartitionValues partition;
  Positions positions;  // Any order; doubles are dropped.
};

/// Writes the vectors of several data files into one Puffin file and returns its entries, in order.
/// Errors: kInvalidArgument for none, an empty or a negative position; those of the store.
Result<std::vector<DataFile>> WriteDeletionVectors(storage::ObjectStore& store,
                                                   const std::string& file_path,
                                                   const std::vector<DeletionVector>& vectors);

/// Reads the vector behind an entry of a delete manifest. Errors: kCorruption naming the file, also
/// when the vector does not hold as many rows as the entry says; those of the store.
Result<Positions> ReadDeletionVector(storage::ObjectStore& store, const DataFile& vector);

}  // namespace tarn::iceberg
