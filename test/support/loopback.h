// Sockets on 127.0.0.1, for servers and clients that tests write by hand.
#pragma once

#include <string_view>

namespace tarn::test {

/// A TCP socket on a port that was free, bound and not listening yet. Owned by the caller.
int BindLoopback(int& port);

/// A connection to `port`, owned by the caller; -1 when nobody listens.
int ConnectLoopback(int port);

/// False when the other side closed before all of it was taken.
bool SendAll(int socket, std::string_view bytes);

}  // namespace tarn::test
