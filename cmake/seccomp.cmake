# Included for the day the seccomp tables are generated; see spec/seccomp.
