#include "tarn/server/http/server.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/core.h>

#include "tarn/base/log.h"
#include "tarn/server/http/plain_error.h"
#include "tarn/server/http/session.h"

namespace tarn::server::http {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using Acceptor = asio::basic_socket_acceptor<tcp, Executor>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;
using ErrorCondition = boost::system::error_code;
constexpr asio::use_awaitable_t<Executor> kAwait{};

constexpr size_t kRefusedConnectionCountMax = 256;  // Being told 503 at the same time.

class ListeningServer final : public Server {
 public:
  ListeningServer(ServerOptions options, Handler handler)
      : core_(std::move(options), std::move(handler)) {}
  ~ListeningServer() override { Stop(std::chrono::milliseconds(0)); }

  Status Listen();
  [[nodiscard]] uint16_t port() const override { return port_; }
  [[nodiscard]] size_t connection_count() const override {
    const std::lock_guard lock(core_.mutex);
    return core_.connection_count;
  }
  void Stop(std::chrono::milliseconds deadline) override;

 private:
  Awaitable<void> Accept();
  void Start(IoThread& io, Socket socket);
  Awaitable<void> RunSession(IoThread& io, std::shared_ptr<Session> session);
  template <typename Function>
  void ForEachSession(Function function);

  mutable Core core_;
  std::vector<std::unique_ptr<IoThread>> io_threads_;
  std::optional<Acceptor> acceptor_;
  uint16_t port_ = 0;
  std::mutex stop_mutex_;
  bool stopped_ = false;  // Guarded by stop_mutex_.
};

Status ListeningServer::Listen() {
  const ServerOptions& options = core_.options;
  for (int i = 0; i < options.io_thread_count; ++i) {
    auto& io = *io_threads_.emplace_back(std::make_unique<IoThread>());
    io.work.emplace(io.context.get_executor());
  }
  ErrorCondition error;
  const auto address = asio::ip::make_address(options.address, error);
  if (error) {
    return Status::InvalidArgument(
        fmt::format("listen on \"{}\": not an IP address", options.address));
  }
  const tcp::endpoint endpoint(address, options.port);
  acceptor_.emplace(io_threads_[0]->context.get_executor());
  acceptor_->open(endpoint.protocol(), error);
  if (!error) {
    acceptor_->set_option(tcp::acceptor::reuse_address(true), error);
  }
  if (!error) {
    acceptor_->bind(endpoint, error);
  }
  if (!error) {
    acceptor_->listen(1024, error);
  }
  if (error) {
    return Status::Unavailable(
        fmt::format("listen on {}:{}: {}", options.address, options.port, error.message()));
  }
  port_ = acceptor_->local_endpoint().port();
  asio::co_spawn(io_threads_[0]->context.get_executor(), Accept(), asio::detached);
  for (auto& io : io_threads_) {
    io->thread = std::thread([&context = io->context] { context.run(); });
  }
  return Status::Ok();
}

Awaitable<void> ListeningServer::Accept() {
  size_t next = 0;
  Timer pause(io_threads_[0]->context.get_executor());
  while (acceptor_->is_open()) {
    IoThread& io = *io_threads_[next++ % io_threads_.size()];
    Socket socket(io.context.get_executor());
    ErrorCondition error;
    co_await acceptor_->async_accept(socket, asio::redirect_error(kAwait, error));
    if (!error) {
      Start(io, std::move(socket));
    } else if (error != asio::error::operation_aborted) {
      // Out of file descriptors, or the client left already: neither may end the loop.
      pause.expires_after(std::chrono::milliseconds(20));
      co_await pause.async_wait(asio::redirect_error(kAwait, error));
    }
  }
}

void ListeningServer::Start(IoThread& io, Socket socket) {
  auto admission = Session::Admission::kServe;
  {
    const std::lock_guard lock(core_.mutex);
    const size_t limit = core_.options.connection_count_max;
    if (core_.connection_count >= limit + kRefusedConnectionCountMax) {
      return;
    }
    if (core_.connection_count >= limit) {
      admission = Session::Admission::kRefuse;
    }
    ++core_.connection_count;
  }
  auto session = Session::Make(core_, io, std::move(socket), admission);
  asio::co_spawn(io.context.get_executor(), RunSession(io, std::move(session)), asio::detached);
}

Awaitable<void> ListeningServer::RunSession(IoThread& io, std::shared_ptr<Session> session) {
  io.sessions.insert(session.get());
  try {
    co_await session->Run();
  } catch (const std::exception& exception) {
    Log(LogLevel::kError, "server", fmt::format("connection ended: {}", exception.what()));
  }
  io.sessions.erase(session.get());
  session.reset();
  const std::lock_guard lock(core_.mutex);
  --core_.connection_count;
  core_.changed.notify_all();
}

template <typename Function>
void ListeningServer::ForEachSession(Function function) {
  for (auto& io : io_threads_) {
    asio::post(io->context.get_executor(), [&sessions = io->sessions, function] {
      for (Session* session : sessions) {
        function(*session);
      }
    });
  }
}

void ListeningServer::Stop(std::chrono::milliseconds deadline) {
  const std::lock_guard stop_lock(stop_mutex_);
  if (stopped_) {
    return;
  }
  stopped_ = true;
  core_.draining = true;
  if (port_ != 0) {
    asio::post(io_threads_[0]->context.get_executor(), [this] {
      ErrorCondition ignored;
      acceptor_->close(ignored);
    });
    ForEachSession([](Session& session) { session.CloseIfIdle(); });
    std::unique_lock lock(core_.mutex);
    const auto is_empty = [this] { return core_.connection_count == 0; };
    core_.changed.wait_for(lock, deadline, is_empty);
    // Repeated: a session that was just being started is not in any set yet.
    while (!is_empty()) {
      lock.unlock();
      ForEachSession([](Session& session) { session.Cut(); });
      lock.lock();
      core_.changed.wait_for(lock, std::chrono::milliseconds(100), is_empty);
    }
  }
  core_.workers.Shutdown();
  for (auto& io : io_threads_) {
    io->work.reset();
    io->context.stop();
    if (io->thread.joinable()) {
      io->thread.join();
    }
  }
}

Status CheckOptions(const ServerOptions& options) {
  if (options.io_thread_count < 1 || options.worker_count < 1 ||
      options.queued_request_count_max < 1 || options.connection_count_max < 1 ||
      options.header_bytes_max < 256) {
    return Status::InvalidArgument(
        "open the HTTP server: counts must be positive and "
        "header_bytes_max at least 256");
  }
  return Status::Ok();
}

}  // namespace

Result<std::unique_ptr<Server>> Server::Open(ServerOptions options, Handler handler) {
  TARN_RETURN_IF_ERROR(CheckOptions(options));
  if (!options.render_error) {
    options.render_error = RenderErrorPlainly;
  }
  auto server = std::make_unique<ListeningServer>(std::move(options), std::move(handler));
  TARN_RETURN_IF_ERROR(server->Listen());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace tarn::server::http
