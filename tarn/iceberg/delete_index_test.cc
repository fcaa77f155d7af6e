#include "tarn/iceberg/delete_index.h"

#include <cmath>

#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

TableMetadata Metadata() {
  TableMetadata metadata;
  metadata.partition_specs = {
      {.spec_id = 0}, {.spec_id = 1, .fields = {{.source_id = 1, .field_id = 1000, .name = "p"}}}};
  return metadata;
}

ManifestEntry Delete(const std::string& path, DataFileContent content, int64_t sequence,
                     int32_t spec_id, PartitionValues partition) {
  ManifestEntry entry;
  entry.sequence_number = sequence;
  entry.data_file.file_path = path;
  entry.data_file.content = content;
  entry.data_file.spec_id = spec_id;
  entry.data_file.partition = std::move(partition);
  return entry;
}

std::vector<std::string> Names(const DeleteIndex& index, const DataFile& file, int64_t sequence) {
  std::vector<std::string> names;
  for (const DeleteFilePtr& found : index.Find(file, sequence)) {
    names.push_back(found->file.file_path);
  }
  return names;
}

DataFile Data(const std::string& path, int32_t spec_id, PartitionValues partition) {
  DataFile file;
  file.file_path = path;
  file.spec_id = spec_id;
  file.partition = std::move(partition);
  return file;
}

TEST(DeleteIndexTest, ScopeAndNumberDecide) {
  const PartitionValues a{Literal::String("a")};
  const PartitionValues b{Literal::String("b")};
  std::vector<ManifestEntry> entries{Delete("pos-a", DataFileContent::kPositionDeletes, 5, 1, a),
                                     Delete("eq-a", DataFileContent::kEqualityDeletes, 5, 1, a),
                                     Delete("eq-all", DataFileContent::kEqualityDeletes, 6, 0, {}),
                                     Delete("pos-f", DataFileContent::kPositionDeletes, 5, 1, a)};
  entries[3].data_file.referenced_data_file = "f";
  std::vector<const ManifestEntry*> pointers;
  for (const ManifestEntry& entry : entries) {
    pointers.push_back(&entry);
  }
  const DeleteIndex index = DeleteIndex::Build(Metadata(), pointers);
  using ::testing::ElementsAre;
  EXPECT_THAT(Names(index, Data("f", 1, a), 4), ElementsAre("pos-f", "pos-a", "eq-a", "eq-all"));
  // Same number: position deletes apply, equality deletes do not.
  EXPECT_THAT(Names(index, Data("f", 1, a), 5), ElementsAre("pos-f", "pos-a", "eq-all"));
  EXPECT_THAT(Names(index, Data("g", 1, a), 5), ElementsAre("pos-a", "eq-all"));
  EXPECT_THAT(Names(index, Data("g", 1, b), 4), ElementsAre("eq-all"));
  EXPECT_THAT(Names(index, Data("g", 0, {}), 4), ElementsAre("eq-all"));
  EXPECT_THAT(Names(index, Data("f", 1, a), 6), ElementsAre());
}

TEST(DeleteIndexTest, ADeletionVectorStandsAlone) {
  const PartitionValues a{Literal::String("a")};
  ManifestEntry old = Delete("pos", DataFileContent::kPositionDeletes, 3, 1, a);
  ManifestEntry vector = Delete("dv", DataFileContent::kPositionDeletes, 5, 1, a);
  vector.data_file.referenced_data_file = "f";
  vector.data_file.content_offset = 4;
  const DeleteIndex index = DeleteIndex::Build(Metadata(), {&old, &vector});
  EXPECT_THAT(Names(index, Data("f", 1, a), 2), ::testing::ElementsAre("dv"));
  EXPECT_THAT(Names(index, Data("g", 1, a), 2), ::testing::ElementsAre("pos"));
}

TEST(DeleteIndexTest, EqualPathBoundsMeanOneFile) {
  DataFile file;
  file.content = DataFileContent::kPositionDeletes;
  EXPECT_EQ(ReferencedDataFile(file), std::nullopt);
  file.lower_bounds.Set(kFilePathColumnId, "f");
  file.upper_bounds.Set(kFilePathColumnId, "g");
  EXPECT_EQ(ReferencedDataFile(file), std::nullopt);
  file.upper_bounds.Set(kFilePathColumnId, "f");
  EXPECT_EQ(ReferencedDataFile(file), "f");
  file.content = DataFileContent::kEqualityDeletes;
  EXPECT_EQ(ReferencedDataFile(file), std::nullopt);
}

TEST(DeleteIndexTest, NanPartitionsAreOne) {
  const PartitionValues nan{Literal::Double(std::nan(""))};
  const ManifestEntry entry = Delete("pos", DataFileContent::kPositionDeletes, 3, 1, nan);
  const DeleteIndex index = DeleteIndex::Build(Metadata(), {&entry});
  EXPECT_THAT(Names(index, Data("f", 1, {Literal::Double(-std::nan(""))}), 2),
              ::testing::ElementsAre("pos"));
}

}  // namespace
}  // namespace tarn::iceberg
