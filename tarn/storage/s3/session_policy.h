// SessionPolicy: what a temporary key may do, in the words of IAM: the folders of one table and
// nothing beside them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tarn::storage::s3 {

/// Folders of one bucket as keys, without a slash at the end. Value.
struct KeyFolders {
  std::vector<std::string> read;   // Objects may be read and listed.
  std::vector<std::string> write;  // Also written and deleted.
  friend bool operator==(const KeyFolders&, const KeyFolders&) = default;
};

/// Value.
struct SessionPolicy {
  std::string text;
  KeyFolders folders;  // Those it is about.
};

/// As many characters as token services take.
inline constexpr size_t kSessionPolicyMax = 2048;

/// A policy for objects below these folders, not for what merely begins like them ("a/t" is not
/// "a/t2"). Folders at the end of `write`, then of `read`, are left out where the text would get
/// longer than kSessionPolicyMax. `region` tells the partition of ARNs.
///
/// Nothing when it cannot be said exactly: a folder has '*', '?' or '$', which policies take for
/// patterns, or the first one is too long.
std::optional<SessionPolicy> PlanSessionPolicy(std::string_view bucket, std::string_view region,
                                               KeyFolders folders);

}  // namespace tarn::storage::s3
