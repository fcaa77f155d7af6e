// One connection: reads requests, hands them to workers, writes answers. Private to this folder;
// server.cc accepts connections and drains, session.cc speaks HTTP with Boost.Beast.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "tarn/base/clock.h"
#include "tarn/base/thread_pool.h"
#include "tarn/server/http/server.h"

namespace tarn::server::http {

// Typed executors: a type-erased one costs a quarter of the time of a small request.
using Executor = boost::asio::io_context::executor_type;
using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, Executor>;
template <typename T>
using Awaitable = boost::asio::awaitable<T, Executor>;

class Session;

/// One thread of sockets.
struct IoThread {
  boost::asio::io_context context{1};
  std::optional<boost::asio::executor_work_guard<Executor>> work;
  std::set<Session*> sessions;  // Touched on this thread only.
  std::thread thread;
};

/// What sessions share.
struct Core {
  Core(ServerOptions server_options, Handler request_handler)
      : options(std::move(server_options)),
        handler(std::move(request_handler)),
        workers({.name = "http",
                 .threads = static_cast<size_t>(options.worker_count),
                 .queued_max = options.queued_request_count_max}) {}

  const ServerOptions options;
  const Handler handler;
  const SystemClock clock;
  ThreadPool workers;
  std::atomic<bool> draining{false};
  std::mutex mutex;
  std::condition_variable changed;
  size_t connection_count = 0;  // Guarded by mutex.
};

/// Threads: Run and the rest on the connection's I/O thread.
class Session {
 public:
  enum class Admission {
    kServe,
    kRefuse,  // Too many connections: say 503 and close.
  };
  static std::shared_ptr<Session> Make(Core& core, IoThread& io, Socket socket,
                                       Admission admission);
  virtual ~Session() = default;

  /// Serves until the connection ends.
  virtual Awaitable<void> Run() = 0;
  /// Closes the connection if it is between requests.
  virtual void CloseIfIdle() = 0;
  /// Closes the connection and tells a running handler to stop.
  virtual void Cut() = 0;
};

}  // namespace tarn::server::http
