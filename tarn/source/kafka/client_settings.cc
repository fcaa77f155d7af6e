#include "tarn/source/kafka/client_settings.h"

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>
#include <librdkafka/rdkafka.h>

namespace tarn::source::kafka {

namespace {

// What exactly once rests on, or what has a key of its own.
constexpr std::string_view kOurs[] = {
    "allow.auto.create.topics", "auto.commit.enable",   "auto.commit.interval.ms",
    "auto.offset.reset",        "bootstrap.servers",    "enable.auto.commit",
    "enable.auto.offset.store", "enable.partition.eof", "isolation.level",
    "metadata.broker.list",     "offset.store.method",  "offset.store.path"};
// What would load libraries of the server, run its programs, or replace the cluster.
constexpr std::string_view kUnsafe[] = {"enabled_events",          "plugin.library.paths",
                                        "sasl.kerberos.kinit.cmd", "ssl.engine.id",
                                        "ssl.engine.location",     "ssl.providers",
                                        "test.mock.broker.rtt",    "test.mock.num.brokers"};
constexpr std::string_view kFiles[] = {"sasl.kerberos.keytab",     "ssl.ca.location",
                                       "ssl.certificate.location", "ssl.crl.location",
                                       "ssl.key.location",         "ssl.keystore.location"};

template <size_t n>
bool IsIn(const std::string_view (&names)[n], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

bool IsSecretProperty(std::string_view name) {
  for (const std::string_view part : {"password", "secret", ".pem", "oauthbearer.config", "_pem"}) {
    if (name.find(part) != std::string_view::npos) {
      return true;
    }
  }
  return name == "sasl.username" || name == "ssl_key";
}

Status CheckBroker(std::string_view broker) {
  const size_t colon = broker.rfind(':');
  const std::string_view port =
      colon == std::string_view::npos ? std::string_view() : broker.substr(colon + 1);
  const bool number = !port.empty() && port.size() <= 5 &&
                      port.find_first_not_of("0123456789") == std::string_view::npos;
  if (colon == 0 || !number || broker.find_first_of(" ,/") != std::string_view::npos) {
    return Status::InvalidArgument(fmt::format("expected host:port, found \"{}\"", broker));
  }
  return Status::Ok();
}

Status CheckProperty(const std::string& name, const std::string& value) {
  if (IsIn(kOurs, name)) {
    return Status::InvalidArgument(
        fmt::format("{} is set by tarn: offsets are kept with the landed data", name));
  }
  if (IsIn(kUnsafe, name)) {
    return Status::InvalidArgument(
        fmt::format("{} may not be set: it reaches into the server itself", name));
  }
  const std::unique_ptr<rd_kafka_conf_t, decltype(&rd_kafka_conf_destroy)> conf(
      rd_kafka_conf_new(), &rd_kafka_conf_destroy);
  std::array<char, 512> error{};
  switch (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), error.data(), error.size())) {
    case RD_KAFKA_CONF_OK:
      return Status::Ok();
    case RD_KAFKA_CONF_UNKNOWN:
      return Status::InvalidArgument(fmt::format("librdkafka has no property {}", name));
    case RD_KAFKA_CONF_INVALID:
      break;
  }
  return Status::InvalidArgument(
      IsSecretProperty(name)
          ? fmt::format("{}: librdkafka does not take the value", name)
          : fmt::format("{}: librdkafka does not take the value: {}", name, error.data()));
}

std::vector<std::string> FilesOf(const ClientSettings& settings) {
  std::vector<std::string> files;
  for (const auto& [name, value] : settings.properties) {
    if (IsIn(kFiles, name)) {
      files.push_back(value);
    }
  }
  return files;
}

}  // namespace tarn::source::kafka
