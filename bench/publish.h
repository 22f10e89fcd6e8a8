// Where a report goes besides standard output.
#pragma once
#include "pictures.h"
#include "report.h"

namespace bench {

// bench.json, bench.md and the pictures.
void write_folder(const Report& report, const fs::path& folder);
// docs/performance.md between its markers, and the pictures beside it. Throws if the markers are not there.
void write_docs(const Report& report, const fs::path& root);

}  // namespace bench
