#include "cmd/tarn/configuration.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "tarn/base/quantity.h"
#include "tarn/metastore/postgres_database.h"

namespace tarn {

namespace {

constexpr const char* kDefaultFile = R"toml(# Configuration of a tarn server.
# Every key can be overridden by TARN_<KEY> in the environment.
# listen = "127.0.0.1:8080"
# metastore = "sqlite:"                      # <home>/metastore.db, or sqlite:/srv/tarn/meta.db,
#                                             # or postgresql://tarn@db/tarn for several servers
# warehouse = "file:///srv/tarn/warehouse"   # default: <home>/warehouse; also s3://bucket/prefix
# memory = "1200MiB"                          # of all large buffers of the process
# engine_memory = "512MiB"                    # of the embedded engine, part of the above
# threads = 2
# workers = 32
# requests_per_minute = 0                     # of one user; more get 429. 0 = no limit
# foreign_locations = "refuse"                # or "replace": of Iceberg tables, by clients
# catalog_name = "tarn"                       # what engines call it: views name it then (Trino)

# [sources]
# allow_paths = ["/data/in"]      # what file sources may read; unset: all, on loopback only

# [secrets]
# allow = ["KAFKA_PASSWORD"]                  # variables of the environment for pipeline files

# [stores.lake]                               # how buckets at and below `uri` are talked to
# uri = "s3://bucket"
# endpoint = "https://s3.example.net"         # default: Amazon's for the region
# region = "eu-central-1"
# access_key_env = "LAKE_KEY"                 # default: AWS_ACCESS_KEY_ID, ~/.aws/credentials
# secret_key_env = "LAKE_SECRET"
# vended_credentials = "off"                  # or "sts": keys for clients, for one table at a time
# sts_role = "arn:aws:iam::1234:role/tables"
)toml";

// Texts of all keys, from the file and then the environment.
using Texts = std::map<std::string, std::string>;

const std::set<std::string, std::less<>> kKeys = {
    "listen",  "metastore", "warehouse",           "memory",           "engine_memory",
    "threads", "workers",   "requests_per_minute", "foreign_locations",
    "catalog_name"};

// What the configuration will have and this version does not: named, so that nobody believes that
// it works.
bool IsForLater(std::string_view key) {
  return key.starts_with("tls") || key.starts_with("retention");
}

// Only the owner may read it: it may come to hold what others should not see.
Status WriteDefaultFile(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const std::string_view text = kDefaultFile;
  const bool written =
      file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (file >= 0) {
    ::close(file);
  }
  return written ? Status::Ok() : Status::Unavailable("cannot write " + path);
}

// A table that has one key, a list of texts.
Status ReadList(const toml::table& table, const std::string& path, std::string_view section,
                std::string_view name, std::vector<std::string>& texts) {
  for (const auto& [key, value] : table) {
    const toml::array* list = value.as_array();
    bool plain = key.str() == name && list != nullptr;
    for (size_t i = 0; plain && i < list->size(); ++i) {
      const std::optional<std::string> text = list->get(i)->value<std::string>();
      plain = text && !text->empty();
      if (plain) {
        texts.push_back(*text);
      }
    }
    if (!plain) {
      return Status::InvalidArgument(fmt::format("{}: line {}: {} has only {}, a list of texts",
                                                 path, value.source().begin.line, section, name));
    }
  }
  return Status::Ok();
}

// [stores.NAME]
Status ReadStores(const toml::table& stores, const std::string& path,
                  Configuration& configuration) {
  for (const auto& [name, value] : stores) {
    const toml::table* keys = value.as_table();
    const auto bad = [&path, store = std::string(name.str())](const toml::node& node,
                                                              std::string_view what) {
      return Status::InvalidArgument(
          fmt::format("{}: line {}: stores.{}: {}", path, node.source().begin.line, store, what));
    };
    if (keys == nullptr) {
      return bad(value, "expected a table [stores.NAME]");
    }
    storage::StoreSettings store{.name = std::string(name.str()), .uri = {}, .options = {}};
    for (const auto& [key, option] : *keys) {
      std::string text;
      if (option.is_string()) {
        text = option.value_or<std::string>("");
      } else if (option.is_boolean()) {
        text = option.value_or(false) ? "true" : "false";
      } else if (option.is_integer()) {
        text = std::to_string(option.value_or<int64_t>(0));
      } else {
        return bad(option, std::string(key.str()) + " must be a text, a number, true or false");
      }
      (key.str() == "uri" ? store.uri : store.options[std::string(key.str())]) = text;
    }
    configuration.stores.push_back(std::move(store));
  }
  return Status::Ok();
}

Status ReadFile(const std::string& path, Texts& texts, Configuration& configuration) {
  toml::table table;
  try {
    table = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    return Status::InvalidArgument(
        fmt::format("{}: line {}: {}", path, error.source().begin.line, error.description()));
  }
  for (const auto& [key, value] : table) {
    const std::string name(key.str());
    if (name == "sources" && value.is_table()) {
      configuration.allow_paths.emplace();
      TARN_RETURN_IF_ERROR(
          ReadList(*value.as_table(), path, name, "allow_paths", *configuration.allow_paths));
    } else if (name == "secrets" && value.is_table()) {
      TARN_RETURN_IF_ERROR(
          ReadList(*value.as_table(), path, name, "allow", configuration.allow_secrets));
    } else if (IsForLater(name)) {
      return Status::InvalidArgument(fmt::format("{}: line {}: {} is not available in this version",
                                                 path, value.source().begin.line, name));
    } else if (name == "stores" && value.is_table()) {
      TARN_RETURN_IF_ERROR(ReadStores(*value.as_table(), path, configuration));
    } else if (!kKeys.contains(name)) {
      return Status::InvalidArgument(
          fmt::format("{}: line {}: unknown key {}", path, value.source().begin.line, name));
    } else if (value.is_integer()) {
      texts[name] = std::to_string(value.value_or<int64_t>(0));
    } else if (value.is_string()) {
      texts[name] = value.value_or<std::string>("");
    } else {
      return Status::InvalidArgument(fmt::format("{}: line {}: {} must be a text or a number", path,
                                                 value.source().begin.line, name));
    }
  }
  return Status::Ok();
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    if (end != 0) {
      parts.emplace_back(text.substr(0, end));
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return parts;
}

// Variables that others of tarn read: the command line, and the programs that test and build it.
constexpr std::string_view kOthersKeys[] = {"url",        "token", "home",   "crash_point",
                                            "binary",     "seed",  "rounds", "npm_clients",
                                            "deps_cache", "jobs"};

// True when `variable` may be set without being a key: pipeline files or stores name it, or others
// read it.
bool IsOthers(std::string_view variable, std::string_view key, const Configuration& configuration) {
  const std::vector<std::string>& secrets = configuration.allow_secrets;
  const auto names_it = [&](const storage::StoreSettings& store) {
    return std::any_of(store.options.begin(), store.options.end(), [&](const auto& option) {
      return option.first.ends_with("_env") && option.second == variable;
    });
  };
  return key.starts_with("test_") ||
         std::find(std::begin(kOthersKeys), std::end(kOthersKeys), key) != std::end(kOthersKeys) ||
         std::find(secrets.begin(), secrets.end(), variable) != secrets.end() ||
         std::any_of(configuration.stores.begin(), configuration.stores.end(), names_it);
}

Status ReadEnvironment(Texts& texts, Configuration& configuration) {
  std::vector<std::pair<std::string_view, std::string>> unknown;  // Variables and their keys.
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    const size_t equals = variable.find('=');
    if (!variable.starts_with("TARN_") || equals == std::string_view::npos) {
      continue;
    }
    std::string key(variable.substr(5, equals - 5));
    for (char& c : key) {
      c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    const std::string_view value = variable.substr(equals + 1);
    if (kKeys.contains(key)) {
      texts[key] = value;
    } else if (key == "sources_allow_paths") {
      configuration.allow_paths = Split(value, ':');
    } else if (key == "secrets_allow") {
      configuration.allow_secrets = Split(value, ',');
    } else if (IsForLater(key)) {
      return Status::InvalidArgument(
          fmt::format("{} is not available in this version", variable.substr(0, equals)));
    } else {
      unknown.emplace_back(variable.substr(0, equals), key);
    }
  }
  for (const auto& [variable, key] : unknown) {
    if (!IsOthers(variable, key, configuration)) {
      return Status::InvalidArgument(
          fmt::format("unknown variable {} in the environment: every TARN_<KEY> is a key of the "
                      "configuration; unset it, or name it under secrets.allow",
                      variable));
    }
  }
  return Status::Ok();
}

// The path of "sqlite:PATH"; empty for "sqlite:", the default.
Result<std::string> MetastorePath(std::string_view url) {
  constexpr std::string_view kScheme = "sqlite:";
  if (!url.starts_with(kScheme)) {
    return Status::InvalidArgument(
        fmt::format("metastore: expected sqlite: or postgresql://…, found {}",
                    url.find(':') == std::string_view::npos ? "what is no URL"
                                                            : url.substr(0, url.find(':') + 1)));
  }
  std::string_view path = url.substr(kScheme.size());
  if (path.starts_with("///")) {
    path.remove_prefix(2);
  }
  if (!path.empty() && !path.starts_with('/')) {
    return Status::InvalidArgument("metastore: sqlite: takes an absolute path, or none");
  }
  return std::string(path);
}

Result<int> SmallNumber(const std::string& key, const std::string& text) {
  TARN_ASSIGN_OR_RETURN(const int64_t value, ParseInteger(text));
  if (value < 1 || value > 1024) {
    return Status::InvalidArgument(fmt::format("{} must be 1 to 1024, found {}", key, text));
  }
  return static_cast<int>(value);
}

Status Take(const Texts& texts, Configuration& configuration) {
  for (const auto& [key, text] : texts) {
    if (key == "listen") {
      configuration.listen = text;
    } else if (key == "metastore" && metastore::IsPostgresUrl(text)) {
      TARN_RETURN_IF_ERROR(metastore::CheckPostgresUrl(text));
      configuration.metastore_url = text;
    } else if (key == "metastore") {
      TARN_ASSIGN_OR_RETURN(configuration.metastore, MetastorePath(text));
    } else if (key == "warehouse") {
      configuration.warehouse = text;
    } else if (key == "memory") {
      TARN_ASSIGN_OR_RETURN(configuration.memory_bytes, ParseSize(text));
    } else if (key == "engine_memory") {
      TARN_ASSIGN_OR_RETURN(configuration.engine_memory_bytes, ParseSize(text));
    } else if (key == "threads") {
      TARN_ASSIGN_OR_RETURN(configuration.threads, SmallNumber(key, text));
    } else if (key == "workers") {
      TARN_ASSIGN_OR_RETURN(configuration.workers, SmallNumber(key, text));
    } else if (key == "requests_per_minute") {
      TARN_ASSIGN_OR_RETURN(configuration.requests_per_minute, ParseInteger(text));
      if (configuration.requests_per_minute < 0) {
        return Status::InvalidArgument(
            fmt::format("requests_per_minute must not be negative, found {}", text));
      }
    } else if (key == "foreign_locations") {
      if (text != "refuse" && text != "replace") {
        return Status::InvalidArgument(
            fmt::format("foreign_locations must be refuse or replace, found {}", text));
      }
      configuration.replace_foreign_locations = text == "replace";
    } else if (key == "catalog_name") {
      configuration.catalog_name = text;
    }
  }
  return Status::Ok();
}

}  // namespace

Result<Configuration> ReadConfiguration(const ConfigurationFiles& files) {
  const bool chosen = !files.config_path.empty();
  const std::string path = chosen ? files.config_path : files.home + "/tarn.toml";
  if (!std::filesystem::exists(path)) {
    if (chosen) {
      return Status::NotFound("there is no configuration file " + path);
    }
    TARN_RETURN_IF_ERROR(WriteDefaultFile(path));
  }
  Configuration configuration;
  Texts texts;
  TARN_RETURN_IF_ERROR(ReadFile(path, texts, configuration));
  const auto given = texts.find("metastore");
  if (given != texts.end() && metastore::HoldsPassword(given->second)) {
    return Status::InvalidArgument(
        path + ": metastore: a password does not belong into this file: set TARN_METASTORE, "
               "PGPASSWORD or PGPASSFILE in the server's environment");
  }
  TARN_RETURN_IF_ERROR(ReadEnvironment(texts, configuration));
  TARN_RETURN_IF_ERROR(Take(texts, configuration));
  return configuration;
}

bool IsLoopback(const std::string& host) {
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return (ntohl(v4.s_addr) >> 24) == 127;
  }
  return host == "::1" || host == "[::1]" || host == "localhost";
}

bool IsBelowAny(const std::string& path, const std::vector<std::string>& folders) {
  const auto resolved = [](const std::string& text) {
    std::error_code error;
    const std::filesystem::path real = std::filesystem::weakly_canonical(text, error);
    return error ? std::string() : real.string();
  };
  const std::string real = resolved(path);
  return !real.empty() && std::any_of(folders.begin(), folders.end(), [&](const auto& folder) {
    std::string root = resolved(folder);
    while (root.size() > 1 && root.ends_with('/')) {
      root.pop_back();
    }
    return !root.empty() && (root == "/" || real == root || real.starts_with(root + "/"));
  });
}

}  // namespace tarn
