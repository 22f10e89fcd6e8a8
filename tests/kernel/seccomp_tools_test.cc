// Real toolchains under the default profile: what people bring into a sandbox works with the filter in force.
#include <ftw.h>

#include <cstdlib>
#include <string>

#include "tests/kernel/seccomp_child.h"

namespace osb::kernel_test {
namespace {

class TempDir {
 public:
  TempDir() {
    char name[] = "/tmp/osb-tools-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~TempDir() {
    auto remove_one = [](const char* path, const struct stat*, int, FTW*) { return ::remove(path); };
    ::nftw(path_.c_str(), remove_one, 16, FTW_DEPTH | FTW_PHYS);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Runs a shell script in an empty directory under the filter. The first line proves that the filter is on.
Ended run_script(SyscallProfile profile, const std::string& script) {
  TempDir work;
  std::string whole = "set -e; grep -q '^Seccomp:[[:space:]]*2$' /proc/self/status\n" + script;
  return under(
      profile,
      [&] {
        ::setsid();
        if (::chdir(work.path().c_str()) != 0) return 126;
        ::setenv("HOME", work.path().c_str(), 1);
        ::setenv("TMPDIR", work.path().c_str(), 1);
        ::execl("/bin/sh", "sh", "-c", whole.c_str(), static_cast<char*>(nullptr));
        return 127;
      },
      std::chrono::seconds(100));
}

const char* need_tool(const char* name) { return has_tool(name) ? nullptr : "a tool of this test is not installed"; }

TEST(SeccompTools, PythonWithProcessesSocketsAndDatabases) {
  NEED(need_tool("python3"));
  constexpr const char* kScript = R"sh(cat > work.py <<'END'
import asyncio, os, signal, socket, sqlite3, subprocess
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import shared_memory

def square(x):
    return x * x

async def echo_once():
    async def serve(reader, writer):
        writer.write(await reader.read(5)); await writer.drain(); writer.close()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"hello")
    assert await reader.read(5) == b"hello"
    writer.close(); server.close()
    child = await asyncio.create_subprocess_exec("echo", "hi", stdout=asyncio.subprocess.PIPE)
    assert (await child.communicate())[0] == b"hi\n"

if __name__ == "__main__":
    with ProcessPoolExecutor(2) as pool: assert list(pool.map(square, range(5))) == [0, 1, 4, 9, 16]
    with ThreadPoolExecutor(8) as pool: assert sum(pool.map(square, range(100))) == 328350
    block = shared_memory.SharedMemory(create=True, size=4096); block.buf[0] = 1; block.close(); block.unlink()
    asyncio.run(echo_once())
    base = sqlite3.connect("work.db"); base.execute("pragma journal_mode=wal"); base.execute("create table t(a)"); base.commit()
    left, right = socket.socketpair(); left.send(b"x"); assert right.recv(1) == b"x"
    os.mkfifo("pipe"); os.memfd_create("m"); os.getloadavg(); os.sched_getaffinity(0)
    signal.setitimer(signal.ITIMER_REAL, 10); signal.setitimer(signal.ITIMER_REAL, 0)
    assert subprocess.run(["sh", "-c", "exit 7"]).returncode == 7
END
python3 work.py)sh";
  EXPECT_EQ(run_script(SyscallProfile::standard, kScript), Ended{.code = 0});
}

TEST(SeccompTools, PythonComputesUnderMinimal) {
  NEED(need_tool("python3"));
  constexpr const char* kScript = R"sh(python3 -c '
import json, socket, subprocess, threading
t = threading.Thread(target=lambda: None); t.start(); t.join()
assert subprocess.run(["echo", "hi"], capture_output=True).stdout == b"hi\n"
json.dump({"a": sum(range(1000))}, open("out.json", "w"))
try:
    socket.socket(); raise SystemExit("a socket was made")
except PermissionError:
    pass
')sh";
  EXPECT_EQ(run_script(SyscallProfile::minimal, kScript), Ended{.code = 0});
}

TEST(SeccompTools, GccCompilesAndTheResultRuns) {
  NEED(need_tool("gcc"));
  constexpr const char* kScript = R"sh(cat > a.c <<'END'
#include <pthread.h>
static void *count(void *n) { ++*(int *)n; return 0; }
int main(void) { int n = 0; pthread_t t; pthread_create(&t, 0, count, &n); pthread_join(t, 0); return n == 1 ? 0 : 1; }
END
gcc -O2 -pthread a.c -o a
./a
printf 'all: a.o\na.o: a.c\n\tgcc -c a.c\n' > Makefile
if command -v make > /dev/null; then make -s -j2; fi)sh";
  EXPECT_EQ(run_script(SyscallProfile::standard, kScript), Ended{.code = 0});
}

TEST(SeccompTools, NodeServesWorksAndSpawns) {
  NEED(need_tool("node"));
  constexpr const char* kScript = R"sh(cat > work.js <<'END'
const { Worker } = require("worker_threads"), http = require("http"), fs = require("fs"), cp = require("child_process");
const server = http.createServer((q, r) => r.end("ok")).listen(0, "127.0.0.1", () =>
  http.get({ port: server.address().port }, (answer) => answer.on("data", (data) => {
    if (String(data) !== "ok") process.exit(1);
    server.close();
    new Worker("process.exit(0)", { eval: true }).on("exit", () =>
      cp.exec("echo hi", (error, out) => {
        if (error || out !== "hi\n") process.exit(2);
        fs.watch(".", () => {}).close();
        fs.promises.readFile("work.js").then(() => fs.writeFileSync("done", ""));
      }));
  })));
END
node work.js
test -e done)sh";
  EXPECT_EQ(run_script(SyscallProfile::standard, kScript), Ended{.code = 0});
}

TEST(SeccompTools, GitCommitsClonesAndPacks) {
  NEED(need_tool("git"));
  constexpr const char* kScript = R"sh(export GIT_CONFIG_NOSYSTEM=1
git config --global user.email a@example.org; git config --global user.name a; git config --global init.defaultBranch main
git init -q one
cd one
for i in 1 2 3; do echo $i > f$i; git add .; git commit -qm "$i"; done
cd ..
git clone -q one two
cd two
git gc -q
git worktree add -q ../three
test "$(git log --oneline | wc -l)" = 3)sh";
  EXPECT_EQ(run_script(SyscallProfile::standard, kScript), Ended{.code = 0});
}

}  // namespace
}  // namespace osb::kernel_test
