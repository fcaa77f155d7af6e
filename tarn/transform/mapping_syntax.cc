#include "tarn/transform/mapping_syntax.h"

#include <string>
#include <string_view>

#include "tarn/engine/select_check.h"
#include "tarn/format/field_type.h"

namespace tarn::transform {

namespace {

class SyntaxCheck {
 public:
  SyntaxCheck(engine::Session& session, const MappingSpec& spec) : session_(session), spec_(spec) {}

  Status Run() {
    for (const ColumnMapping& column : spec_.columns) {
      const std::string key = "columns." + column.name;
      TARN_RETURN_IF_ERROR(CheckText(key, column.expression));
      if (column.type) {
        TARN_RETURN_IF_ERROR(Told(key + ".type", StatusOf(format::ParseTypeName(*column.type))));
      }
    }
    TARN_RETURN_IF_ERROR(CheckText("where", spec_.where));
    TARN_RETURN_IF_ERROR(CheckText("delete_when", spec_.delete_when));
    TARN_RETURN_IF_ERROR(CheckText("event_time", spec_.event_time));
    for (const Expectation& expectation : spec_.expect) {
      TARN_RETURN_IF_ERROR(CheckText("expect." + expectation.name, expectation.check));
    }
    return Status::Ok();
  }

 private:
  [[nodiscard]] Status Told(const std::string& key, const Status& status) const {
    return status.WithContext(key).WithContext("transform " + spec_.target);
  }

  Status CheckText(const std::string& key, std::string_view text) {
    if (text.empty() || text.find("[]") != std::string_view::npos) {
      return Status::Ok();
    }
    return Told(key, StatusOf(engine::CheckExpression(session_, text)));
  }

  engine::Session& session_;
  const MappingSpec& spec_;
};

}  // namespace

Status CheckMappingSyntax(engine::Session& session, const MappingSpec& spec) {
  return SyntaxCheck(session, spec).Run();
}

}  // namespace tarn::transform
