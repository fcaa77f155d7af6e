// Bodies of requests of the Iceberg REST protocol, read from JSON.
//
// Members that are absent or null are the same; members that are not known are passed over.
// Errors of all: kInvalidArgument naming the member and what was found.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tarn/catalog/object.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/iceberg/table_requirement.h"
#include "tarn/iceberg/table_update.h"
#include "tarn/iceberg/view_metadata.h"
#include "tarn/server/request_context.h"

namespace tarn::server::iceberg_rest {

struct CreateNamespaceRequest {
  std::vector<std::string> levels;
  std::map<std::string, std::string> properties;
};
struct PropertiesRequest {
  std::vector<std::string> removals;
  std::map<std::string, std::string> updates;
};
struct CreateTableRequest {
  std::string name;
  std::optional<std::string> location;
  iceberg::Schema schema;
  iceberg::PartitionSpec spec;
  iceberg::SortOrder sort_order;
  std::map<std::string, std::string> properties;
  bool stage = false;
};
struct RegisterRequest {
  std::string name;
  std::string metadata_location;
  bool overwrite = false;
};
struct TableCommitRequest {
  std::optional<catalog::Identifier> identifier;
  std::vector<iceberg::TableRequirement> requirements;
  std::vector<iceberg::TableUpdate> updates;
};
struct RenameRequest {
  catalog::Identifier source;
  catalog::Identifier destination;
};
struct CreateViewRequest {
  std::string name;
  std::optional<std::string> location;
  iceberg::Schema schema;
  iceberg::ViewVersion version;
  std::map<std::string, std::string> properties;
};
struct ViewCommitRequest {
  std::vector<iceberg::AssertViewUuid> requirements;
  std::vector<iceberg::ViewUpdate> updates;
};

Result<CreateNamespaceRequest> ReadCreateNamespace(RequestContext& context);
Result<PropertiesRequest> ReadPropertiesRequest(RequestContext& context);
Result<CreateTableRequest> ReadCreateTable(RequestContext& context);
Result<RegisterRequest> ReadRegister(RequestContext& context);
Result<TableCommitRequest> ReadTableCommit(RequestContext& context);
/// The changes of a commit over several tables. Each has an identifier, none is there twice.
Result<std::vector<TableCommitRequest>> ReadTransaction(RequestContext& context);
Result<RenameRequest> ReadRename(RequestContext& context);
Result<CreateViewRequest> ReadCreateView(RequestContext& context);
Result<ViewCommitRequest> ReadViewCommit(RequestContext& context);
/// Checks that the body is a report; what it says is not kept.
Status CheckMetricsReport(RequestContext& context);

}  // namespace tarn::server::iceberg_rest
