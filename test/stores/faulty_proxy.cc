#include "test/stores/faulty_proxy.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <strings.h>

#include "tarn/base/check.h"
#include "test/support/loopback.h"

namespace tarn::test {

namespace {

bool Receive(int socket, std::string& buffer) {
  char bytes[65536];
  const ssize_t got = ::recv(socket, bytes, sizeof bytes, 0);
  if (got <= 0) {
    return false;
  }
  buffer.append(bytes, static_cast<size_t>(got));
  return true;
}

size_t ContentLength(const std::string& head) {
  size_t line = 0;
  while ((line = head.find("\r\n", line)) != std::string::npos) {
    line += 2;
    if (::strncasecmp(head.c_str() + line, "content-length:", 15) == 0) {
      return std::strtoull(head.c_str() + line + 15, nullptr, 10);
    }
  }
  return 0;
}

}  // namespace

FaultyProxy::FaultyProxy(const StoreServer& server, Script script)
    : server_(server), listener_(BindLoopback(address_.port)), script_(std::move(script)) {
  TARN_CHECK(::listen(listener_, 64) == 0);
  address_.address = "127.0.0.1";
  address_.endpoint = "http://127.0.0.1:" + std::to_string(address_.port);
  acceptor_ = std::thread([this] { Accept(); });
}

FaultyProxy::~FaultyProxy() {
  stopping_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    threads = std::move(threads_);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  ::close(listener_);
}

std::vector<Seen> FaultyProxy::seen() const {
  const std::lock_guard lock(mutex_);
  return seen_;
}

int64_t FaultyProxy::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(seen_.size());
}

void FaultyProxy::Rearm(Script script) {
  const std::lock_guard lock(mutex_);
  script_ = std::move(script);
  seen_.clear();
}

void FaultyProxy::Accept() {
  for (;;) {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) {
      return;
    }
    const std::lock_guard lock(mutex_);
    threads_.emplace_back([this, client] { Serve(client); });
  }
}

void FaultyProxy::Serve(int client) {
  std::string buffer;
  while (ServeOne(client, buffer)) {
  }
  ::shutdown(client, SHUT_RDWR);
  ::close(client);
}

Decision FaultyProxy::Decide(Seen seen) {
  Script script;
  {
    const std::lock_guard lock(mutex_);
    seen.number = static_cast<int64_t>(seen_.size()) + 1;
    seen_.push_back(seen);
    script = script_;
  }
  return script(seen);
}

std::string FaultyProxy::Forward(const std::string& request) const {
  std::string reply;
  const int upstream = ConnectLoopback(server_.port);
  if (upstream < 0) {
    return reply;
  }
  std::string once = request;
  once.insert(once.find("\r\n") + 2, "Connection: close\r\n");
  (void)SendAll(upstream, once);
  while (Receive(upstream, reply)) {
  }
  ::close(upstream);
  return reply;
}

void FaultyProxy::Hang(int client) const {
  pollfd waiting{.fd = client, .events = POLLIN | POLLRDHUP, .revents = 0};
  while (!stopping_ && ::poll(&waiting, 1, 20) == 0) {
  }
}

// False when the connection is over.
bool FaultyProxy::ServeOne(int client, std::string& buffer) {
  size_t end = std::string::npos;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
    pollfd waiting{.fd = client, .events = POLLIN, .revents = 0};
    if (stopping_ || (::poll(&waiting, 1, 20) > 0 && !Receive(client, buffer))) {
      return false;
    }
  }
  Seen seen;
  seen.head = buffer.substr(0, end + 4);
  seen.method = seen.head.substr(0, seen.head.find(' '));
  seen.target = seen.head.substr(seen.method.size() + 1);
  seen.target.resize(seen.target.find(' '));
  seen.body_bytes = ContentLength(seen.head);
  const size_t size = seen.head.size() + seen.body_bytes;
  while (buffer.size() < size) {
    if (!Receive(client, buffer)) {
      return false;
    }
  }
  const std::string request = buffer.substr(0, size);
  buffer.erase(0, size);
  if (seen.body_bytes <= (64U << 10)) {
    seen.body = request.substr(seen.head.size());
  }
  const Decision decision = Decide(seen);
  switch (decision.fault) {
    case Fault::kDropRequest:
      return false;
    case Fault::kLoseReply:
      (void)Forward(request);
      return false;
    case Fault::kHang:
      Hang(client);
      return false;
    case Fault::kError500:
      return SendAll(client, PlainAnswer("500 Internal Server Error", "oops"));
    case Fault::kActAnd500:
      (void)Forward(request);
      return SendAll(client, PlainAnswer("500 Internal Server Error", "oops"));
    case Fault::kSlowDown:
      return SendAll(client, PlainAnswer("503 Slow Down",
                                         "<Error><Code>SlowDown</Code><Message>m</Message>"
                                         "</Error>"));
    case Fault::kAnswer:
      return SendAll(client, decision.answer);
    case Fault::kTwice:
      (void)Forward(request);
      break;
    case Fault::kSlow:
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      break;
    case Fault::kNone:
    case Fault::kCutReply:
      break;
  }
  std::string reply = Forward(request);
  if (decision.fault == Fault::kCutReply) {
    const size_t body = reply.find("\r\n\r\n") + 4;
    reply.resize(body + (reply.size() - body) / 2);
    // Nothing of a reply without a body: then only its fields can be cut.
    reply.resize(reply.size() == body ? body / 2 : reply.size());
  }
  (void)SendAll(client, reply);
  return false;
}

std::string PlainAnswer(const std::string& status_line, const std::string& body,
                        const std::string& fields) {
  return "HTTP/1.1 " + status_line + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         fields + "\r\n" + body;
}

}  // namespace tarn::test
