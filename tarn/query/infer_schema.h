// InferSchema: which schema the files of a dataset ask for, and what each file has against it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/engine/engine.h"
#include "tarn/format/field_type.h"
#include "tarn/query/dataset_relation.h"
#include "tarn/query/text_relation.h"
#include "tarn/storage/object_store.h"

namespace tarn::query {

enum class FileForm { kParquet, kCsv, kJson };

/// How much is looked at; empty = everything.
struct InferenceSample {
  std::optional<int64_t> files;          // The first ones by path.
  std::optional<int64_t> rows_per_file;  // Of CSV and JSON; Parquet files say their types.
};

struct InferredFile {
  std::string path;
  std::optional<FileForm> form;
  int64_t rows = 0;     // Looked at.
  std::string problem;  // Why the file does not fit the schema; empty = it fits.
};

struct InferredSchema {
  FileForm form = FileForm::kParquet;  // Of the first file that could be read.
  std::vector<format::Field> fields;
  TextOptions text;  // Of CSV files.
  std::vector<InferredFile> files;

  [[nodiscard]] bool has_problems() const;
};

/// "PARQUET", "CSV", "JSON".
std::string_view FileFormName(FileForm form);

/// Types are the narrowest that hold every value looked at without loss: numbers of text files with
/// leading zeros or more digits than a double keeps are STRING.
/// Errors: those of ListDatasetFiles; kFailedPrecondition when there are no files, or none that can
/// be read (with the first reason). Cost: reads what `sample` says.
Result<InferredSchema> InferSchema(engine::Session& session, dataset::DatasetStore& datasets,
                                   storage::ObjectStore& store, const DatasetRelation& relation,
                                   const InferenceSample& sample);

/// The object that putSchema takes.
std::string SchemaJsonOf(const InferredSchema& schema);

}  // namespace tarn::query
