// Bare answers for a server without an error renderer of its own.
#pragma once

#include <string_view>

#include "tarn/server/http/message.h"

namespace tarn::server::http {

/// A response without body and fields.
Response BareResponse(int status);

/// {"error":{"name","message"}} with the nearest status number.
Response RenderErrorPlainly(const Status& failure, std::string_view target);

}  // namespace tarn::server::http
