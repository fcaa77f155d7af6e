#include "tarn/engine/syntax_tree.h"

#include <algorithm>
#include <array>

#include <arrow/api.h>
#include <nlohmann/json.hpp>

#include "tarn/base/utf8.h"

namespace tarn::engine {
namespace {

constexpr auto kForbiddenFunctions = std::to_array<std::string_view>({"current_connection_id",
                                                                      "current_query",
                                                                      "current_query_id",
                                                                      "current_setting",
                                                                      "current_transaction_id",
                                                                      "currval",
                                                                      "duckdb_logs",
                                                                      "format_type",
                                                                      "get_block_size",
                                                                      "getenv",
                                                                      "getvariable",
                                                                      "json_execute_serialized_sql",
                                                                      "json_serialize_plan",
                                                                      "nextval",
                                                                      "obj_description",
                                                                      "parse_duckdb_log_message",
                                                                      "pg_get_constraintdef",
                                                                      "pg_get_viewdef",
                                                                      "pg_sleep",
                                                                      "query",
                                                                      "query_table",
                                                                      "setseed",
                                                                      "sleep_ms",
                                                                      "stats",
                                                                      "txid_current",
                                                                      "vector_type",
                                                                      "write_log"});

constexpr auto kVolatileFunctions = std::to_array<std::string_view>({"ago",
                                                                     "current_catalog",
                                                                     "current_database",
                                                                     "current_date",
                                                                     "current_localtime",
                                                                     "current_localtimestamp",
                                                                     "current_role",
                                                                     "current_schema",
                                                                     "current_schemas",
                                                                     "current_time",
                                                                     "current_timestamp",
                                                                     "current_user",
                                                                     "error",
                                                                     "gen_random_uuid",
                                                                     "get_current_time",
                                                                     "get_current_timestamp",
                                                                     "in_search_path",
                                                                     "localtime",
                                                                     "localtimestamp",
                                                                     "now",
                                                                     "pg_conf_load_time",
                                                                     "pg_postmaster_start_time",
                                                                     "random",
                                                                     "session_user",
                                                                     "today",
                                                                     "transaction_timestamp",
                                                                     "user",
                                                                     "uuid",
                                                                     "uuidv4",
                                                                     "uuidv7",
                                                                     "version"});

constexpr auto kTableFunctions =
    std::to_array<std::string_view>({"generate_subscripts", "regexp_split_to_table", "unnest"});

constexpr auto kAllowedTableFunctions = std::to_array<std::string_view>(
    {"generate_series", "json_each", "json_tree", "range", "unnest"});

constexpr auto kLambdaFunctions = std::to_array<std::string_view>(
    {"apply", "array_apply", "array_filter", "array_reduce", "array_transform", "filter",
     "list_apply", "list_filter", "list_reduce", "list_transform", "reduce"});

// Aggregates and window functions of the pinned version, macros over them included.
constexpr auto kAggregates = std::to_array<std::string_view>({"cume_dist",
                                                              "dense_rank",
                                                              "fill",
                                                              "first_value",
                                                              "lag",
                                                              "last_value",
                                                              "lead",
                                                              "nth_value",
                                                              "ntile",
                                                              "percent_rank",
                                                              "rank",
                                                              "rank_dense",
                                                              "row_number",
                                                              "any_value",
                                                              "approx_count_distinct",
                                                              "approx_quantile",
                                                              "approx_top_k",
                                                              "arbitrary",
                                                              "arg_max",
                                                              "arg_max_null",
                                                              "arg_max_nulls_last",
                                                              "arg_min",
                                                              "arg_min_null",
                                                              "arg_min_nulls_last",
                                                              "argmax",
                                                              "argmin",
                                                              "array_agg",
                                                              "avg",
                                                              "bit_and",
                                                              "bit_or",
                                                              "bit_xor",
                                                              "bitstring_agg",
                                                              "bool_and",
                                                              "bool_or",
                                                              "corr",
                                                              "count",
                                                              "count_if",
                                                              "count_star",
                                                              "countif",
                                                              "covar_pop",
                                                              "covar_samp",
                                                              "entropy",
                                                              "favg",
                                                              "first",
                                                              "fsum",
                                                              "geometric_mean",
                                                              "geomean",
                                                              "group_concat",
                                                              "histogram",
                                                              "histogram_exact",
                                                              "json_group_array",
                                                              "json_group_object",
                                                              "json_group_structure",
                                                              "kahan_sum",
                                                              "kurtosis",
                                                              "kurtosis_pop",
                                                              "last",
                                                              "list",
                                                              "listagg",
                                                              "mad",
                                                              "max",
                                                              "max_by",
                                                              "mean",
                                                              "median",
                                                              "min",
                                                              "min_by",
                                                              "mode",
                                                              "product",
                                                              "quantile",
                                                              "quantile_cont",
                                                              "quantile_disc",
                                                              "regr_avgx",
                                                              "regr_avgy",
                                                              "regr_count",
                                                              "regr_intercept",
                                                              "regr_r2",
                                                              "regr_slope",
                                                              "regr_sxx",
                                                              "regr_sxy",
                                                              "regr_syy",
                                                              "reservoir_quantile",
                                                              "sem",
                                                              "skewness",
                                                              "stddev",
                                                              "stddev_pop",
                                                              "stddev_samp",
                                                              "string_agg",
                                                              "sum",
                                                              "sum_no_overflow",
                                                              "sumkahan",
                                                              "var_pop",
                                                              "var_samp",
                                                              "variance",
                                                              "wavg",
                                                              "weighted_avg"});

template <size_t kSize>
bool Has(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The single text that a query with one parameter gives.
Result<std::string> AskText(Session& session, std::string_view sql, std::string argument) {
  TARN_ASSIGN_OR_RETURN(const auto stream,
                        session.Query(sql, {.parameters = {std::move(argument)}}));
  TARN_ASSIGN_OR_RETURN(const auto batch, stream->Next());
  const auto& texts = static_cast<const arrow::StringArray&>(*batch->column(0));
  return texts.GetString(0);
}

}  // namespace

std::string_view TextOf(const SyntaxTree& node, const char* name) {
  if (!node.is_object()) {
    return {};
  }
  const auto member = node.find(name);
  if (member == node.end() || !member->is_string()) {
    return {};
  }
  return member->get_ref<const std::string&>();
}

Result<SyntaxTree> ParseSql(Session& session, std::string_view sql) {
  if (!IsValidUtf8(sql) || sql.find('\0') != std::string_view::npos) {
    return Status::InvalidArgument("the SQL text is not valid UTF-8 without NUL characters");
  }
  TARN_ASSIGN_OR_RETURN(
      const std::string text,
      AskText(session, "SELECT json_serialize_sql($1::VARCHAR)::VARCHAR", std::string(sql)));
  SyntaxTree tree = SyntaxTree::parse(text, nullptr, false);
  if (tree.is_discarded() || !tree.is_object()) {
    return Status::InvalidArgument("the SQL text has a number out of the range of its type");
  }
  if (tree.value("error", true)) {
    std::string message(TextOf(tree, "error_message"));
    if (TextOf(tree, "error_type") == "not implemented") {
      message = "only SELECT statements are allowed";
    }
    return Status::InvalidArgument(message);
  }
  return tree;
}

Result<std::string> PrintSql(Session& session, const SyntaxTree& tree) {
  return AskText(session, "SELECT json_deserialize_sql($1::VARCHAR)", tree.dump());
}

FunctionVerdict JudgeFunction(std::string_view name, size_t argument_count) {
  if (Has(kForbiddenFunctions, name) || name.starts_with("__internal") ||
      name.starts_with("read_") || name.starts_with("parquet_") || name.starts_with("duckdb_") ||
      name.starts_with("pragma_") || name.starts_with("tarn_")) {
    return FunctionVerdict::kForbidden;
  }
  // age(t) is the time since t until now.
  if (Has(kVolatileFunctions, name) || (name == "age" && argument_count == 1)) {
    return FunctionVerdict::kVolatile;
  }
  if (Has(kAggregates, name)) {
    return FunctionVerdict::kAggregate;
  }
  return Has(kTableFunctions, name) ? FunctionVerdict::kTable : FunctionVerdict::kAllowed;
}

bool IsAllowedTableFunction(std::string_view name) { return Has(kAllowedTableFunctions, name); }

bool TakesLambda(std::string_view name) { return Has(kLambdaFunctions, name); }

}  // namespace tarn::engine
