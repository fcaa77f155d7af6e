#include "tarn/access/token.h"

#include <array>

#include "tarn/access/directory.h"
#include "tarn/base/hash.h"
#include "tarn/base/json_text.h"

namespace tarn::access {

namespace {

using metastore::Blob;
using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;
using metastore::SqlValue;

constexpr std::string_view kPrefix = "tarn_";
constexpr size_t kSecretBytes = 32;

std::string MakeSecret() {
  std::array<uint8_t, kSecretBytes> bytes{};
  FillSecureRandom(bytes.data(), bytes.size());
  return std::string(kPrefix) +
         EncodeHex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// One message for every cause, so that a guesser learns nothing.
Status Refused() {
  return {ErrorCode::kUnauthenticated, "the credentials are unknown, expired or revoked"};
}

Status TokenNotFound(std::string_view id) {
  return Status::NotFound("no token " + std::string(id))
      .WithReason("TokenNotFound", JsonObject({{"tokenId", id}}));
}

constexpr std::string_view kTokenColumns =
    "SELECT id, user_id, name, scopes, created, expires, revoked FROM access_tokens ";

Result<Token> TokenOf(const SqlRow& row) {
  TARN_ASSIGN_OR_RETURN(const ScopeSet scopes, ScopeSet::Parse(row.Text(3)));
  Token token{.id = std::string(row.Text(0)),
              .user_id = std::string(row.Text(1)),
              .name = std::string(row.Text(2)),
              .scopes = scopes,
              .created = FromMicros(row.Int(4))};
  if (!row.IsNull(5)) {
    token.expires = FromMicros(row.Int(5));
  }
  if (!row.IsNull(6)) {
    token.revoked = FromMicros(row.Int(6));
  }
  return token;
}

Result<std::vector<Token>> ReadTokens(SqlTransaction& sql, std::string_view rest,
                                      const metastore::SqlArguments& arguments) {
  std::vector<Token> tokens;
  TARN_RETURN_IF_ERROR(sql.Query(std::string(kTokenColumns).append(rest), arguments,
                                 [&](const SqlRow& row) -> Result<RowAction> {
                                   Result<Token> token = TokenOf(row);
                                   if (!token.ok()) {
                                     return token.status();
                                   }
                                   tokens.push_back(std::move(token).value());
                                   return RowAction::kContinue;
                                 }));
  return tokens;
}

}  // namespace

Result<IssuedToken> Tokens::Create(SqlTransaction& sql, const TokenRequest& request) {
  TARN_ASSIGN_OR_RETURN(const User user, GetUser(sql, request.user_id));
  if (user.status != UserStatus::kActive) {
    return Status::InvalidArgument("user " + user.id + " is deleted")
        .WithReason("UserDeleted", JsonObject({{"principalId", user.id}}));
  }
  const Timestamp now = clock_.Now();
  if (request.expires.has_value() && *request.expires <= now) {
    return Status::InvalidArgument("the token would be born expired: it ends at " +
                                   FormatTimestamp(*request.expires));
  }
  IssuedToken issued{.token = {.id = ids_.NextV7().ToString(),
                               .user_id = user.id,
                               .name = request.name,
                               .scopes = request.scopes,
                               .created = now,
                               .expires = request.expires},
                     .text = MakeSecret()};
  SqlValue expires;
  if (request.expires.has_value()) {
    expires = ToMicros(*request.expires);
  }
  TARN_RETURN_IF_ERROR(
      sql.Execute("INSERT INTO access_tokens (id, hash, user_id, name, scopes, created, expires) "
                  "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                  {issued.token.id, Blob{Sha256(issued.text)}, user.id, request.name,
                   request.scopes.ToString(), ToMicros(now), expires}));
  return issued;
}

Result<Principal> Tokens::Authenticate(SqlTransaction& sql, std::string_view text) const {
  if (!text.starts_with(kPrefix)) {
    return Refused();
  }
  std::optional<Principal> principal;
  TARN_RETURN_IF_ERROR(sql.Query(
      "SELECT t.id, t.user_id, u.username, t.scopes FROM access_tokens t "
      "JOIN access_users u ON u.id = t.user_id "
      "WHERE t.hash = ?1 AND t.revoked IS NULL AND (t.expires IS NULL OR t.expires > ?2) "
      "AND u.status = 0",
      {Blob{Sha256(text)}, ToMicros(clock_.Now())}, [&](const SqlRow& row) -> Result<RowAction> {
        const Result<ScopeSet> scopes = ScopeSet::Parse(row.Text(3));
        if (!scopes.ok()) {
          return scopes.status();
        }
        principal = Principal{.user_id = std::string(row.Text(1)),
                              .username = std::string(row.Text(2)),
                              .token_id = std::string(row.Text(0)),
                              .scopes = *scopes};
        return RowAction::kStop;
      }));
  if (!principal.has_value()) {
    return Refused();
  }
  return *std::move(principal);
}

Status Tokens::Revoke(SqlTransaction& sql, std::string_view token_id) {
  TARN_ASSIGN_OR_RETURN(
      const int64_t changed,
      sql.Execute("UPDATE access_tokens SET revoked = coalesce(revoked, ?2) WHERE id = ?1",
                  {std::string(token_id), ToMicros(clock_.Now())}));
  return changed == 0 ? TokenNotFound(token_id) : Status();
}

Status Tokens::RevokeAllOf(SqlTransaction& sql, std::string_view user_id) {
  return sql
      .Execute("UPDATE access_tokens SET revoked = coalesce(revoked, ?2) WHERE user_id = ?1",
               {std::string(user_id), ToMicros(clock_.Now())})
      .status();
}

Result<ClientSecret> Tokens::RenewClientSecret(SqlTransaction& sql, std::string_view user_id) {
  TARN_ASSIGN_OR_RETURN(const User user, GetUser(sql, user_id));
  if (user.kind != UserKind::kService || user.status != UserStatus::kActive) {
    return Status::InvalidArgument("user " + user.id + " is not an active service user");
  }
  ClientSecret client{.client_id = user.id, .secret = MakeSecret()};
  TARN_RETURN_IF_ERROR(sql.Execute("UPDATE access_users SET client_secret_hash = ?2 WHERE id = ?1",
                                   {user.id, Blob{Sha256(client.secret)}}));
  return client;
}

Result<IssuedToken> Tokens::ExchangeClientSecret(SqlTransaction& sql, const ClientSecret& client,
                                                 ScopeSet scopes,
                                                 std::chrono::microseconds lifetime) {
  bool known = false;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT 1 FROM access_users WHERE id = ?1 AND client_secret_hash = ?2 "
                "AND status = 0",
                {client.client_id, Blob{Sha256(client.secret)}}, [&](const SqlRow&) {
                  known = true;
                  return Result<RowAction>(RowAction::kStop);
                }));
  if (!known) {
    return Refused();
  }
  return Create(sql, {.user_id = client.client_id,
                      .name = "client credentials",
                      .scopes = scopes,
                      .expires = clock_.Now() + lifetime});
}

Result<Token> GetToken(SqlTransaction& sql, std::string_view token_id) {
  TARN_ASSIGN_OR_RETURN(std::vector<Token> tokens,
                        ReadTokens(sql, "WHERE id = ?1", {std::string(token_id)}));
  if (tokens.empty()) {
    return TokenNotFound(token_id);
  }
  return std::move(tokens.front());
}

Result<std::vector<Token>> ListTokens(SqlTransaction& sql, std::string_view user_id,
                                      int64_t limit) {
  if (user_id.empty()) {
    return ReadTokens(sql, "ORDER BY id DESC LIMIT ?1", {limit});
  }
  return ReadTokens(sql, "WHERE user_id = ?1 ORDER BY id DESC LIMIT ?2",
                    {std::string(user_id), limit});
}

Result<int64_t> PurgeTokens(SqlTransaction& sql, Timestamp before, int64_t limit) {
  return sql.Execute(
      "DELETE FROM access_tokens WHERE id IN (SELECT id FROM access_tokens "
      "WHERE expires < ?1 OR revoked < ?1 ORDER BY id LIMIT ?2)",
      {ToMicros(before), limit});
}

}  // namespace tarn::access
