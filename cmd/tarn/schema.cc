#include "cmd/tarn/schema.h"

#include "tarn/access/schema.h"
#include "tarn/catalog/catalog.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/lakehouse/table_inputs.h"
#include "tarn/landing/landing_state.h"
#include "tarn/metastore/migrations.h"
#include "tarn/query/union_view.h"
#include "tarn/task/task_status.h"
#include "tarn/tree/tree.h"

namespace tarn {

std::vector<metastore::Migration> AllMigrations() {
  std::vector<metastore::Migration> all;
  for (const std::vector<metastore::Migration>& room :
       {metastore::Migrations(), access::Migrations(), tree::Migrations(), dataset::Migrations(),
        catalog::Migrations(), landing::Migrations(), lakehouse::Migrations(), query::Migrations(),
        task::Migrations()}) {
    all.insert(all.end(), room.begin(), room.end());
  }
  return all;
}

}  // namespace tarn
