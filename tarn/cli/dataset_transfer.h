// Moving files between the local disk and a dataset.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/cli/commands.h"

namespace tarn::cli {

/// A local file and what it is called in the dataset. Value.
struct LocalFile {
  std::string local;    // "-" = standard input.
  std::string logical;  // Byte-exact, '/' between segments.
  friend bool operator==(const LocalFile&, const LocalFile&) = default;
};

/// Files named directly keep their last name; folders are walked, names relative to the folder, in
/// byte order. `prefix` goes before every name. Errors: usage errors that name what is missing, or
/// two files that would have one name.
Result<std::vector<LocalFile>> PlanUploads(const std::vector<std::string>& locals,
                                           const std::string& prefix);

/// Reason of a failure that is the name's: the file cannot be written under it, others may be.
inline constexpr std::string_view kNameRefused = "NameRefused";

/// Where a logical path lands below `folder`. Errors: kInvalidArgument, reason kNameRefused, on a
/// path that would leave it (absolute, "..") or that the file system cannot name (NUL).
Result<std::string> PlanDownload(const std::string& folder, std::string_view logical);

/// Streams one file into an open transaction; returns the File of the answer. Errors: kCancelled
/// when an InterruptWatch noted a signal.
Result<nlohmann::json> UploadOne(CommandContext& context, const std::string& dataset_rid,
                                 const std::string& transaction_rid, const LocalFile& file);

/// Streams one file of a view to `local` ("-" = standard output); it appears whole or not at all.
/// `view_query` selects the view ("?branchName=…"). Returns its size. Errors: with the reason
/// kNameRefused when the file system does not take the name.
Result<uint64_t> DownloadOne(CommandContext& context, const std::string& dataset_rid,
                             std::string_view logical, const std::string& view_query,
                             const std::string& local);

}  // namespace tarn::cli
