// The `tarn` command line. Everything but `serve` talks to a server over HTTP.
#pragma once

#include <functional>
#include <string>

#include "tarn/base/status.h"

namespace tarn::cli {

/// Options of `tarn serve`.
struct ServeOptions {
  std::string home;                 // Absolute or relative directory, "~" already expanded.
  std::string listen;               // "HOST:PORT"; empty = as the configuration says.
  std::string config_path;          // Empty = <home>/tarn.toml.
  bool insecure_anonymous = false;  // Loopback only: every caller is the administrator.
};

/// Options of `tarn metastore`.
struct MetastoreOptions {
  std::string home;  // As in ServeOptions.
  std::string file;  // Of export and import.
};

/// What the process that embeds the command line provides.
struct Callbacks {
  /// Works on the files of a home; returns what was done, for people.
  using MetastoreFunction = std::function<Result<std::string>(const MetastoreOptions&)>;

  /// Runs the server until it is told to stop.
  std::function<Status(const ServeOptions&)> serve{};
  MetastoreFunction export_metastore{};
  MetastoreFunction import_metastore{};
  MetastoreFunction check_metastore{};
};

/// Runs one command line and returns the exit code (exit_code.h). Prints results on standard
/// output, failures as one line "tarn: …" on standard error.
int Run(int argc, const char* const* argv, const Callbacks& callbacks);

}  // namespace tarn::cli
