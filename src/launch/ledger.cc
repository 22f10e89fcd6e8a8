#include "launch/ledger.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "launch/id_range.h"
#include "sys/kernel_file.h"

namespace osb::launch {
namespace {

constexpr std::size_t kBytes = static_cast<std::size_t>(kBlocks) * kRangesPerBlock * kLedgerLine;

}  // namespace

Result<Ledger> Ledger::open(const std::string& path) {
  TRY(auto file, sys::open_at(AT_FDCWD, path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  if (int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(kBytes)); error != 0)
    return Error::from_errno("reserve ledger", error);
  void* at = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) return Error::from_errno("map ledger", errno);
  // A sandbox's first process starts as a copy of the launcher; it has no business with the ledger.
  ::madvise(at, kBytes, MADV_DONTFORK);
  return Ledger(static_cast<char*>(at));
}

Ledger::Ledger(Ledger&& other) noexcept : slots_(std::exchange(other.slots_, nullptr)) {}

Ledger::~Ledger() {
  if (slots_ != nullptr) ::munmap(slots_, kBytes);
}

Result<> Ledger::write(const LedgerRecord& record) {
  char* slot = slots_ + record.range * kLedgerLine;
  auto present = parse_ledger_line({slot, kLedgerLine});
  if (present && present->id != record.id)
    return Error(Errc::conflict, cat("id range ", record.range, " is taken by ", present->id), EEXIST);
  auto line = render_ledger_line(record);
  // The first byte makes the slot a record, so it is stored last: a kill in between leaves a free slot, never half a line.
  std::memcpy(slot + 1, line.data() + 1, kLedgerLine - 1);
  std::atomic_signal_fence(std::memory_order_release);
  *slot = line[0];
  return Ok{};
}

void Ledger::strike(std::uint32_t range) { slots_[range * kLedgerLine] = ' '; }

std::vector<LedgerRecord> Ledger::all() const { return parse_ledger({slots_, kBytes}); }

std::string current_boot_id() {
  auto text = sys::read_file("/proc/sys/kernel/random/boot_id", 64);
  return text ? std::string(split(*text, '\n')[0]) : std::string();
}

}  // namespace osb::launch
