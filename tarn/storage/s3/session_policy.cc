#include "tarn/storage/s3/session_policy.h"

#include <algorithm>

#include <fmt/format.h>

#include "tarn/base/json_text.h"

namespace tarn::storage::s3 {

namespace {

std::string_view PartitionOf(std::string_view region) {
  return region.starts_with("cn-")       ? "aws-cn"
         : region.starts_with("us-gov-") ? "aws-us-gov"
                                         : "aws";
}

bool HasPattern(const std::vector<std::string>& folders) {
  return std::ranges::any_of(folders, [](const std::string& folder) {
    return folder.empty() || folder.find_first_of("*?$") != std::string::npos;
  });
}

std::string ListOf(const std::vector<std::string>& folders, std::string_view before,
                   std::string_view after) {
  std::string list;
  for (const std::string& folder : folders) {
    list += (list.empty() ? "" : ",") + JsonString(fmt::format("{}{}{}", before, folder, after));
  }
  return list;
}

std::string Statement(std::string_view actions, const std::string& resources,
                      std::string_view condition = {}) {
  return fmt::format(R"({{"Effect":"Allow","Action":[{}],"Resource":[{}]{}}})", actions, resources,
                     condition);
}

std::string PolicyOf(std::string_view bucket, std::string_view region, const KeyFolders& folders) {
  const std::string bucket_arn = fmt::format("arn:{}:s3:::{}", PartitionOf(region), bucket);
  const std::string objects = bucket_arn + "/";
  std::vector<std::string> statements;
  if (!folders.write.empty()) {
    statements.push_back(
        Statement(R"("s3:GetObject","s3:PutObject","s3:DeleteObject","s3:AbortMultipartUpload",)"
                  R"("s3:ListMultipartUploadParts")",
                  ListOf(folders.write, objects, "/*")));
  }
  if (!folders.read.empty()) {
    statements.push_back(Statement(R"("s3:GetObject")", ListOf(folders.read, objects, "/*")));
  }
  std::vector<std::string> all = folders.write;
  all.insert(all.end(), folders.read.begin(), folders.read.end());
  const std::string own = JsonString(bucket_arn);
  statements.push_back(Statement(
      R"("s3:ListBucket")", own,
      fmt::format(R"(,"Condition":{{"StringLike":{{"s3:prefix":[{}]}}}})", ListOf(all, "", "/*"))));
  statements.push_back(Statement(R"("s3:GetBucketLocation")", own));
  return fmt::format(R"({{"Version":"2012-10-17","Statement":[{}]}})", fmt::join(statements, ","));
}

}  // namespace

std::optional<SessionPolicy> PlanSessionPolicy(std::string_view bucket, std::string_view region,
                                               KeyFolders folders) {
  if (HasPattern(folders.read) || HasPattern(folders.write)) {
    return std::nullopt;
  }
  while (!folders.read.empty() || !folders.write.empty()) {
    std::string policy = PolicyOf(bucket, region, folders);
    if (policy.size() <= kSessionPolicyMax) {
      return SessionPolicy{.text = std::move(policy), .folders = std::move(folders)};
    }
    std::vector<std::string>& last =
        folders.write.size() > 1 || folders.read.empty() ? folders.write : folders.read;
    last.pop_back();
  }
  return std::nullopt;
}

}  // namespace tarn::storage::s3
