#include "launch/ledger.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/id.h"
#include "base/text.h"
#include "sys/kernel_file.h"

namespace osb::launch {

std::string render(const LedgerRecord& r) {
  return cat("range ", r.range, "\ndeadline ", r.deadline_boot_nanos, "\nboot ", r.boot_id, "\n");
}

LedgerRecord parse_record(std::string id, std::string_view text) {
  LedgerRecord r;
  r.id = std::move(id);
  r.range = static_cast<std::uint32_t>(sys::value_of(text, "range"));
  r.deadline_boot_nanos = sys::value_of(text, "deadline");
  for (auto line : split(text, '\n'))
    if (line.starts_with("boot ")) r.boot_id = line.substr(5);
  return r;
}

Result<Ledger> Ledger::open(const std::string& directory) {
  CHECK_OK(sys::make_dirs(directory, 0700));
  Ledger ledger;
  TRY(ledger.dir_, sys::open_at(AT_FDCWD, directory.c_str(), O_RDONLY | O_DIRECTORY));
  return ledger;
}

Result<> Ledger::add(const LedgerRecord& record) { return sys::write_new_file(dir_.get(), record.id.c_str(), render(record), 0600); }

Result<> Ledger::update(const LedgerRecord& record) {
  std::string next = record.id + ".new";
  ::unlinkat(dir_.get(), next.c_str(), 0);
  CHECK_OK(sys::write_new_file(dir_.get(), next.c_str(), render(record), 0600));
  if (::renameat(dir_.get(), next.c_str(), dir_.get(), record.id.c_str()) != 0) return Error::from_errno("rename ledger record", errno);
  return Ok{};
}

Result<> Ledger::strike(std::string_view id) {
  if (::unlinkat(dir_.get(), std::string(id).c_str(), 0) != 0 && errno != ENOENT) return Error::from_errno("unlink ledger record", errno);
  return Ok{};
}

Result<std::vector<LedgerRecord>> Ledger::all() const {
  std::vector<LedgerRecord> records;
  DIR* dir = ::fdopendir(::openat(dir_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dir == nullptr) return Error::from_errno("read ledger", errno);
  while (auto* entry = ::readdir(dir)) {
    std::string name = entry->d_name;
    if (!is_id_text(name)) {
      if (name.ends_with(".new")) ::unlinkat(dir_.get(), name.c_str(), 0);
      continue;
    }
    auto text = sys::read_at(dir_.get(), name.c_str(), 4096);
    records.push_back(parse_record(name, text ? std::string_view(*text) : std::string_view()));
  }
  ::closedir(dir);
  return records;
}

std::string current_boot_id() {
  auto text = sys::read_file("/proc/sys/kernel/random/boot_id", 64);
  return text ? std::string(split(*text, '\n')[0]) : std::string();
}

}  // namespace osb::launch
