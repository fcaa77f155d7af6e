// A server that answers every request by a function, for tests of this room: real sockets, no
// HTTP library on the other side.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tarn/base/check.h"

namespace tarn::cli {

struct SeenRequest {
  std::string method;
  std::string target;
  std::string head;  // Request line and fields.
  std::string body;
};

struct ScriptedAnswer {
  int status = 200;
  std::string body;
  std::string raw;  // Sent as it is, then the connection closes; instead of the rest.
};

/// Serves one connection at a time, one request per connection.
class ScriptedServer {
 public:
  using Script = std::function<ScriptedAnswer(const SeenRequest&)>;

  explicit ScriptedServer(Script script)
      : script_(std::move(script)), listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    TARN_CHECK(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
    TARN_CHECK(::listen(listener_, 16) == 0);
    TARN_CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { Run(); });
  }
  ~ScriptedServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  [[nodiscard]] const std::string& url() const { return url_; }
  [[nodiscard]] std::vector<SeenRequest> seen() const {
    const std::lock_guard lock(mutex_);
    return seen_;
  }
  /// "METHOD target" of every request so far.
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (const SeenRequest& request : seen()) {
      lines.push_back(request.method + " " + request.target);
    }
    return lines;
  }

 private:
  void Run() {
    for (;;) {
      const int connection = ::accept(listener_, nullptr, nullptr);
      if (connection < 0) {
        return;
      }
      Serve(connection);
      ::close(connection);
    }
  }

  void Serve(int connection) {
    std::string received;
    size_t head_end = std::string::npos;
    while (head_end == std::string::npos) {
      if (!Receive(connection, received)) {
        return;
      }
      head_end = received.find("\r\n\r\n");
    }
    SeenRequest request{.method = received.substr(0, received.find(' ')),
                        .target = {},
                        .head = received.substr(0, head_end),
                        .body = received.substr(head_end + 4)};
    const size_t target_end = received.find(' ', request.method.size() + 1);
    request.target =
        received.substr(request.method.size() + 1, target_end - request.method.size() - 1);
    if (request.head.find("100-continue") != std::string::npos) {
      Send(connection, "HTTP/1.1 100 Continue\r\n\r\n");
    }
    while (!IsWhole(request) && Receive(connection, request.body)) {
    }
    {
      const std::lock_guard lock(mutex_);
      seen_.push_back(request);
    }
    const ScriptedAnswer answer = script_(request);
    Send(connection, answer.raw.empty()
                         ? "HTTP/1.1 " + std::to_string(answer.status) +
                               " x\r\nConnection: close\r\nContent-Length: " +
                               std::to_string(answer.body.size()) + "\r\n\r\n" + answer.body
                         : answer.raw);
  }

  static bool IsWhole(const SeenRequest& request) {
    if (request.head.find("Transfer-Encoding: chunked") != std::string::npos) {
      return request.body.ends_with("0\r\n\r\n");
    }
    const size_t field = request.head.find("Content-Length: ");
    return field == std::string::npos ||
           request.body.size() >= std::stoull(request.head.substr(field + 16));
  }
  static bool Receive(int connection, std::string& into) {
    std::string piece(16 << 10, '\0');
    const ssize_t count = ::recv(connection, piece.data(), piece.size(), 0);
    into.append(piece, 0, count > 0 ? static_cast<size_t>(count) : 0);
    return count > 0;
  }
  static void Send(int connection, const std::string& bytes) {
    ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  const Script script_;
  const int listener_;
  std::string url_;
  std::thread thread_;
  mutable std::mutex mutex_;
  std::vector<SeenRequest> seen_;  // Guarded by mutex_.
};

}  // namespace tarn::cli
