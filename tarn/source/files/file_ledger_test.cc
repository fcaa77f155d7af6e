#include "tarn/source/files/file_ledger.h"

#include "test/support/matchers.h"

namespace tarn::source::files {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

const Timestamp kNow = FromMillis(1'800'000'000'000);

FileVersion Version(uint64_t size_bytes, Timestamp modified, std::string etag = "e1") {
  return {.etag = std::move(etag), .size_bytes = size_bytes, .modified = modified};
}

FoundFile Found(FileVersion version) { return {.key = "a", .version = std::move(version)}; }

LedgerEntry Loaded(FileVersion version) {
  return {.key = "a",
          .version = std::move(version),
          .content_hash = 77,
          .outcome = FileOutcome::kLoaded,
          .loaded = true};
}

FileAction Decide(const FoundFile& found, const LedgerEntry* known,
                  const DecideOptions& options = {}) {
  return DecideFile(found, known, options, kNow).action;
}

TEST(FileLedgerTest, NewFilesAreLoadedAndKnownOnesSkipped) {
  const FoundFile found = Found(Version(5, kNow));
  EXPECT_EQ(Decide(found, nullptr), FileAction::kLoad);
  const LedgerEntry known = Loaded(found.version);
  EXPECT_EQ(Decide(found, &known), FileAction::kSkip);
  EXPECT_EQ(DecideFile(found, &known, {}, kNow).reason, "already loaded");
}

TEST(FileLedgerTest, LocalFilesWithAnotherEtagOnlyAreTheSame) {
  const LedgerEntry known = Loaded(Version(5, kNow, "e1"));
  EXPECT_EQ(Decide(Found(Version(5, kNow, "e2")), &known), FileAction::kSkip);
}

TEST(FileLedgerTest, ATouchedFileIsComparedByContent) {
  const LedgerEntry known = Loaded(Version(5, kNow - hours(1)));
  FoundFile found = Found(Version(5, kNow));
  EXPECT_EQ(Decide(found, &known), FileAction::kCompareContent);
  found.content_hash = 77;
  EXPECT_EQ(Decide(found, &known), FileAction::kTake);
  found.content_hash = 78;
  EXPECT_EQ(Decide(found, &known), FileAction::kReport);
  EXPECT_EQ(Decide(found, &known, {.on_changed = OnChanged::kReload}), FileAction::kReload);
}

TEST(FileLedgerTest, AChangedFileIsReportedOrReloaded) {
  const LedgerEntry known = Loaded(Version(5, kNow - hours(1)));
  const FoundFile found = Found(Version(6, kNow));
  EXPECT_EQ(Decide(found, &known), FileAction::kReport);
  EXPECT_EQ(DecideFile(found, &known, {}, kNow).reason,
            "changed since it was loaded (5 bytes then, 6 now); on_changed: report");
  EXPECT_EQ(Decide(found, &known, {.on_changed = OnChanged::kReload}), FileAction::kReload);
}

TEST(FileLedgerTest, ObjectsAreComparedByEtagAlone) {
  const DecideOptions options{.version_kind = VersionKind::kEtag};
  const LedgerEntry known = Loaded(Version(5, kNow - hours(1), "e1"));
  EXPECT_EQ(Decide(Found(Version(5, kNow, "e1")), &known, options), FileAction::kSkip);
  EXPECT_EQ(Decide(Found(Version(5, kNow - hours(1), "e2")), &known, options), FileAction::kReport);
}

TEST(FileLedgerTest, AReportedVersionIsReportedOnce) {
  LedgerEntry known = Loaded(Version(6, kNow));
  known.outcome = FileOutcome::kChangedIgnored;
  known.content_hash.reset();
  EXPECT_EQ(Decide(Found(Version(6, kNow)), &known), FileAction::kSkip);
  EXPECT_EQ(Decide(Found(Version(7, kNow)), &known), FileAction::kReport);
  // The user changed his mind.
  EXPECT_EQ(Decide(Found(Version(6, kNow)), &known, {.on_changed = OnChanged::kReload}),
            FileAction::kReload);
}

TEST(FileLedgerTest, ZeroBytesAreRejectedOnceAndALaterOverwriteIsLoaded) {
  const FoundFile empty = Found(Version(0, kNow));
  EXPECT_EQ(Decide(empty, nullptr), FileAction::kReject);
  LedgerEntry known{.key = "a", .version = empty.version, .outcome = FileOutcome::kEmpty};
  EXPECT_EQ(Decide(empty, &known), FileAction::kSkip);
  EXPECT_EQ(Decide(Found(Version(5, kNow + hours(1))), &known), FileAction::kLoad);
  known.outcome = FileOutcome::kUnreadable;
  known.version = Version(5, kNow);
  EXPECT_EQ(Decide(Found(Version(5, kNow)), &known), FileAction::kSkip);
  EXPECT_EQ(Decide(Found(Version(5, kNow + hours(1))), &known), FileAction::kLoad);
}

TEST(FileLedgerTest, ALoadedFileThatIsEmptiedIsAChange) {
  const LedgerEntry known = Loaded(Version(5, kNow - hours(1)));
  EXPECT_EQ(Decide(Found(Version(0, kNow)), &known), FileAction::kReport);
  EXPECT_EQ(Decide(Found(Version(0, kNow)), &known, {.on_changed = OnChanged::kReload}),
            FileAction::kSkip);
}

TEST(FileLedgerTest, AFileThatChangedWhileItWasReadIsReadAgain) {
  LedgerEntry known{
      .key = "a", .version = Version(5, kNow), .outcome = FileOutcome::kChangedWhileRead};
  EXPECT_EQ(Decide(Found(Version(9, kNow)), &known), FileAction::kLoad);
  EXPECT_EQ(Decide(Found(Version(5, kNow)), &known), FileAction::kLoad);
  known.loaded = true;
  EXPECT_EQ(Decide(Found(Version(9, kNow)), &known), FileAction::kReport);
  EXPECT_EQ(Decide(Found(Version(5, kNow)), &known, {.on_changed = OnChanged::kReload}),
            FileAction::kReload);
}

TEST(FileLedgerTest, FutureFilesWaitForTheirDate) {
  FoundFile found = Found(Version(5, kNow));
  found.period = DatePeriod{kNow + hours(1), kNow + hours(2)};
  EXPECT_EQ(Decide(found, nullptr), FileAction::kWait);
  EXPECT_THAT(DecideFile(found, nullptr, {}, kNow).reason,
              ::testing::HasSubstr(FormatTimestamp(kNow + hours(1))));
  EXPECT_EQ(Decide(found, nullptr, {.read_future = true}), FileAction::kLoad);
  found.period = DatePeriod{kNow, kNow + hours(1)};
  EXPECT_EQ(Decide(found, nullptr), FileAction::kLoad);
}

TEST(FileLedgerTest, ProcessFromNowTakesWhatComesAfterTheFirstStart) {
  const DecideOptions options{.process_from = {.kind = ProcessFrom::Kind::kNow},
                              .first_start = kNow - hours(10)};
  EXPECT_EQ(Decide(Found(Version(5, kNow - hours(11))), nullptr, options), FileAction::kSkip);
  EXPECT_EQ(Decide(Found(Version(5, kNow - hours(9))), nullptr, options), FileAction::kLoad);
  // The tick of the file system's clock.
  EXPECT_EQ(Decide(Found(Version(5, options.first_start - milliseconds(4))), nullptr, options),
            FileAction::kLoad);
  FoundFile dated = Found(Version(5, kNow - hours(9)));
  dated.period = DatePeriod{kNow - hours(48), kNow - hours(24)};
  EXPECT_EQ(Decide(dated, nullptr, options), FileAction::kSkip);
}

TEST(FileLedgerTest, ProcessFromADurationGoesByTheDateWhereThereIsOne) {
  const DecideOptions options{.process_from = {.kind = ProcessFrom::Kind::kBack, .back = hours(24)},
                              .first_start = kNow};
  EXPECT_EQ(Decide(Found(Version(5, kNow - hours(25))), nullptr, options), FileAction::kSkip);
  EXPECT_EQ(Decide(Found(Version(5, kNow - hours(23))), nullptr, options), FileAction::kLoad);
  FoundFile dated = Found(Version(5, kNow - hours(1000)));
  dated.period = DatePeriod{kNow - hours(30), kNow - hours(20)};
  EXPECT_EQ(Decide(dated, nullptr, options), FileAction::kLoad);
  dated.period = DatePeriod{kNow - hours(30), kNow - hours(24)};
  EXPECT_EQ(Decide(dated, nullptr, options), FileAction::kSkip);
}

TEST(FileLedgerTest, ProcessFromIsParsed) {
  EXPECT_THAT(ParseProcessFrom("earliest"), IsOkAndHolds(ProcessFrom{}));
  EXPECT_THAT(ParseProcessFrom("now"),
              IsOkAndHolds(ProcessFrom{.kind = ProcessFrom::Kind::kNow, .back = {}}));
  EXPECT_THAT(ParseProcessFrom("7d"),
              IsOkAndHolds(ProcessFrom{.kind = ProcessFrom::Kind::kBack, .back = hours(168)}));
  EXPECT_THAT(ParseProcessFrom("yesterday"),
              FailsWith(ErrorCode::kInvalidArgument, "\"yesterday\": write earliest, now or"));
}

TEST(FileLedgerTest, RecordRemembersThatRowsWereLoaded) {
  FileLedger ledger;
  FilePosition position{.key = "a", .version = Version(5, kNow)};
  position.end = FileEnd{.outcome = FileOutcome::kLoaded, .content_hash = 77};
  Record(ledger, position);
  ASSERT_NE(ledger.Find("a"), nullptr);
  EXPECT_EQ(*ledger.Find("a"), Loaded(Version(5, kNow)));
  position.version = Version(5, kNow + hours(1));
  position.end = FileEnd{.outcome = FileOutcome::kTouched};
  Record(ledger, position);
  EXPECT_EQ(*ledger.Find("a"), Loaded(Version(5, kNow + hours(1))));
  position.version = Version(0, kNow + hours(2));
  position.end = FileEnd{.outcome = FileOutcome::kEmpty};
  Record(ledger, position);
  EXPECT_TRUE(ledger.Find("a")->loaded);
  EXPECT_EQ(ledger.Find("a")->outcome, FileOutcome::kEmpty);
  EXPECT_EQ(ledger.Find("b"), nullptr);
}

TEST(FileLedgerTest, AFileCommittedInPartCountsAsLoadedWhenItEndsBadly) {
  FileLedger ledger{.resume = FileResume{.key = "a", .offset_bytes = 3}};
  FilePosition position{.key = "b", .version = Version(5, kNow)};
  position.end = FileEnd{.outcome = FileOutcome::kChangedWhileRead};
  Record(ledger, position);
  EXPECT_FALSE(ledger.Find("b")->loaded);
  EXPECT_TRUE(ledger.resume.has_value());
  position.key = "a";
  Record(ledger, position);
  EXPECT_TRUE(ledger.Find("a")->loaded);
  EXPECT_FALSE(ledger.resume.has_value());
}

}  // namespace
}  // namespace tarn::source::files
