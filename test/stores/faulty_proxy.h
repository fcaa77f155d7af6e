// FaultyProxy: passes HTTP requests on to a server and breaks chosen ones on the way.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "test/stores/store_server.h"

namespace tarn::test {

enum class Fault {
  kNone,
  kDropRequest,  // The server never sees it, the connection closes.
  kLoseReply,    // The server acts, the connection closes without a byte.
  kCutReply,     // Half of the reply's body comes.
  kTwice,        // The server gets it twice, as if the network repeated it; the second reply comes.
  kError500,     // The server never sees it.
  kActAnd500,    // The server acts, but a gateway says 500.
  kSlowDown,     // 503 with S3's words.
  kSlow,         // Acts after 300 ms.
  kHang,         // No answer until the client gives up.
  kAnswer,       // What `answer` of the decision says, whole; the server never sees it.
};

struct Decision {
  Fault fault = Fault::kNone;
  std::string answer;  // "HTTP/1.1 200 OK\r\n…"
  Decision() = default;
  Decision(Fault what) : fault(what) {}  // NOLINT(google-explicit-constructor)
  explicit Decision(std::string text) : fault(Fault::kAnswer), answer(std::move(text)) {}
};

struct Seen {
  int64_t number = 0;  // From 1.
  std::string method;
  std::string target;
  std::string head;  // Request line and fields.
  size_t body_bytes = 0;
  std::string body{};  // Of up to 64 KiB; empty for larger ones.
};

/// Threads: any. One thread per connection.
class FaultyProxy {
 public:
  using Script = std::function<Decision(const Seen&)>;

  FaultyProxy(const StoreServer& server, Script script);
  ~FaultyProxy();
  FaultyProxy(const FaultyProxy&) = delete;
  FaultyProxy& operator=(const FaultyProxy&) = delete;

  [[nodiscard]] StoreServer address() const { return address_; }
  [[nodiscard]] std::vector<Seen> seen() const;
  [[nodiscard]] int64_t count() const;
  /// Another script, counting from 1 again.
  void Rearm(Script script);

 private:
  void Accept();
  void Serve(int client);
  bool ServeOne(int client, std::string& buffer);
  Decision Decide(Seen seen);
  std::string Forward(const std::string& request) const;
  void Hang(int client) const;

  const StoreServer server_;
  StoreServer address_;
  int listener_;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  Script script_;  // Guarded by mutex_, as all below.
  std::vector<Seen> seen_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

/// "HTTP/1.1 <status line>" with a body and its length.
std::string PlainAnswer(const std::string& status_line, const std::string& body,
                        const std::string& fields = {});

}  // namespace tarn::test
