// The run directory of an instance: who holds it, and its removal. For the launcher and for the keeper of the process runtime.
#pragma once
#include <chrono>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace osb::launch {

// The lock is the proof that an instance has its launcher (or keeper: `who`), and falls with the process. It is waited for: the one
// before us may be taking its groups apart, and one that was just killed may have helpers, or a half-made sandbox, that hold copies of
// the lock for a moment longer. Errc::conflict when it is not free within `patience`.
inline constexpr std::chrono::milliseconds kLockPatience = std::chrono::seconds(15);
Result<Fd> lock_run_dir(const std::string& run_dir, std::string_view who, std::chrono::milliseconds patience = kLockPatience);

// Whether the directory is still the one that was locked. After somebody has removed it another launcher may have made it anew: what
// bears our names is then not ours to remove.
bool is_held(const std::string& run_dir, const Fd& lock);

// The mark of an instance that goes with its program: whoever finds it without a living holder may remove all of it.
Result<> mark_private(const std::string& run_dir);
bool is_private(const std::string& run_dir);

// Only our own flat layout: plain files, and directories one level down, with what is mounted on them.
void remove_run_dir(const std::string& run_dir);

}  // namespace osb::launch
