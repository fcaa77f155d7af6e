// One coroutine per connection runs on that connection's I/O thread and owns its socket. A handler
// runs on a worker; while it runs the coroutine waits, and the worker asks the I/O thread for one
// read or one write at a time and blocks until it is done. So at any moment at most one operation
// is on the socket, and none of the connection's state needs a lock.
#include "tarn/server/http/session.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <new>

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <fmt/core.h>

#include "tarn/base/log.h"
#include "tarn/server/http/plain_error.h"
#include "tarn/server/http/response_head.h"
#include "tarn/server/http/wire.h"

namespace tarn::server::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using tcp = asio::ip::tcp;
using Stream = beast::basic_stream<tcp, Executor, beast::unlimited_rate_policy>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;
using Parser = beast::http::request_parser<beast::http::buffer_body>;
using ErrorCondition = beast::error_code;
constexpr asio::use_awaitable_t<Executor> kAwait{};

constexpr size_t kBodyBufferBytes = 128 << 10;  // While a body streams in.
constexpr size_t kIdleBufferBytes = 8 << 10;    // Kept between requests.
// While a handler runs: how often the client is looked for.
constexpr std::chrono::milliseconds kPeerCheckInterval{250};

/// The result of one socket operation that a worker waits for.
class Transfer {
 public:
  void Complete(ErrorCondition error, size_t count) {
    const std::lock_guard lock(mutex_);
    error_ = error;
    count_ = count;
    done_ = true;
    ready_.notify_one();
  }
  ErrorCondition Wait() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return done_; });
    return error_;
  }
  [[nodiscard]] size_t count() const { return count_; }  // After Wait.

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  bool done_ = false;
  ErrorCondition error_;
  size_t count_ = 0;
};

Status Malformed(std::string_view what) {
  return Status::InvalidArgument(fmt::format("read the request: {}", what))
      .WithReason("MalformedRequest");
}

Status OutOfMemory(std::string_view target) {
  return {ErrorCode::kResourceExhausted,
          fmt::format("{} needs more memory than the server may have", target)};
}

class BeastSession final : public Session,
                           public Wire,
                           public std::enable_shared_from_this<BeastSession> {
 public:
  BeastSession(Core& core, IoThread& io, Socket socket, Admission admission)
      : core_(core),
        io_(io),
        admission_(admission),
        stream_(std::move(socket)),
        wake_(io.context.get_executor()) {
    ErrorCondition ignored;
    const auto endpoint = stream_.socket().remote_endpoint(ignored);
    if (!ignored) {
      peer_ = fmt::format("{}:{}", endpoint.address().to_string(), endpoint.port());
    }
  }

  Awaitable<void> Run() override;

  // On the I/O thread, from Stop.
  void CloseIfIdle() override {
    if (idle_) {
      stream_.close();
    }
  }
  void Cut() override {
    stop_.request_stop();
    cut_ = true;
    stream_.close();
  }

  // On the worker.
  WireRead ReadBody(char* out, size_t size) override;
  std::string WritePiece(const std::array<std::string_view, 3>& piece) override;
  [[nodiscard]] bool CanKeepAlive() const {
    return wants_keep_alive_ && body_at_end_ && !core_.draining.load();
  }
  [[nodiscard]] ExchangeTraits Traits() const {
    return {.is_head = is_head_, .is_http_1_0 = is_http_1_0_, .keep_alive = CanKeepAlive()};
  }
  [[nodiscard]] Timestamp Now() const { return core_.clock.Now(); }

 private:
  /// What a worker hands back to the coroutine.
  struct Outcome {
    Response response;      // To be written, unless `streamed`.
    bool streamed = false;  // The worker wrote the answer already.
    bool keep_alive = false;
  };

  static Outcome Unsent(Response response) {
    return {.response = std::move(response), .streamed = false, .keep_alive = false};
  }

  Awaitable<bool> AwaitFirstByte();
  Awaitable<Status> ReadHead();
  Status CheckHead();
  Awaitable<std::optional<std::string>> ReadEagerBody();
  Awaitable<bool> Serve();
  bool PeerHasLeft();
  Awaitable<bool> WriteResponse(const Response& response);
  Awaitable<void> Linger();
  Request TakeRequest();
  void RunHandler(Request request);
  Outcome StreamBody(Response response);
  Response HandleCatching(Request& request);
  void Finish(Outcome outcome);
  void ContinueBodyRead(Transfer& transfer);
  bool HasArrived();
  void SendContinue(Transfer& transfer);
  std::chrono::steady_clock::duration BodyReadBudget() const;
  Response Render(const Status& failure) const {
    return core_.options.render_error(failure, target_);
  }

  Core& core_;
  IoThread& io_;
  const Admission admission_;
  Stream stream_;
  Timer wake_;
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::optional<Outcome> outcome_;
  std::string peer_;
  std::stop_source stop_;
  bool idle_ = false;
  bool cut_ = false;
  bool peer_gone_ = false;  // Reading ended: nothing to linger for.

  // Of the current request.
  std::string target_;
  bool wants_keep_alive_ = false;
  bool is_head_ = false;
  bool is_http_1_0_ = false;
  bool continue_pending_ = false;  // The client waits for "100 Continue".
  std::atomic<bool> body_at_end_{false};
  uint64_t body_bytes_ = 0;
  size_t body_read_room_ = 0;  // Of the reader's buffer when its read began.
  std::chrono::steady_clock::duration body_waited_{};
};

Awaitable<void> BeastSession::Run() {
  const auto self = shared_from_this();
  ErrorCondition ignored;
  stream_.socket().set_option(tcp::no_delay(true), ignored);
  if (admission_ == Admission::kRefuse) {
    const Status overload(ErrorCode::kUnavailable, "serve: too many connections, try again later");
    co_await WriteResponse(Render(overload));
    co_await Linger();
    co_return;
  }
  for (;;) {
    const bool open = co_await AwaitFirstByte();
    if (!open) {
      co_return;
    }
    const Status failure = co_await ReadHead();
    if (cut_ || peer_gone_) {
      co_return;
    }
    bool keep_alive = false;
    if (failure.ok()) {
      keep_alive = co_await Serve();
    } else {
      co_await WriteResponse(Render(failure));
    }
    if (!keep_alive || core_.draining.load()) {
      break;
    }
  }
  co_await Linger();
}

Awaitable<bool> BeastSession::AwaitFirstByte() {
  // Empty lines before a request are allowed (RFC 9112, 2.2).
  for (;;) {
    while (buffer_.size() >= 2 &&
           std::string_view(static_cast<const char*>(buffer_.data().data()), 2) == "\r\n") {
      buffer_.consume(2);
    }
    if (buffer_.size() > 1) {
      co_return true;
    }
    if (core_.draining.load()) {
      co_return false;
    }
    if (buffer_.size() == 0 && buffer_.capacity() > kIdleBufferBytes) {
      buffer_.shrink_to_fit();
    }
    idle_ = true;
    stream_.expires_after(core_.options.idle_timeout);
    ErrorCondition error;
    const size_t count = co_await stream_.async_read_some(buffer_.prepare(4096),
                                                          asio::redirect_error(kAwait, error));
    idle_ = false;
    buffer_.commit(count);
    if (error) {
      co_return false;
    }
  }
}

Awaitable<Status> BeastSession::ReadHead() {
  parser_.emplace();
  parser_->header_limit(core_.options.header_bytes_max);
  parser_->body_limit(boost::none);
  target_.clear();
  wants_keep_alive_ = false;
  is_head_ = false;
  body_at_end_ = false;
  body_bytes_ = 0;
  body_waited_ = {};
  stream_.expires_after(core_.options.header_timeout);
  ErrorCondition error;
  co_await beast::http::async_read_header(stream_, buffer_, *parser_,
                                          asio::redirect_error(kAwait, error));
  if (!error) {
    co_return CheckHead();
  }
  target_ = std::string(parser_->get().target());
  if (error == beast::http::error::header_limit || error == beast::http::error::buffer_overflow) {
    co_return Status::InvalidArgument(fmt::format("read the request: header fields above {} bytes",
                                                  core_.options.header_bytes_max))
        .WithReason("RequestHeaderFieldsTooLarge");
  }
  if (error.category() != make_error_code(beast::http::error::bad_target).category() ||
      error == beast::http::error::end_of_stream || error == beast::http::error::partial_message) {
    peer_gone_ = true;
  }
  co_return Malformed(error.message());
}

Status BeastSession::CheckHead() {
  const auto& head = parser_->get();
  target_ = std::string(head.target());
  is_head_ = head.method() == beast::http::verb::head;
  is_http_1_0_ = head.version() == 10;
  body_at_end_ = parser_->is_done();
  if (head.version() == 11 && head.count(beast::http::field::host) != 1) {
    return Malformed("exactly one Host field is needed");
  }
  const auto coding = head.find(beast::http::field::transfer_encoding);
  if (coding != head.end() && !EqualsIgnoringCase(std::string_view(coding->value()), "chunked")) {
    return Status::Unimplemented(
        fmt::format("read the request: Transfer-Encoding \"{}\"; only chunked is known",
                    std::string_view(coding->value())));
  }
  const auto length = parser_->content_length();
  if (length && *length > core_.options.body_bytes_max) {
    return BodyTooLarge(core_.options.body_bytes_max);
  }
  const auto expect = head.find(beast::http::field::expect);
  continue_pending_ = false;
  if (expect != head.end() && !parser_->is_done() && !is_http_1_0_) {
    if (!EqualsIgnoringCase(std::string_view(expect->value()), "100-continue")) {
      return Malformed("Expect other than 100-continue").WithReason("ExpectationFailed");
    }
    continue_pending_ = true;
  }
  wants_keep_alive_ = head.keep_alive();
  return Status::Ok();
}

/// Reads a small body whole, so that a slow client does not hold a worker. Empty = the client
/// failed to send it.
Awaitable<std::optional<std::string>> BeastSession::ReadEagerBody() {
  std::string body(static_cast<size_t>(*parser_->content_length()), '\0');
  auto& sink = parser_->get().body();
  stream_.expires_after(core_.options.body_timeout);
  sink.data = body.data();
  sink.size = body.size();
  sink.more = true;
  while (!parser_->is_done()) {
    ErrorCondition error;
    co_await beast::http::async_read_some(stream_, buffer_, *parser_,
                                          asio::redirect_error(kAwait, error));
    if (error && error != beast::http::error::need_buffer) {
      co_return std::nullopt;
    }
  }
  body_at_end_ = true;
  co_return std::move(body);
}

Request BeastSession::TakeRequest() {
  const auto& head = parser_->get();
  Request request{.method = std::string(head.method_string()),
                  .target = target_,
                  .headers = {},
                  .body = nullptr,
                  .peer = peer_,
                  .stop = stop_.get_token()};
  for (const auto& field : head) {
    request.headers.Add(std::string(field.name_string()), std::string(field.value()));
  }
  return request;
}

/// Runs one request to its end. True where the connection may carry another one.
Awaitable<bool> BeastSession::Serve() {
  Request request = TakeRequest();
  const auto length = parser_->content_length();
  if (parser_->is_done()) {
    request.body = std::make_unique<StringBodyReader>("");
  } else if (length && *length <= core_.options.eager_body_bytes_max && !continue_pending_) {
    std::optional<std::string> body = co_await ReadEagerBody();
    if (!body) {
      wants_keep_alive_ = false;
      const Status failure = Malformed("the body is shorter than its Content-Length")
                                 .WithReason("RequestBodyIncomplete");
      co_await WriteResponse(Render(failure));
      co_return false;
    }
    request.body = std::make_unique<StringBodyReader>(std::move(*body));
  } else {
    std::optional<uint64_t> stated;
    if (length) {
      stated = *length;
    }
    request.body =
        std::make_unique<WireBodyReader>(shared_from_this(), stated, core_.options.body_bytes_max);
  }
  outcome_.reset();
  // std::function needs a copyable closure.
  auto shared_request = std::make_shared<Request>(std::move(request));
  const Status accepted = core_.workers.TrySubmit([self = shared_from_this(), shared_request] {
    self->RunHandler(std::move(*shared_request));
  });
  shared_request.reset();
  if (!accepted.ok()) {
    co_return co_await WriteResponse(
        Render(Status(ErrorCode::kUnavailable, "serve: too many requests are waiting")));
  }
  while (!outcome_) {
    wake_.expires_after(kPeerCheckInterval);
    ErrorCondition ignored;
    co_await wake_.async_wait(asio::redirect_error(kAwait, ignored));
    if (!outcome_ && PeerHasLeft()) {
      stop_.request_stop();
    }
  }
  if (outcome_->streamed) {
    co_return outcome_->keep_alive;
  }
  co_return co_await WriteResponse(outcome_->response);
}

/// Whether the client has closed its end. One that closes only its writing end looks the same: it
/// still gets its answer, but from handlers that heed `Request::stop` the one that they gave up.
bool BeastSession::PeerHasLeft() {
  ::pollfd end{.fd = stream_.socket().native_handle(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&end, 1, 0) == 1 && (end.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

/// Writes a whole answer. True where the connection may carry another request.
Awaitable<bool> BeastSession::WriteResponse(const Response& response) {
  Result<ResponseHead> planned = PlanResponseHead(response, Traits(), Now());
  if (!planned.ok()) {
    Log(LogLevel::kError, "server", planned.status().ToString());
    planned = PlanResponseHead(BareResponse(500), Traits(), Now());
  }
  const ResponseHead head = *std::move(planned);
  std::string_view rest =
      head.framing == Framing::kNoBody ? std::string_view() : std::string_view(response.body);
  std::string_view before = head.text;
  do {
    const std::string_view piece = rest.substr(0, kWirePieceBytes);
    const std::array<asio::const_buffer, 2> buffers = {
        asio::const_buffer(before.data(), before.size()),
        asio::const_buffer(piece.data(), piece.size())};
    stream_.expires_after(core_.options.write_timeout);
    ErrorCondition error;
    co_await asio::async_write(stream_, buffers, asio::redirect_error(kAwait, error));
    if (error) {
      peer_gone_ = true;
      co_return false;
    }
    before = {};
    rest.remove_prefix(piece.size());
  } while (!rest.empty());
  co_return head.keep_alive;
}

/// Half-closes and takes in what the client still sends for a while; closing at once would make
/// the kernel reset the connection and the client lose the answer.
Awaitable<void> BeastSession::Linger() {
  if (peer_gone_ || cut_) {
    co_return;
  }
  ErrorCondition error;
  stream_.socket().shutdown(tcp::socket::shutdown_send, error);
  stream_.expires_after(core_.options.linger_timeout);
  buffer_.clear();
  while (!error && !cut_) {
    co_await stream_.async_read_some(buffer_.prepare(16 << 10),
                                     asio::redirect_error(kAwait, error));
  }
}

Response BeastSession::HandleCatching(Request& request) {
  try {
    return core_.handler(request);
  } catch (const std::bad_alloc&) {
    return Render(OutOfMemory(request.target));
  } catch (const std::exception& exception) {
    return Render(Status::Internal(
        fmt::format("handle {} {}: {}", request.method, request.target, exception.what())));
  } catch (...) {
    return Render(Status::Internal(
        fmt::format("handle {} {}: unknown exception", request.method, request.target)));
  }
}

void BeastSession::RunHandler(Request request) {
  Outcome outcome = Unsent(HandleCatching(request));
  if (outcome.response.producer && !is_head_) {
    outcome = StreamBody(std::move(outcome.response));
  }
  // The body reader holds this session; let go of it before the coroutine goes on.
  request.body.reset();
  asio::post(io_.context.get_executor(),
             [self = shared_from_this(), done = std::make_shared<Outcome>(std::move(outcome))] {
               self->Finish(std::move(*done));
             });
}

BeastSession::Outcome BeastSession::StreamBody(Response response) {
  Result<ResponseHead> head = PlanResponseHead(response, Traits(), Now());
  if (!head.ok()) {
    return Unsent(Render(head.status()));
  }
  if (head->framing == Framing::kNoBody) {
    response.producer = nullptr;
    return Unsent(std::move(response));
  }
  WireSink sink(*this, *std::move(head), response.content_length);
  Status status;
  try {
    status = response.producer(sink);
  } catch (const std::bad_alloc&) {
    status = OutOfMemory(target_);
  } catch (const std::exception& exception) {
    status = Status::Internal(fmt::format("produce the answer: {}", exception.what()));
  } catch (...) {
    status = Status::Internal("produce the answer: unknown exception");
  }
  if (status.ok()) {
    status = sink.Close();
  }
  if (!status.ok() && !sink.head_sent()) {
    return Unsent(Render(status));
  }
  if (!status.ok() && status.code() != ErrorCode::kCancelled) {
    Log(LogLevel::kError, "server", "answer broken off: " + status.ToString());
  }
  if (!status.ok()) {
    // Nothing may look like the end of the body, so no half-close either.
    asio::post(io_.context.get_executor(), [self = shared_from_this()] { self->Cut(); });
  }
  return {.response = {}, .streamed = true, .keep_alive = status.ok() && sink.keep_alive()};
}

void BeastSession::Finish(Outcome outcome) {
  outcome_ = std::move(outcome);
  wake_.cancel();
}

WireRead BeastSession::ReadBody(char* out, size_t size) {
  Transfer transfer;
  asio::post(io_.context.get_executor(), [this, out, size, &transfer] {
    auto& sink = parser_->get().body();
    sink.data = out;
    sink.size = size;
    sink.more = true;
    body_read_room_ = size;
    buffer_.reserve(kBodyBufferBytes);
    if (continue_pending_) {
      SendContinue(transfer);
    } else {
      ContinueBodyRead(transfer);
    }
  });
  const ErrorCondition error = transfer.Wait();
  if (error) {
    return {.count = 0, .failure = error.message(), .timed_out = error == beast::error::timeout};
  }
  const size_t count = size - transfer.count();
  body_bytes_ += count;
  return {.count = count, .failure = {}, .timed_out = false};
}

void BeastSession::SendContinue(Transfer& transfer) {
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  continue_pending_ = false;
  stream_.expires_after(core_.options.write_timeout);
  asio::async_write(stream_, asio::const_buffer(kContinue.data(), kContinue.size()),
                    [this, &transfer](ErrorCondition error, size_t) {
                      if (error) {
                        transfer.Complete(error, 0);
                      } else {
                        ContinueBodyRead(transfer);
                      }
                    });
}

/// How long the client may take for the next byte: without any, `body_timeout`; on average at
/// least `body_bytes_per_second_min`, counting only the time in which we waited for the client.
std::chrono::steady_clock::duration BeastSession::BodyReadBudget() const {
  const ServerOptions& options = core_.options;
  if (options.body_bytes_per_second_min == 0) {
    return options.body_timeout;
  }
  const std::chrono::milliseconds earned(
      static_cast<int64_t>(body_bytes_ * 1000 / options.body_bytes_per_second_min));
  const std::chrono::steady_clock::duration left = options.body_timeout + earned - body_waited_;
  return std::clamp<std::chrono::steady_clock::duration>(left, std::chrono::milliseconds(1),
                                                         options.body_timeout);
}

/// Reads until at least one byte of the body is there, or its end, and on while more has arrived.
/// Completes `transfer` with the room that is left in the reader's buffer.
void BeastSession::ContinueBodyRead(Transfer& transfer) {
  if (parser_->is_done()) {
    body_at_end_ = true;
    transfer.Complete({}, parser_->get().body().size);
    return;
  }
  stream_.expires_after(BodyReadBudget());
  const auto started = std::chrono::steady_clock::now();
  beast::http::async_read_some(
      stream_, buffer_, *parser_, [this, &transfer, started](ErrorCondition error, size_t) {
        body_waited_ += std::chrono::steady_clock::now() - started;
        const size_t left = parser_->get().body().size;
        if (error && error != beast::http::error::need_buffer) {
          peer_gone_ = peer_gone_ || error == beast::error::timeout;
          transfer.Complete(error, 0);
        } else if (left == body_read_room_ || (left > 0 && !parser_->is_done() && HasArrived())) {
          ContinueBodyRead(transfer);
        } else {
          body_at_end_ = parser_->is_done();
          transfer.Complete({}, left);
        }
      });
}

/// Whether reading on would not wait.
bool BeastSession::HasArrived() {
  ErrorCondition error;
  return buffer_.size() > 0 || (stream_.socket().available(error) > 0 && !error);
}

std::string BeastSession::WritePiece(const std::array<std::string_view, 3>& piece) {
  Transfer transfer;
  asio::post(io_.context.get_executor(), [this, &piece, &transfer] {
    const std::array<asio::const_buffer, 3> buffers = {
        asio::const_buffer(piece[0].data(), piece[0].size()),
        asio::const_buffer(piece[1].data(), piece[1].size()),
        asio::const_buffer(piece[2].data(), piece[2].size())};
    stream_.expires_after(core_.options.write_timeout);
    asio::async_write(stream_, buffers, [&transfer](ErrorCondition error, size_t count) {
      transfer.Complete(error, count);
    });
  });
  const ErrorCondition error = transfer.Wait();
  return error ? error.message() : std::string();
}

}  // namespace

std::shared_ptr<Session> Session::Make(Core& core, IoThread& io, Socket socket,
                                       Admission admission) {
  return std::make_shared<BeastSession>(core, io, std::move(socket), admission);
}

}  // namespace tarn::server::http
