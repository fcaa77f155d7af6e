#include "tarn/cli/dataset_transfer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "tarn/cli/exit_code.h"
#include "tarn/cli/interrupt.h"
#include "tarn/cli/progress.h"

namespace tarn::cli {

using nlohmann::json;

namespace {

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdin && file != stdout) {
      std::fclose(file);
    }
  }
};
using FilePointer = std::unique_ptr<std::FILE, CloseFile>;

Status LocalFailure(const std::string& what, const std::string& path, int error = errno) {
  return Status(ErrorCode::kUnavailable, what + " " + path + ": " + std::strerror(error));
}

// A failure of this name alone: others may go well.
bool IsFailureOfName(int error) {
  for (const int of_name : {ENAMETOOLONG, ENOTDIR, EISDIR, EEXIST, EINVAL, EILSEQ, ELOOP}) {
    if (error == of_name) {
      return true;
    }
  }
  return false;
}

Status CreateFailure(const std::string& path, int error) {
  const Status failure = LocalFailure("create", path, error);
  return IsFailureOfName(error) ? failure.WithReason(std::string(kNameRefused)) : failure;
}

Status WalkFolder(const std::string& folder, const std::string& prefix,
                  std::vector<LocalFile>& files) {
  std::error_code error;
  std::vector<LocalFile> found;
  for (std::filesystem::recursive_directory_iterator walk(folder, error), end;
       !error && walk != end; walk.increment(error)) {
    if (walk->is_regular_file(error)) {
      const std::filesystem::path relative = walk->path().lexically_relative(folder);
      found.push_back(
          {.local = walk->path().string(), .logical = prefix + relative.generic_string()});
    }
  }
  if (error) {
    return UsageError("walk " + folder + ": " + error.message());
  }
  std::ranges::sort(found, {}, &LocalFile::logical);
  files.insert(files.end(), found.begin(), found.end());
  return Status::Ok();
}

// The second one would replace the first without a word.
Status CheckDistinct(const std::vector<LocalFile>& files) {
  std::map<std::string_view, const LocalFile*> known;
  for (const LocalFile& file : files) {
    const auto [first, fresh] = known.emplace(file.logical, &file);
    if (!fresh) {
      return UsageError(first->second->local + " and " + file.local + " would both be " +
                        file.logical +
                        " in the dataset: upload them one by one, with --as or "
                        "--prefix");
    }
  }
  return Status::Ok();
}

}  // namespace

Result<std::vector<LocalFile>> PlanUploads(const std::vector<std::string>& locals,
                                           const std::string& prefix) {
  std::vector<LocalFile> files;
  for (const std::string& local : locals) {
    std::error_code error;
    const std::filesystem::path path(local);
    if (local == "-") {
      if (prefix.empty()) {
        return UsageError("standard input has no name: give one by --as");
      }
      files.push_back({.local = local, .logical = prefix});
    } else if (std::filesystem::is_directory(path, error)) {
      TARN_RETURN_IF_ERROR(WalkFolder(local, prefix, files));
    } else if (std::filesystem::exists(path, error)) {
      files.push_back({.local = local, .logical = prefix + path.filename().string()});
    } else {
      return UsageError("upload " + local + ": no such file or folder");
    }
  }
  TARN_RETURN_IF_ERROR(CheckDistinct(files));
  return files;
}

Result<std::string> PlanDownload(const std::string& folder, std::string_view logical) {
  bool safe = !logical.empty() && logical.find('\0') == std::string_view::npos;
  for (std::string_view rest = logical; safe && !rest.empty();) {
    const size_t slash = rest.find('/');
    const std::string_view segment = rest.substr(0, slash);
    safe = !segment.empty() && segment != "." && segment != "..";
    rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
    safe = safe && !(slash != std::string_view::npos && rest.empty());
  }
  if (!safe) {
    return Status::InvalidArgument("download \"" + EscapeForTerminal(logical) +
                                   "\": not a name below a folder")
        .WithReason(std::string(kNameRefused));
  }
  return folder + "/" + std::string(logical);
}

Result<json> UploadOne(CommandContext& context, const std::string& dataset_rid,
                       const std::string& transaction_rid, const LocalFile& file) {
  FilePointer input(file.local == "-" ? stdin : std::fopen(file.local.c_str(), "rb"));
  if (input == nullptr) {
    return LocalFailure("open", file.local);
  }
  HttpCall call;
  call.method = "POST";
  call.target = WithQuery("/api/v2/datasets/" + EncodeUrl(dataset_rid) + "/files/" +
                              EncodeUrl(file.logical) + "/upload",
                          {{"transactionRid", transaction_rid}});
  call.headers = {{"Content-Type", "application/octet-stream"}, {"Accept", "application/json"}};
  call.upload = [&](char* out, size_t size) -> Result<size_t> {
    TARN_RETURN_IF_ERROR(InterruptWatch::Check());
    const size_t count = std::fread(out, 1, size, input.get());
    const int failure = errno;
    TARN_RETURN_IF_ERROR(InterruptWatch::Check());
    if (count == 0 && std::ferror(input.get()) != 0) {
      return LocalFailure("read", file.local, failure);
    }
    return count;
  };
  std::error_code error;
  const uint64_t size_bytes = std::filesystem::file_size(file.local, error);
  if (!error && file.local != "-") {
    call.upload_size_bytes = size_bytes;
  }
  ProgressBar bar(EscapeForTerminal(file.logical), stderr);
  call.progress = [&bar](uint64_t done, uint64_t total) { bar.Update(done, total); };
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  TARN_ASSIGN_OR_RETURN(const HttpAnswer answer, client->Send(call));
  json uploaded = json::parse(answer.body, nullptr, false);
  if (!uploaded.is_object()) {
    return Status::Internal("upload " + file.logical + ": the answer is no JSON object");
  }
  return uploaded;
}

Result<uint64_t> DownloadOne(CommandContext& context, const std::string& dataset_rid,
                             std::string_view logical, const std::string& view_query,
                             const std::string& local) {
  const bool to_stdout = local == "-";
  // Its own name would be too long with a suffix when it is as long as names may be.
  const std::string part = std::filesystem::path(local)
                               .replace_filename(".tarn-part-" + std::to_string(getpid()))
                               .string();
  std::error_code error;
  if (!to_stdout) {
    std::filesystem::create_directories(std::filesystem::path(local).parent_path(), error);
    if (error) {
      return CreateFailure(local, error.value());
    }
    // Before the bytes come: they go to another name first.
    const std::filesystem::file_status there = std::filesystem::symlink_status(local, error);
    if (std::filesystem::is_directory(there) || (error && error.value() != ENOENT)) {
      return CreateFailure(local, error ? error.value() : EISDIR);
    }
  }
  FilePointer output(to_stdout ? stdout : std::fopen(part.c_str(), "wb"));
  if (output == nullptr) {
    return CreateFailure(part, errno);
  }
  uint64_t size_bytes = 0;
  HttpCall call;
  call.target = "/api/v2/datasets/" + EncodeUrl(dataset_rid) + "/files/" + EncodeUrl(logical) +
                "/content" + view_query;
  call.headers = {{"Accept", "application/octet-stream"}};
  call.download = [&](std::string_view bytes) -> Status {
    size_bytes += bytes.size();
    return std::fwrite(bytes.data(), 1, bytes.size(), output.get()) == bytes.size()
               ? Status::Ok()
               : LocalFailure("write", to_stdout ? "standard output" : part);
  };
  ProgressBar bar(EscapeForTerminal(logical), stderr);
  call.progress = [&bar](uint64_t done, uint64_t total) { bar.Update(done, total); };
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  Status status = StatusOf(client->Send(call));
  if (status.ok() && std::fflush(output.get()) != 0) {
    status = LocalFailure("write", to_stdout ? "standard output" : part);
  }
  output.reset();
  if (!to_stdout) {
    if (status.ok()) {
      std::filesystem::rename(part, local, error);
      status = error ? CreateFailure(local, error.value()) : status;
    }
    if (!status.ok()) {
      std::filesystem::remove(part, error);
    }
  }
  TARN_RETURN_IF_ERROR(status);
  return size_bytes;
}

}  // namespace tarn::cli
