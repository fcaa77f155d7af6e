// Configuration: <home>/tarn.toml, overridden by TARN_… in the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/storage/store_opener.h"

namespace tarn {

/// Every key of tarn.toml. Value.
struct Configuration {
  std::string listen = "127.0.0.1:8080";  // listen / TARN_LISTEN
  std::string metastore;                  // metastore / TARN_METASTORE: a path; empty = <home>
  std::string metastore_url;              // The same as postgresql://…; may hold a password.
  std::string warehouse;                  // warehouse / TARN_WAREHOUSE; empty = <home>/warehouse
  uint64_t memory_bytes = 1200ULL << 20;  // memory / TARN_MEMORY: of all large buffers.
  uint64_t engine_memory_bytes = 512ULL << 20;  // engine_memory / TARN_ENGINE_MEMORY
  int threads = 2;                              // threads / TARN_THREADS: of the engine.
  int workers = 32;                             // workers / TARN_WORKERS: requests handled at once.
  int64_t requests_per_minute = 0;  // / TARN_REQUESTS_PER_MINUTE: of one user; 0 = no limit.
  // foreign_locations / TARN_FOREIGN_LOCATIONS: "refuse" or "replace" what Iceberg clients ask for
  // outside of the warehouse.
  bool replace_foreign_locations = false;
  std::string catalog_name;  // catalog_name / TARN_CATALOG_NAME: what engines call the catalog.
  // sources.allow_paths; absent = any path when listening on loopback, none otherwise.
  // TARN_SOURCES_ALLOW_PATHS: separated by colons.
  std::optional<std::vector<std::string>> allow_paths;
  // secrets.allow: variables of the server's environment that pipeline files may name.
  // TARN_SECRETS_ALLOW: separated by commas.
  std::vector<std::string> allow_secrets;
  // [stores.NAME]: how buckets are talked to.
  std::vector<storage::StoreSettings> stores;
};

struct ConfigurationFiles {
  std::string home;
  std::string config_path;  // Empty = <home>/tarn.toml, which is written when it is missing.
};

/// Errors: kInvalidArgument naming file, line and key, or the TARN_… variable: unknown keys (but
/// for variables that pipelines, stores and other programs name), those that this version does not
/// offer (TLS, retention defaults), wrong types, values that cannot be, a password of the metastore
/// in the file. No value of `metastore` or of an unknown variable is shown: it may hold a password.
Result<Configuration> ReadConfiguration(const ConfigurationFiles& files);

/// True for addresses of 127.0.0.0/8, ::1 and localhost.
bool IsLoopback(const std::string& host);

/// True when `path` is one of `folders` or lies below one, after all symbolic links of both.
bool IsBelowAny(const std::string& path, const std::vector<std::string>& folders);

}  // namespace tarn
