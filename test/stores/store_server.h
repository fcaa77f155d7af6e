// The S3 servers that tests run on: started once per process, on loopback, ended with it.
#pragma once

#include <string>

#include "tarn/storage/s3/s3_options.h"

namespace tarn::test {

/// A running server. Aborts when it cannot be installed or does not start.
struct StoreServer {
  std::string endpoint;  // "http://127.0.0.1:PORT"
  std::string address;   // "127.0.0.1"
  int port = 0;
};

const StoreServer& Versitygw();
/// Also a token service, which knows the role kVendedRole.
const StoreServer& Seaweedfs();
inline constexpr const char* kVendedRole = "arn:aws:iam::role/Vended";

/// Options for a bucket of `server` that does not exist yet; retries wait a few milliseconds.
storage::s3::S3Options NewBucket(const StoreServer& server);
/// Makes the bucket; aborts when that fails.
void MakeBucket(const storage::s3::S3Options& options);

/// A port that was free a moment ago.
int FreePort();

}  // namespace tarn::test
