// IcebergApi: the handlers of iceberg_routes.h, one source per resource.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/catalog/location_cache.h"
#include "tarn/catalog/namespace.h"
#include "tarn/iceberg/scan.h"
#include "tarn/server/iceberg_rest/catalog_path.h"
#include "tarn/server/iceberg_rest/iceberg_routes.h"
#include "tarn/server/iceberg_rest/requests.h"
#include "tarn/storage/s3/credential_vendor.h"
#include "tarn/tree/node.h"

namespace tarn::server::iceberg_rest {

inline constexpr int64_t kPageSizeMax = 1000;

/// Property of a namespace: its owners may commit to the tables in it that tasks write.
inline constexpr std::string_view kForeignWritesProperty = "tarn.foreign-writes";

/// A namespace with what the caller may do in it.
struct Place {
  CatalogPath path;
  Rid folder;
  access::Role role = access::Role::kNone;
};

/// A table or view with what the caller may do to it.
struct Target {
  CatalogPath path;
  catalog::CatalogObject object;
  access::Role role = access::Role::kNone;
};

/// Keys for the files of one table. Value.
struct GrantedKeys {
  storage::aws::Credentials credentials;
  std::vector<std::string> prefixes;  // URIs with a slash at the end, the table's own first.
};

/// Where a listing begins and how long a page is. Without `pageToken` everything is one page.
struct Paging {
  bool paged = false;
  std::string token;
  int64_t size = kPageSizeMax;
};
Result<Paging> PagingOf(const RequestContext& context);

/// kNotFound with the type and the words that clients look for.
Status NoNamespace(const std::vector<std::string>& levels);
Status NoObject(catalog::ObjectKind kind, const catalog::Identifier& identifier);

/// Lives as long as the router's handlers. Threads: any.
class IcebergApi {
 public:
  using Handler = Result<http::Response> (IcebergApi::*)(RequestContext&);

  IcebergApi(IcebergOptions options, const IcebergDeps& deps)
      : options_(std::move(options)), deps_(deps) {}

  // configuration.cc
  Result<http::Response> GetConfig(RequestContext& context);
  Result<http::Response> IssueToken(RequestContext& context);
  // namespaces.cc
  Result<http::Response> ListNamespaces(RequestContext& context);
  Result<http::Response> CreateNamespace(RequestContext& context);
  Result<http::Response> GetNamespace(RequestContext& context);
  Result<http::Response> HeadNamespace(RequestContext& context);
  Result<http::Response> DropNamespace(RequestContext& context);
  Result<http::Response> ChangeProperties(RequestContext& context);
  // tables.cc
  Result<http::Response> ListTables(RequestContext& context);
  Result<http::Response> LoadTable(RequestContext& context);
  Result<http::Response> HeadTable(RequestContext& context);
  Result<http::Response> DropTable(RequestContext& context);
  Result<http::Response> UnregisterTable(RequestContext& context);
  Result<http::Response> RenameTable(RequestContext& context);
  Result<http::Response> ReportMetrics(RequestContext& context);
  // table_creation.cc
  Result<http::Response> CreateTable(RequestContext& context);
  Result<http::Response> RegisterTable(RequestContext& context);
  // vending.cc
  Result<http::Response> GetCredentials(RequestContext& context);
  // scan_planning.cc
  Result<http::Response> PlanTable(RequestContext& context);
  Result<http::Response> FetchTasks(RequestContext& context);
  // table_commits.cc
  Result<http::Response> CommitTable(RequestContext& context);
  Result<http::Response> CommitTransaction(RequestContext& context);
  // views.cc
  Result<http::Response> ListViews(RequestContext& context);
  Result<http::Response> CreateView(RequestContext& context);
  Result<http::Response> LoadView(RequestContext& context);
  Result<http::Response> HeadView(RequestContext& context);
  Result<http::Response> CommitView(RequestContext& context);
  Result<http::Response> DropView(RequestContext& context);
  Result<http::Response> RenameView(RequestContext& context);
  Result<http::Response> RegisterView(RequestContext& context);

 private:
  metastore::Database& database() { return deps_.catalog.deps().database; }
  storage::ObjectStore& warehouse() { return deps_.catalog.deps().warehouse; }

  // places.cc: finding things and checking rights. All in the caller's SQL transaction but those
  // that take a request only.
  Result<tree::Node> FindWarehouse(metastore::SqlTransaction& sql, const std::string& prefix) const;
  Result<Rid> ProjectOf(metastore::SqlTransaction& sql, const std::string& prefix) const;
  Result<access::Role> RoleOn(metastore::SqlTransaction& sql, const RequestContext& context,
                              const Rid& rid) const;
  /// kNotFound below Viewer; kPermissionDenied below `needed`.
  Result<Place> FindPlace(metastore::SqlTransaction& sql, const RequestContext& context,
                          const CatalogPath& path, access::Role needed) const;
  Result<Target> FindTarget(metastore::SqlTransaction& sql, const RequestContext& context,
                            const CatalogPath& path, catalog::ObjectKind kind,
                            access::Role needed) const;
  Result<Place> ReadPlace(RequestContext& context, access::Role needed);
  Result<Target> ReadTarget(RequestContext& context, catalog::ObjectKind kind, access::Role needed);
  /// Editor's right to change the object; objects that tasks write need more.
  Status RequireChangeable(metastore::SqlTransaction& sql, const RequestContext& context,
                           const Target& target) const;
  /// kAlreadyExists in the words of the protocol when the name is taken.
  Status RequireFreeName(metastore::SqlTransaction& sql, const Place& place,
                         catalog::ObjectKind kind, const std::string& name) const;
  /// Adds a record of a change, or of a denial when `outcome` is one; returns `outcome`.
  Status AuditChange(metastore::SqlTransaction& sql, const RequestContext& context,
                     std::string_view action, const std::string& resource) const;
  Status AuditDenial(const RequestContext& context, std::string_view action,
                     const std::string& resource, const Status& outcome);

  Result<http::Response> ListObjects(RequestContext& context, catalog::ObjectKind kind);
  Result<http::Response> Rename(RequestContext& context, catalog::ObjectKind kind);
  Status Drop(RequestContext& context, catalog::ObjectKind kind, std::string_view action);
  Status AddFolders(metastore::SqlTransaction& sql, const RequestContext& context,
                    const Rid& parent, const std::vector<std::string>& levels, const Paging& paging,
                    std::vector<std::vector<std::string>>& found, std::string& next_token);

  /// The location for a new object: the one asked for, or one of our own.
  Result<std::string> LocationFor(const std::optional<std::string>& requested,
                                  std::string_view folder, const std::string& uuid) const;
  /// The updates as they are to be applied: locations in their one form.
  Result<std::vector<iceberg::TableUpdate>> Settled(
      std::vector<iceberg::TableUpdate> updates) const;
  Result<http::Response> StageTable(RequestContext& context, const Target& target,
                                    const iceberg::TableMetadata& metadata);
  Result<catalog::TableChange> PlanChange(metastore::SqlTransaction& sql, RequestContext& context,
                                          const CatalogPath& path, TableCommitRequest commit);
  Status CheckFiles(metastore::SqlTransaction& sql, const catalog::TableChange& change) const;

  // vending.cc
  /// True when the client asks for keys and there are some to be had.
  [[nodiscard]] bool WantsKeys(const RequestContext& context) const;
  /// Keys for what the caller may do with the table's files, where the warehouse hands out any.
  /// Errors: kUnavailable when the token service gives none.
  Result<std::optional<GrantedKeys>> KeysFor(const RequestContext& context, const Target& target,
                                             const iceberg::TableMetadata& metadata);
  Result<storage::s3::VendingRequest> PlanKeys(metastore::SqlTransaction& sql,
                                               const RequestContext& context, const Target& target,
                                               const iceberg::TableMetadata& metadata) const;
  Result<std::string> InternalLocation(metastore::SqlTransaction& sql,
                                       const RequestContext& context, const Target& target) const;
  [[nodiscard]] std::string CredentialsText(const GrantedKeys& keys) const;
  /// Ends an answer that has a table's metadata, with the keys and what else clients need to know.
  http::Response WithConfig(std::string text, const CatalogPath& path,
                            const std::optional<GrantedKeys>& keys) const;

  // scan_planning.cc
  using Tasks = std::vector<iceberg::FileScanTask>;
  using Plan = std::shared_ptr<const Tasks>;
  enum class PlanPage : uint8_t { kFirst, kNext };
  Result<http::Response> AnswerPlan(RequestContext& context, PlanPage page);
  /// A plan as it was made before, if that is kept.
  Result<Plan> PlanOf(const std::string& key, const std::function<Result<Tasks>()>& make);

  /// kNotFound when the file is gone from a local warehouse.
  Status RequireMetadataFile(const std::string& location);
  /// The metadata in an answer to a load or a creation, its end left open, from the cache if it is
  /// there. `snapshots`: all or refs. Errors: kNotFound, with a reason, without the metadata file.
  Result<std::shared_ptr<const std::string>> MetadataText(const std::string& location,
                                                          const std::string& snapshots);
  /// The answer to a creation.
  Result<http::Response> CreatedResponse(const catalog::LoadedTable& table, const CatalogPath& path,
                                         const std::optional<GrantedKeys>& keys);
  /// The answer to a commit.
  http::Response CommittedResponse(const catalog::LoadedTable& table) const;
  http::Response ViewResponse(const catalog::LoadedView& view) const;

  const IcebergOptions options_;
  const IcebergDeps deps_;
  mutable std::mutex mutex_;
  mutable Rid default_project_;  // As found last; guarded by mutex_.
  // Texts by the name of the metadata file and what was asked of it.
  catalog::LocationCache<std::string> answers_{4096, 64 << 20};
  catalog::LocationCache<Tasks> plans_{64, 64 << 20};  // Of several pages, by table and request.
};

/// One route, for both the default warehouse and those with a prefix.
struct IcebergRoute {
  const char* method;
  const char* pattern;
  IcebergApi::Handler handler;
};
/// In the order in which the configuration lists them.
const std::vector<IcebergRoute>& IcebergRoutes();

}  // namespace tarn::server::iceberg_rest
