// The names of declared types: ParseTypeName and FormatTypeName of field_type.h.
#include <array>
#include <cctype>

#include "tarn/format/field_type.h"

namespace tarn::format {

namespace {

constexpr int kDepthMax = 100;

struct NamedType {
  std::string_view name;
  FieldKind kind;
  FieldDetail detail = FieldDetail::kNone;
};
constexpr std::array<NamedType, 14> kScalars = {
    {{"boolean", FieldKind::kBoolean},
     {"byte", FieldKind::kByte},
     {"short", FieldKind::kShort},
     {"int", FieldKind::kInteger},
     {"long", FieldKind::kLong},
     {"float", FieldKind::kFloat},
     {"double", FieldKind::kDouble},
     {"string", FieldKind::kString},
     {"binary", FieldKind::kBinary},
     {"date", FieldKind::kDate},
     {"time", FieldKind::kLong, FieldDetail::kTime},
     {"timestamp", FieldKind::kTimestamp, FieldDetail::kWallClock},
     {"timestamptz", FieldKind::kTimestamp},
     {"uuid", FieldKind::kString, FieldDetail::kUuid}}};

struct Alias {
  std::string_view name;
  std::string_view means;
};
constexpr std::array<Alias, 7> kAliases = {{{"bool", "boolean"},
                                            {"integer", "int"},
                                            {"bigint", "long"},
                                            {"real", "float"},
                                            {"varchar", "string"},
                                            {"text", "string"},
                                            {"numeric", "decimal"}}};

class TypeNameParser {
 public:
  explicit TypeNameParser(std::string_view text) : text_(text) {}

  Result<FieldType> Whole() {
    TARN_ASSIGN_OR_RETURN(FieldType type, Type(0));
    Skip();
    if (at_ != text_.size()) {
      return Bad("nothing more");
    }
    return type;
  }

 private:
  void Skip() {
    while (at_ < text_.size() && text_[at_] == ' ') {
      ++at_;
    }
  }

  bool Take(char c) {
    Skip();
    if (at_ == text_.size() || text_[at_] != c) {
      return false;
    }
    ++at_;
    return true;
  }

  Status Bad(std::string_view expected) const {
    return Status::InvalidArgument("type \"" + std::string(text_) + "\": expected " +
                                   std::string(expected) + " at position " + std::to_string(at_));
  }

  std::string Word() {
    Skip();
    std::string word;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_')) {
      word.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(text_[at_++]))));
    }
    return word;
  }

  int Number() {
    const std::string word = Word();
    if (word.empty() || word.size() > 3 ||
        word.find_first_not_of("0123456789") != std::string::npos) {
      return -1;
    }
    return std::stoi(word);
  }

  Result<std::string> MemberName() {
    Skip();
    std::string name;
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '`')) {
      const char quote = text_[at_++];
      while (at_ < text_.size() && text_[at_] != quote) {
        name.push_back(text_[at_++]);
      }
      if (!Take(quote)) {
        return Bad("a closing quote");
      }
      return name;
    }
    while (at_ < text_.size() && text_[at_] != ':' && text_[at_] != ' ' && text_[at_] != ',' &&
           text_[at_] != '>') {
      name.push_back(text_[at_++]);
    }
    if (name.empty()) {
      return Bad("a member name");
    }
    return name;
  }

  Result<FieldType> DecimalType() {
    FieldType type{.kind = FieldKind::kDecimal, .precision = 38, .scale = 0};
    if (!Take('(')) {
      return Bad("(precision, scale)");
    }
    type.precision = Number();
    if (Take(',')) {
      type.scale = Number();
    }
    if (type.precision < 1 || type.precision > 38 || type.scale < 0 ||
        type.scale > type.precision) {
      return Bad("precision 1..38 and scale 0..precision");
    }
    if (!Take(')')) {
      return Bad("')'");
    }
    return type;
  }

  Result<FieldType> StructType(int depth) {
    FieldType type{.kind = FieldKind::kStruct};
    do {
      Field member;
      TARN_ASSIGN_OR_RETURN(member.name, MemberName());
      if (!Take(':')) {
        return Bad("':'");
      }
      TARN_ASSIGN_OR_RETURN(member.type, Type(depth + 1));
      type.children.push_back(std::move(member));
    } while (Take(','));
    return type;
  }

  Result<FieldType> MapType(int depth) {
    FieldType type{.kind = FieldKind::kMap};
    TARN_ASSIGN_OR_RETURN(FieldType key, Type(depth + 1));
    if (!key.children.empty()) {
      return Bad("a key type without members");
    }
    if (!Take(',')) {
      return Bad("','");
    }
    TARN_ASSIGN_OR_RETURN(FieldType value, Type(depth + 1));
    type.children = {{.name = "key", .type = std::move(key), .nullable = false},
                     {.name = "value", .type = std::move(value)}};
    return type;
  }

  Result<FieldType> Nested(const std::string& word, int depth) {
    if (depth > kDepthMax || !Take('<')) {
      return Bad("'<'");
    }
    FieldType type{.kind = FieldKind::kArray};
    if (word == "struct") {
      TARN_ASSIGN_OR_RETURN(type, StructType(depth));
    } else if (word == "map") {
      TARN_ASSIGN_OR_RETURN(type, MapType(depth));
    } else {
      TARN_ASSIGN_OR_RETURN(FieldType element, Type(depth + 1));
      type.children = {{.name = "element", .type = std::move(element)}};
    }
    if (!Take('>')) {
      return Bad("'>'");
    }
    return type;
  }

  Result<FieldType> Type(int depth) {
    std::string word = Word();
    for (const Alias& alias : kAliases) {
      word = word == alias.name ? std::string(alias.means) : word;
    }
    for (const NamedType& named : kScalars) {
      if (named.name == word) {
        return FieldType{.kind = named.kind, .detail = named.detail};
      }
    }
    if (word == "decimal") {
      return DecimalType();
    }
    if (word == "array" || word == "list" || word == "struct" || word == "map") {
      return Nested(word, depth);
    }
    at_ -= word.size();
    return Bad(
        "boolean, int, long, float, double, decimal(p,s), string, binary, date, time, timestamp, "
        "timestamptz, uuid, array<…>, struct<…> or map<…>");
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Result<FieldType> ParseTypeName(std::string_view text) { return TypeNameParser(text).Whole(); }

std::string FormatTypeName(const FieldType& type) {
  switch (type.kind) {
    case FieldKind::kDecimal:
      return "decimal(" + std::to_string(type.precision) + "," + std::to_string(type.scale) + ")";
    case FieldKind::kArray:
      return "array<" + FormatTypeName(type.children[0].type) + ">";
    case FieldKind::kMap:
      return "map<" + FormatTypeName(type.children[0].type) + "," +
             FormatTypeName(type.children[1].type) + ">";
    case FieldKind::kStruct: {
      std::string text = "struct<";
      for (const Field& child : type.children) {
        const bool plain =
            !child.name.empty() && child.name.find_first_of(":, >\"`") == std::string::npos;
        const char* quote = plain ? "" : child.name.find('"') == std::string::npos ? "\"" : "`";
        text += (text.back() == '<' ? "" : ",") + (quote + child.name) + quote + ":" +
                FormatTypeName(child.type);
      }
      return text + ">";
    }
    default:
      break;
  }
  const FieldDetail detail =
      type.detail == FieldDetail::kUntyped ? FieldDetail::kNone : type.detail;
  for (const NamedType& named : kScalars) {
    if (named.kind == type.kind && named.detail == detail) {
      return std::string(named.name);
    }
  }
  return "string";
}

}  // namespace tarn::format
