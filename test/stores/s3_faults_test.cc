// S3Store when the network or the server fails: what is retried, what is looked up, what is said.
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "tarn/base/hash.h"
#include "tarn/storage/s3/s3_store.h"
#include "test/stores/faulty_proxy.h"
#include "test/stores/store_server.h"
#include "test/support/matchers.h"

namespace tarn::storage::s3 {
namespace {

using test::Decision;
using test::Fault;
using test::FaultyProxy;
using test::PlainAnswer;
using test::Seen;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kPart = 5U << 20;

std::string Pattern(size_t size) {
  std::string bytes(size, '\0');
  uint64_t state = 1;
  for (char& byte : bytes) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    byte = static_cast<char>(state >> 56);
  }
  return bytes;
}

Fault Pass(const Seen&) { return Fault::kNone; }

class S3FaultsTest : public ::testing::Test {
 protected:
  S3FaultsTest() : options_(test::NewBucket(test::Versitygw())) {
    options_.prefix = "some/pre fix";
    test::MakeBucket(options_);
    direct_ = S3Store::Open(options_, S3Access::kReadWrite, World()).value();
  }

  RetryWorld World() { return {clock_, sleeper_}; }
  S3Options Through(const FaultyProxy& proxy) const {
    S3Options options = options_;
    options.endpoint = proxy.address().endpoint;
    return options;
  }
  std::unique_ptr<S3Store> Open(FaultyProxy& proxy) {
    return S3Store::Open(Through(proxy), S3Access::kReadWrite, World()).value();
  }
  size_t UploadCount() {
    return S3Client::Open(options_, World()).value()->ListUploads("").value().size();
  }
  std::vector<std::string> Keys() {
    std::vector<std::string> keys;
    const ListPage page = direct_->List({.prefix = {}, .start_after = {}}).value();
    for (const ObjectMeta& object : page.objects) {
      keys.push_back(object.key);
    }
    return keys;
  }

  SystemClock clock_;
  SystemSleeper sleeper_;
  S3Options options_;
  std::unique_ptr<S3Store> direct_;
};

// Everything a store is used for, once.
void UseStore(S3Store& store, const std::string& folder, const std::string& large) {
  ASSERT_OK(WriteObject(store, folder + "/plain", "one", WriteMode::kOverwrite));
  ASSERT_OK(WriteObject(store, folder + "/new", "two", WriteMode::kPutIfAbsent));
  EXPECT_THAT(WriteObject(store, folder + "/new", "three", WriteMode::kPutIfAbsent),
              Fails(ErrorCode::kAlreadyExists));
  ASSERT_OK(WriteObject(store, folder + "/large", large, WriteMode::kPutIfAbsent));
  EXPECT_THAT(WriteObject(store, folder + "/large", large, WriteMode::kPutIfAbsent),
              Fails(ErrorCode::kAlreadyExists));
  EXPECT_THAT(ReadObject(store, folder + "/new"), IsOkAndHolds(std::string("two")));
  ASSERT_OK_AND_ASSIGN(const std::string back, ReadObject(store, folder + "/large"));
  EXPECT_TRUE(back == large);
  ASSERT_OK(store.Copy(folder + "/new", folder + "/copy"));
  ASSERT_OK(store.Delete(folder + "/plain"));
  ASSERT_OK(store.DeleteMany({folder + "/copy", folder + "/never"}));
  ASSERT_OK_AND_ASSIGN(const ListPage page,
                       store.List({.prefix = folder + "/", .start_after = {}}));
  ASSERT_EQ(page.objects.size(), 2u);
  EXPECT_EQ(page.objects[0].key, folder + "/large");
  EXPECT_EQ(page.objects[1].key, folder + "/new");
}

TEST_F(S3FaultsTest, AnyOneFaultAtAnyRequestIsSurvived) {
  const std::string large = Pattern(kPart * 2 + 1000);
  for (const Fault fault : {Fault::kDropRequest, Fault::kLoseReply, Fault::kCutReply, Fault::kTwice,
                            Fault::kError500, Fault::kActAnd500, Fault::kSlowDown}) {
    FaultyProxy proxy(test::Versitygw(), &Pass);
    const auto store = Open(proxy);
    for (int64_t n = 1;; ++n) {
      std::atomic<bool> failed{false};
      proxy.Rearm([&, n](const Seen& seen) {
        failed = failed || seen.number == n;
        return seen.number == n ? fault : Fault::kNone;
      });
      const std::string folder = std::to_string(static_cast<int>(fault)) + "/" + std::to_string(n);
      UseStore(*store, folder, large);
      ASSERT_FALSE(HasFatalFailure()) << folder;
      if (!failed) {
        break;
      }
    }
  }
  // A repeated start of an upload leaves one behind that nobody sees; opening removes old ones.
  ASSERT_OK(direct_->AbortStaleUploads(clock_.Now() + std::chrono::hours(1)));
  EXPECT_EQ(UploadCount(), 0u);
}

TEST_F(S3FaultsTest, AfterTheServerIsGoneNothingIsVisibleUnlessSaid) {
  const std::string large = Pattern(kPart + 1000);
  FaultyProxy proxy(test::Versitygw(), &Pass);
  S3Options options = Through(proxy);
  options.retry.attempts_max = 2;
  const auto store = S3Store::Open(options, S3Access::kReadWrite, World()).value();
  for (const Fault fault : {Fault::kDropRequest, Fault::kLoseReply, Fault::kActAnd500}) {
    for (int64_t n = 1; n <= 6; ++n) {
      proxy.Rearm([&, n](const Seen& seen) { return seen.number >= n ? fault : Fault::kNone; });
      const std::string key = std::to_string(static_cast<int>(fault)) + "-" + std::to_string(n);
      const auto written = WriteObject(*store, key, large, WriteMode::kPutIfAbsent);
      const Result<std::string> found = ReadObject(*direct_, key);
      if (written.ok()) {
        EXPECT_TRUE(found.ok() && *found == large) << key;
      } else if (written.status().code() == ErrorCode::kCommitStateUnknown) {
        EXPECT_TRUE(!found.ok() || *found == large) << key;
      } else {
        EXPECT_THAT(found, Fails(ErrorCode::kNotFound)) << key << written.status().ToString();
        EXPECT_TRUE(IsRetryable(written.status().code())) << written.status().ToString();
      }
    }
  }
}

TEST_F(S3FaultsTest, ALostReplyIsResolvedByLooking) {
  FaultyProxy proxy(test::Versitygw(), &Pass);
  const auto store = Open(proxy);
  // Ours arrived although every reply to a PUT was lost.
  proxy.Rearm(
      [](const Seen& seen) { return seen.method == "PUT" ? Fault::kLoseReply : Fault::kNone; });
  ASSERT_OK_AND_ASSIGN(const ObjectMeta written,
                       WriteObject(*store, "a", "mine", WriteMode::kPutIfAbsent));
  EXPECT_THAT(direct_->Head("a"), IsOkAndHolds(written));
  // Somebody else's was there.
  ASSERT_OK(WriteObject(*direct_, "b", "theirs", WriteMode::kOverwrite));
  EXPECT_THAT(WriteObject(*store, "b", "mine", WriteMode::kPutIfAbsent),
              FailsWith(ErrorCode::kAlreadyExists, "\"b\""));
  EXPECT_THAT(ReadObject(*direct_, "b"), IsOkAndHolds(std::string("theirs")));
  // It cannot be looked at.
  proxy.Rearm([](const Seen&) { return Fault::kLoseReply; });
  EXPECT_THAT(WriteObject(*store, "c", "mine", WriteMode::kPutIfAbsent),
              FailsWith(ErrorCode::kCommitStateUnknown, "\"c\""));
  EXPECT_THAT(ReadObject(*direct_, "c"), IsOkAndHolds(std::string("mine")));
}

TEST_F(S3FaultsTest, ARequestThatTheNetworkRepeatsIsOneWrite) {
  FaultyProxy proxy(test::Versitygw(), &Pass);
  const auto store = Open(proxy);
  proxy.Rearm([](const Seen&) { return Fault::kTwice; });
  EXPECT_OK(WriteObject(*store, "a", "mine", WriteMode::kPutIfAbsent));
  EXPECT_OK(WriteObject(*store, "b", Pattern(kPart + 1), WriteMode::kPutIfAbsent));
  EXPECT_OK(store->Delete("a"));
  EXPECT_THAT(Keys(), ::testing::ElementsAre("b"));
}

TEST_F(S3FaultsTest, ABrokenTransferIsTakenUpWhereItBroke) {
  const std::string large = Pattern(kPart);
  ASSERT_OK(WriteObject(*direct_, "a", large, WriteMode::kOverwrite));
  FaultyProxy proxy(test::Versitygw(), &Pass);
  const auto store = Open(proxy);
  ASSERT_OK_AND_ASSIGN(const auto reader, store->OpenReader("a"));
  proxy.Rearm([](const Seen& seen) { return seen.number <= 3 ? Fault::kCutReply : Fault::kNone; });
  std::string bytes(4'000'000, '\0');
  ASSERT_THAT(reader->ReadAt(0, bytes.size(), bytes.data()), IsOkAndHolds(bytes.size()));
  EXPECT_TRUE(bytes == large.substr(0, bytes.size()));
  const std::vector<Seen> seen = proxy.seen();
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_THAT(seen[0].head, HasSubstr("Range: bytes=0-3999999\r\n"));
  EXPECT_THAT(seen[1].head, HasSubstr("Range: bytes=2000000-3999999\r\n"));
  EXPECT_THAT(seen[3].head, HasSubstr("Range: bytes=3500000-3999999\r\n"));
}

TEST_F(S3FaultsTest, ReadersOfAReplacedObjectSaySo) {
  ASSERT_OK(WriteObject(*direct_, "a", Pattern(200'000), WriteMode::kOverwrite));
  ASSERT_OK_AND_ASSIGN(const auto reader, direct_->OpenReader("a"));
  ASSERT_OK(WriteObject(*direct_, "a", Pattern(200'001), WriteMode::kOverwrite));
  char byte = '\0';
  EXPECT_THAT(reader->ReadAt(0, 1, &byte), FailsWith(ErrorCode::kConflict, "replaced"));
}

TEST_F(S3FaultsTest, SmallObjectsTakeOneRequestAndFootersComeAlong) {
  ASSERT_OK(WriteObject(*direct_, "small", "x", WriteMode::kOverwrite));
  ASSERT_OK(WriteObject(*direct_, "big", Pattern(1'000'000), WriteMode::kOverwrite));
  FaultyProxy proxy(test::Versitygw(), &Pass);
  const auto store = S3Store::Open(Through(proxy), S3Access::kReadOnly, World()).value();
  proxy.Rearm(&Pass);
  EXPECT_OK(ReadObject(*store, "small"));
  EXPECT_EQ(proxy.count(), 1);
  ASSERT_OK_AND_ASSIGN(const auto reader, store->OpenReader("big"));
  std::string bytes(50'000, '\0');
  EXPECT_OK(reader->ReadAt(950'000, 50'000, bytes.data()));
  EXPECT_EQ(proxy.count(), 2);
  // A walk through the object in small steps is gathered into few requests.
  for (uint64_t at = 0; at < 900'000; at += 1000) {
    EXPECT_OK(reader->ReadAt(at, 1000, bytes.data()));
  }
  EXPECT_LE(proxy.count(), 8);
}

TEST_F(S3FaultsTest, AServerThatHangsIsGivenUp) {
  FaultyProxy proxy(test::Versitygw(), [](const Seen&) { return Fault::kHang; });
  S3Options options = Through(proxy);
  options.http.answer_timeout = std::chrono::milliseconds(200);
  options.retry.attempts_max = 2;
  EXPECT_THAT(S3Store::Open(options, S3Access::kReadOnly, World()),
              FailsWith(ErrorCode::kDeadlineExceeded, "after 2 attempts"));
  EXPECT_EQ(proxy.count(), 2);
  options.endpoint = "http://127.0.0.1:" + std::to_string(test::FreePort());
  EXPECT_THAT(S3Store::Open(options, S3Access::kReadOnly, World()),
              FailsWith(ErrorCode::kUnavailable, options.endpoint.substr(7)));
}

TEST_F(S3FaultsTest, AServerThatAsksForRestIsLeftAlone) {
  FaultyProxy proxy(test::Versitygw(), [](const Seen& seen) {
    return seen.number > 2 ? Decision(Fault::kNone)
                           : Decision(PlainAnswer("503 Slow Down", "", "Retry-After: 7\r\n"));
  });
  ManualClock clock(clock_.Now());
  ManualSleeper sleeper(clock);
  S3Options options = Through(proxy);
  options.retry.wait_max = std::chrono::seconds(10);
  const Timestamp begin = clock.Now();
  EXPECT_OK(S3Store::Open(options, S3Access::kReadOnly, {clock, sleeper}));
  EXPECT_EQ(clock.Now() - begin, std::chrono::seconds(14));
}

TEST_F(S3FaultsTest, AWrongClockIsCorrectedByTheServers) {
  for (const auto skew : {std::chrono::hours(-26), std::chrono::hours(3)}) {
    ManualClock clock(clock_.Now() + skew);
    ManualSleeper sleeper(clock);
    const auto store = S3Store::Open(options_, S3Access::kReadWrite, {clock, sleeper});
    ASSERT_OK(store);
    EXPECT_OK(WriteObject(**store, "a", "x", WriteMode::kOverwrite));
    EXPECT_OK((*store)->Head("a"));
  }
}

TEST_F(S3FaultsTest, RedirectsAreFollowedAndRegionsLearnt) {
  const std::string real = options_.endpoint;
  FaultyProxy proxy(test::Versitygw(), [real](const Seen& seen) {
    return Decision(
        PlainAnswer("307 Temporary Redirect", "", "Location: " + real + seen.target + "\r\n"));
  });
  ASSERT_OK_AND_ASSIGN(const auto store,
                       S3Store::Open(Through(proxy), S3Access::kReadWrite, World()));
  EXPECT_OK(WriteObject(*store, "a", "x", WriteMode::kOverwrite));
  EXPECT_THAT(ReadObject(*direct_, "a"), IsOkAndHolds(std::string("x")));
  // The region of the configuration is wrong.
  FaultyProxy elsewhere(test::Versitygw(), [](const Seen& seen) {
    return seen.head.find("/eu-x/") == std::string::npos
               ? Decision(Fault::kNone)
               : Decision(PlainAnswer("400 Bad Request",
                                      "<Error><Code>AuthorizationHeaderMalformed</Code>"
                                      "<Message>m</Message><Region>us-east-1</Region></Error>"));
  });
  S3Options options = Through(elsewhere);
  options.region = "eu-x";
  EXPECT_OK(S3Store::Open(options, S3Access::kReadWrite, World()));
  // Amazon's answer when the bucket is in another region than the endpoint.
  FaultyProxy far(test::Versitygw(), [](const Seen&) {
    return Decision(PlainAnswer("301 Moved Permanently", "", "x-amz-bucket-region: us-east-1\r\n"));
  });
  EXPECT_THAT(S3Store::Open(Through(far), S3Access::kReadWrite, World()),
              FailsWith(ErrorCode::kFailedPrecondition, "is in region us-east-1"));
}

TEST_F(S3FaultsTest, AServerThatIgnoresConditionsIsRefused) {
  // Says yes to every write, as old servers do.
  const auto lie = [](const Seen& seen) {
    return seen.method == "PUT" ? Decision(PlainAnswer("200 OK", "", "ETag: \"1\"\r\n"))
                                : Decision(Fault::kNone);
  };
  FaultyProxy proxy(test::Versitygw(), lie);
  EXPECT_THAT(S3Store::Open(Through(proxy), S3Access::kReadWrite, World()),
              FailsWith(ErrorCode::kFailedPrecondition, "ignores If-None-Match on PUT"));
  EXPECT_OK(S3Store::Open(Through(proxy), S3Access::kReadOnly, World()));
  S3Options without = Through(proxy);
  without.conditional_put = ConditionalPut::kUnavailable;
  ASSERT_OK_AND_ASSIGN(const auto store, S3Store::Open(without, S3Access::kReadWrite, World()));
  EXPECT_FALSE(store->capabilities().put_if_absent);
  EXPECT_THAT(store->OpenWriter("a", WriteMode::kPutIfAbsent), Fails(ErrorCode::kUnimplemented));
  // Only uploads in parts overwrite.
  FaultyProxy half(test::Versitygw(), [](const Seen& seen) {
    return seen.method == "POST" && seen.target.find("uploadId") != std::string::npos
               ? Decision(PlainAnswer("200 OK", "<CompleteMultipartUploadResult/>"))
               : Decision(Fault::kNone);
  });
  EXPECT_THAT(S3Store::Open(Through(half), S3Access::kReadWrite, World()),
              FailsWith(ErrorCode::kFailedPrecondition, "an upload in parts"));
}

TEST_F(S3FaultsTest, ListsOutOfOrderAreRefused) {
  FaultyProxy proxy(test::Versitygw(), [](const Seen&) {
    const auto entry = [](const char* key) {
      return "<Contents><Key>" + std::string(key) +
             "</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><Size>1</Size></Contents>";
    };
    return Decision(PlainAnswer("200 OK", "<ListBucketResult>" + entry("some/pre fix/b") +
                                              entry("some/pre fix/a") + "</ListBucketResult>"));
  });
  ASSERT_OK_AND_ASSIGN(const auto store,
                       S3Store::Open(Through(proxy), S3Access::kReadOnly, World()));
  EXPECT_THAT(store->List({.prefix = {}, .start_after = {}}),
              FailsWith(ErrorCode::kFailedPrecondition, "list_order"));
}

TEST_F(S3FaultsTest, NonsenseIsCorruptionNotACrash) {
  for (const char* body : {"", "<x/>", "<ListBucketResult><Contents><Key>a</Key></Contents>",
                           "<ListBucketResult><Contents><Key>a</Key><Size>z</Size></Contents>"
                           "</ListBucketResult>"}) {
    FaultyProxy proxy(test::Versitygw(), &Pass);
    ASSERT_OK_AND_ASSIGN(const auto store,
                         S3Store::Open(Through(proxy), S3Access::kReadOnly, World()));
    proxy.Rearm([body](const Seen&) { return Decision(PlainAnswer("200 OK", body)); });
    EXPECT_THAT(store->List({.prefix = {}, .start_after = {}}), Fails(ErrorCode::kCorruption));
    proxy.Rearm([](const Seen&) {
      return Decision(PlainAnswer("206 Partial", "abc", "Content-Range: bytes 5-9/x\r\n"));
    });
    EXPECT_THAT(store->OpenReader("a"), Fails(ErrorCode::kCorruption));
  }
}

TEST_F(S3FaultsTest, WrongKeysAreRefusedWithoutShowingThem) {
  S3Options options = options_;
  options.credentials.secret_access_key = "not-the-secret";
  const Status wrong = StatusOf(S3Store::Open(options, S3Access::kReadOnly, World()));
  EXPECT_THAT(wrong, Fails(ErrorCode::kUnauthenticated));
  EXPECT_THAT(wrong.ToString(), Not(HasSubstr("not-the-secret")));
  EXPECT_THAT(wrong.ToString(), Not(HasSubstr("Signature=")));
  options = options_;
  options.bucket = "not-there";
  EXPECT_THAT(S3Store::Open(options, S3Access::kReadOnly, World()),
              FailsWith(ErrorCode::kNotFound, "no bucket not-there"));
  options = options_;
  options.credentials = {.anonymous = true};
  EXPECT_THAT(S3Store::Open(options, S3Access::kReadOnly, World()),
              Fails(ErrorCode::kPermissionDenied));
}

TEST_F(S3FaultsTest, LinksWorkWithoutKeysUntilTheyEnd) {
  const std::string key = "a b/ü+%&=?#.txt";
  ASSERT_OK(WriteObject(*direct_, key, "linked", WriteMode::kOverwrite));
  ASSERT_OK_AND_ASSIGN(const std::string link, direct_->Presign(key, std::chrono::seconds(60)));
  http::HttpClient plain({});
  EXPECT_EQ(plain.Send({.url = link}).body, "linked");
  EXPECT_EQ(plain.Send({.url = link.substr(0, link.size() - 1) + "x"}).status, 403);
  EXPECT_THAT(direct_->Presign(key, std::chrono::hours(24 * 8)),
              Fails(ErrorCode::kInvalidArgument));
}

TEST_F(S3FaultsTest, AbortedAndAbandonedUploadsLeaveNothing) {
  {
    ASSERT_OK_AND_ASSIGN(const auto writer, direct_->OpenWriter("a", WriteMode::kOverwrite));
    ASSERT_OK(writer->Write(Pattern(kPart * 2)));
    EXPECT_EQ(UploadCount(), 1u);
    writer->Abort();
    EXPECT_EQ(UploadCount(), 0u);
    ASSERT_OK_AND_ASSIGN(const auto dropped, direct_->OpenWriter("a", WriteMode::kOverwrite));
    ASSERT_OK(dropped->Write(Pattern(kPart * 2)));
  }
  EXPECT_EQ(UploadCount(), 0u);
  EXPECT_THAT(Keys(), ::testing::IsEmpty());
  // What a killed process leaves goes when it is old, at the next opening.
  const auto client = S3Client::Open(options_, World()).value();
  ASSERT_OK(client->StartUpload(options_.prefix + "/killed", {}));
  S3Options options = options_;
  ASSERT_OK(S3Store::Open(options, S3Access::kReadWrite, World()));
  EXPECT_EQ(UploadCount(), 1u);
  options.stale_upload_age = std::chrono::hours(-1);
  ASSERT_OK(S3Store::Open(options, S3Access::kReadOnly, World()));
  EXPECT_EQ(UploadCount(), 1u);
  ASSERT_OK(S3Store::Open(options, S3Access::kReadWrite, World()));
  EXPECT_EQ(UploadCount(), 0u);
}

TEST_F(S3FaultsTest, OpenedForReadingNothingIsWritten) {
  FaultyProxy proxy(test::Versitygw(), &Pass);
  ASSERT_OK_AND_ASSIGN(const auto store,
                       S3Store::Open(Through(proxy), S3Access::kReadOnly, World()));
  for (const Seen& seen : proxy.seen()) {
    EXPECT_EQ(seen.method, "GET");
  }
  EXPECT_THAT(store->OpenWriter("a", WriteMode::kOverwrite), Fails(ErrorCode::kPermissionDenied));
  EXPECT_THAT(store->Delete("a"), Fails(ErrorCode::kPermissionDenied));
  EXPECT_THAT(store->DeleteMany({"a"}), Fails(ErrorCode::kPermissionDenied));
  EXPECT_THAT(store->Copy("a", "b"), Fails(ErrorCode::kPermissionDenied));
}

TEST_F(S3FaultsTest, ForeignFolderMarkersAreNotObjects) {
  const auto client = S3Client::Open(options_, World()).value();
  ASSERT_OK(client->Send({.method = "PUT", .key = options_.prefix + "/folder/"}).status);
  ASSERT_OK(WriteObject(*direct_, "folder/a", "x", WriteMode::kOverwrite));
  EXPECT_THAT(Keys(), ::testing::ElementsAre("folder/a"));
}

TEST_F(S3FaultsTest, ListsOfMoreThanAThousandAreComplete) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = t; i < 1100; i += 8) {
        EXPECT_OK(WriteObject(*direct_, "0/" + std::to_string(i), "", WriteMode::kOverwrite));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  ASSERT_OK_AND_ASSIGN(const ListPage all,
                       direct_->List({.prefix = "0", .start_after = {}, .limit = 10'000}));
  EXPECT_EQ(all.objects.size(), 1100u);
  EXPECT_FALSE(all.truncated);
  std::vector<std::string> keys;
  for (const ObjectMeta& object : all.objects) {
    keys.push_back(object.key);
  }
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
  EXPECT_OK(direct_->DeleteMany(keys));
  EXPECT_THAT(Keys(), ::testing::IsEmpty());
}

// Kilobytes of /proc/self/status.
int64_t MemoryKilobytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with(field + ":")) {
      return std::strtoll(line.c_str() + field.size() + 1, nullptr, 10);
    }
  }
  return 0;
}

TEST_F(S3FaultsTest, LargeObjectsMoveInConstantMemory) {
  const std::string piece = Pattern(1U << 20);
  constexpr int kPieces = 160;
  {
    std::ofstream("/proc/self/clear_refs") << "5";
  }  // Resets the peak.
  const int64_t before = MemoryKilobytes("VmRSS");
  ASSERT_OK_AND_ASSIGN(const auto writer, direct_->OpenWriter("a", WriteMode::kOverwrite));
  for (int i = 0; i < kPieces; ++i) {
    ASSERT_OK(writer->Write(piece));
  }
  ASSERT_OK(writer->Close());
  ASSERT_OK_AND_ASSIGN(const auto reader, direct_->OpenReader("a"));
  EXPECT_EQ(reader->meta().size_bytes, piece.size() * kPieces);
  std::string bytes(piece.size(), '\0');
  for (int i = 0; i < kPieces; ++i) {
    ASSERT_THAT(reader->ReadAt(piece.size() * static_cast<size_t>(i), bytes.size(), bytes.data()),
                IsOkAndHolds(bytes.size()));
    ASSERT_TRUE(bytes == piece) << i;
  }
  EXPECT_LT(MemoryKilobytes("VmHWM") - before, 60 * 1024);
}

}  // namespace
}  // namespace tarn::storage::s3
