#include "cmd/tarn/serve.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <thread>

#include <arrow/compute/initialize.h>
#include <fmt/core.h>

#include "tarn/access/authorizer.h"
#include "tarn/access/bootstrap.h"
#include "tarn/access/directory.h"
#include "tarn/access/token.h"
#include "tarn/base/arrow_status.h"
#include "tarn/base/log.h"
#include "tarn/catalog/catalog.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/dataset/upkeep/upkeep.h"
#include "tarn/engine/engine.h"
#include "tarn/metastore/home_lock.h"
#include "tarn/metastore/sqlite_database.h"
#include "tarn/query/memory_watch.h"
#include "tarn/server/foundry/foundry_routes.h"
#include "tarn/server/http/server.h"
#include "tarn/server/iceberg_rest/iceberg_routes.h"
#include "tarn/server/idempotency_keys.h"
#include "tarn/server/metrics.h"
#include "tarn/server/native/native_routes.h"
#include "tarn/server/native/task_metrics.h"
#include "tarn/server/router.h"
#include "tarn/storage/object_key.h"
#include "tarn/storage/s3/credential_vendor.h"
#include "tarn/storage/store_opener.h"
#include "tarn/task/control.h"
#include "tarn/tree/lookup.h"
#include "tarn/tree/tree.h"

#include "cmd/tarn/configuration.h"
#include "cmd/tarn/engine_store.h"
#include "cmd/tarn/pipeline_turn.h"
#include "cmd/tarn/process_memory.h"
#include "cmd/tarn/schema.h"
#include "cmd/tarn/shared_metastore.h"

namespace tarn {

namespace {

constexpr std::chrono::milliseconds kDrainDeadline{20'000};
constexpr std::chrono::milliseconds kForceAfterDrain{10'000};

struct Address {
  std::string host;
  uint16_t port = 0;
};

Result<Address> ParseAddress(const std::string& text) {
  const size_t colon = text.rfind(':');
  int port = -1;
  if (colon != std::string::npos) {
    port = std::atoi(text.c_str() + colon + 1);
  }
  const bool digits = colon != std::string::npos && colon + 1 < text.size() &&
                      text.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  if (!digits || port < 0 || port > 65535) {
    return Status::InvalidArgument(
        fmt::format("listen: expected HOST:PORT such as 127.0.0.1:8080, found \"{}\"", text));
  }
  return Address{.host = text.substr(0, colon), .port = static_cast<uint16_t>(port)};
}

Status MakePrivate(const std::string& path, mode_t mode) {
  return ::chmod(path.c_str(), mode) == 0 || errno == ENOENT
             ? Status::Ok()
             : Status::Unavailable(fmt::format("cannot make {} private: {}", path,
                                               std::generic_category().message(errno)));
}

// A home is for its owner only; a folder that holds other things is left as it is.
Status MakeHome(const std::string& home) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(home, error);
  if (error) {
    return Status::Unavailable(fmt::format("cannot make the home {}: {}", home, error.message()));
  }
  const bool ours = fs::is_empty(home, error) || fs::exists(home + "/metastore.db", error) ||
                    fs::exists(home + "/tarn.toml", error);
  return ours ? MakePrivate(home, 0700) : Status::Ok();
}

// The metastore with its journals, which get the modes of the file itself.
Status MakeMetastoreFile(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) {
    return Status::Unavailable(fmt::format("cannot open the metastore {}: {}", path,
                                           std::generic_category().message(errno)));
  }
  ::close(file);
  for (const char* suffix : {"", "-wal", "-shm"}) {
    TARN_RETURN_IF_ERROR(MakePrivate(path + suffix, 0600));
  }
  return Status::Ok();
}

// A home whose first start gave out a token has a metastore. Without one, a new and empty metastore
// would hide everything that the home holds.
Status RefuseLostMetastore(const std::string& home, const std::string& metastore) {
  std::error_code error;
  const bool began = std::filesystem::exists(home + "/admin-token", error);
  const auto has_bytes = [&](const std::string& file) {
    const uintmax_t size = std::filesystem::file_size(file, error);
    return !error && size > 0;
  };
  // What a killed server wrote may all be in the log.
  if (!began || has_bytes(metastore + "-wal") || has_bytes(metastore)) {
    return Status::Ok();
  }
  return Status::FailedPrecondition(fmt::format(
      "the metastore {} is {}, but the home {} was in use: put it back, or bring an export back "
      "with `tarn metastore import`; to begin anew, use an empty home",
      metastore, error ? "not there" : "empty", home));
}

// Only the owner of the home may read the token.
Status WriteAdminToken(const std::string& path, const std::string& token) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const std::string text = token + "\n";
  const bool written =
      file >= 0 && ::fchmod(file, 0600) == 0 &&
      ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fsync(file) == 0;
  if (file >= 0) {
    ::close(file);
  }
  return written ? Status::Ok() : Status::Unavailable("cannot write " + path);
}

// Which places file sources may read.
std::function<bool(std::string_view)> SourceRule(const Configuration& configuration,
                                                 const Address& address) {
  if (!configuration.allow_paths) {
    const bool any = IsLoopback(address.host);
    if (any) {
      Log(LogLevel::kWarning, "serve",
          "sources.allow_paths is not set: whoever may apply a pipeline can read every file that "
          "this server's user can; name the folders of your data in tarn.toml");
    }
    return [any](std::string_view) { return any; };
  }
  return [paths = *configuration.allow_paths](std::string_view uri) {
    const Result<std::string> path = storage::PathOfFileUri(uri);
    if (!path.ok()) {
      return false;
    }
    return IsBelowAny(*path, paths);
  };
}

// Files of the server that no source may read, as the admin token: folders below these, and those
// above, which would read them too.
std::function<bool(std::string_view)> OwnFilesRule(const std::string& home,
                                                   const Configuration& configuration) {
  std::vector<std::string> own = {home};
  for (const std::string& place : {configuration.metastore, configuration.warehouse}) {
    if (const Result<std::string> path = storage::PathOfFileUri(place); path.ok()) {
      own.push_back(*path);
    } else if (place.starts_with('/')) {
      own.push_back(place);
    }
  }
  return [own = std::move(own)](std::string_view uri) {
    const Result<std::string> path = storage::PathOfFileUri(uri);
    return path.ok() && (IsBelowAny(*path, own) ||
                         std::any_of(own.begin(), own.end(), [&](const std::string& place) {
                           return IsBelowAny(place, {*path});
                         }));
  };
}

// Values of the variables that pipeline files may name.
pipeline::Variables SecretsOf(const Configuration& configuration) {
  pipeline::Variables secrets;
  for (const std::string& name : configuration.allow_secrets) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread is started.
    if (const char* value = std::getenv(name.c_str())) {
      secrets[name] = value;
    }
  }
  return secrets;
}

// Everything a server is made of, in the order of dependence. Outlives the HTTP server.
class Process {
 public:
  Process(const cli::ServeOptions& options, Configuration configuration)
      : options_(options), configuration_(std::move(configuration)) {}

  Status Open(const Address& address);
  Status AddRoutes();
  server::Router& router() { return *router_; }
  task::Control& control() { return *control_; }
  dataset::upkeep::Upkeep& upkeep() { return *upkeep_; }
  catalog::Catalog& catalog() { return *catalog_; }
  /// Of one of several servers. This outlives it.
  std::unique_ptr<PipelineTurn> MakeTurn(const std::string& address) {
    auto turn = std::make_unique<PipelineTurn>(*database_, *control_, clock_, address,
                                               uuids_.NextV4().ToString());
    turn_ = turn.get();
    return turn;
  }

 private:
  Status OpenSqlite();
  Status OpenMetastore();
  Status OpenWarehouse(engine::EngineOptions& engine_options);
  void OpenUpkeep();
  Result<access::Principal> Authenticate(std::string_view token);
  Result<access::Principal> Administrator();

  const cli::ServeOptions options_;
  const Configuration configuration_;
  SystemClock clock_;
  UuidGenerator uuids_{clock_};
  tree::Tree tree_{uuids_, clock_};
  access::Tokens tokens_{uuids_, clock_};
  access::Authorizer authorizer_{clock_};
  std::unique_ptr<metastore::HomeLock> home_lock_;  // Where the metastore is not in the home.
  std::unique_ptr<metastore::Database> database_;
  SystemSleeper sleeper_;
  std::unique_ptr<storage::ObjectStore> warehouse_;
  std::unique_ptr<storage::s3::CredentialVendor> vendor_;  // Null: clients have keys of their own.
  std::unique_ptr<MemoryBudget> budget_;
  std::unique_ptr<engine::Engine> engine_;
  query::MemoryWatch memory_watch_{
      QueryMemoryOf(configuration_.memory_bytes, configuration_.engine_memory_bytes)};
  std::unique_ptr<EngineStore> engine_store_;
  std::unique_ptr<dataset::DatasetStore> datasets_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::atomic<PipelineTurn*> turn_{nullptr};
  std::unique_ptr<task::Control> control_;
  std::unique_ptr<dataset::upkeep::Upkeep> upkeep_;
  server::MetricRegistry metrics_;
  std::unique_ptr<server::IdempotencyKeys> idempotency_;
  server::RateLimit rate_limit_{{.requests_per_minute = configuration_.requests_per_minute}};
  std::unique_ptr<server::Router> router_;
};

Status Process::OpenSqlite() {
  const std::string path =
      configuration_.metastore.empty() ? options_.home + "/metastore.db" : configuration_.metastore;
  TARN_RETURN_IF_ERROR(RefuseLostMetastore(options_.home, path));
  TARN_RETURN_IF_ERROR(MakeMetastoreFile(path));
  TARN_ASSIGN_OR_RETURN(std::unique_ptr<metastore::SqliteDatabase> database,
                        metastore::SqliteDatabase::Open({.path = path}));
  TARN_ASSIGN_OR_RETURN(const bool upgraded, database->BackUpBefore(AllMigrations()));
  if (upgraded) {
    Log(LogLevel::kNotice, "serve",
        path + ".before-upgrade holds the metastore as the older program left it");
  }
  TARN_RETURN_IF_ERROR(database->Migrate(AllMigrations()));
  database_ = std::move(database);
  return Status::Ok();
}

Status Process::OpenMetastore() {
  if (configuration_.metastore_url.empty()) {
    TARN_RETURN_IF_ERROR(OpenSqlite());
  } else {
    TARN_ASSIGN_OR_RETURN(SharedMetastore shared,
                          OpenSharedMetastore(options_.home, configuration_));
    home_lock_ = std::move(shared.lock);
    database_ = std::move(shared.database);
  }
  std::optional<access::Bootstrapped> first;
  TARN_RETURN_IF_ERROR(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(first, access::Bootstrap(sql, tree::RootRid(), uuids_, clock_));
    TARN_RETURN_IF_ERROR(tree_.Bootstrap(sql, first ? first->admin.id : "admin"));
    if (first) {
      // Inside the transaction: a metastore with an admin always has its token beside it.
      TARN_RETURN_IF_ERROR(WriteAdminToken(options_.home + "/admin-token", first->token.text));
    }
    return Status::Ok();
  }));
  return Status::Ok();
}

Status Process::OpenWarehouse(engine::EngineOptions& engine_options) {
  const auto environment = [](const std::string& name) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): tarn never sets its environment while threads run.
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  TARN_ASSIGN_OR_RETURN(
      const storage::StoreOpener opener,
      storage::StoreOpener::Make(configuration_.stores, environment, {clock_, sleeper_}));
  const std::string uri =
      configuration_.warehouse.empty() ? options_.home + "/warehouse" : configuration_.warehouse;
  TARN_ASSIGN_OR_RETURN(warehouse_, opener.Open(uri, storage::StoreAccess::kReadWrite));
  if (!warehouse_->capabilities().put_if_absent) {
    return Status::FailedPrecondition(warehouse_->base_uri() +
                                      " has no conditional writes, which a warehouse needs");
  }
  TARN_RETURN_IF_ERROR(AllowStore(*warehouse_, engine_options));
  TARN_ASSIGN_OR_RETURN(engine_, engine::Engine::Open(engine_options));
  if (!warehouse_->base_uri().starts_with("file:")) {
    TARN_ASSIGN_OR_RETURN(const storage::s3::S3Options bucket, opener.BucketOptions(uri));
    TARN_ASSIGN_OR_RETURN(engine_store_, EngineStore::Open(*engine_, bucket, clock_));
    if (bucket.vending.mode != storage::s3::Vending::kOff) {
      TARN_ASSIGN_OR_RETURN(vendor_,
                            storage::s3::CredentialVendor::Open(bucket, {clock_, sleeper_}));
    }
  }
  return Status::Ok();
}

Status Process::Open(const Address& address) {
  TARN_RETURN_IF_ERROR(arrow::compute::Initialize());
  TARN_RETURN_IF_ERROR(OpenMetastore());
  budget_ = std::make_unique<MemoryBudget>(configuration_.memory_bytes);
  engine::EngineOptions engine_options;
  engine_options.memory_limit_bytes = configuration_.engine_memory_bytes;
  engine_options.threads = configuration_.threads;
  engine_options.temp_directory = options_.home + "/spill";
  TARN_RETURN_IF_ERROR(OpenWarehouse(engine_options));
  LimitProcessMemory(configuration_.memory_bytes, configuration_.engine_memory_bytes);
  datasets_ = std::make_unique<dataset::DatasetStore>(*database_, clock_, uuids_);
  OpenUpkeep();
  catalog_ = std::make_unique<catalog::Catalog>(
      catalog::CatalogOptions{},
      catalog::CatalogDeps{*database_, *warehouse_, tree_, uuids_, clock_});
  task::ControlDeps deps{*database_,
                         *datasets_,
                         *catalog_,
                         *engine_,
                         *budget_,
                         SourceRule(configuration_, address),
                         SecretsOf(configuration_),
                         OwnFilesRule(options_.home, configuration_)};
  if (!configuration_.metastore_url.empty()) {
    deps.may_run = [this](metastore::SqlTransaction& sql) {
      PipelineTurn* turn = turn_.load();
      return turn != nullptr ? turn->CheckHolder(sql)
                             : Status::Unavailable("the server has not started yet");
    };
  }
  control_ = std::make_unique<task::Control>(std::move(deps));
  return Status::Ok();
}

// The work on datasets that nobody asks for, with what it did as metrics.
void Process::OpenUpkeep() {
  dataset::upkeep::UpkeepOptions options;
  options.owner = uuids_.NextV4().ToString();
  upkeep_ = std::make_unique<dataset::upkeep::Upkeep>(
      dataset::retention::RetentionDeps{*database_, *datasets_, clock_}, *warehouse_,
      std::move(options));
  for (size_t i = 0; i < dataset::upkeep::kJobCount; ++i) {
    const auto job = static_cast<dataset::upkeep::Job>(i);
    const dataset::upkeep::JobCounters& counters = upkeep_->counters(job);
    const server::Labels labels = {{"job", std::string(dataset::upkeep::JobName(job))}};
    const auto show = [&](const char* name, const char* help, const std::atomic<int64_t>& value) {
      metrics_.SetGaugeCallback(name, help, labels,
                                [&value] { return static_cast<double>(value.load()); });
    };
    show("tarn_upkeep_runs", "Runs of an upkeep job since the start.", counters.runs);
    show("tarn_upkeep_failures", "Runs that failed.", counters.failures);
    show("tarn_upkeep_skipped", "Runs left to another server.", counters.skipped);
    show("tarn_upkeep_done", "Checkpoints, rows, transactions, marks or objects dealt with.",
         counters.done);
    show("tarn_upkeep_last_milliseconds", "Duration of the last run.", counters.last_millis);
  }
}

Result<access::Principal> Process::Authenticate(std::string_view token) {
  std::optional<access::Principal> principal;
  TARN_RETURN_IF_ERROR(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(principal, tokens_.Authenticate(sql, token));
    return Status::Ok();
  }));
  return *principal;
}

Result<access::Principal> Process::Administrator() {
  std::optional<access::User> admin;
  TARN_RETURN_IF_ERROR(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(admin, access::FindUserByName(sql, "admin"));
    return Status::Ok();
  }));
  if (!admin) {
    return Status::FailedPrecondition("--insecure-anonymous: there is no user admin any more");
  }
  return access::Principal{.user_id = admin->id,
                           .username = admin->username,
                           .token_id = {},
                           .scopes = access::ScopeSet::All()};
}

Status Process::AddRoutes() {
  idempotency_ =
      std::make_unique<server::IdempotencyKeys>(server::IdempotencyOptions{}, *database_, clock_);
  std::optional<access::Principal> everyone;
  if (options_.insecure_anonymous) {
    TARN_ASSIGN_OR_RETURN(everyone, Administrator());
  }
  router_ = std::make_unique<server::Router>(
      server::RouterOptions{.access_log = server::AccessLog::kOff},
      server::RouterDependencies{
          .authenticate = [this](std::string_view token) { return Authenticate(token); },
          .uuids = uuids_,
          .metrics = metrics_,
          .idempotency = idempotency_.get(),
          .rate_limit = &rate_limit_,
          .everyone = everyone});
  metrics_.AddCollector(
      [this] { return server::native::CollectTaskMetrics(*control_, clock_.Now()); });
  TARN_RETURN_IF_ERROR(server::AddHealthRoutes(*router_, metrics_, [this] {
    return database_->Read([](metastore::SqlTransaction& sql) {
      return StatusOf(tree::GetNode(sql, tree::RootRid()));
    });
  }));
  TARN_RETURN_IF_ERROR(server::foundry::AddFoundryRoutes(
      *router_, {*database_, authorizer_, *datasets_, *warehouse_, uuids_, clock_, *catalog_,
                 *engine_, &memory_watch_}));
  server::iceberg_rest::IcebergOptions iceberg;
  iceberg.idempotency_lifetime = server::IdempotencyOptions{}.lifetime;
  iceberg.foreign_locations = configuration_.replace_foreign_locations
                                  ? server::iceberg_rest::ForeignLocations::kReplace
                                  : server::iceberg_rest::ForeignLocations::kRefuse;
  iceberg.catalog_name = configuration_.catalog_name;
  TARN_RETURN_IF_ERROR(server::iceberg_rest::AddIcebergRoutes(
      *router_, iceberg, {*catalog_, authorizer_, vendor_.get()}));
  return server::native::AddNativeRoutes(
      *router_, {{authorizer_, *catalog_, *datasets_, *engine_, &memory_watch_}, *control_});
}

// Blocks the signals that end the server in all threads, so that one can wait for them.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return signals;
}

// A query may compute for ever without looking up. What was answered is on disk, and what was not
// is as if the process had been killed, which every commit can take.
void EndByForceAfter(std::chrono::milliseconds wait) {
  std::thread([wait] {
    std::this_thread::sleep_for(wait);
    Log(LogLevel::kWarning, "serve",
        "a request or a task does not end: the server ends without it");
    std::_Exit(0);
  }).detach();
}

}  // namespace

Status Serve(const cli::ServeOptions& options) {
  const sigset_t signals = BlockSignals();
  cli::ServeOptions absolute = options;
  absolute.home = std::filesystem::absolute(options.home).lexically_normal().string();
  TARN_RETURN_IF_ERROR(MakeHome(absolute.home));
  TARN_ASSIGN_OR_RETURN(
      Configuration configuration,
      ReadConfiguration({.home = absolute.home, .config_path = options.config_path}));
  if (!options.listen.empty()) {
    configuration.listen = options.listen;
  }
  TARN_ASSIGN_OR_RETURN(const Address address, ParseAddress(configuration.listen));
  if (options.insecure_anonymous && !IsLoopback(address.host)) {
    return Status::InvalidArgument(
        fmt::format("--insecure-anonymous is possible on loopback only, found {}", address.host));
  }
  const int workers = configuration.workers;
  const bool is_shared = !configuration.metastore_url.empty();
  Process process(absolute, std::move(configuration));
  TARN_RETURN_IF_ERROR(process.Open(address));
  TARN_RETURN_IF_ERROR(process.AddRoutes());
  server::http::ServerOptions http;
  http.address = address.host == "localhost" ? "127.0.0.1" : address.host;
  http.port = address.port;
  http.worker_count = workers;
  http.render_error = [&](const Status& failure, std::string_view target) {
    return process.router().RenderServerError(failure, target);
  };
  std::unique_ptr<PipelineTurn> turn;  // Of several servers, once the port is known.
  std::atomic<PipelineTurn*> turn_of_all{nullptr};
  TARN_ASSIGN_OR_RETURN(
      const std::unique_ptr<server::http::Server> server,
      server::http::Server::Open(std::move(http), [&](server::http::Request& request) {
        if (PipelineTurn* held = turn_of_all.load()) {
          const Status mine = held->CheckRequest(request.method, request.target);
          if (!mine.ok()) {
            return process.router().RenderServerError(mine, request.target);
          }
        }
        return process.router().Handle(request);
      }));
  if (is_shared) {
    turn = process.MakeTurn(AddressFor(address.host, server->port()));
    turn_of_all = turn.get();
    TARN_RETURN_IF_ERROR(turn->Start());
  } else {
    TARN_RETURN_IF_ERROR(process.control().Resume());
  }
  process.upkeep().Start();
  // Tables that were dropped with their files, and the process died before these were gone.
  const std::jthread purges([&process] {
    const Result<int64_t> done = process.catalog().FinishPurges();
    (void)done;  // What failed is logged and stays due.
  });
  std::printf("listening on http://%s:%u\n", address.host.c_str(), server->port());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  Log(LogLevel::kNotice, "serve", "stopping");
  EndByForceAfter(kDrainDeadline + kForceAfterDrain);  // Of all that follows.
  process.upkeep().Stop();
  if (turn != nullptr) {
    turn->Stop();
  }
  process.control().Shutdown();
  server->Stop(kDrainDeadline);
  return Status::Ok();
}

}  // namespace tarn
