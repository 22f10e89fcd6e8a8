// Whole files: bounded reads, complete writes, atomic replacement, locks, and flushing to disk.
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace osb::sys::fs {

enum class Durable { yes, no };  // yes: on disk when the call returns; no: for files nobody misses after a power cut

// Errc::too_large when there is more than `max_bytes`; the size comes from reading, never from stat.
Result<std::string> read_to_end(int fd, std::size_t max_bytes);
// Bytes at `offset`; empty only at the end of the file.
Result<std::size_t> read_some_at(int fd, std::span<std::byte> into, std::uint64_t offset);
Result<> write_fully_at(int fd, std::span<const std::byte> bytes, std::uint64_t offset);
Result<> set_size(int fd, std::uint64_t size);

// A reader sees the old content or the new, never a part; a failure leaves the old.
Result<> replace_file(int dir, const std::string& name, std::string_view content, mode_t mode, Durable durable);

Result<> flush_file_system(int fd);  // syncfs(2): everything under a tree just written
Result<> flush(int fd);

enum class LockWait { yes, no };
// An exclusive flock(2) on the open file behind `fd`, held until its last descriptor is closed.
// False when another holds it and we do not wait.
Result<bool> lock_exclusive(int fd, LockWait wait);
Result<bool> lock_shared(int fd, LockWait wait);

}  // namespace osb::sys::fs
