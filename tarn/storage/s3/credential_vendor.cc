#include "tarn/storage/s3/credential_vendor.h"

#include <fmt/format.h>

#include "tarn/storage/s3/token_service.h"

namespace tarn::storage::s3 {

namespace {

constexpr std::chrono::seconds kFailureLasts{2};
constexpr std::chrono::seconds kUsable{60};  // Keys that end sooner are of no use to anyone.

std::string EndpointOf(const S3Options& bucket) {
  if (!bucket.vending.endpoint.empty()) {
    return bucket.vending.endpoint;
  }
  if (!bucket.endpoint.empty()) {
    return bucket.endpoint;
  }
  return fmt::format("https://sts.{}.amazonaws.com{}", bucket.region,
                     bucket.region.starts_with("cn-") ? ".cn" : "");
}

std::optional<VendedKeys> Pair(const StaticKeys& keys, const KeyFolders& folders) {
  if (keys.access_key_id.empty()) {
    return std::nullopt;
  }
  return VendedKeys{.credentials = {.access_key_id = keys.access_key_id,
                                    .secret_access_key = keys.secret_access_key,
                                    .session_token = {}},
                    .folders = folders};
}

}  // namespace

// The keys of one policy, with the lock under which they are asked for.
struct CredentialVendor::Entry {
  std::mutex mutex;
  std::optional<VendedKeys> keys;  // Guarded by mutex, as all below.
  Timestamp renew{};               // From when on the keys are asked for anew.
  Status failure;
  Timestamp failure_ends{};
};

CredentialVendor::CredentialVendor(S3Options bucket, RetryWorld world, VendorOptions options)
    : bucket_(std::move(bucket)),
      world_(world),
      options_(options),
      endpoint_(EndpointOf(bucket_)),
      http_(bucket_.http) {}

Result<std::unique_ptr<CredentialVendor>> CredentialVendor::Open(const S3Options& bucket,
                                                                 RetryWorld world,
                                                                 VendorOptions options) {
  if (bucket.vending.mode == Vending::kOff) {
    return Status::InvalidArgument("no credentials are to be handed out for " + bucket.bucket);
  }
  std::unique_ptr<CredentialVendor> vendor(new CredentialVendor(bucket, world, options));
  if (bucket.vending.mode == Vending::kSessions) {
    TARN_RETURN_IF_ERROR(ParseEndpoint(vendor->endpoint_));
    TARN_ASSIGN_OR_RETURN(vendor->signer_,
                          aws::OpenCredentials(bucket.credentials, vendor->http_, world.clock));
  }
  return vendor;
}

std::shared_ptr<CredentialVendor::Entry> CredentialVendor::EntryOf(const std::string& key) {
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= options_.entries_max && !entries_.contains(key)) {
    entries_.clear();
  }
  std::shared_ptr<Entry>& entry = entries_[key];
  if (entry == nullptr) {
    entry = std::make_shared<Entry>();
  }
  return entry;
}

Result<aws::Credentials> CredentialVendor::Ask(const std::string& session,
                                               const std::string& policy) {
  TARN_ASSIGN_OR_RETURN(const std::optional<aws::Credentials> own, signer_->Get());
  if (!own) {
    return Status(ErrorCode::kUnauthenticated, "there are no keys to ask the token service with");
  }
  Result<aws::Credentials> keys = AssumeRole(http_, world_, *own,
                                             {.endpoint = endpoint_,
                                              .region = bucket_.region,
                                              .role = bucket_.vending.role,
                                              .session = session,
                                              .policy = policy,
                                              .lifetime = bucket_.vending.lifetime});
  if (!keys.ok()) {
    signer_->Forget();  // They may have been replaced.
  }
  return keys;
}

Result<std::optional<VendedKeys>> CredentialVendor::Get(const VendingRequest& request) {
  if (bucket_.vending.mode == Vending::kStatic) {
    return Pair(request.folders.write.empty() ? bucket_.vending.read : bucket_.vending.write,
                request.folders);
  }
  const std::optional<SessionPolicy> policy =
      PlanSessionPolicy(bucket_.bucket, bucket_.region, request.folders);
  if (!policy) {
    return std::optional<VendedKeys>();
  }
  const std::shared_ptr<Entry> entry = EntryOf(request.session + "\n" + policy->text);
  const std::lock_guard lock(entry->mutex);
  const Timestamp now = world_.clock.Now();
  if (entry->keys && now < entry->renew) {
    return entry->keys;
  }
  const bool usable = entry->keys && now + kUsable < *entry->keys->credentials.expires;
  if (now < entry->failure_ends) {
    return usable ? Result<std::optional<VendedKeys>>(entry->keys) : entry->failure;
  }
  Result<aws::Credentials> fresh = Ask(request.session, policy->text);
  if (!fresh.ok()) {
    entry->failure = fresh.status();
    entry->failure_ends = world_.clock.Now() + kFailureLasts;
    return usable ? Result<std::optional<VendedKeys>>(entry->keys) : entry->failure;
  }
  entry->renew = now + (*fresh->expires - now) / 2;
  entry->keys = VendedKeys{.credentials = *std::move(fresh), .folders = policy->folders};
  return entry->keys;
}

}  // namespace tarn::storage::s3
