// The client credentials of an OAuth2 token request, wherever they stand.
#pragma once

#include "tarn/access/token.h"
#include "tarn/base/url.h"
#include "tarn/server/request_context.h"

namespace tarn::server {

/// The client's id and secret from a Basic Authorization field, else from the form; empty texts
/// where there are none.
access::ClientSecret ReadClientCredentials(const RequestContext& context, const UrlQuery& form);

}  // namespace tarn::server
