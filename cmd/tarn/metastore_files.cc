#include "cmd/tarn/metastore_files.h"

#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "tarn/metastore/bundle.h"
#include "tarn/metastore/postgres_database.h"
#include "tarn/metastore/sqlite_database.h"

#include "cmd/tarn/configuration.h"
#include "cmd/tarn/schema.h"

namespace tarn {

namespace {

namespace fs = std::filesystem;

Result<Configuration> ConfigurationOf(const cli::MetastoreOptions& options) {
  std::error_code error;
  if (!fs::is_directory(options.home, error)) {
    return Status::NotFound(fmt::format("there is no home {}", options.home));
  }
  return ReadConfiguration({.home = options.home, .config_path = {}});
}

Result<fs::path> MetastorePath(const cli::MetastoreOptions& options,
                               const Configuration& configuration, bool must_exist) {
  std::error_code error;
  const fs::path path =
      fs::absolute(configuration.metastore.empty() ? fs::path(options.home) / "metastore.db"
                                                   : fs::path(configuration.metastore));
  const bool there = fs::exists(path, error);
  if (there == must_exist) {
    return path;
  }
  return there ? Status(ErrorCode::kAlreadyExists,
                        fmt::format("there is a metastore already: {}", path.string()))
               : Status::NotFound(fmt::format("there is no metastore {}", path.string()));
}

Result<std::unique_ptr<metastore::SqliteDatabase>> OpenMetastore(const fs::path& path) {
  TARN_ASSIGN_OR_RETURN(std::unique_ptr<metastore::SqliteDatabase> database,
                        metastore::SqliteDatabase::Open({.path = path}));
  return database;
}

void RemoveDatabase(const std::string& path) {
  std::error_code ignored;
  for (const char* suffix : {"", "-wal", "-shm"}) {
    fs::remove(path + suffix, ignored);
  }
}

std::string Told(const metastore::BundleSummary& summary, const char* verb,
                 const std::string& file) {
  return fmt::format("{} {} rows of {} tables: {}", verb, summary.rows, summary.tables, file);
}

Result<std::unique_ptr<metastore::PostgresDatabase>> OpenPostgres(
    const Configuration& configuration) {
  return metastore::PostgresDatabase::Open({.url = configuration.metastore_url});
}

}  // namespace

Result<std::string> ExportMetastore(const cli::MetastoreOptions& options) {
  TARN_ASSIGN_OR_RETURN(const Configuration configuration, ConfigurationOf(options));
  if (!configuration.metastore_url.empty()) {
    TARN_ASSIGN_OR_RETURN(const std::unique_ptr<metastore::PostgresDatabase> database,
                          OpenPostgres(configuration));
    TARN_ASSIGN_OR_RETURN(const metastore::BundleSummary summary,
                          metastore::ExportBundle(*database, options.file));
    return Told(summary, "wrote", options.file);
  }
  TARN_ASSIGN_OR_RETURN(const fs::path path,
                        MetastorePath(options, configuration, /*must_exist=*/true));
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<metastore::SqliteDatabase> database,
                        OpenMetastore(path));
  TARN_ASSIGN_OR_RETURN(const metastore::BundleSummary summary,
                        metastore::ExportBundle(*database, options.file));
  return Told(summary, "wrote", options.file);
}

Result<std::string> ImportMetastore(const cli::MetastoreOptions& options) {
  TARN_ASSIGN_OR_RETURN(const Configuration configuration, ConfigurationOf(options));
  if (!configuration.metastore_url.empty()) {
    TARN_ASSIGN_OR_RETURN(const std::unique_ptr<metastore::PostgresDatabase> database,
                          OpenPostgres(configuration));
    TARN_ASSIGN_OR_RETURN(const metastore::BundleSummary summary,
                          metastore::ImportBundle(options.file, *database, AllMigrations()));
    return Told(summary, "read", options.file);
  }
  TARN_ASSIGN_OR_RETURN(const fs::path path,
                        MetastorePath(options, configuration, /*must_exist=*/false));
  // What an import that was cut short left is of no use.
  const std::string part = path.string() + ".import";
  metastore::BundleSummary summary;
  {
    RemoveDatabase(part);
    TARN_ASSIGN_OR_RETURN(const std::unique_ptr<metastore::SqliteDatabase> database,
                          OpenMetastore(part));
    Result<metastore::BundleSummary> imported =
        metastore::ImportBundle(options.file, *database, AllMigrations());
    if (!imported.ok()) {
      RemoveDatabase(part);
      return imported.status();
    }
    TARN_RETURN_IF_ERROR(database->CheckIntegrity());
    summary = *imported;
  }  // Closing copies the log into the file.
  std::error_code error;
  fs::permissions(part, fs::perms::owner_read | fs::perms::owner_write, error);
  fs::rename(part, path, error);
  if (error) {
    return Status::Unavailable(fmt::format("cannot make {}: {}", path.string(), error.message()));
  }
  RemoveDatabase(part);
  return Told(summary, "read", options.file);
}

Result<std::string> CheckMetastore(const cli::MetastoreOptions& options) {
  TARN_ASSIGN_OR_RETURN(const Configuration configuration, ConfigurationOf(options));
  if (!configuration.metastore_url.empty()) {
    TARN_ASSIGN_OR_RETURN(const std::unique_ptr<metastore::PostgresDatabase> database,
                          OpenPostgres(configuration));
    TARN_RETURN_IF_ERROR(database->CheckTables());  // References are the database's own business.
    return fmt::format("{} is sound", database->shown());
  }
  TARN_ASSIGN_OR_RETURN(const fs::path path,
                        MetastorePath(options, configuration, /*must_exist=*/true));
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<metastore::SqliteDatabase> database,
                        OpenMetastore(path));
  TARN_RETURN_IF_ERROR(database->CheckIntegrity());
  TARN_RETURN_IF_ERROR(database->CheckReferences());
  return fmt::format("{} is sound", path.string());
}

}  // namespace tarn
