#include "tarn/query/change_statement.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include <fmt/format.h>

#include "tarn/engine/quoting.h"

namespace tarn::query {

namespace {

enum class TokenKind : uint8_t { kWord, kQuotedName, kText, kNumber, kSymbol, kEnd };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  size_t begin = 0;
  size_t end = 0;  // In the text.
  int depth = 0;   // Of brackets around it.
};

bool IsWordChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Cuts the text into words, quoted things and single symbols; blanks and comments are passed over.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> Run() {
    while (true) {
      TARN_RETURN_IF_ERROR(SkipBlank());
      TARN_ASSIGN_OR_RETURN(const Token token, Next());
      tokens_.push_back(token);
      if (depth_ < 0 || (token.kind == TokenKind::kEnd && depth_ != 0)) {
        return Status::InvalidArgument("the brackets do not match");
      }
      if (token.kind == TokenKind::kEnd) {
        return std::move(tokens_);
      }
    }
  }

 private:
  Status SkipBlank() {
    while (at_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
        ++at_;
      } else if (text_.substr(at_, 2) == "--") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) {
          return Status::InvalidArgument("a comment does not end");
        }
        at_ = end + 2;
      } else {
        break;
      }
    }
    return Status::Ok();
  }

  Result<Token> Next() {
    Token token{.begin = at_, .end = at_, .depth = depth_};
    if (at_ == text_.size()) {
      return token;
    }
    const char c = text_[at_];
    if (c == '\'' || c == '"') {
      token.kind = c == '"' ? TokenKind::kQuotedName : TokenKind::kText;
      TARN_RETURN_IF_ERROR(SkipQuoted(c));
    } else if (c == '$' && DollarTag()) {
      return Status::InvalidArgument("text in dollar quotes cannot be used here: use '…'");
    } else if (IsWordChar(c)) {
      token.kind =
          std::isdigit(static_cast<unsigned char>(c)) != 0 ? TokenKind::kNumber : TokenKind::kWord;
      while (at_ < text_.size() && IsWordChar(text_[at_])) {
        ++at_;
      }
    } else {
      token.kind = TokenKind::kSymbol;
      ++at_;
      depth_ += c == '(' || c == '[' || c == '{' ? 1 : 0;
      depth_ -= c == ')' || c == ']' || c == '}' ? 1 : 0;
      token.depth = std::min(token.depth, depth_);
    }
    token.end = at_;
    return token;
  }

  [[nodiscard]] bool DollarTag() const {
    size_t end = at_ + 1;
    while (end < text_.size() && IsWordChar(text_[end]) && text_[end] != '$') {
      ++end;
    }
    return end < text_.size() && text_[end] == '$';
  }

  // A doubled quote stands for itself.
  Status SkipQuoted(char quote) {
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] != quote) {
        continue;
      }
      if (at_ + 1 < text_.size() && text_[at_ + 1] == quote) {
        ++at_;
        continue;
      }
      ++at_;
      return Status::Ok();
    }
    return Status::InvalidArgument(fmt::format("a text in {} does not end", quote));
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  std::vector<Token> tokens_;
};

class Parser {
 public:
  Parser(std::string_view text, std::vector<Token> tokens)
      : text_(text), tokens_(std::move(tokens)) {}

  Result<ChangeStatement> Parse() {
    TARN_RETURN_IF_ERROR(DropSemicolon());
    if (Take("DELETE")) {
      return ParseDelete();
    }
    if (Take("UPDATE")) {
      return ParseUpdate();
    }
    if (Take("INSERT")) {
      return ParseInsert();
    }
    if (Take("MERGE")) {
      return ParseMerge();
    }
    if (Take("CREATE")) {
      return ParseCreate();
    }
    if (Take("DROP")) {
      return ParseDrop();
    }
    return Expected("DELETE, UPDATE, INSERT, MERGE, CREATE TABLE, CREATE SCHEMA or DROP");
  }

 private:
  [[nodiscard]] const Token& now() const { return tokens_[at_]; }
  [[nodiscard]] std::string_view TextOf(const Token& token) const {
    return text_.substr(token.begin, token.end - token.begin);
  }
  [[nodiscard]] bool Is(const Token& token, std::string_view word) const {
    const std::string_view text = TextOf(token);
    const bool plain = token.kind == TokenKind::kWord || token.kind == TokenKind::kSymbol;
    return plain && engine::LowerCase(text) == engine::LowerCase(word);
  }
  bool Take(std::string_view word) {
    if (!Is(now(), word)) {
      return false;
    }
    ++at_;
    return true;
  }
  [[nodiscard]] Status Expected(std::string_view what) const {
    const std::string found =
        now().kind == TokenKind::kEnd ? "the end" : std::string(TextOf(now()));
    return Status::InvalidArgument(fmt::format("expected {}, found {}", what, found));
  }

  Status DropSemicolon() {
    for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
      if (Is(tokens_[i], ";")) {
        if (i + 2 < tokens_.size()) {
          return Status::InvalidArgument("only one statement can be run at a time");
        }
        tokens_.erase(tokens_.begin() + static_cast<std::ptrdiff_t>(i));
        break;
      }
    }
    return Status::Ok();
  }

  // One part of a name, without its quotes.
  Result<std::string> TakeName() {
    const Token token = now();
    if (token.kind == TokenKind::kWord) {
      ++at_;
      return std::string(TextOf(token));
    }
    if (token.kind == TokenKind::kQuotedName) {
      ++at_;
      return Unquoted(token);
    }
    return Expected("a name");
  }

  Result<std::vector<std::string>> TakeTable() {
    std::vector<std::string> parts;
    do {
      TARN_ASSIGN_OR_RETURN(std::string part, TakeName());
      parts.push_back(std::move(part));
    } while (Take("."));
    return parts;
  }

  // An alias before one of `stops`.
  Result<std::string> TakeAlias(std::initializer_list<std::string_view> stops) {
    const bool as = Take("AS");
    const bool ends = now().kind == TokenKind::kEnd ||
                      std::any_of(stops.begin(), stops.end(),
                                  [this](std::string_view stop) { return Is(now(), stop); });
    if (ends && !as) {
      return std::string();
    }
    const Token token = now();
    TARN_RETURN_IF_ERROR(TakeName());
    return std::string(TextOf(token));
  }

  // Index of the next of these words outside of brackets.
  [[nodiscard]] size_t FindOutside(std::initializer_list<std::string_view> words) const {
    size_t i = at_;
    while (tokens_[i].kind != TokenKind::kEnd && (tokens_[i].depth != 0 || !IsOneOf(i, words))) {
      ++i;
    }
    return i;
  }

  // FROM behind DISTINCT compares: IS [NOT] DISTINCT FROM.
  [[nodiscard]] bool IsOneOf(size_t i, std::initializer_list<std::string_view> words) const {
    const bool compares = i > 0 && Is(tokens_[i], "FROM") && Is(tokens_[i - 1], "DISTINCT");
    return !compares && std::any_of(words.begin(), words.end(),
                                    [&](std::string_view word) { return Is(tokens_[i], word); });
  }

  // As FindOutside, also not between CASE and END.
  [[nodiscard]] size_t FindClause(std::initializer_list<std::string_view> words) const {
    int cases = 0;
    size_t i = at_;
    for (; tokens_[i].kind != TokenKind::kEnd; ++i) {
      if (tokens_[i].depth != 0) {
        continue;
      }
      if (cases == 0 && IsOneOf(i, words)) {
        break;
      }
      cases += Is(tokens_[i], "CASE") ? 1 : 0;
      cases -= Is(tokens_[i], "END") && cases > 0 ? 1 : 0;
    }
    return i;
  }

  Status Need(std::string_view word) { return Take(word) ? Status::Ok() : Expected(word); }

  // A text in '…', without its quotes.
  Result<std::string> TakeText() {
    if (now().kind != TokenKind::kText) {
      return Expected("a text in '…'");
    }
    return Unquoted(tokens_[at_++]);
  }

  [[nodiscard]] std::string Unquoted(const Token& token) const {
    std::string text;
    const std::string_view inner = text_.substr(token.begin + 1, token.end - token.begin - 2);
    for (size_t i = 0; i < inner.size(); ++i) {
      text += inner[i];
      i += inner[i] == text_[token.begin] ? 1 : 0;
    }
    return text;
  }

  // (column, …)
  Result<std::vector<std::string>> TakeColumns() {
    std::vector<std::string> columns;
    TARN_RETURN_IF_ERROR(Need("("));
    do {
      TARN_ASSIGN_OR_RETURN(std::string column, TakeName());
      columns.push_back(std::move(column));
    } while (Take(","));
    TARN_RETURN_IF_ERROR(Need(")"));
    return columns;
  }

  // (expression, …), not itself in brackets.
  Result<std::vector<std::string>> TakeValues() {
    std::vector<std::string> values;
    TARN_RETURN_IF_ERROR(Need("("));
    do {
      size_t end = at_;
      while (tokens_[end].depth > 1 || (tokens_[end].depth == 1 && !Is(tokens_[end], ","))) {
        ++end;
      }
      TARN_ASSIGN_OR_RETURN(std::string value, TakeUntil(end, "an expression"));
      values.push_back(std::move(value));
    } while (Take(","));
    TARN_RETURN_IF_ERROR(Need(")"));
    return values;
  }

  // The text from the current token to the one at `end`; moves there.
  Result<std::string> TakeUntil(size_t end, std::string_view what) {
    if (end == at_) {
      return Expected(what);
    }
    const std::string text(text_.substr(now().begin, tokens_[end - 1].end - now().begin));
    at_ = end;
    return text;
  }

  Result<std::string> TakeCondition() {
    if (now().kind == TokenKind::kEnd) {
      return std::string("true");
    }
    if (!Take("WHERE")) {
      return Expected("WHERE");
    }
    const size_t returning = FindOutside({"RETURNING"});
    if (tokens_[returning].kind != TokenKind::kEnd) {
      return Status::InvalidArgument("RETURNING is not known here");
    }
    return TakeUntil(returning, "a condition");
  }

  Result<ChangeStatement> ParseDelete() {
    DeleteStatement statement;
    if (!Take("FROM")) {
      return Expected("FROM");
    }
    TARN_ASSIGN_OR_RETURN(statement.table, TakeTable());
    TARN_ASSIGN_OR_RETURN(statement.alias, TakeAlias({"WHERE", "USING", "RETURNING"}));
    TARN_ASSIGN_OR_RETURN(statement.condition, TakeCondition());
    return ChangeStatement(std::move(statement));
  }

  Result<ChangeStatement> ParseUpdate() {
    UpdateStatement statement;
    TARN_ASSIGN_OR_RETURN(statement.table, TakeTable());
    TARN_ASSIGN_OR_RETURN(statement.alias, TakeAlias({"SET"}));
    if (!Take("SET")) {
      return Expected("SET");
    }
    do {
      TARN_ASSIGN_OR_RETURN(std::string column, TakeName());
      if (!Take("=")) {
        return Expected("= after the column " + column);
      }
      TARN_ASSIGN_OR_RETURN(
          std::string expression,
          TakeUntil(FindOutside({",", "WHERE", "FROM", "RETURNING"}), "an expression"));
      statement.assignments.emplace_back(std::move(column), std::move(expression));
    } while (Take(","));
    TARN_ASSIGN_OR_RETURN(statement.condition, TakeCondition());
    return ChangeStatement(std::move(statement));
  }

  Result<ChangeStatement> ParseInsert() {
    InsertStatement statement;
    if (!Take("INTO")) {
      return Expected("INTO");
    }
    TARN_ASSIGN_OR_RETURN(statement.table, TakeTable());
    if (Is(now(), "(") && !Is(tokens_[at_ + 1], "SELECT") && !Is(tokens_[at_ + 1], "WITH")) {
      TARN_ASSIGN_OR_RETURN(statement.columns, TakeColumns());
    }
    const size_t stop = FindOutside({"RETURNING", "ON"});
    // ON belongs to joins; ON CONFLICT to INSERT alone.
    if (tokens_[stop].kind != TokenKind::kEnd &&
        (Is(tokens_[stop], "RETURNING") || Is(tokens_[stop + 1], "CONFLICT"))) {
      return Status::InvalidArgument("RETURNING and ON CONFLICT are not known here");
    }
    TARN_ASSIGN_OR_RETURN(statement.select, TakeUntil(tokens_.size() - 1, "SELECT or VALUES"));
    return ChangeStatement(std::move(statement));
  }

  Result<ChangeStatement> ParseMerge() {
    MergeStatement statement;
    TARN_RETURN_IF_ERROR(Need("INTO"));
    TARN_ASSIGN_OR_RETURN(statement.table, TakeTable());
    TARN_ASSIGN_OR_RETURN(statement.alias, TakeAlias({"USING"}));
    TARN_RETURN_IF_ERROR(Need("USING"));
    TARN_RETURN_IF_ERROR(ParseSource(statement));
    TARN_RETURN_IF_ERROR(Need("ON"));
    TARN_ASSIGN_OR_RETURN(statement.condition, TakeUntil(FindClause({"WHEN"}), "a condition"));
    do {
      TARN_ASSIGN_OR_RETURN(MergeClause clause, ParseClause(statement));
      statement.clauses.push_back(std::move(clause));
    } while (now().kind != TokenKind::kEnd);
    return ChangeStatement(std::move(statement));
  }

  // name [[AS] alias] [AT (…)] or (SELECT …) [AS] alias [(column, …)]
  Status ParseSource(MergeStatement& statement) {
    const size_t begin = at_;
    const bool query = Is(now(), "(");
    std::vector<std::string> name;
    if (query) {
      SkipBrackets();
    } else {
      TARN_ASSIGN_OR_RETURN(name, TakeTable());
    }
    statement.source = TextSince(begin);
    statement.source += TakePointInTime();
    TARN_ASSIGN_OR_RETURN(statement.source_alias, TakeAlias({"ON"}));
    statement.source += TakePointInTime();
    if (statement.source_alias.empty()) {
      if (query) {
        return Expected("an alias of the source");
      }
      statement.source_alias = engine::QuoteName(name.back());
    }
    if (Is(now(), "(")) {
      const size_t columns = at_;
      SkipBrackets();
      statement.source += " AS tarn_rows" + TextSince(columns);
    }
    return Status::Ok();
  }

  // " AT (…)" where that stands, else nothing.
  std::string TakePointInTime() {
    if (!Is(now(), "AT") || !Is(tokens_[at_ + 1], "(")) {
      return {};
    }
    const size_t begin = at_++;
    SkipBrackets();
    return " " + TextSince(begin);
  }

  // The text from a token to the one before the current.
  [[nodiscard]] std::string TextSince(size_t begin) const {
    return std::string(
        text_.substr(tokens_[begin].begin, tokens_[at_ - 1].end - tokens_[begin].begin));
  }

  // Moves behind the bracket that belongs to the current one, which is outside of others.
  void SkipBrackets() {
    do {
      ++at_;
    } while (tokens_[at_].depth > 0);
    ++at_;
  }

  Result<MergeClause> ParseClause(const MergeStatement& statement) {
    MergeClause clause;
    TARN_RETURN_IF_ERROR(Need("WHEN"));
    if (Take("NOT")) {
      clause.rows = MergeClause::Rows::kNotMatched;
    }
    TARN_RETURN_IF_ERROR(Need("MATCHED"));
    if (clause.rows == MergeClause::Rows::kNotMatched && Take("BY")) {
      if (Take("SOURCE")) {
        clause.rows = MergeClause::Rows::kNotMatchedBySource;
      } else {
        TARN_RETURN_IF_ERROR(Need("TARGET"));
      }
    }
    if (Take("AND")) {
      TARN_ASSIGN_OR_RETURN(clause.condition, TakeUntil(FindClause({"THEN"}), "a condition"));
    }
    TARN_RETURN_IF_ERROR(Need("THEN"));
    TARN_RETURN_IF_ERROR(ParseAction(statement, clause));
    return clause;
  }

  Status ParseAction(const MergeStatement& statement, MergeClause& clause) {
    const bool inserts = clause.rows == MergeClause::Rows::kNotMatched;
    if (Take("DO")) {
      return Need("NOTHING");
    }
    if (inserts && Take("INSERT")) {
      clause.action = MergeClause::Action::kInsert;
      return ParseInsertAction(clause);
    }
    if (!inserts && Take("DELETE")) {
      clause.action = MergeClause::Action::kDelete;
      return Status::Ok();
    }
    if (!inserts && Take("UPDATE")) {
      clause.action = MergeClause::Action::kUpdate;
      TARN_RETURN_IF_ERROR(Need("SET"));
      return ParseSet(statement, clause);
    }
    return Expected(inserts ? "INSERT or DO NOTHING" : "UPDATE, DELETE or DO NOTHING");
  }

  Status ParseInsertAction(MergeClause& clause) {
    if (Take("*")) {
      clause.by_name = true;
      return Status::Ok();
    }
    if (Is(now(), "(")) {
      TARN_ASSIGN_OR_RETURN(clause.columns, TakeColumns());
    }
    TARN_RETURN_IF_ERROR(Need("VALUES"));
    TARN_ASSIGN_OR_RETURN(clause.values, TakeValues());
    if (!clause.columns.empty() && clause.columns.size() != clause.values.size()) {
      return Status::InvalidArgument(fmt::format("INSERT names {} columns and has {} values",
                                                 clause.columns.size(), clause.values.size()));
    }
    return Status::Ok();
  }

  Status ParseSet(const MergeStatement& statement, MergeClause& clause) {
    if (clause.rows == MergeClause::Rows::kMatched && Take("*")) {
      clause.by_name = true;
      return Status::Ok();
    }
    do {
      TARN_ASSIGN_OR_RETURN(std::string column, TakeName());
      if (Take(".")) {
        std::string alias = statement.alias.empty() ? statement.table.back() : statement.alias;
        std::erase(alias, '"');
        if (engine::LowerCase(column) != engine::LowerCase(alias)) {
          return Status::InvalidArgument(
              fmt::format("SET {}.…: columns of {} are set", column, alias));
        }
        TARN_ASSIGN_OR_RETURN(column, TakeName());
      }
      TARN_RETURN_IF_ERROR(Need("="));
      TARN_ASSIGN_OR_RETURN(std::string expression,
                            TakeUntil(FindClause({",", "WHEN"}), "an expression"));
      clause.assignments.emplace_back(std::move(column), std::move(expression));
    } while (Take(","));
    return Status::Ok();
  }

  Result<ChangeStatement> ParseCreate() {
    CreateTableStatement statement;
    if (Take("OR")) {
      TARN_RETURN_IF_ERROR(Need("REPLACE"));
      statement.or_replace = true;
    }
    if (!statement.or_replace && Take("SCHEMA")) {
      return ParseCreateSchema();
    }
    if (!Take("TABLE")) {
      return Expected(statement.or_replace ? "TABLE" : "TABLE or SCHEMA");
    }
    TARN_ASSIGN_OR_RETURN(statement.if_not_exists, TakeIfNotExists());
    if (statement.or_replace && statement.if_not_exists) {
      return Status::InvalidArgument(
          "CREATE TABLE: OR REPLACE and IF NOT EXISTS are for the same case: leave one out");
    }
    TARN_ASSIGN_OR_RETURN(statement.table, TakeTable());
    if (Is(now(), "(")) {
      return Status::InvalidArgument(
          "a table gets its columns from the SELECT after AS: leave their list out");
    }
    if (Take("PARTITIONED")) {
      TARN_RETURN_IF_ERROR(Need("BY"));
      TARN_RETURN_IF_ERROR(ParsePartitioning(statement));
    }
    if (Take("TBLPROPERTIES")) {
      TARN_RETURN_IF_ERROR(Need("("));
      do {
        TARN_ASSIGN_OR_RETURN(std::string key, TakeText());
        TARN_RETURN_IF_ERROR(Need("="));
        TARN_ASSIGN_OR_RETURN(statement.properties[key], TakeText());
      } while (Take(","));
      TARN_RETURN_IF_ERROR(Need(")"));
    }
    TARN_RETURN_IF_ERROR(Need("AS"));
    TARN_ASSIGN_OR_RETURN(statement.select, TakeUntil(tokens_.size() - 1, "SELECT or VALUES"));
    return ChangeStatement(std::move(statement));
  }

  Result<bool> TakeIfNotExists() {
    if (!Take("IF")) {
      return false;
    }
    TARN_RETURN_IF_ERROR(Need("NOT"));
    TARN_RETURN_IF_ERROR(Need("EXISTS"));
    return true;
  }

  Result<ChangeStatement> ParseCreateSchema() {
    CreateSchemaStatement statement;
    TARN_ASSIGN_OR_RETURN(statement.if_not_exists, TakeIfNotExists());
    TARN_ASSIGN_OR_RETURN(statement.name, TakeTable());
    TARN_RETURN_IF_ERROR(NeedEnd());
    return ChangeStatement(std::move(statement));
  }

  Result<ChangeStatement> ParseDrop() {
    DropStatement statement;
    if (Take("VIEW")) {
      statement.kind = DropStatement::Kind::kView;
    } else if (Take("SCHEMA")) {
      statement.kind = DropStatement::Kind::kSchema;
    } else if (!Take("TABLE")) {
      return Expected("TABLE, VIEW or SCHEMA");
    }
    if (Take("IF")) {
      TARN_RETURN_IF_ERROR(Need("EXISTS"));
      statement.if_exists = true;
    }
    TARN_ASSIGN_OR_RETURN(statement.name, TakeTable());
    if (Is(now(), "CASCADE")) {
      return Status::InvalidArgument(
          "CASCADE is not known here: drop what the schema holds first, then the schema");
    }
    if (statement.kind == DropStatement::Kind::kTable) {
      statement.purge = Take("PURGE");
    }
    TARN_RETURN_IF_ERROR(NeedEnd());
    return ChangeStatement(std::move(statement));
  }

  [[nodiscard]] Status NeedEnd() const {
    return now().kind == TokenKind::kEnd ? Status::Ok() : Expected("the end");
  }

  // (column, day(column), bucket(16, column), …)
  Status ParsePartitioning(CreateTableStatement& statement) {
    TARN_RETURN_IF_ERROR(Need("("));
    do {
      CreateTableStatement::PartitionTerm term;
      TARN_ASSIGN_OR_RETURN(term.column, TakeName());
      if (Take("(")) {
        term.transform = engine::LowerCase(term.column);
        for (const std::string_view unit : {"year", "month", "day", "hour"}) {
          if (term.transform == fmt::format("{}s", unit)) {
            term.transform = unit;
          }
        }
        if (now().kind == TokenKind::kNumber) {
          term.transform += fmt::format("[{}]", TextOf(tokens_[at_++]));
          TARN_RETURN_IF_ERROR(Need(","));
        }
        TARN_ASSIGN_OR_RETURN(term.column, TakeName());
        TARN_RETURN_IF_ERROR(Need(")"));
      }
      statement.partitioning.push_back(std::move(term));
    } while (Take(","));
    return Need(")");
  }

  std::string_view text_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace

bool IsChange(std::string_view sql) {
  const Result<std::vector<Token>> tokens = Scanner(sql).Run();
  if (!tokens.ok() || tokens->front().kind != TokenKind::kWord) {
    return false;
  }
  const Token& first = tokens->front();
  const std::string word = engine::LowerCase(sql.substr(first.begin, first.end - first.begin));
  return word == "delete" || word == "update" || word == "insert" || word == "merge" ||
         word == "create" || word == "drop";
}

Result<ChangeStatement> ParseChange(std::string_view sql) {
  TARN_ASSIGN_OR_RETURN(std::vector<Token> tokens, Scanner(sql).Run());
  return Parser(sql, std::move(tokens)).Parse();
}

}  // namespace tarn::query
