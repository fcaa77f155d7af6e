#include "tarn/cli/commands.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tarn/cli/csv_text.h"
#include "tarn/cli/exit_code.h"

namespace tarn::cli {

using nlohmann::json;

Result<HttpClient*> CommandContext::Client() {
  if (client_ == nullptr) {
    HttpClientOptions options;
    options.url = url;
    options.token = FindToken(token, home);
    TARN_ASSIGN_OR_RETURN(client_, HttpClient::Open(std::move(options)));
  }
  return client_.get();
}

Result<std::string> ResolveRid(CommandContext& context, std::string_view name) {
  if (name.starts_with("ri.")) {
    return std::string(name);
  }
  if (name.empty()) {
    return UsageError("a resource is named by PROJECT/NAME or by its RID, found nothing");
  }
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  TARN_ASSIGN_OR_RETURN(const json resource,
                        client->GetJson("/tarn/v1/resources?path=" + EncodeUrl(name)));
  const auto rid = resource.find("rid");
  if (!resource.is_object() || rid == resource.end() || !rid->is_string()) {
    return Status::Internal("resolve " + std::string(name) + ": the answer has no rid");
  }
  return rid->get<std::string>();
}

Result<json> ListAll(CommandContext& context, const std::string& target) {
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  json all = json::array();
  std::string page_token;
  do {
    TARN_ASSIGN_OR_RETURN(const json page,
                          client->GetJson(WithQuery(target, {{"pageToken", page_token}})));
    if (!page.is_object() || !page.contains("data") || !page["data"].is_array()) {
      return Status::Internal("list " + target + ": the answer has no data");
    }
    for (const json& entry : page["data"]) {
      all.push_back(entry);
    }
    page_token = page.value("nextPageToken", "");
  } while (!page_token.empty());
  return all;
}

std::string WithQuery(std::string target,
                      const std::vector<std::pair<std::string, std::string>>& parameters) {
  char separator = target.find('?') == std::string::npos ? '?' : '&';
  for (const auto& [name, value] : parameters) {
    if (!value.empty()) {
      target += separator + EncodeUrl(name) + "=" + EncodeUrl(value);
      separator = '&';
    }
  }
  return target;
}

Status CallAndShow(CommandContext& context, std::string_view method, const std::string& target,
                   const json& body, const std::vector<std::string>& columns) {
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  TARN_ASSIGN_OR_RETURN(const json document, client->Json(method, target, body));
  return ShowDocument(context, document, columns);
}

Status ShowDocument(CommandContext& context, const json& document,
                    const std::vector<std::string>& columns) {
  // Listings arrive as {"data":[…]}; scripts get the array itself.
  const bool is_listing =
      document.is_object() && document.contains("data") && document["data"].is_array();
  const json& shown = is_listing ? document["data"] : document;
  if (shown.is_array()) {
    return context.Out().Show(shown, TableOf(shown, columns));
  }
  return context.Out().Show(shown.is_null() ? json::object() : shown, FieldsOf(shown));
}

Result<HttpAnswer> ShowRows(CommandContext& context, HttpCall call) {
  call.headers.emplace_back("Accept", context.json ? "application/json" : "text/csv");
  Output out = context.Out();
  if (context.json) {
    call.download = [&out](std::string_view bytes) { return out.Raw(bytes); };
  }
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  TARN_ASSIGN_OR_RETURN(HttpAnswer answer, client->Send(call));
  if (context.json) {
    TARN_RETURN_IF_ERROR(out.Raw("\n"));
  } else {
    TARN_ASSIGN_OR_RETURN(const Table table, ParseCsv(answer.body));
    TARN_RETURN_IF_ERROR(out.Raw(FormatTable(table)));
  }
  answer.body.clear();
  return answer;
}

Status ShowSql(CommandContext& context, const json& request) {
  HttpCall call;
  call.method = "POST";
  call.target = "/tarn/v1/sql";
  call.only_asks = true;
  call.headers = {{"Content-Type", "application/json"}};
  call.body = request.dump();
  return StatusOf(ShowRows(context, std::move(call)));
}

namespace {

// ": name one of its files, such as …".
std::string FilesToName(const std::string& folder) {
  constexpr size_t kNamedMax = 3;
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string suffix = entry.path().extension().string();
    if (suffix == ".yaml" || suffix == ".yml") {
      names.push_back(entry.path().string());
    }
  }
  std::sort(names.begin(), names.end());
  names.resize(std::min(names.size(), kNamedMax));
  std::string text = ", a single file is needed";
  for (size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? ", such as " : ", ") + names[i];
  }
  return text;
}

}  // namespace

Result<std::string> ReadLocalFile(const std::string& path) {
  constexpr size_t kSizeBytesMax = 64 << 20;
  std::string text;
  if (path == "-") {
    std::string piece(64 << 10, '\0');
    for (size_t count = 1; count > 0 && text.size() <= kSizeBytesMax;) {
      count = std::fread(piece.data(), 1, piece.size(), stdin);
      text.append(piece, 0, count);
    }
  } else {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) {
      return UsageError("read " + path + ": it is a folder" + FilesToName(path));
    }
    std::ifstream file(path, std::ios::binary);
    if (!file) {
      return UsageError("read " + path + ": no such file, or it cannot be read");
    }
    std::ostringstream content;
    content << file.rdbuf();
    text = std::move(content).str();
  }
  if (text.size() > kSizeBytesMax) {
    return UsageError("read " + path + ": larger than 64 MiB");
  }
  return text;
}

}  // namespace tarn::cli
