// Names of datasets and transactions on the wire: a uuid inside a resource identifier.
#pragma once

#include <compare>
#include <functional>
#include <string>
#include <string_view>

#include "tarn/base/rid.h"
#include "tarn/base/status.h"
#include "tarn/base/uuid.h"

namespace tarn::dataset {

/// "ri.foundry.main.<Kind::kType>.<uuid>". Value; one type per kind, so that none is taken for
/// another.
template <typename Kind>
struct TypedRid {
  Uuid uuid;

  [[nodiscard]] Rid ToRid() const { return Rid::Make("foundry", Kind::kType, uuid); }
  [[nodiscard]] std::string ToString() const { return ToRid().ToString(); }

  /// Errors: kInvalidArgument unless `text` is an identifier of exactly this kind.
  static Result<TypedRid> Parse(std::string_view text) {
    const std::string prefix = "ri.foundry.main." + std::string(Kind::kType) + ".";
    if (!text.starts_with(prefix)) {
      return Status::InvalidArgument("not a " + std::string(Kind::kType) + " identifier: \"" +
                                     std::string(text) + "\"");
    }
    TARN_ASSIGN_OR_RETURN(const Uuid uuid, Uuid::Parse(text.substr(prefix.size())));
    return TypedRid{.uuid = uuid};
  }

  friend auto operator<=>(const TypedRid&, const TypedRid&) = default;
};

struct DatasetKind {
  static constexpr std::string_view kType = "dataset";
};
struct TransactionKind {
  static constexpr std::string_view kType = "transaction";
};

using DatasetRid = TypedRid<DatasetKind>;
/// The uuid is time-ordered (v7).
using TransactionRid = TypedRid<TransactionKind>;

}  // namespace tarn::dataset

template <typename Kind>
struct std::hash<tarn::dataset::TypedRid<Kind>> {
  size_t operator()(const tarn::dataset::TypedRid<Kind>& rid) const noexcept {
    return std::hash<tarn::Uuid>{}(rid.uuid);
  }
};
