// The read-only segments of a static program as large pages.
//
// A program that divides into others pays in each of them a page fault for every 64 KiB of itself that it passes through, and again at
// the end of each, page by page. So the copy it is executed from may end with its read-only segments once more, each at a multiple of
// 2 MiB and alone on it: there the kernel can keep it as one page that all processes have in common, for one fault. It takes a program
// whose segments begin at multiples of 2 MiB in memory (cmake/flavours.cmake); any other stays as it is.
#pragma once
#include "base/result.h"

namespace osb::sys {

// Adds the segments behind the program in `file`, which is in memory (memfd) and not yet sealed.
Result<> append_large_segments(int file);

// Replaces the segments of the running program by what append_large_segments() added to the file it was executed from, if it did.
// The bytes are compared first; where anything fails the program goes on with the pages it has.
void map_large_segments();

}  // namespace osb::sys
