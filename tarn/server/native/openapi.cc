// The description of the native routes, made from their tables.
#include <nlohmann/json.hpp>

#include "tarn/server/native/native_api.h"

namespace tarn::server::native {

namespace {

using nlohmann::json;

// "{pipeline}:start" has the parameter "pipeline".
json PathParameters(std::string_view pattern) {
  json parameters = json::array();
  while (true) {
    const size_t open = pattern.find('{');
    if (open == std::string_view::npos) {
      return parameters;
    }
    const size_t close = pattern.find('}', open);
    parameters.push_back({{"name", pattern.substr(open + 1, close - open - 1)},
                          {"in", "path"},
                          {"required", true},
                          {"schema", {{"type", "string"}}}});
    pattern.remove_prefix(close + 1);
  }
}

void AddQueryParameters(std::string_view names, json& parameters) {
  while (!names.empty()) {
    const size_t blank = names.find(' ');
    parameters.push_back({{"name", names.substr(0, blank)},
                          {"in", "query"},
                          {"required", false},
                          {"schema", {{"type", "string"}}}});
    names = blank == std::string_view::npos ? std::string_view() : names.substr(blank + 1);
  }
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return lower;
}

json AnyObject() { return {{"schema", {{"type", "object"}}}}; }

json Describe(const NativeRoute& route) {
  json operation = {{"summary", route.summary}, {"parameters", PathParameters(route.pattern)}};
  AddQueryParameters(route.query, operation["parameters"]);
  if (*route.request != '\0') {
    operation["requestBody"] = {{"required", true}, {"content", {{route.request, AnyObject()}}}};
  }
  json done = {{"description", "Done."}};
  if (*route.answer != '\0') {
    done["content"] = {{route.answer, AnyObject()}};
  }
  operation["responses"] = {{*route.answer == '\0' ? "204" : "200", std::move(done)},
                            {"default", {{"$ref", "#/components/responses/Error"}}}};
  operation["security"] =
      json::array({json{{"bearer", json::array({access::ScopeName(route.scope)})}}});
  return operation;
}

json ErrorResponse() {
  const json text = {{"type", "string"}};
  const json error = {{"type", "object"},
                      {"required", {"name", "message"}},
                      {"properties", {{"name", text}, {"message", text}, {"requestId", text}}}};
  const json schema = {{"type", "object"}, {"properties", {{"error", error}}}};
  return {{"description", "What was attempted on which object, and what was found."},
          {"content", {{"application/json", {{"schema", schema}}}}}};
}

}  // namespace

json DescribeRoutes(std::span<const NativeRoute> routes) {
  json paths = json::object();
  for (const NativeRoute& route : routes) {
    paths[std::string("/tarn/v1") + route.pattern][LowerCase(route.method)] = Describe(route);
  }
  return {{"openapi", "3.1.0"},
          {"info", {{"title", "tarn native routes"}, {"version", "1"}}},
          {"paths", std::move(paths)},
          {"components",
           {{"responses", {{"Error", ErrorResponse()}}},
            {"securitySchemes", {{"bearer", {{"type", "http"}, {"scheme", "bearer"}}}}}}}};
}

}  // namespace tarn::server::native
