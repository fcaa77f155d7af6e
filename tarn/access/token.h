// Tokens: bearer secrets that name a user. Only their SHA-256 is stored.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/access/principal.h"
#include "tarn/base/clock.h"
#include "tarn/base/uuid.h"
#include "tarn/metastore/database.h"

namespace tarn::access {

/// What is kept of a token. Value.
struct Token {
  std::string id;  // UUID text, public.
  std::string user_id;
  std::string name;
  ScopeSet scopes;
  Timestamp created{};
  std::optional<Timestamp> expires;  // Exclusive.
  std::optional<Timestamp> revoked;
  friend bool operator==(const Token&, const Token&) = default;
};

/// A token at its birth, the only time its text exists on the server.
struct IssuedToken {
  Token token;
  std::string text;  // "tarn_" and 256 random bits in hex.
};

struct TokenRequest {
  std::string user_id;
  std::string name;
  ScopeSet scopes = ScopeSet::All();
  std::optional<Timestamp> expires;
};

/// The client credentials of a service user, shown once.
struct ClientSecret {
  std::string client_id;  // The user's id.
  std::string secret;
};

/// Threads: any; holds nothing but its dependencies, which must outlive it.
class Tokens {
 public:
  Tokens(UuidGenerator& ids, const Clock& clock) : ids_(ids), clock_(clock) {}

  /// Errors: kNotFound (UserNotFound); kInvalidArgument when the user is deleted (UserDeleted) or
  /// the token would be born expired.
  Result<IssuedToken> Create(metastore::SqlTransaction& sql, const TokenRequest& request);
  /// Whom a bearer text names. One index look-up, no write.
  /// Errors: kUnauthenticated, with one message for unknown, expired, revoked and deleted user.
  Result<Principal> Authenticate(metastore::SqlTransaction& sql, std::string_view text) const;
  /// Revoked from now on; again: success. Errors: kNotFound (TokenNotFound).
  Status Revoke(metastore::SqlTransaction& sql, std::string_view token_id);
  Status RevokeAllOf(metastore::SqlTransaction& sql, std::string_view user_id);

  /// Gives a service user a new secret; the one before stops working.
  /// Errors: kNotFound; kInvalidArgument for a person.
  Result<ClientSecret> RenewClientSecret(metastore::SqlTransaction& sql, std::string_view user_id);
  /// OAuth2 client credentials: a token valid for `lifetime`.
  /// Errors: kUnauthenticated when id and secret do not fit.
  Result<IssuedToken> ExchangeClientSecret(metastore::SqlTransaction& sql,
                                           const ClientSecret& client, ScopeSet scopes,
                                           std::chrono::microseconds lifetime);

 private:
  UuidGenerator& ids_;
  const Clock& clock_;
};

/// Errors: kNotFound (TokenNotFound).
Result<Token> GetToken(metastore::SqlTransaction& sql, std::string_view token_id);
/// Tokens of one user (empty = of all), newest first, also revoked and expired ones.
Result<std::vector<Token>> ListTokens(metastore::SqlTransaction& sql, std::string_view user_id,
                                      int64_t limit = 1000);
/// Removes up to `limit` tokens that expired or were revoked before `before`; returns how many.
Result<int64_t> PurgeTokens(metastore::SqlTransaction& sql, Timestamp before, int64_t limit);

}  // namespace tarn::access
