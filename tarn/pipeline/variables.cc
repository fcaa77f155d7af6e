#include "tarn/pipeline/variables.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "tarn/pipeline/yaml_check.h"

namespace tarn::pipeline {

namespace {

constexpr size_t kHiddenLengthMin = 4;

bool IsVariableName(std::string_view name) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
  return !name.empty() && name.find_first_not_of(kLetters) == std::string_view::npos &&
         !(name.front() >= '0' && name.front() <= '9');
}

// Calls `visit` with the text before each `${NAME}` and the name; returns what is left.
Result<std::string_view> Walk(
    std::string_view text,
    const std::function<Status(std::string_view before, std::string_view name)>& visit) {
  while (true) {
    const size_t at = text.find("${");
    if (at == std::string_view::npos) {
      return text;
    }
    const size_t end = text.find('}', at);
    const std::string_view name =
        end == std::string_view::npos ? std::string_view() : text.substr(at + 2, end - at - 2);
    if (!IsVariableName(name)) {
      return Status::InvalidArgument(
          "expected ${NAME} with letters, digits and underscores where ${ stands");
    }
    TARN_RETURN_IF_ERROR(visit(text.substr(0, at), name));
    text.remove_prefix(end + 1);
  }
}

void AddOnce(std::vector<std::string>& names, std::string_view name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    names.emplace_back(name);
  }
}

void Collect(const YAML::Node& node, std::vector<std::string>& names) {
  if (node.IsScalar()) {
    for (const std::string& name : FindVariables(node.Scalar())) {
      AddOnce(names, name);
    }
  } else if (node.IsSequence()) {
    for (const YAML::Node& element : node) {
      Collect(element, names);
    }
  } else if (node.IsMap()) {
    for (const auto& member : node) {
      Collect(member.second, names);
    }
  }
}

}  // namespace

std::vector<std::string> FindVariables(std::string_view text) {
  std::vector<std::string> names;
  const Result<std::string_view> rest = Walk(text, [&](std::string_view, std::string_view name) {
    AddOnce(names, name);
    return Status::Ok();
  });
  (void)rest.ok();  // What follows a bad `${` has no names that could be used.
  return names;
}

Result<std::vector<std::string>> ListVariables(std::string_view yaml) {
  TARN_RETURN_IF_ERROR(CheckYaml(yaml));
  std::vector<std::string> names;
  try {
    const YAML::Node document = YAML::Load(std::string(yaml));
    if (document.IsMap()) {
      for (const auto& member : document) {
        if (member.first.IsScalar() && member.first.Scalar() == "sources") {
          Collect(member.second, names);
        }
      }
    }
  } catch (const YAML::Exception& exception) {
    return Status::InvalidArgument(exception.what());
  }
  return names;
}

Result<std::string> ExpandVariables(std::string_view text, const Variables& variables) {
  std::string expanded;
  const auto put = [&](std::string_view before, std::string_view name) -> Status {
    const auto found = variables.find(name);
    if (found == variables.end()) {
      return Status::InvalidArgument(fmt::format(
          "${{{}}} has no value: set it in the environment of the command, or allow it by "
          "secrets.allow of the server's configuration and set it in the server's environment",
          name));
    }
    expanded += before;
    expanded += found->second;
    return Status::Ok();
  };
  TARN_ASSIGN_OR_RETURN(const std::string_view rest, Walk(text, put));
  return expanded + std::string(rest);
}

std::string HideValues(std::string text, const Variables& variables) {
  std::vector<std::pair<std::string_view, std::string_view>> values;
  for (const auto& [name, value] : variables) {
    if (value.size() >= kHiddenLengthMin) {
      values.emplace_back(value, name);
    }
  }
  std::sort(values.begin(), values.end(),
            [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  for (const auto& [value, name] : values) {
    const std::string shown = fmt::format("${{{}}}", name);
    for (size_t at = text.find(value); at != std::string::npos;
         at = text.find(value, at + shown.size())) {
      text.replace(at, value.size(), shown);
    }
  }
  return text;
}

}  // namespace tarn::pipeline
