#include "tarn/source/files/files_source.h"

#include <filesystem>
#include <fstream>

#include "tarn/source/files/loaded_files.h"
#include "tarn/storage/faulty_store.h"
#include "tarn/storage/memory_store.h"
#include "test/support/child_process.h"
#include "test/support/compressed_text.h"
#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::source::files {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

Timestamp Time(std::string_view text) { return ParseTimestamp(text).value(); }

// Files in a bucket whose clock the test moves, and a landing that commits what it is given.
class FilesSourceTest : public ::testing::Test {
 protected:
  void Put(const std::string& key, const std::string& bytes) {
    ASSERT_OK(storage::WriteObject(store_, key, bytes, storage::WriteMode::kOverwrite));
  }

  FilesSource::Dependencies Dependencies(storage::ObjectStore* store = nullptr) {
    return {.store = store == nullptr ? store_ : *store,
            .ledger = ledger_,
            .clock = clock_,
            .budget = budget_};
  }

  std::unique_ptr<FilesSource> Open(storage::ObjectStore* store = nullptr) {
    return FilesSource::Open(options_, Dependencies(store)).value();
  }

  // What one poll hands over: (key, payload), or (key, "!outcome") of files without payload.
  std::vector<std::pair<std::string, std::string>> Poll(FilesSource& source, bool commit = true) {
    std::vector<std::pair<std::string, std::string>> files;
    for (bool more = true; more;) {
      const Result<SourceBatch> batch = source.Next(limits_);
      EXPECT_OK(batch);
      if (!batch.ok()) {
        return files;
      }
      for (const SourceItem& item : batch->items) {
        Take(item, commit, files);
      }
      more = !batch->caught_up;
    }
    return files;
  }

  void Take(const SourceItem& item, bool commit,
            std::vector<std::pair<std::string, std::string>>& files) {
    if (const auto* listed = std::get_if<FilesListed>(&item.position)) {
      ledger_.complete_until = commit ? listed->until : ledger_.complete_until;
      return;
    }
    const auto& position = std::get<FilePosition>(item.position);
    if (files.empty() || files.back().first != position.key) {
      files.emplace_back(position.key, "");
    }
    files.back().second += item.payload;
    last_ = position;
    if (position.end && position.end->outcome != FileOutcome::kLoaded) {
      files.back().second = "!" + std::string(FileOutcomeName(position.end->outcome));
    }
    if (position.end && commit) {
      Record(ledger_, position);
    }
  }

  ManualClock clock_{Time("2026-02-01T10:30:00Z")};
  storage::MemoryStore store_{clock_};
  FileLedger ledger_;
  MemoryBudget budget_{1 << 20};
  BatchLimits limits_{.bytes_max = 10, .items_max = 5};
  FilesSourceOptions options_{.decide = {.version_kind = VersionKind::kEtag}, .piece_bytes = 4};
  FilePosition last_;
};

TEST_F(FilesSourceTest, ReadsInOrderOfDateThenName) {
  options_.paths = {"b/<yyyy>-<MM>-<dd>_*", "a/<dd>.<MM>.<yyyy>_*"};
  Put("a/01.02.2026_x", "4");
  Put("a/31.01.2026_x", "2");
  Put("b/2026-01-30_x", "1");
  Put("b/2026-01-31_x", "3");
  EXPECT_THAT(Poll(*Open()), ElementsAre(Pair("b/2026-01-30_x", "1"), Pair("a/31.01.2026_x", "2"),
                                         Pair("b/2026-01-31_x", "3"), Pair("a/01.02.2026_x", "4")));
  EXPECT_EQ(last_.date, Time("2026-02-01"));
}

TEST_F(FilesSourceTest, PositionsSayWhereEachPieceStood) {
  options_.name_prefix = "/data/in/";
  Put("x.csv", "0123456789");
  const auto source = Open();
  ASSERT_OK_AND_ASSIGN(const SourceBatch batch, source->Next({}));
  ASSERT_EQ(batch.items.size(), 4u);
  std::vector<uint64_t> offsets;
  for (size_t i = 0; i < 3; ++i) {
    const auto& position = std::get<FilePosition>(batch.items[i].position);
    EXPECT_EQ(position.key, "x.csv");
    EXPECT_EQ(position.name, "/data/in/x.csv");
    EXPECT_EQ(position.version.size_bytes, 10u);
    EXPECT_EQ(batch.items[i].event_time, clock_.Now());
    EXPECT_EQ(position.end.has_value(), i == 2);
    offsets.push_back(position.offset_bytes);
  }
  EXPECT_THAT(offsets, ElementsAre(0u, 4u, 8u));
  const auto& end = std::get<FilePosition>(batch.items[2].position).end;
  EXPECT_EQ(end->outcome, FileOutcome::kLoaded);
  EXPECT_EQ(end->content_hash, Xxh3("0123456789"));
  EXPECT_EQ(std::get<FilesListed>(batch.items[3].position).until, clock_.Now());
}

TEST_F(FilesSourceTest, NamesBeforeTheLastAreFoundToo) {
  const auto source = Open();
  Put("b.json", "b");
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("b.json", "b")));
  Put("a.json", "a");
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("a.json", "a")));
  EXPECT_THAT(Poll(*source), IsEmpty());
}

TEST_F(FilesSourceTest, LateFilesInTheLookBackAreFoundAndThoseBeforeItAreNot) {
  options_.paths = {"<yyyy>/<MM>/<dd>/*"};
  Put("2026/01/20/early", "1");
  const auto source = Open();
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("2026/01/20/early", "1")));
  Put("2026/01/31/late", "2");
  Put("2026/01/20/too-late", "3");
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("2026/01/31/late", "2")));
}

TEST_F(FilesSourceTest, TheNumberOfListCallsDoesNotGrowWithTheBucket) {
  options_.paths = {"in/<yyyy>/<MM>/<dd>/*"};
  ledger_.complete_until = clock_.Now();
  int64_t calls = 0;
  for (int years = 1; years <= 3; ++years) {
    for (int i = 0; i < 5'000; ++i) {
      Put("in/20" + std::to_string(10 + years) + "/01/01/" + std::to_string(i), "x");
    }
    const int64_t before = store_.list_count();
    EXPECT_THAT(Poll(*Open()), IsEmpty());
    EXPECT_TRUE(calls == 0 || store_.list_count() - before == calls);
    calls = store_.list_count() - before;
  }
  EXPECT_EQ(calls, 2);
}

TEST_F(FilesSourceTest, FutureFilesWaitAndAreReadWhenTheirDateComes) {
  options_.paths = {"<yyyy>/<MM>/<dd>/*"};
  Put("2026/02/01/today", "1");
  Put("2026/02/02/tomorrow", "2");
  Put("2099/01/01/far", "3");
  const auto source = Open();
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("2026/02/01/today", "1")));
  clock_.Set(Time("2026-02-02"));
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("2026/02/02/tomorrow", "2")));
  options_.listing.future = FuturePolicy::kRead;
  EXPECT_THAT(Poll(*Open()), ElementsAre(Pair("2099/01/01/far", "3")));
}

TEST_F(FilesSourceTest, ChangedObjectsAreReportedOnceOrReloaded) {
  Put("a", "old");
  const auto source = Open();
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("a", "old")));
  EXPECT_FALSE(last_.replaces);
  Put("a", "new");
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("a", "!changed_ignored")));
  EXPECT_THAT(last_.end->message, ::testing::HasSubstr("changed since it was loaded"));
  EXPECT_THAT(Poll(*source), IsEmpty());
  EXPECT_THAT(Poll(*Open()), IsEmpty());
  options_.decide.on_changed = OnChanged::kReload;
  EXPECT_THAT(Poll(*Open()), ElementsAre(Pair("a", "new")));
  EXPECT_TRUE(last_.replaces);
  EXPECT_THAT(Poll(*Open()), IsEmpty());
}

TEST_F(FilesSourceTest, EmptyFilesAreRejectedOnceAndReadWhenTheyAreFilled) {
  Put("a", "");
  Put("b", "b");
  const auto source = Open();
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("a", "!empty"), Pair("b", "b")));
  EXPECT_THAT(Poll(*source), IsEmpty());
  Put("a", "a");
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("a", "a")));
}

TEST_F(FilesSourceTest, ExcludedFilesAndFoldersAreLeftOut) {
  options_.paths = {"*.csv", "*/*"};
  options_.exclude = {"*_tmp.csv"};
  options_.exclude_folders = {"done"};
  Put("a.csv", "1");
  Put("a_tmp.csv", "2");
  Put("a.json", "3");
  Put("done/b.csv", "4");
  Put("in/c", "5");
  EXPECT_THAT(Poll(*Open()), ElementsAre(Pair("a.csv", "1"), Pair("in/c", "5")));
}

TEST_F(FilesSourceTest, UncommittedFilesAreNotHandedOverTwiceButAreAfterARestart) {
  Put("a", "1");
  const auto source = Open();
  EXPECT_THAT(Poll(*source, /*commit=*/false), ElementsAre(Pair("a", "1")));
  EXPECT_THAT(Poll(*source, /*commit=*/false), IsEmpty());
  EXPECT_THAT(Poll(*Open()), ElementsAre(Pair("a", "1")));
}

TEST_F(FilesSourceTest, AFileThatChangesWhileItIsReadEndsSoAndIsReadAgain) {
  Put("a", "0123456789");
  limits_.bytes_max = 4;
  const auto source = Open();
  ASSERT_OK(source->Next(limits_));
  Put("a", "abcdefghijkl");
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("a", "!changed_while_read")));
  EXPECT_THAT(last_.end->message, ::testing::HasSubstr("10 bytes at the start, 12 at the end"));
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("a", "abcdefghijkl")));
  EXPECT_THAT(Poll(*source), IsEmpty());
}

TEST_F(FilesSourceTest, AFileThatIsRemovedAfterItWasOpenedIsStillLoaded) {
  Put("a", "0123456789");
  limits_.bytes_max = 4;
  const auto source = Open();
  ASSERT_OK(source->Next(limits_));
  EXPECT_OK(store_.Delete("a"));
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("a", "456789")));
  EXPECT_EQ(last_.end->outcome, FileOutcome::kLoaded);
}

TEST_F(FilesSourceTest, AResumedFileGoesOnWhereItWasCommitted) {
  Put("a", "0123456789");
  const storage::ObjectMeta meta = store_.Head("a").value();
  ledger_.resume =
      FileResume{.key = "a",
                 .version = {.etag = meta.etag, .size_bytes = 10, .modified = meta.modified},
                 .offset_bytes = 7,
                 .rows_done = 3};
  EXPECT_THAT(Poll(*Open()), ElementsAre(Pair("a", "789")));
  EXPECT_EQ(last_.rows_done, 3);
  EXPECT_EQ(last_.end->content_hash, Xxh3("0123456789"));
  EXPECT_EQ(ledger_.resume, std::nullopt);
}

TEST_F(FilesSourceTest, AFileThatChangedAfterAPartOfItWasCommittedFollowsThePolicy) {
  Put("a", "0123456789");
  ledger_.resume = FileResume{
      .key = "a", .version = {.etag = "gone", .size_bytes = 8}, .offset_bytes = 7, .rows_done = 3};
  const FileLedger before = ledger_;
  EXPECT_THAT(Poll(*Open()), ElementsAre(Pair("a", "!changed_ignored")));
  EXPECT_THAT(last_.end->message, ::testing::HasSubstr("its first 3 rows were loaded"));
  EXPECT_THAT(Poll(*Open()), IsEmpty());
  ledger_ = before;
  options_.decide.on_changed = OnChanged::kReload;
  EXPECT_THAT(Poll(*Open()), ElementsAre(Pair("a", "0123456789")));
  EXPECT_TRUE(last_.replaces);
}

TEST_F(FilesSourceTest, AFileThatOnlyGrewAfterAPartOfItWasCommittedGoesOn) {
  Put("a", "0123456789");
  ledger_.resume = FileResume{.key = "a",
                              .version = {.etag = "gone", .size_bytes = 8},
                              .offset_bytes = 7,
                              .rows_done = 3,
                              .seen_bytes = 8,
                              .seen_hash = Xxh3("01234567")};
  EXPECT_THAT(Poll(*Open()), ElementsAre(Pair("a", "789")));
  EXPECT_EQ(last_.rows_done, 3);
  EXPECT_EQ(last_.content_hash, Xxh3("0123456789"));
  EXPECT_EQ(last_.end->content_hash, Xxh3("0123456789"));
}

TEST_F(FilesSourceTest, AFailureAtAnyOperationLosesAndRepeatsNothing) {
  Put("a", "0123456789");
  Put("b", "abcdefghij");
  for (int64_t n = 1;; ++n) {
    ledger_ = {};
    storage::FaultyStore faulty(store_, {.fail_at = n});
    const auto source = Open(&faulty);
    std::vector<std::pair<std::string, std::string>> files;
    for (bool more = true; more;) {
      const Result<SourceBatch> batch = source->Next(limits_);
      if (!batch.ok()) {
        EXPECT_THAT(batch, Fails(ErrorCode::kUnavailable));
        continue;
      }
      for (const SourceItem& item : batch->items) {
        Take(item, /*commit=*/true, files);
      }
      more = !batch->caught_up;
    }
    EXPECT_THAT(files, ElementsAre(Pair("a", "0123456789"), Pair("b", "abcdefghij"))) << n;
    EXPECT_EQ(ledger_.Find("a")->content_hash, Xxh3("0123456789")) << n;
    if (!faulty.failed()) {
      EXPECT_GT(n, 8);
      break;
    }
  }
}

TEST_F(FilesSourceTest, AFileThatCannotBeReadIsRejectedAndTheOthersGoOn) {
  Put("a", "a");
  Put("b", "b");
  options_.read_attempts_max = 2;
  storage::FaultyStore faulty(
      store_, {.fail_at = 1, .fail_count = 2, .only = storage::StoreOperation::kReadAt});
  const auto source = Open(&faulty);
  EXPECT_THAT(source->Next(limits_), Fails(ErrorCode::kUnavailable));
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("a", "!unreadable"), Pair("b", "b")));
  EXPECT_THAT(ledger_.Find("a")->outcome, FileOutcome::kUnreadable);
  EXPECT_THAT(Poll(*source), IsEmpty());
  // A permanent error is not tried again at all.
  ledger_ = {};
  faulty.Rearm({.fail_at = 1,
                .code = ErrorCode::kPermissionDenied,
                .only = storage::StoreOperation::kOpenReader});
  EXPECT_THAT(Poll(*Open(&faulty)), ElementsAre(Pair("a", "!unreadable"), Pair("b", "b")));
}

TEST_F(FilesSourceTest, CompressedFilesAreUnpackedWhateverTheirName) {
  std::string text;
  for (int i = 0; i < 500; ++i) {
    text += "{\"id\": " + std::to_string(i) + "}\n";
  }
  Put("a.json", Compress(arrow::Compression::GZIP, text));
  Put("b", Compress(arrow::Compression::GZIP, "one\n") + Compress(arrow::Compression::GZIP, "two"));
  Put("c.gz", "plain");
  Put("d", Compress(arrow::Compression::ZSTD, text));
  Put("e", Compress(arrow::Compression::BZ2, text));
  Put("f", Compress(arrow::Compression::LZ4_FRAME, text));
  Put("g", Compress(arrow::Compression::GZIP, "padded") + std::string(512, '\0'));
  Put("h", Compress(arrow::Compression::GZIP, ""));
  const auto source = Open();
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("a.json", text), Pair("b", "one\ntwo"),
                                         Pair("c.gz", "plain"), Pair("d", text), Pair("e", text),
                                         Pair("f", text), Pair("g", "padded"), Pair("h", "")));
  EXPECT_EQ(ledger_.Find("b")->outcome, FileOutcome::kLoaded);
  EXPECT_EQ(ledger_.Find("e")->content_hash, Xxh3(Compress(arrow::Compression::BZ2, text)));
  EXPECT_THAT(Poll(*source), IsEmpty());
}

TEST_F(FilesSourceTest, PositionsOfACompressedFileCountUnpackedBytes) {
  const std::string packed = Compress(arrow::Compression::ZSTD, "0123456789");
  Put("x", packed);
  const auto source = Open();
  ASSERT_OK_AND_ASSIGN(const SourceBatch batch, source->Next({}));
  std::vector<uint64_t> offsets;
  for (size_t i = 0; i + 1 < batch.items.size(); ++i) {
    const auto& position = std::get<FilePosition>(batch.items[i].position);
    EXPECT_TRUE(position.compressed);
    EXPECT_EQ(position.version.size_bytes, packed.size());
    offsets.push_back(position.offset_bytes);
  }
  EXPECT_THAT(offsets, ElementsAre(0u, 4u, 8u, 10u));  // The end is a piece of its own.
}

TEST_F(FilesSourceTest, DamagedAndRefusedFilesAreUnreadableAndNamed) {
  const std::string zstd = Compress(arrow::Compression::ZSTD, std::string(900, 'x') + "end");
  const std::string gzip = Compress(arrow::Compression::GZIP, "{}");
  Put("cut", zstd.substr(0, zstd.size() - 10));
  Put("header", gzip.substr(0, 10));
  Put("parquet", "PAR1....PAR1");
  Put("tail", gzip + "more");
  Put("twice", Compress(arrow::Compression::GZIP, gzip));
  Put("zip", "PK\x03\x04 and so on");
  const auto source = Open();
  std::map<std::string, std::string> messages;
  for (bool more = true; more;) {
    ASSERT_OK_AND_ASSIGN(const SourceBatch batch, source->Next(limits_));
    for (const SourceItem& item : batch.items) {
      const auto* position = std::get_if<FilePosition>(&item.position);
      if (position != nullptr && position->end) {
        EXPECT_EQ(position->end->outcome, FileOutcome::kUnreadable) << position->key;
        messages[position->key] = position->end->message;
        Record(ledger_, *position);
      }
    }
    more = !batch.caught_up;
  }
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  EXPECT_THAT(messages,
              ElementsAre(Pair("cut", AllOf(HasSubstr("\"cut\""), HasSubstr("ends inside"))),
                          Pair("header", AllOf(HasSubstr("\"header\""), HasSubstr("ends inside"))),
                          Pair("parquet", HasSubstr("\"parquet\" is a Parquet file")),
                          Pair("tail", AllOf(HasSubstr("\"tail\""), HasSubstr("damaged"))),
                          Pair("twice", AllOf(HasSubstr("\"twice\""), HasSubstr("packed twice"))),
                          Pair("zip", HasSubstr("\"zip\" is a zip archive"))));
  EXPECT_THAT(Poll(*source), IsEmpty());
  Put("cut", zstd);
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("cut", std::string(900, 'x') + "end")));
}

TEST_F(FilesSourceTest, HalfOfACompressedFileIsReadAgainWhenTheRestCame) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) {
    text += std::to_string(i * 7919) + "\n";
  }
  const std::string packed = Compress(arrow::Compression::GZIP, text);
  options_.piece_bytes = 1 << 20;
  limits_.bytes_max = 1000;
  Put("a", packed.substr(0, packed.size() / 2));
  const auto source = Open();
  ASSERT_OK(source->Next(limits_));
  Put("a", packed);
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("a", "!changed_while_read")));
  EXPECT_TRUE((Poll(*source) == std::vector<std::pair<std::string, std::string>>{{"a", text}}));
}

TEST_F(FilesSourceTest, AFailureInsideACompressedFileLosesAndRepeatsNothing) {
  std::string text;
  for (uint64_t i = 1, x = 1; i < 20'000; ++i) {
    x = x * 6364136223846793005ULL + 1442695040888963407ULL;  // Hardly to be packed.
    text += std::to_string(x) + "\n";
  }
  Put("a", Compress(arrow::Compression::LZ4_FRAME, text));
  ASSERT_GT(store_.Head("a")->size_bytes, 150'000u);  // More than two reads.
  options_.piece_bytes = 10'000;
  limits_.bytes_max = 50'000;
  for (int64_t n = 1;; ++n) {
    ledger_ = {};
    storage::FaultyStore faulty(store_, {.fail_at = n});
    const auto source = Open(&faulty);
    std::vector<std::pair<std::string, std::string>> files;
    for (bool more = true; more;) {
      const Result<SourceBatch> batch = source->Next(limits_);
      if (!batch.ok()) {
        EXPECT_THAT(batch, Fails(ErrorCode::kUnavailable));
        continue;
      }
      for (const SourceItem& item : batch->items) {
        Take(item, /*commit=*/true, files);
      }
      more = !batch->caught_up;
    }
    ASSERT_EQ(files.size(), 1u) << n;
    EXPECT_TRUE(files[0].second == text) << n;
    if (!faulty.failed()) {
      EXPECT_GT(n, 6);
      break;
    }
  }
}

TEST_F(FilesSourceTest, PollsAreCutAtTheirLimitAndTheNextGoesOn) {
  options_.files_per_poll_max = 2;
  for (const char* key : {"a", "b", "c", "d", "e"}) {
    Put(key, key);
  }
  EXPECT_THAT(Poll(*Open()), ElementsAre(Pair("a", "a"), Pair("b", "b"), Pair("c", "c"),
                                         Pair("d", "d"), Pair("e", "e")));
  EXPECT_EQ(ledger_.complete_until, clock_.Now());
}

TEST_F(FilesSourceTest, BadOptionsAreRefused) {
  options_.paths = {"**/*"};
  EXPECT_THAT(FilesSource::Open(options_, Dependencies()), Fails(ErrorCode::kInvalidArgument));
  options_.paths = {"*"};
  options_.piece_bytes = 0;
  EXPECT_THAT(FilesSource::Open(options_, Dependencies()), Fails(ErrorCode::kInvalidArgument));
}

TEST_F(FilesSourceTest, PreviewGivesEachFileItsReason) {
  options_.paths = {"<yyyy>/<MM>/<dd>/*.csv"};
  options_.exclude = {"<yyyy>/<MM>/<dd>/_*"};
  options_.decide.process_from = {.kind = ProcessFrom::Kind::kBack, .back = hours(48)};
  options_.decide.first_start = clock_.Now();
  for (const char* key :
       {"2026/02/01/b.csv", "2026/02/01/a.csv", "2026/01/31/c.csv", "2026/01/01/old.csv",
        "2026/03/01/future.csv", "2026/02/01/_x.csv", "2026/02/01/x.json", "readme.txt"}) {
    Put(key, "x");
  }
  Put("2026/02/01/empty.csv", "");
  Put("2026/02/01/done.csv", "x");
  const storage::ObjectMeta done = store_.Head("2026/02/01/done.csv").value();
  ledger_.entries["2026/02/01/done.csv"] = {
      .key = done.key, .version = {.etag = done.etag, .size_bytes = 1}, .loaded = true};
  ASSERT_OK_AND_ASSIGN(const FilesPreview preview, PreviewFiles(options_, Dependencies()));
  EXPECT_THAT(preview.included,
              ElementsAre(IncludedFile{"2026/01/31/c.csv", 1, Time("2026-01-31")},
                          IncludedFile{"2026/02/01/a.csv", 1, Time("2026-02-01")},
                          IncludedFile{"2026/02/01/b.csv", 1, Time("2026-02-01")}));
  EXPECT_THAT(
      preview.excluded,
      ElementsAre(ExcludedFile{"2026/01/01/old.csv", "from before process_files_from"},
                  ExcludedFile{"2026/02/01/_x.csv", "excluded by \"<yyyy>/<MM>/<dd>/_*\""},
                  ExcludedFile{"2026/02/01/done.csv", "already loaded"},
                  ExcludedFile{"2026/02/01/empty.csv", "zero bytes"},
                  ExcludedFile{"2026/02/01/x.json", "matches none of the paths"},
                  ExcludedFile{"2026/03/01/future.csv",
                               "its date has not come: read from 2026-03-01T00:00:00.000000Z"},
                  ExcludedFile{"readme.txt", "matches none of the paths"}));
  EXPECT_FALSE(preview.truncated);
  ASSERT_OK_AND_ASSIGN(const FilesPreview cut, PreviewFiles(options_, Dependencies(), 3));
  EXPECT_TRUE(cut.truncated);
}

TEST_F(FilesSourceTest, PreviewAndSourceAgree) {
  options_.paths = {"<yyyy>/<MM>/<dd>/*"};
  ledger_.complete_until = clock_.Now();
  for (const char* key : {"2026/01/01/before", "2026/01/31/in", "2026/02/01/in", "x"}) {
    Put(key, "x");
  }
  ASSERT_OK_AND_ASSIGN(const FilesPreview preview, PreviewFiles(options_, Dependencies()));
  std::vector<std::string> expected;
  for (const IncludedFile& file : preview.included) {
    expected.push_back(file.path);
  }
  std::vector<std::string> read;
  for (const auto& [key, payload] : Poll(*Open())) {
    read.push_back(key);
  }
  EXPECT_EQ(read, expected);
  EXPECT_THAT(read, ElementsAre("2026/01/31/in", "2026/02/01/in"));
}

class LocalFilesSourceTest : public FilesSourceTest {
 protected:
  LocalFilesSourceTest() { options_.decide.version_kind = VersionKind::kSizeAndTime; }
  void MakeFile(const fs::path& path, const std::string& bytes) {
    fs::create_directories((directory_.path() / path).parent_path());
    std::ofstream(directory_.path() / path) << bytes;
  }
  SourceStore OpenPlace() {
    return OpenSourceStore("file://" + directory_.path().string()).value();
  }
  void Touch(const fs::path& path, int seconds) {
    fs::last_write_time(directory_.path() / path, fs::last_write_time(directory_.path() / path) +
                                                      std::chrono::seconds(seconds));
  }

  TemporaryDirectory directory_;
};

TEST_F(LocalFilesSourceTest, ATouchedFileIsNotReadAgain) {
  MakeFile("a", "0123456789");
  const SourceStore place = OpenPlace();
  const auto source = Open(place.store.get());
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("a", "0123456789")));
  Touch("a", 5);
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("a", "!touched")));
  EXPECT_THAT(Poll(*source), IsEmpty());
  MakeFile("a", "9876543210");
  Touch("a", 10);
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("a", "!changed_ignored")));
}

TEST_F(LocalFilesSourceTest, AFileThatGrowsWhileItIsReadIsReadAgainWhole) {
  MakeFile("log", "0123456789");
  const SourceStore place = OpenPlace();
  limits_.bytes_max = 4;
  const auto source = Open(place.store.get());
  ASSERT_OK(source->Next(limits_));
  std::ofstream(directory_.path() / "log", std::ios::app) << "more";
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("log", "!changed_while_read")));
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("log", "0123456789more")));
}

TEST_F(LocalFilesSourceTest, AFileThatIsCutWhileItIsReadIsReadAgainWhole) {
  MakeFile("log", "0123456789");
  const SourceStore place = OpenPlace();
  limits_.bytes_max = 4;
  const auto source = Open(place.store.get());
  ASSERT_OK(source->Next(limits_));
  fs::resize_file(directory_.path() / "log", 5);
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("log", "!changed_while_read")));
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("log", "01234")));
}

TEST_F(LocalFilesSourceTest, ReadsFromAFolderThatMayOnlyBeRead) {
  MakeFile("2026/a[1].csv", "payload");
  MakeFile("2026/secret.csv", "secret");
  fs::permissions(directory_.path(),
                  fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  fs::permissions(directory_.path() / "2026" / "secret.csv", fs::perms::none);
  EXPECT_TRUE(PassesUnprivileged([this] {
    options_.paths = {"<yyyy>/*.csv"};
    const SourceStore place = OpenPlace();
    EXPECT_EQ(place.name_prefix, fs::canonical(directory_.path()).string() + "/");
    EXPECT_THAT(
        Poll(*Open(place.store.get())),
        ElementsAre(Pair("2026/a[1].csv", "payload"), Pair("2026/secret.csv", "!unreadable")));
    EXPECT_THAT(last_.end->message, ::testing::HasSubstr("PermissionDenied"));
  }));
  EXPECT_FALSE(fs::exists(directory_.path() / ".tmp"));
}

TEST_F(LocalFilesSourceTest, NamesThatAreNoUtf8AreLeftOutAndPreviewSaysSo) {
  MakeFile("bad\xFF.csv", "x");
  MakeFile("good.csv", "y");
  const SourceStore place = OpenPlace();
  const std::unique_ptr<FilesSource> source = Open(place.store.get());
  EXPECT_THAT(Poll(*source), ElementsAre(Pair("good.csv", "y")));
  EXPECT_EQ(source->bad_name_count(), 1);
  EXPECT_THAT(source->TakeBadNames(), ElementsAre(::testing::EndsWith("bad\\xFF.csv")));
  EXPECT_THAT(Poll(*source), ElementsAre());
  EXPECT_EQ(source->bad_name_count(), 1);
  EXPECT_THAT(source->TakeBadNames(), ElementsAre());
  ledger_ = {};
  ASSERT_OK_AND_ASSIGN(const FilesPreview preview,
                       PreviewFiles(options_, Dependencies(place.store.get())));
  ASSERT_EQ(preview.excluded.size(), 1u);
  EXPECT_THAT(preview.excluded[0].reason, ::testing::HasSubstr("not UTF-8"));
}

TEST_F(LocalFilesSourceTest, LoadedFilesAreRemovedButTheirFoldersStay) {
  MakeFile("drop/a", "x");
  options_.paths = {"drop/*"};
  const SourceStore reading = OpenPlace();
  EXPECT_THAT(Poll(*Open(reading.store.get())), ElementsAre(Pair("drop/a", "x")));
  ASSERT_OK_AND_ASSIGN(const SourceStore removal,
                       OpenSourceStoreForRemoval("file://" + directory_.path().string()));
  const auto removed =
      RemoveLoaded(*removal.store, {*ledger_.Find("drop/a")}, removal.version_kind, RunMode::kDoIt);
  EXPECT_EQ(removed[0].outcome, RemovalOutcome::kRemoved);
  EXPECT_TRUE(fs::is_directory(directory_.path() / "drop"));
  EXPECT_FALSE(fs::exists(directory_.path() / "drop" / "a"));
}

TEST_F(LocalFilesSourceTest, OtherUrisAreRefusedClearly) {
  EXPECT_THAT(OpenSourceStore("s3://bucket/in"),
              FailsWith(ErrorCode::kUnimplemented, "scheme s3 are not available"));
  EXPECT_THAT(OpenSourceStore("file://" + directory_.path().string() + "/missing"),
              FailsWith(ErrorCode::kNotFound, "/missing"));
  EXPECT_THAT(OpenSourceStore("data/in"), Fails(ErrorCode::kInvalidArgument));
}

}  // namespace
}  // namespace tarn::source::files
