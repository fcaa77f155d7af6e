#include "tarn/iceberg/manifest_avro.h"

#include <cmath>

#include "tarn/iceberg/codec/avro.h"
#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

Schema TestSchema() {
  Schema schema;
  schema.fields = {{.id = 1, .name = "id", .type = Type::Long()},
                   {.id = 2, .name = "1st-col", .type = Type::String()},
                   {.id = 3, .name = "금액", .type = Type::Decimal(9, 2)},
                   {.id = 4, .name = "u", .type = Type::Uuid()},
                   {.id = 5, .name = "at", .type = Type::TimestampTz()},
                   {.id = 6, .name = "d", .type = Type::Double()},
                   {.id = 7, .name = "u2", .type = Type::Uuid()}};
  return schema;
}

PartitionSpec TestSpec() {
  return {.spec_id = 3,
          .fields = {
              {.source_id = 2, .field_id = 1000, .name = "1st-col"},
              {.source_id = 3, .field_id = 1001, .name = "금액"},
              {.source_id = 4, .field_id = 1002, .name = "u"},
              {.source_id = 5, .field_id = 1003, .name = "at_day", .transform = Transform::Day()},
              {.source_id = 6, .field_id = 1004, .name = "d"},
              {.source_id = 7, .field_id = 1005, .name = "u2"}}};
}

DataFile FullFile() {
  DataFile file;
  file.file_path = "file:///w/t/data/a.parquet";
  file.spec_id = 3;
  file.partition = {
      Literal::String("x y"), Literal::Decimal(-1420), Literal::String(std::string(16, 'u')),
      Literal::Long(-3),      Literal::Double(2.5),    Literal::String(std::string(16, 'v'))};
  file.record_count = 12;
  file.file_size_bytes = 3456;
  file.column_sizes = {{1, 100}, {2, 200}};
  file.value_counts = {{1, 12}};
  file.null_value_counts = {{1, 0}};
  file.nan_value_counts = {{6, 1}};
  file.lower_bounds = {{1, std::string(8, '\0')}};
  file.upper_bounds = {{1, std::string(8, '\1')}};
  file.key_metadata = "key";
  file.split_offsets = {4, 1000};
  file.sort_order_id = 1;
  return file;
}

Result<EncodedManifest> Encode(const std::vector<ManifestEntry>& entries,
                               int32_t format_version = 2) {
  return EncodeManifest(
      {.format_version = format_version, .schema = TestSchema(), .spec = TestSpec()}, 77, entries);
}

TEST(ManifestAvroTest, EntriesRoundTripWithEveryField) {
  ManifestEntry added{.status = ManifestStatus::kAdded, .data_file = FullFile()};
  ManifestEntry existing{.status = ManifestStatus::kExisting,
                         .snapshot_id = 5,
                         .sequence_number = 3,
                         .file_sequence_number = 4,
                         .data_file = FullFile()};
  existing.data_file.partition.assign(6, Literal::Null());
  existing.data_file.partition[4] = Literal::Double(std::nan(""));
  for (const int32_t version : {2, 3}) {
    if (version == 3) {
      existing.data_file.first_row_id = 1000;
    }
    ASSERT_OK_AND_ASSIGN(const EncodedManifest encoded, Encode({added, existing}, version));
    ASSERT_OK_AND_ASSIGN(const DecodedManifest decoded, DecodeManifest(encoded.bytes, TestSpec()));
    EXPECT_EQ(decoded.format_version, version);
    ASSERT_EQ(decoded.entries.size(), 2U);
    EXPECT_EQ(decoded.entries[0], added);
    EXPECT_EQ(decoded.entries[1], existing);
    EXPECT_EQ(encoded.file.added_files_count, 1);
    EXPECT_EQ(encoded.file.existing_files_count, 1);
    EXPECT_EQ(encoded.file.existing_rows_count, 12);
    EXPECT_EQ(encoded.file.min_sequence_number, 3);
    ASSERT_EQ(encoded.file.partitions.size(), 6U);
    EXPECT_TRUE(encoded.file.partitions[0].contains_null);
    EXPECT_EQ(encoded.file.partitions[0].lower_bound, "x y");
    EXPECT_TRUE(*encoded.file.partitions[4].contains_nan);
  }
}

TEST(ManifestAvroTest, HeaderHasWhatOtherReadersNeed) {
  ASSERT_OK_AND_ASSIGN(const EncodedManifest encoded, Encode({{.data_file = FullFile()}}));
  ASSERT_OK_AND_ASSIGN(const auto file, AvroFileReader::Open(encoded.bytes));
  const auto& metadata = file->metadata();
  EXPECT_EQ(metadata.at("format-version"), "2");
  EXPECT_EQ(metadata.at("content"), "data");
  EXPECT_EQ(metadata.at("partition-spec-id"), "3");
  EXPECT_EQ(metadata.at("schema-id"), "0");
  EXPECT_THAT(ParseSchema(metadata.at("schema")), IsOkAndHolds(TestSchema()));
  EXPECT_EQ(metadata.at("partition-spec")[0], '[');
  EXPECT_EQ(metadata.at("avro.codec"), "deflate");
  const std::string& schema = metadata.at("avro.schema");
  for (const char* part :
       {R"("name":"manifest_entry")", R"("name":"r2")", R"("name":"r102")", R"("name":"k117_v118")",
        R"("name":"_1st_x2Dcol")", R"("iceberg-field-name":"1st-col")",
        R"("name":"_xEA_xB8_x88_xEC_x95_xA1")", R"("type":["null","uuid_fixed"])",
        R"("logicalType":"decimal")"}) {
    EXPECT_NE(schema.find(part), std::string::npos) << part << " in " << schema;
  }
  ASSERT_OK_AND_ASSIGN(const EncodedManifest again, Encode({{.data_file = FullFile()}}));
  EXPECT_EQ(again.bytes, encoded.bytes);
}

TEST(ManifestAvroTest, NumbersAreInheritedByNewEntriesOnly) {
  const ManifestFile manifest{.sequence_number = 9, .added_snapshot_id = 8};
  std::vector<ManifestEntry> entries(2);
  entries[1].sequence_number = 4;  // Given by compaction.
  ASSERT_OK(InheritFrom(manifest, 2, entries));
  EXPECT_EQ(entries[0].snapshot_id, 8);
  EXPECT_EQ(entries[0].sequence_number, 9);
  EXPECT_EQ(entries[1].sequence_number, 4);
  EXPECT_EQ(entries[1].file_sequence_number, 9);
  std::vector<ManifestEntry> old{{.status = ManifestStatus::kExisting}};
  EXPECT_THAT(InheritFrom(manifest, 2, old), Fails(ErrorCode::kCorruption));
  EXPECT_OK(InheritFrom(manifest, 1, old));
  EXPECT_EQ(old[0].sequence_number, 0);
}

TEST(ManifestAvroTest, WrongEntriesAreRefused) {
  ManifestEntry entry{.data_file = FullFile()};
  entry.data_file.partition[0] = Literal::Long(1);
  EXPECT_THAT(Encode({entry}), FailsWith(ErrorCode::kInvalidArgument, "1st-col"));
  entry.data_file = FullFile();
  entry.status = ManifestStatus::kDeleted;
  EXPECT_THAT(Encode({entry}), FailsWith(ErrorCode::kInvalidArgument, "sequence numbers"));
  entry = {.data_file = FullFile()};
  entry.data_file.content = DataFileContent::kPositionDeletes;
  EXPECT_THAT(Encode({entry}), FailsWith(ErrorCode::kInvalidArgument, "different manifests"));
}

TEST(ManifestAvroTest, ListsRoundTripAndAssignNumbers) {
  ManifestFile first{.manifest_path = "m1",
                     .manifest_length = 10,
                     .partition_spec_id = 1,
                     .sequence_number = kUnassignedSequenceNumber,
                     .min_sequence_number = kUnassignedSequenceNumber,
                     .added_snapshot_id = 6,
                     .added_files_count = 1,
                     .existing_files_count = 2,
                     .deleted_files_count = 3,
                     .added_rows_count = 4,
                     .existing_rows_count = 5,
                     .deleted_rows_count = 6};
  first.partitions = {
      {.contains_null = true, .contains_nan = false, .lower_bound = "a", .upper_bound = "b"}};
  ManifestFile second = first;
  second.manifest_path = "m2";
  second.content = ManifestContent::kDeletes;
  second.sequence_number = 2;
  second.min_sequence_number = 1;
  second.partitions.clear();
  const std::string bytes = EncodeManifestList(
      {.snapshot_id = 6, .parent_snapshot_id = 5, .sequence_number = 7}, {first, second});
  first.sequence_number = 7;
  first.min_sequence_number = 7;
  EXPECT_THAT(DecodeManifestList(bytes), IsOkAndHolds(std::vector<ManifestFile>{first, second}));
  ASSERT_OK_AND_ASSIGN(const auto file, AvroFileReader::Open(bytes));
  EXPECT_EQ(file->metadata().at("snapshot-id"), "6");
  EXPECT_EQ(file->metadata().at("parent-snapshot-id"), "5");
  EXPECT_EQ(file->metadata().at("sequence-number"), "7");
}

// Every cut and every changed byte gives an error or entries, never a crash; the sanitizers watch.
TEST(ManifestAvroTest, BrokenBytesAreSurvived) {
  ASSERT_OK_AND_ASSIGN(const EncodedManifest encoded, Encode({{.data_file = FullFile()}}));
  for (size_t size = 0; size < encoded.bytes.size(); size += 7) {
    const auto cut = DecodeManifest(std::string_view(encoded.bytes).substr(0, size), TestSpec());
    // A file may end after its header: it then has no entries.
    if (cut.ok()) {
      EXPECT_TRUE(cut->entries.empty()) << size;
    }
  }
  int refused = 0;
  for (size_t at = 0; at < encoded.bytes.size(); at += 3) {
    std::string bytes = encoded.bytes;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
    refused += DecodeManifest(bytes, TestSpec()).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 0);
}

TEST(ManifestAvroTest, FilesOfOtherWritersAreResolvedById) {
  // Other names, other order, null second in a union, an unknown field, no optional ones.
  const std::string schema = R"({"type":"record","name":"e","fields":[
    {"name":"extra","type":{"type":"map","values":"double"}},
    {"name":"df","field-id":2,"type":{"type":"record","name":"f","fields":[
      {"name":"n","type":["long","null"],"field-id":103},
      {"name":"p","type":"string","field-id":100},
      {"name":"fmt","type":"string","field-id":101},
      {"name":"part","field-id":102,"type":{"type":"record","name":"q","fields":[
        {"name":"a","type":["int","null"],"field-id":1000}]}},
      {"name":"size","type":"int","field-id":104},
      {"name":"counts","field-id":109,"type":{"type":"array","logicalType":"map","items":
        {"type":"record","name":"kv","fields":[{"name":"key","type":"int","field-id":119},
          {"name":"value","type":"long","field-id":120}]}}}]}},
    {"name":"s","type":"int","field-id":0}]})";
  AvroFileWriter writer(schema, {}, AvroCodec::kNull);
  AvroEncoder& out = writer.encoder();
  out.WriteLong(1);
  out.WriteBytes("k");
  out.WriteDouble(1);
  out.WriteLong(0);
  out.WriteLong(0);
  out.WriteLong(42);
  out.WriteBytes("path");
  out.WriteBytes("parquet");
  out.WriteLong(0);
  out.WriteLong(7);
  out.WriteLong(99);
  out.WriteLong(-1);  // A block with its size in bytes.
  out.WriteLong(2);
  out.WriteLong(4);
  out.WriteLong(40);
  out.WriteLong(0);
  out.WriteLong(1);
  writer.EndRecord();
  const PartitionSpec spec{.spec_id = 2,
                           .fields = {{.source_id = 1, .field_id = 1000, .name = "a"}}};
  ASSERT_OK_AND_ASSIGN(const DecodedManifest decoded, DecodeManifest(writer.Finish(), spec));
  EXPECT_EQ(decoded.format_version, 1);
  ASSERT_EQ(decoded.entries.size(), 1U);
  const DataFile& file = decoded.entries[0].data_file;
  EXPECT_EQ(decoded.entries[0].status, ManifestStatus::kAdded);
  EXPECT_EQ(file.record_count, 42);
  EXPECT_EQ(file.file_path, "path");
  EXPECT_EQ(file.partition, PartitionValues{Literal::Long(7)});
  EXPECT_EQ(*file.value_counts.Find(4), 40);
  EXPECT_EQ(file.spec_id, 2);
}

TEST(AvroTest, HostileHeadersAndCountsAreRefused) {
  EXPECT_THAT(AvroFileReader::Open("PAR1").status(), Fails(ErrorCode::kCorruption));
  EXPECT_THAT(ParseAvroSchema(R"({"type":"record","name":"r"})"), Fails(ErrorCode::kCorruption));
  EXPECT_THAT(ParseAvroSchema(R"({"type":"nothing"})"), Fails(ErrorCode::kCorruption));
  EXPECT_THAT(ParseAvroSchema(R"({"type":"record","name":"r","fields":[{"name":"x","type":"r"}]})"),
              Fails(ErrorCode::kCorruption));
  AvroEncoder huge;
  huge.WriteLong(INT64_MAX);
  AvroDecoder decoder(huge.bytes());
  EXPECT_THAT(decoder.ReadBlockCount(), Fails(ErrorCode::kCorruption));
  AvroDecoder text(huge.bytes());
  EXPECT_THAT(text.ReadBytes().status(), Fails(ErrorCode::kCorruption));
  AvroDecoder number(std::string_view("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 11));
  EXPECT_THAT(number.ReadLong(), Fails(ErrorCode::kCorruption));
  const auto nulls = ParseAvroSchema(R"({"type":"array","items":"null"})").value();
  AvroEncoder many;
  many.WriteLong(1);
  AvroDecoder skipper(many.bytes());
  EXPECT_THAT(skipper.Skip(*nulls), Fails(ErrorCode::kCorruption));
}

TEST(AvroTest, NumbersRoundTripAndLargeFilesHaveManyBlocks) {
  for (const int64_t value : {int64_t{0}, int64_t{-1}, int64_t{1}, int64_t{63}, int64_t{-64},
                              int64_t{64}, INT64_MAX, INT64_MIN}) {
    AvroEncoder out;
    out.WriteLong(value);
    AvroDecoder in(out.bytes());
    EXPECT_THAT(in.ReadLong(), IsOkAndHolds(value));
  }
  AvroFileWriter writer(R"({"type":"record","name":"r","fields":[{"name":"s","type":"string"}]})",
                        {}, AvroCodec::kDeflate);
  for (int i = 0; i < 1000; ++i) {
    writer.encoder().WriteBytes(std::string(1000, static_cast<char>('a' + i % 26)));
    writer.EndRecord();
  }
  const std::string bytes = writer.Finish();
  ASSERT_OK_AND_ASSIGN(const auto file, AvroFileReader::Open(bytes));
  int64_t records = 0;
  int blocks = 0;
  while (true) {
    ASSERT_OK_AND_ASSIGN(const auto block, file->Next());
    if (!block) {
      break;
    }
    records += block->record_count;
    ++blocks;
  }
  EXPECT_EQ(records, 1000);
  EXPECT_GT(blocks, 10);
}

TEST(AvroTest, NamesAreMadeValid) {
  EXPECT_EQ(SanitizeAvroName("plain_1"), "plain_1");
  EXPECT_EQ(SanitizeAvroName("1st-col"), "_1st_x2Dcol");
  EXPECT_EQ(SanitizeAvroName("x:y"), "x_x3Ay");
}

}  // namespace
}  // namespace tarn::iceberg
