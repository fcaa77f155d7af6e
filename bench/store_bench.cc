// How much of what plain libcurl moves to and from the same S3 server does the store's client move?
//
// Both sides in one process and one run, in turns, with the same signatures: 256 MiB in one object,
// and small objects one after the other. The bound of the large ones is 70 % of plain libcurl,
// which puts the object whole and reads it in ranges of 8 MiB. Without a range this server lets the
// kernel copy files, which no reader that can seek makes use of; that figure is shown beside it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>

#include <curl/curl.h>

#include "tarn/storage/aws/sigv4.h"
#include "tarn/storage/s3/s3_store.h"
#include "test/stores/store_server.h"

namespace tarn {
namespace {

constexpr size_t kLarge = 256U << 20;
constexpr size_t kRange = 8U << 20;
constexpr size_t kSmall = 4096;
constexpr int kSmallCount = 300;
constexpr int kRounds = 3;
constexpr double kBound = 0.7;

double Seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Plain libcurl with one kept connection.
class PlainCurl {
 public:
  explicit PlainCurl(const storage::s3::S3Options& options)
      : options_(options),
        keys_{.access_key_id = options.credentials.access_key_id,
              .secret_access_key = options.credentials.secret_access_key,
              .session_token = {}} {}
  ~PlainCurl() { curl_easy_cleanup(curl_); }
  PlainCurl(const PlainCurl&) = delete;
  PlainCurl& operator=(const PlainCurl&) = delete;

  void Put(const std::string& key, std::string_view bytes) {
    rest_ = bytes;
    curl_easy_reset(curl_);
    curl_easy_setopt(curl_, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl_, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(bytes.size()));
    curl_easy_setopt(curl_, CURLOPT_READFUNCTION, &PlainCurl::OnRead);
    curl_easy_setopt(curl_, CURLOPT_READDATA, this);
    Perform("PUT", key, storage::aws::PayloadHash(bytes));
  }
  size_t Get(const std::string& key) {
    received_ = 0;
    curl_easy_reset(curl_);
    Perform("GET", key, storage::aws::PayloadHash(""));
    return received_;
  }
  size_t GetInRanges(const std::string& key, size_t size) {
    received_ = 0;
    for (size_t at = 0; at < size; at += kRange) {
      curl_easy_reset(curl_);
      const std::string range = std::to_string(at) + "-" + std::to_string(at + kRange - 1);
      curl_easy_setopt(curl_, CURLOPT_RANGE, range.c_str());
      Perform("GET", key, storage::aws::PayloadHash(""));
    }
    return received_;
  }

 private:
  static size_t OnRead(char* out, size_t size, size_t count, void* self) {
    std::string_view& rest = static_cast<PlainCurl*>(self)->rest_;
    const size_t take = std::min(rest.size(), size * count);
    std::memcpy(out, rest.data(), take);
    rest.remove_prefix(take);
    return take;
  }
  static size_t OnWrite(char*, size_t size, size_t count, void* self) {
    static_cast<PlainCurl*>(self)->received_ += size * count;
    return size * count;
  }

  void Perform(const char* method, const std::string& key, const std::string& payload_hash) {
    const storage::s3::Endpoint endpoint = storage::s3::ParseEndpoint(options_.endpoint).value();
    const storage::aws::SigningInput input{.method = method,
                                           .host = endpoint.host,
                                           .path = "/" + options_.bucket + "/" + key,
                                           .query = {},
                                           .headers = {},
                                           .payload_hash = payload_hash};
    curl_slist* headers = curl_slist_append(nullptr, "Expect:");
    for (const auto& [name, value] : storage::aws::SignHeaders(
             input, {.region = options_.region, .service = "s3"}, keys_, SystemClock().Now())) {
      headers = curl_slist_append(headers, (name + ": " + value).c_str());
    }
    const std::string url = options_.endpoint + input.path;
    curl_easy_setopt(curl_, CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl_, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl_, CURLOPT_WRITEFUNCTION, &PlainCurl::OnWrite);
    curl_easy_setopt(curl_, CURLOPT_WRITEDATA, this);
    const CURLcode code = curl_easy_perform(curl_);
    curl_slist_free_all(headers);
    TARN_CHECK(code == CURLE_OK);
    long status = 0;  // NOLINT(google-runtime-int): libcurl's type.
    curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &status);
    TARN_CHECK(status / 100 == 2);
  }

  const storage::s3::S3Options options_;
  const storage::aws::Credentials keys_;
  CURL* curl_ = curl_easy_init();
  std::string_view rest_;
  size_t received_ = 0;
};

void Write(storage::ObjectStore& store, const std::string& key, std::string_view bytes) {
  const auto written = storage::WriteObject(store, key, bytes, storage::WriteMode::kOverwrite);
  TARN_CHECK(written.ok());
}

void ReadLarge(storage::ObjectStore& store, const std::string& key) {
  const auto reader = store.OpenReader(key).value();
  std::string piece(1U << 20, '\0');
  for (uint64_t at = 0; at < reader->meta().size_bytes; at += piece.size()) {
    TARN_CHECK(reader->ReadAt(at, piece.size(), piece.data()).ok());
  }
}

struct Question {
  const char* name;
  double amount;
  const char* unit;
  double bound;  // 0 = shown only.
};

// One line: the best of the rounds on each side. False below the bound.
bool Compare(const Question& question, const std::function<void()>& plain,
             const std::function<void()>& ours) {
  double plain_best = 1e9;
  double ours_best = 1e9;
  for (int i = 0; i < kRounds; ++i) {
    plain_best = std::min(plain_best, Seconds(plain));
    ours_best = std::min(ours_best, Seconds(ours));
  }
  const double ratio = plain_best / ours_best;
  std::printf("%-26s libcurl %8.1f %s   tarn %8.1f %s   ratio %.2f (bound %.2f)%s\n", question.name,
              question.amount / plain_best, question.unit, question.amount / ours_best,
              question.unit, ratio, question.bound, ratio < question.bound ? "  BELOW" : "");
  return ratio >= question.bound;
}

int Main() {
  const storage::s3::S3Options test_options = test::NewBucket(test::Versitygw());
  storage::s3::S3Options options = test_options;
  options.part_bytes = storage::s3::S3Options().part_bytes;
  test::MakeBucket(options);
  SystemClock clock;
  SystemSleeper sleeper;
  const auto store =
      storage::s3::S3Store::Open(options, storage::s3::S3Access::kReadWrite, {clock, sleeper})
          .value();
  PlainCurl plain(options);
  std::string large(kLarge, '\0');
  uint64_t state = 1;
  for (char& byte : large) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    byte = static_cast<char>(state >> 56);
  }
  const std::string_view small = std::string_view(large).substr(0, kSmall);
  constexpr double kMegabytes = kLarge / 1e6;
  bool good = Compare(
      {"upload 256 MiB", kMegabytes, "MB/s", kBound}, [&] { plain.Put("plain", large); },
      [&] { Write(*store, "ours", large); });
  good &= Compare(
      {"download 256 MiB", kMegabytes, "MB/s", kBound},
      [&] { TARN_CHECK(plain.GetInRanges("plain", kLarge) == kLarge); },
      [&] { ReadLarge(*store, "ours"); });
  good &= Compare(
      {"download without ranges", kMegabytes, "MB/s", 0},
      [&] { TARN_CHECK(plain.Get("plain") == kLarge); }, [&] { ReadLarge(*store, "ours"); });
  const auto times = [](const std::function<void(const std::string&)>& work) {
    return [work] {
      for (int i = 0; i < kSmallCount; ++i) {
        work("small/" + std::to_string(i));
      }
    };
  };
  good &= Compare({"put 4 KiB", kSmallCount, "/s", 0},
                  times([&](const std::string& key) { plain.Put(key, small); }),
                  times([&](const std::string& key) { Write(*store, key, small); }));
  good &= Compare(
      {"get 4 KiB", kSmallCount, "/s", kBound},
      times([&](const std::string& key) { plain.Get(key); }),
      times([&](const std::string& key) { TARN_CHECK(storage::ReadObject(*store, key).ok()); }));
  return good ? 0 : 1;
}

}  // namespace
}  // namespace tarn

int main() { return tarn::Main(); }
