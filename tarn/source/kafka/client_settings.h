// ClientSettings: how the client library is to reach a cluster, and which of its properties a
// pipeline file may set.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"

namespace tarn::source::kafka {

struct ClientSettings {
  std::vector<std::string> brokers;               // host:port.
  std::map<std::string, std::string> properties;  // Of librdkafka, passed through.
  std::string group;                              // Unless `group.id` is among them.
};

/// May the file set this property to this value? Errors: kInvalidArgument naming the property: it
/// is unknown, tarn sets it itself, it would run programs or libraries of the server, or the value
/// is none. The value of a secret is never in the message.
Status CheckProperty(const std::string& name, const std::string& value);

/// "host:port". Errors: kInvalidArgument.
Status CheckBroker(std::string_view broker);

/// Files of the server that the properties name (certificates, keys).
std::vector<std::string> FilesOf(const ClientSettings& settings);

/// True for properties whose values must not be shown.
bool IsSecretProperty(std::string_view name);

}  // namespace tarn::source::kafka
