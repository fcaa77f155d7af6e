#include "tarn/cli/command_line.h"

#include "cmd/tarn/metastore_files.h"
#include "cmd/tarn/serve.h"

int main(int argc, char** argv) {
  return tarn::cli::Run(argc, argv,
                        {.serve = tarn::Serve,
                         .export_metastore = tarn::ExportMetastore,
                         .import_metastore = tarn::ImportMetastore,
                         .check_metastore = tarn::CheckMetastore});
}
