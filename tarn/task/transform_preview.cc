#include "tarn/task/transform_preview.h"

#include <algorithm>
#include <limits>

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/base/arrow_status.h"
#include "tarn/landing/landing_schema.h"
#include "tarn/landing/landing_state.h"
#include "tarn/task/landed_relation.h"
#include "tarn/task/pipeline_place.h"
#include "tarn/task/source_key.h"
#include "tarn/task/untyped_columns.h"
#include "tarn/transform/outcome.h"

namespace tarn::task {

namespace {

constexpr int64_t kLookedAtMax = 5000;

// What one input has landed.
struct Landed {
  LandedBatch batch;
  std::vector<format::Field> fields;
  landing::SourceKeys keys;
};

Result<std::optional<Landed>> ReadLanded(const ControlDeps& deps, const Rid& project,
                                         const landing::LandingSpec& landing) {
  std::optional<dataset::DatasetRid> dataset;
  format::ColumnSet columns;
  Landed landed;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(dataset, FindLandingDataset(sql, project, landing));
    if (dataset) {
      TARN_ASSIGN_OR_RETURN(columns, landing::ReadColumns(sql, dataset->ToString()));
      TARN_ASSIGN_OR_RETURN(landed.keys, landing::ReadKeys(sql, dataset->ToString()));
    }
    return Status::Ok();
  }));
  if (!dataset) {
    return std::optional<Landed>();
  }
  TARN_ASSIGN_OR_RETURN(
      landed.batch,
      ReadLandedBatch(deps.datasets, deps.database, {{.dataset = *dataset, .consumed = {}}},
                      {.rows = kLookedAtMax, .bytes = std::numeric_limits<int64_t>::max()}));
  landed.fields = landing::LandingFields(landing, columns);
  return landed.batch.files.empty() ? std::nullopt : std::optional<Landed>(std::move(landed));
}

// The columns of the table, without the images before updates.
Result<std::shared_ptr<arrow::RecordBatch>> UserRows(const transform::CompiledMapping& mapping,
                                                     const arrow::RecordBatch& good) {
  arrow::FieldVector fields;
  arrow::ArrayVector columns;
  for (size_t i = 0; i < mapping.columns.size(); ++i) {
    const int column = static_cast<int>(i);
    fields.push_back(good.schema()->field(column));
    columns.push_back(good.column(column));
  }
  const auto before = std::dynamic_pointer_cast<arrow::BooleanArray>(
      good.GetColumnByName(std::string(transform::kBeforeColumn)));
  const auto all = arrow::RecordBatch::Make(arrow::schema(fields), good.num_rows(), columns);
  arrow::RecordBatchVector kept;
  for (int64_t row = 0; row < good.num_rows(); ++row) {
    if (before == nullptr || before->IsNull(row) || !before->Value(row)) {
      kept.push_back(all->Slice(row, 1));
    }
  }
  if (kept.empty()) {
    return all->Slice(0, 0);
  }
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::RecordBatch> rows,
                        arrow::ConcatenateRecordBatches(kept));
  return rows;
}

Status MapRows(const ControlDeps& deps, const transform::MappingSpec& spec, const Landed& landed,
               int64_t rows_max, MappedRows& rows) {
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<engine::Session> session, deps.engine.OpenSession());
  transform::MappingSpec mapping_spec = spec;
  LeaveOutUntyped(landed.fields, mapping_spec);
  TARN_ASSIGN_OR_RETURN(
      const transform::CompiledMapping mapping,
      transform::CompileMapping(*session, mapping_spec, *format::ToArrowSchema(landed.fields)));
  TARN_RETURN_IF_ERROR(
      RegisterLanded(*session, deps.catalog.deps().warehouse, landed.batch, landed.fields));
  TARN_ASSIGN_OR_RETURN(
      const std::unique_ptr<engine::ArrowStream> stream,
      session->Query(fmt::format("SELECT * FROM ({}) LIMIT {}", mapping.sql, kLookedAtMax)));
  while (rows.rows == nullptr || rows.rows->num_rows() < rows_max) {
    TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> mapped, stream->Next());
    if (mapped == nullptr) {
      break;
    }
    TARN_ASSIGN_OR_RETURN(const transform::MappedBatch outcome,
                          transform::SplitOutcome(mapping, *mapped));
    for (const transform::RejectedRow& rejected : outcome.rejected) {
      ++rows.rejected;
      if (rows.first_rejection.empty()) {
        rows.first_rejection = rejected.code + ": " + rejected.text;
      }
    }
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::RecordBatch> more,
                          UserRows(mapping, *outcome.good));
    if (rows.rows != nullptr) {
      TARN_ASSIGN_OR_RETURN(more, arrow::ConcatenateRecordBatches({rows.rows, more}));
    }
    rows.rows = more->num_rows() > rows_max ? more->Slice(0, rows_max) : std::move(more);
  }
  return Status::Ok();
}

}  // namespace

Result<MappedRows> PreviewTransform(const ControlDeps& deps, const std::optional<Rid>& project,
                                    const pipeline::PipelineSpec& spec,
                                    const pipeline::TransformSpec& transform, int64_t rows_max) {
  for (const std::string& from : transform.from) {
    const std::optional<pipeline::LandingInput> input = spec.FindInput(from);
    if (!project || !input) {
      continue;
    }
    TARN_ASSIGN_OR_RETURN(const std::optional<Landed> landed,
                          ReadLanded(deps, *project, input->landing));
    if (!landed) {
      continue;
    }
    transform::MappingSpec mapping = transform.mapping;
    if (TakesSourceKey(mapping)) {
      TARN_ASSIGN_OR_RETURN(mapping.key, SourceKeyOf(landed->keys, mapping));
    }
    MappedRows rows;
    TARN_RETURN_IF_ERROR(MapRows(deps, mapping, *landed, rows_max, rows));
    return rows;
  }
  return Status::FailedPrecondition(
      fmt::format("nothing has landed for {}.{} yet: run its landing task first, or look at the "
                  "source with `tarn landing sample`",
                  spec.name, transform.name));
}

}  // namespace tarn::task
