// Configuration: <home>/tarn.toml, overridden by TARN_… in the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/storage/store_opener.h"

namespace tarn {

/// Every key of tarn.toml. Value.
struct Configuration {
  std::string listen = "127.0.0.1:8080";  // listen / TARN_LISTEN
  std::string warehouse;                  // warehouse / TARN_WAREHOUSE; empty = <home>/warehouse
  uint64_t memory_bytes = 1200ULL << 20;  // memory / TARN_MEMORY: of all large buffers.
  uint64_t engine_memory_bytes = 512ULL << 20;  // engine_memory / TARN_ENGINE_MEMORY
  int threads = 2;                              // threads / TARN_THREADS: of the engine.
  int workers = 32;                             // workers / TARN_WORKERS: requests handled at once.
  // sources.allow_paths; absent = any path when listening on loopback, none otherwise.
  std::optional<std::vector<std::string>> allow_paths;
  // [stores.NAME]: how buckets are talked to.
  std::vector<storage::StoreSettings> stores;
};

struct ConfigurationFiles {
  std::string home;
  std::string config_path;  // Empty = <home>/tarn.toml, which is written when it is missing.
};

/// Errors: kInvalidArgument naming file, line and key: unknown keys, wrong types, values that
/// cannot be.
Result<Configuration> ReadConfiguration(const ConfigurationFiles& files);

/// True for 127.0.0.0/8, ::1 and localhost.
bool IsLoopback(const std::string& host);

}  // namespace tarn
