// Many idle sandboxes at once: what each costs in memory, what all of them cost in processor time, what a new one costs beside them,
// and how long it takes until nothing of them is left. Runs last: the kernel's memory groups stay slower afterwards, until reboot.
#pragma once
#include <string>

#include "daemon.h"
#include "options.h"

namespace bench {

std::string memory_row(int count);
std::string create_row(int count);
std::string idle_row(int count);
std::string gone_row(int count);

void measure_density(Context& context);

}  // namespace bench
