#include "tarn/pipeline/yaml_reader.h"

#include <charconv>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "tarn/base/quantity.h"
#include "tarn/pipeline/yaml_check.h"

namespace tarn::pipeline {

namespace {

std::string At(const YAML::Mark& mark) {
  return mark.is_null() ? std::string()
                        : fmt::format("line {}, column {}: ", mark.line + 1, mark.column + 1);
}

// The first key that a mapping of the document has twice, with its place.
std::string FindRepeatedKey(const YAML::Node& node) {
  if (node.IsSequence()) {
    for (const YAML::Node& element : node) {
      if (std::string found = FindRepeatedKey(element); !found.empty()) {
        return found;
      }
    }
  }
  if (!node.IsMap()) {
    return {};
  }
  std::set<std::string> names;
  for (const auto& member : node) {
    if (!member.first.IsScalar()) {
      return At(member.first.Mark()) + "a key must be a plain text";
    }
    if (!names.insert(member.first.Scalar()).second) {
      return fmt::format("{}the key {} is there twice", At(member.first.Mark()),
                         member.first.Scalar());
    }
    if (std::string found = FindRepeatedKey(member.second); !found.empty()) {
      return found;
    }
  }
  return {};
}

}  // namespace

struct YamlReader::Document {
  Status first_complaint;
};

YamlReader::YamlReader(std::shared_ptr<Document> document, std::unique_ptr<YAML::Node> node,
                       std::string path)
    : document_(std::move(document)), node_(std::move(node)), path_(std::move(path)) {}

YamlReader::YamlReader(const YamlReader& other)
    : document_(other.document_),
      node_(std::make_unique<YAML::Node>(*other.node_)),
      path_(other.path_),
      variables_(other.variables_),
      used_(other.used_) {}

YamlReader& YamlReader::operator=(const YamlReader& other) {
  if (this != &other) {
    document_ = other.document_;
    node_ = std::make_unique<YAML::Node>(*other.node_);
    path_ = other.path_;
    variables_ = other.variables_;
    used_ = other.used_;
  }
  return *this;
}

YamlReader::~YamlReader() = default;

Result<YamlReader> YamlReader::Parse(std::string_view text) {
  TARN_RETURN_IF_ERROR(CheckYaml(text));
  auto node = std::make_unique<YAML::Node>();
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() != 1) {
      return Status::InvalidArgument(
          fmt::format("expected one YAML document, found {}", documents.size()));
    }
    *node = documents.front();
  } catch (const YAML::Exception& exception) {
    return Status::InvalidArgument(At(exception.mark) + exception.msg);
  }
  if (!node->IsMap()) {
    return Status::InvalidArgument(At(node->Mark()) + "expected a mapping of keys to values");
  }
  if (const std::string repeated = FindRepeatedKey(*node); !repeated.empty()) {
    return Status::InvalidArgument(repeated);
  }
  return YamlReader(std::make_shared<Document>(), std::move(node), "");
}

void YamlReader::Expand(Variables variables) {
  variables_ = std::make_shared<const Variables>(std::move(variables));
}

std::string YamlReader::Expanded(std::string_view key, const std::string& text) {
  if (variables_ == nullptr || text.find("${") == std::string::npos) {
    return text;
  }
  Result<std::string> expanded = ExpandVariables(text, *variables_);
  if (!expanded.ok()) {
    Complain(key, expanded.status().message());
    return text;
  }
  return *std::move(expanded);
}

std::string YamlReader::PathOf(std::string_view key) const {
  if (key.empty()) {
    return path_;
  }
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

YAML::Node YamlReader::Find(std::string_view key) const {
  if (!node_->IsMap()) {
    return YAML::Node(YAML::NodeType::Undefined);
  }
  for (const auto& member : *node_) {
    if (member.first.Scalar() == key) {
      return member.second;
    }
  }
  return YAML::Node(YAML::NodeType::Undefined);
}

YAML::Node YamlReader::Use(std::string_view key) {
  used_.emplace(key);
  return Find(key);
}

bool YamlReader::Has(std::string_view key) const { return Find(key).IsDefined(); }

bool YamlReader::IsMapping(std::string_view key) const { return Find(key).IsMap(); }

void YamlReader::Complain(std::string_view key, std::string_view message) {
  if (!document_->first_complaint.ok()) {
    return;
  }
  YAML::Mark mark = node_->Mark();
  if (node_->IsMap() && !key.empty()) {
    for (const auto& member : *node_) {
      if (member.first.Scalar() == key) {
        mark = member.first.Mark();
      }
    }
  }
  const std::string path = PathOf(key);
  document_->first_complaint = Status::InvalidArgument(
      fmt::format("{}{}{}{}", At(mark), path, path.empty() ? "" : ": ", message));
}

std::optional<std::string> YamlReader::Scalar(std::string_view key) {
  const YAML::Node value = Use(key);
  if (!value.IsDefined()) {
    return std::nullopt;
  }
  if (!value.IsScalar()) {
    Complain(key, value.IsNull() ? "has no value" : "expected one value, not a list or mapping");
    return std::nullopt;
  }
  return Expanded(key, value.Scalar());
}

std::string YamlReader::Text(std::string_view key, std::string otherwise) {
  return Scalar(key).value_or(std::move(otherwise));
}

std::string YamlReader::RequiredText(std::string_view key) {
  if (!Has(key)) {
    Complain("", fmt::format("the key {} is required", key));
  }
  return Text(key);
}

std::vector<std::string> YamlReader::Texts(std::string_view key,
                                           std::vector<std::string> otherwise) {
  const YAML::Node value = Use(key);
  if (!value.IsDefined()) {
    return otherwise;
  }
  if (value.IsScalar()) {
    return {Expanded(key, value.Scalar())};
  }
  std::vector<std::string> texts;
  if (!value.IsSequence()) {
    Complain(key, "expected a list");
    return texts;
  }
  for (const YAML::Node& element : value) {
    if (!element.IsScalar()) {
      Complain(key, "expected a list of plain values");
      return texts;
    }
    texts.push_back(Expanded(key, element.Scalar()));
  }
  return texts;
}

bool YamlReader::Flag(std::string_view key, bool otherwise) {
  const std::optional<std::string> text = Scalar(key);
  if (!text) {
    return otherwise;
  }
  if (*text != "true" && *text != "false") {
    Complain(key, fmt::format("expected true or false, found {}", *text));
  }
  return *text == "true";
}

int64_t YamlReader::Integer(std::string_view key, int64_t otherwise) {
  const std::optional<std::string> text = Scalar(key);
  if (!text) {
    return otherwise;
  }
  const Result<int64_t> value = ParseInteger(*text);
  if (!value.ok()) {
    Complain(key, value.status().message());
    return otherwise;
  }
  return *value;
}

int64_t YamlReader::Count(std::string_view key, int64_t least, int64_t otherwise) {
  const int64_t value = Integer(key, otherwise);
  if (value < least) {
    Complain(key, fmt::format("must be at least {}, found {}", least, value));
    return otherwise;
  }
  return value;
}

int64_t YamlReader::Size(std::string_view key, int64_t otherwise_bytes) {
  const std::optional<std::string> text = Scalar(key);
  if (!text) {
    return otherwise_bytes;
  }
  const Result<uint64_t> value = ParseSize(*text);
  if (!value.ok()) {
    Complain(key, value.status().message());
    return otherwise_bytes;
  }
  return static_cast<int64_t>(*value);
}

double YamlReader::Ratio(std::string_view key, double otherwise) {
  const std::optional<std::string> text = Scalar(key);
  if (!text) {
    return otherwise;
  }
  const Result<double> value = ParsePercentage(*text);
  if (!value.ok()) {
    Complain(key, value.status().message());
    return otherwise;
  }
  return *value;
}

std::optional<std::chrono::microseconds> YamlReader::Duration(
    std::string_view key, std::optional<std::chrono::microseconds> otherwise) {
  const std::optional<std::string> text = Scalar(key);
  if (!text) {
    return otherwise;
  }
  const Result<std::optional<std::chrono::milliseconds>> value = ParseDurationOrOff(*text);
  if (!value.ok()) {
    Complain(key, value.status().message());
    return otherwise;
  }
  if (!*value) {
    return std::nullopt;
  }
  return **value;
}

std::chrono::milliseconds YamlReader::Period(std::string_view key,
                                             std::chrono::milliseconds otherwise) {
  const std::optional<std::chrono::microseconds> value = Duration(key, otherwise);
  if (!value || value->count() <= 0) {
    Complain(key, fmt::format("cannot be {}: write a duration such as 5s", value ? "0" : "off"));
    return otherwise;
  }
  return std::chrono::duration_cast<std::chrono::milliseconds>(*value);
}

size_t YamlReader::Choice(std::string_view key, const std::vector<std::string_view>& names,
                          size_t otherwise) {
  const std::optional<std::string> text = Scalar(key);
  if (!text) {
    return otherwise;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == *text) {
      return i;
    }
  }
  Complain(key, fmt::format("expected one of {}, found {}", fmt::join(names, ", "), *text));
  return otherwise;
}

YamlReader YamlReader::Child(std::string_view key) {
  const YAML::Node value = Use(key);
  if (value.IsDefined() && !value.IsMap()) {
    Complain(key, "expected a mapping of keys to values");
  }
  auto node = std::make_unique<YAML::Node>(
      value.IsDefined() && value.IsMap() ? value : YAML::Node(YAML::NodeType::Map));
  YamlReader child(document_, std::move(node), PathOf(key));
  child.variables_ = variables_;
  return child;
}

std::vector<std::string> YamlReader::Keys() const {
  std::vector<std::string> keys;
  if (node_->IsMap()) {
    for (const auto& member : *node_) {
      keys.push_back(member.first.Scalar());
    }
  }
  return keys;
}

void YamlReader::Refuse(const std::vector<std::string_view>& keys) {
  for (const std::string_view key : keys) {
    if (Use(key).IsDefined()) {
      Complain(key, "not available in this version");
    }
  }
}

void YamlReader::Finish() {
  for (const std::string& key : Keys()) {
    if (!used_.contains(key)) {
      Complain(key, "unknown key");
    }
  }
}

Status YamlReader::status() const { return document_->first_complaint; }

}  // namespace tarn::pipeline
