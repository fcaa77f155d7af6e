// The OAuth2 token endpoint below /multipass/api: client credentials of service users.
//
// Answers follow RFC 6749; failures carry its "error" member and, beside it, the envelope of the
// other routes, so that either kind of client can read them.
#pragma once

#include "tarn/server/foundry/foundry_routes.h"

namespace tarn::server::foundry {

/// POST /multipass/api/oauth2/token and …/revoke_token: form bodies, no bearer token; the client's
/// id and secret stand in the form or in a Basic Authorization field. Tokens last an hour. Without
/// `scope` a token has every scope; "offline_access" is passed over.
Status AddTokenRoutes(Router& router, const FoundryDeps& deps);

}  // namespace tarn::server::foundry
