// Labels: what is kept about a place of the tree beside its node: markings, the organizations of
// spaces and projects, references of projects, settings, and who looked at what.
//
// They are stored and shown; only roles decide who may do what. Permanent deletion removes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/rid.h"
#include "tarn/metastore/database.h"

namespace tarn::tree {

/// What can be attached to a node many times over. The names are stored.
enum class LabelKind : uint8_t {
  kMarking,               // A marking id.
  kOrganization,          // Of a space or project: an organization's RID.
  kDeletionOrganization,  // Of a space.
};

inline constexpr size_t kLabelBytesMax = 256;

/// There already: success. Errors: kInvalidArgument on empty or long text.
Status AddLabel(metastore::SqlTransaction& sql, const Rid& rid, LabelKind kind,
                std::string_view label);
/// Not there: success.
Status RemoveLabel(metastore::SqlTransaction& sql, const Rid& rid, LabelKind kind,
                   std::string_view label);
/// In the order of their bytes.
Result<std::vector<std::string>> ListLabels(metastore::SqlTransaction& sql, const Rid& rid,
                                            LabelKind kind);

/// A resource of another project (or outside the server) that a project uses. Value.
struct Reference {
  Rid resource;
  std::string name;
  bool external = false;
  std::string imported_by;  // User id.
  Timestamp imported{};
  friend bool operator==(const Reference&, const Reference&) = default;
};

/// There already: renamed. Errors: none of its own.
Status AddReference(metastore::SqlTransaction& sql, const Rid& project, const Reference& reference);
Status RemoveReference(metastore::SqlTransaction& sql, const Rid& project, const Rid& resource);
/// By RID.
Result<std::vector<Reference>> ListReferences(metastore::SqlTransaction& sql, const Rid& project);

/// Settings of a space or project: a JSON object that its owner gives meaning to; "{}" at first.
Result<std::string> ReadSettings(metastore::SqlTransaction& sql, const Rid& rid);
Status WriteSettings(metastore::SqlTransaction& sql, const Rid& rid, std::string_view json);

/// A look of a user at a resource. Value.
struct Look {
  Rid resource;
  Timestamp time{};
  friend bool operator==(const Look&, const Look&) = default;
};

inline constexpr int64_t kLooksMax = 100;  // Kept per user.

/// Remembers the newest look only.
Status RecordLook(metastore::SqlTransaction& sql, std::string_view user_id, const Look& look);
/// Newest first.
Result<std::vector<Look>> ListLooks(metastore::SqlTransaction& sql, std::string_view user_id,
                                    int64_t limit = kLooksMax);

/// Forgets all of the above about a node that is gone for good.
Status RemoveLabelsOf(metastore::SqlTransaction& sql, const Rid& rid);

}  // namespace tarn::tree
