// Exit statuses of the command line; run and exec pass the command's own status through and keep 124..127 for these.
#pragma once

namespace osb::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;          // the thing asked for did not work
inline constexpr int kExitUsage = 2;            // the command line is wrong; nothing was tried
inline constexpr int kExitNotRunning = 3;       // `daemon status`: as systemd and the init scripts say it
inline constexpr int kExitAuth = 4;             // the daemon does not accept the key
inline constexpr int kExitTimedOut = 124;       // run, exec: --timeout is over
inline constexpr int kExitOurs = 125;           // run, exec: our failure, not the command's
inline constexpr int kExitNotExecutable = 126;  // run, exec: found, cannot be executed
inline constexpr int kExitNotFound = 127;       // run, exec: no such program in the sandbox
inline constexpr int kExitSignalBase = 128;     // run, exec: ended by signal n = 128 + n

}  // namespace osb::cli
