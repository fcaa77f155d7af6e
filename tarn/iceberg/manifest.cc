#include "tarn/iceberg/manifest.h"

namespace tarn::iceberg {

bool ManifestFile::has_live_files() const {
  return added_files_count.value_or(1) > 0 || existing_files_count.value_or(1) > 0;
}

int64_t ManifestFile::live_files_count() const {
  return int64_t{added_files_count.value_or(0)} + existing_files_count.value_or(0);
}

}  // namespace tarn::iceberg
