// Ctrl-C ends a run, not the cleaning up after it: signals only set a flag, the loops ask for it and throw, and destructors
// take down what was started.
#pragma once

namespace bench {

struct Interrupted {};

void catch_signals();      // SIGINT, SIGTERM, SIGHUP
bool interrupted();        // one of them came
void check_interrupted();  // throws Interrupted if so
void pause_ms(double ms);  // sleeps; throws Interrupted

}  // namespace bench
