#include "cmd/tarn/configuration.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "tarn/base/quantity.h"

namespace tarn {

namespace {

constexpr const char* kDefaultFile = R"toml(# Configuration of a tarn server.
# Every key can be overridden by TARN_<KEY> in the environment.
# listen = "127.0.0.1:8080"
# warehouse = "file:///srv/tarn/warehouse"   # default: <home>/warehouse; also s3://bucket/prefix
# memory = "1200MiB"                          # of all large buffers of the process
# engine_memory = "512MiB"                    # of the embedded engine, part of the above
# threads = 2
# workers = 32

# [sources]
# allow_paths = ["/data/in"]                  # directories that file sources may read

# [stores.lake]                               # how buckets at and below `uri` are talked to
# uri = "s3://bucket"
# endpoint = "https://s3.example.net"         # default: Amazon's for the region
# region = "eu-central-1"
# access_key_env = "LAKE_KEY"                 # default: AWS_ACCESS_KEY_ID, ~/.aws/credentials
# secret_key_env = "LAKE_SECRET"
)toml";

// Texts of all keys, from the file and then the environment.
using Texts = std::map<std::string, std::string>;

const std::set<std::string, std::less<>> kKeys = {"listen",        "warehouse", "memory",
                                                  "engine_memory", "threads",   "workers"};

Status WriteDefaultFile(const std::string& path) {
  std::ofstream file(path);
  file << kDefaultFile;
  file.close();
  return file.good() ? Status::Ok() : Status::Unavailable("cannot write " + path);
}

Status ReadSources(const toml::table& sources, const std::string& path,
                   Configuration& configuration) {
  for (const auto& [key, value] : sources) {
    const toml::array* paths = value.as_array();
    if (key.str() != "allow_paths" || paths == nullptr) {
      return Status::InvalidArgument(
          fmt::format("{}: line {}: sources has only allow_paths, a list of directories", path,
                      value.source().begin.line));
    }
    configuration.allow_paths.emplace();
    for (const toml::node& element : *paths) {
      configuration.allow_paths->push_back(element.value_or<std::string>(""));
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
      TARN_RETURN_IF_ERROR(ReadSources(*value.as_table(), path, configuration));
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

void ReadEnvironment(Texts& texts) {
  for (const std::string& key : kKeys) {
    std::string name = "TARN_";
    for (const char c : key) {
      name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread is started.
    if (const char* value = std::getenv(name.c_str())) {
      texts[key] = value;
    }
  }
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
  ReadEnvironment(texts);
  TARN_RETURN_IF_ERROR(Take(texts, configuration));
  return configuration;
}

bool IsLoopback(const std::string& host) {
  return host.starts_with("127.") || host == "::1" || host == "localhost";
}

}  // namespace tarn
