// Opening the state file: who may write it, is it whole, is it ours. Nothing is ever overwritten on the way.
#pragma once
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "store/database.h"

namespace osb::store {

struct StoreFile {
  Fd lock;  // held as long as we write
  Database db;
};

// Errc::conflict: another process has it. Errc::permission_denied: not writable. Errc::unsupported: newer schema.
// Errc::internal: damaged or not a database of ours. Errc::exhausted: the disk is full.
Result<StoreFile> open_store_file(const std::string& path);

}  // namespace osb::store
