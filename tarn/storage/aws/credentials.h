// Credentials: who signs requests to AWS and its likes, and where that is found.
//
// Secrets are in no message, log line or dump: the only ways out of this type are a signature and
// the answer to a client whom credentials of its own were made for (credential_vendor.h).
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"
#include "tarn/storage/http/http_client.h"

namespace tarn::storage::aws {

struct Credentials {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;           // Empty for keys that last.
  std::optional<Timestamp> expires{};  // Of temporary ones.
  friend bool operator==(const Credentials&, const Credentials&) = default;
};

/// Where credentials come from. Threads: any.
class CredentialSource {
 public:
  virtual ~CredentialSource() = default;
  /// What to sign with now. Empty where requests go unsigned.
  /// Errors: kUnauthenticated when there are none, saying where it looked.
  virtual Result<std::optional<Credentials>> Get() = 0;
  /// Told when a server refused them as expired: the next Get looks again.
  virtual void Forget() {}
};

enum class InstanceMetadata {
  kOff,
  kOn,  // Asks the metadata service of the machine, when nothing else is there.
};

struct CredentialOptions {
  // Given explicitly: both or none.
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;
  bool anonymous = false;  // Requests are not signed.
  std::string file;        // Of profiles; empty = AWS_SHARED_CREDENTIALS_FILE or
                           // ~/.aws/credentials.
  std::string profile;     // Empty = AWS_PROFILE or "default".
  InstanceMetadata instance_metadata = InstanceMetadata::kOff;
  std::string metadata_url = "http://169.254.169.254";
};

/// Looks in this order: `options`; AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN;
/// the file of profiles; the machine's metadata service. Files are read again when they change,
/// temporary credentials are renewed five minutes before they expire.
///
/// `http` and `clock` must outlive the source. Errors: kInvalidArgument when only one of the two
/// keys is given or a named file is not there.
Result<std::unique_ptr<CredentialSource>> OpenCredentials(const CredentialOptions& options,
                                                          http::HttpClient& http,
                                                          const Clock& clock);

/// The credentials of a profile in the text of a credentials file (sections of `key = value`).
/// Empty when the profile is not there. Errors: kInvalidArgument when it is there without keys.
Result<std::optional<Credentials>> ParseProfile(std::string_view text, std::string_view profile);

}  // namespace tarn::storage::aws
