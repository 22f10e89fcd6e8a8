// What execd does without, so that its file stays small. Libraries refer to these functions; a definition of ours keeps
// theirs, and all that they need, out of the static program.
#include <netdb.h>

#include <cstdlib>

// execd resolves no names: it listens, and connects to addresses inside the sandbox.
extern "C" {

int getaddrinfo(const char*, const char*, const addrinfo*, addrinfo**) { return EAI_FAIL; }
void freeaddrinfo(addrinfo*) {}
int getnameinfo(const sockaddr*, socklen_t, char*, socklen_t, char*, socklen_t, int) { return EAI_FAIL; }
const char* gai_strerror(int) { return "names are not resolved here"; }

}  // extern "C"

// The default one demangles the name of the exception for a standard error that nobody reads.
namespace __gnu_cxx {
void __verbose_terminate_handler();                   // NOLINT(bugprone-reserved-identifier): the library calls it by this name
void __verbose_terminate_handler() { std::abort(); }  // NOLINT(bugprone-reserved-identifier)
}  // namespace __gnu_cxx
