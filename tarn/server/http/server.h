// The HTTP/1.1 server: sockets, framing, limits and time-outs. Boost.Beast stays in server.cc.
//
// A few I/O threads own the connections; handlers run on a bounded pool of worker threads, so they
// may block. A body is read while the handler pulls it and written while the client takes it:
// memory per connection is constant whatever the size.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "tarn/base/status.h"
#include "tarn/server/http/message.h"

namespace tarn::server::http {

struct ServerOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 0;  // 0 = any free one; see Server::port().

  int io_thread_count = 1;
  int worker_count = 32;
  size_t queued_request_count_max = 1024;  // Waiting for a worker; beyond: 503.
  size_t connection_count_max = 4096;      // Beyond: 503 and close.

  uint32_t header_bytes_max = 64 << 10;          // Beyond: 431.
  uint64_t body_bytes_max = uint64_t{16} << 40;  // Beyond: 413. 16 TiB.
  size_t eager_body_bytes_max = 64 << 10;  // Bodies up to this are read before a worker is taken.

  std::chrono::milliseconds idle_timeout{75'000};    // Between requests of one connection.
  std::chrono::milliseconds header_timeout{20'000};  // From the first byte to the whole header.
  std::chrono::milliseconds body_timeout{60'000};    // Without any byte of a body.
  std::chrono::milliseconds write_timeout{60'000};   // For one piece (≤ 256 KiB) of a response.
  uint64_t body_bytes_per_second_min = 512;  // Average of a body after `body_timeout` has passed.
  std::chrono::milliseconds linger_timeout{2'000};  // Taking in unread bytes before closing.

  ErrorRenderer render_error;  // Default: {"error":{"name","message"}}.
};

/// A listening server. Threads: any may call Stop and the accessors.
class Server {
 public:
  /// Binds, listens and serves until Stop. Errors: kUnavailable when the address cannot be bound,
  /// naming it; kInvalidArgument on options that cannot work.
  static Result<std::unique_ptr<Server>> Open(ServerOptions options, Handler handler);

  virtual ~Server() = default;  // Stops with a deadline of zero.

  /// The port that is listened on.
  [[nodiscard]] virtual uint16_t port() const = 0;
  [[nodiscard]] virtual size_t connection_count() const = 0;

  /// Stops accepting, closes idle connections, lets running requests finish for up to `deadline`,
  /// then cuts the rest and waits for their handlers to return. Later calls do nothing.
  virtual void Stop(std::chrono::milliseconds deadline) = 0;
};

}  // namespace tarn::server::http
