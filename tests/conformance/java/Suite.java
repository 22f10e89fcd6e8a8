// The published Java SDK against a real daemon. Run by test_java.py, which starts the daemon; prints one verdict a case.
import com.alibaba.opensandbox.sandbox.Sandbox;
import com.alibaba.opensandbox.sandbox.SandboxManager;
import com.alibaba.opensandbox.sandbox.config.ConnectionConfig;
import com.alibaba.opensandbox.sandbox.domain.exceptions.SandboxApiException;
import com.alibaba.opensandbox.sandbox.domain.exceptions.SandboxException;
import com.alibaba.opensandbox.sandbox.domain.models.execd.executions.Execution;
import com.alibaba.opensandbox.sandbox.domain.models.execd.executions.ExecutionHandlers;
import com.alibaba.opensandbox.sandbox.domain.models.execd.executions.RunCommandRequest;
import com.alibaba.opensandbox.sandbox.domain.models.execd.filesystem.ContentReplaceEntry;
import com.alibaba.opensandbox.sandbox.domain.models.execd.filesystem.MoveEntry;
import com.alibaba.opensandbox.sandbox.domain.models.execd.filesystem.SearchEntry;
import com.alibaba.opensandbox.sandbox.domain.models.execd.filesystem.SetPermissionEntry;
import com.alibaba.opensandbox.sandbox.domain.models.execd.filesystem.WriteEntry;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.SandboxFilter;
import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

public final class Suite {
  interface Case { void run() throws Exception; }

  static final String IMAGE = "opensandbox/code-interpreter:latest";
  static final UUID UNKNOWN = UUID.fromString("00000000-0000-4000-8000-000000000000");
  static final List<Sandbox> made = new ArrayList<>();
  static boolean failed = false;

  static ConnectionConfig config(Map<String, String> headers) {
    return ConnectionConfig.Companion.builder().domain(System.getenv("OSB_DOMAIN")).apiKey(System.getenv("OSB_API_KEY"))
        .protocol("http").requestTimeout(Duration.ofSeconds(30)).headers(headers).build();
  }

  static Sandbox create(Map<String, String> metadata) {
    Sandbox box = Sandbox.builder().image(IMAGE).entrypoint(List.of("tail", "-f", "/dev/null")).timeout(Duration.ofMinutes(2))
        .resource(Map.of("cpu", "1", "memory", "256Mi")).env("E2E_TEST", "true").metadata(metadata).readyTimeout(Duration.ofSeconds(60))
        .healthCheckPollingInterval(Duration.ofMillis(200)).connectionConfig(config(Map.of())).build();
    made.add(box);
    return box;
  }

  static void check(boolean fine, String what) {
    if (!fine) throw new AssertionError(what);
  }

  static void same(Object expected, Object actual) { check(expected.equals(actual), "expected " + expected + ", got " + actual); }

  static int statusOf(Case action) throws Exception {
    try {
      action.run();
    } catch (SandboxApiException error) {
      return error.getStatusCode();
    }
    throw new AssertionError("it did not reject");
  }

  static List<String> out(Execution done) { return done.getLogs().getStdout().stream().map(m -> m.getText()).collect(Collectors.toList()); }

  static void test(String name, Case body) {
    try {
      body.run();
      System.out.println("ok - " + name);
    } catch (Throwable error) {
      failed = true;
      System.out.println("not ok - " + name);
      java.io.StringWriter trace = new java.io.StringWriter();
      error.printStackTrace(new java.io.PrintWriter(trace));
      for (String line : trace.toString().split("\n")) System.out.println("# " + line);
    }
  }

  public static void main(String[] args) {
    Sandbox box = create(Map.of("tag", "e2e-test"));
    lifecycle(box);
    commands(box);
    files(box);
    manager();
    for (Sandbox one : made) {
      try {
        one.kill();
      } catch (SandboxException gone) {
        // the case killed it
      }
      one.close();
    }
    System.exit(failed ? 1 : 0);
  }

  static void lifecycle(Sandbox box) {
    test("a created sandbox is healthy and tells what it is", () -> {
      check(box.isHealthy(), "healthy");
      var info = box.getInfo();
      same(box.getId(), info.getId());
      same("Running", info.getStatus().getState());
      same(List.of("tail", "-f", "/dev/null"), info.getEntrypoint());
      same("e2e-test", info.getMetadata().get("tag"));
      Duration life = Duration.between(info.getCreatedAt(), info.getExpiresAt());
      check(life.toMinutes() >= 1 && life.toMinutes() <= 3, "lifetime " + life);
      same(info.getCreatedAt(), box.getInfo().getCreatedAt());
    });
    test("endpoints have the shape clients check", () -> {
      for (int port : new int[] {44772, 8080}) {
        String endpoint = box.getEndpoint(port).getEndpoint();
        check(!endpoint.contains("://") && endpoint.endsWith("/" + port), endpoint);
      }
    });
    test("metrics are those of the sandbox", () -> {
      var metrics = box.getMetrics();
      check(metrics.getCpuCount() == 1f, "cpus " + metrics.getCpuCount());
      check(metrics.getCpuUsedPercentage() >= 0 && metrics.getCpuUsedPercentage() <= 100, "percent " + metrics.getCpuUsedPercentage());
      check(metrics.getMemoryTotalInMiB() == 256f, "total " + metrics.getMemoryTotalInMiB());
      check(metrics.getMemoryUsedInMiB() > 0 && metrics.getMemoryUsedInMiB() <= 256, "used " + metrics.getMemoryUsedInMiB());
      check(Math.abs(metrics.getTimestamp() - System.currentTimeMillis()) < 120_000, "timestamp " + metrics.getTimestamp());
    });
    test("renew moves the expiry", () -> {
      OffsetDateTime before = box.getInfo().getExpiresAt();
      box.renew(Duration.ofMinutes(5));
      OffsetDateTime after = box.getInfo().getExpiresAt();
      check(after.isAfter(before), "later");
      long left = Duration.between(OffsetDateTime.now(), after).toMinutes();
      check(left >= 3 && left <= 6, "minutes left " + left);
    });
    test("a second client connects by id", () -> {
      try (Sandbox other = Sandbox.connector().sandboxId(box.getId()).connectionConfig(config(Map.of())).connect()) {
        same(List.of("connect-ok"), out(other.commands().run("echo connect-ok")));
      }
    });
    test("pause shows at once and resume brings it back", () -> {
      Sandbox paused = create(Map.of("tag", "pause"));
      paused.pause();
      same("Paused", paused.getInfo().getStatus().getState());
      check(!paused.isHealthy(), "a paused sandbox is not healthy");
      paused.resume();
      same("Running", paused.getInfo().getStatus().getState());
      same(List.of("resume-ok"), out(paused.commands().run("echo resume-ok")));
    });
    test("killed is gone", () -> {
      Sandbox short_lived = create(Map.of("tag", "kill"));
      short_lived.kill();
      same(404, statusOf(short_lived::getInfo));
      check(!short_lived.isHealthy(), "a killed sandbox is not healthy");
    });
    test("a one-word entrypoint with spaces is split", () -> {
      Sandbox pooled = Sandbox.builder().image(IMAGE).entrypoint(List.of("tail -f /dev/null")).timeout(Duration.ofMinutes(2))
          .resource(Map.of("cpu", "100m", "memory", "64Mi")).connectionConfig(config(Map.of())).build();
      made.add(pooled);
      same(List.of("tail", "-f", "/dev/null"), pooled.getInfo().getEntrypoint());
    });
  }

  static void commands(Sandbox box) {
    test("a command reports one init, its output and one completion", () -> {
      List<String> seen = java.util.Collections.synchronizedList(new ArrayList<>());
      var handlers = ExecutionHandlers.builder().onInit(e -> seen.add("init " + e.getId())).onStdout(m -> seen.add("out " + m.getText()))
          .onStderr(m -> seen.add("err")).onError(e -> seen.add("error")).onExecutionComplete(e -> seen.add("complete")).build();
      Execution done = box.commands().run(RunCommandRequest.builder().command("echo 'Hello OpenSandbox E2E'").handlers(handlers).build());
      same(List.of("init " + done.getId(), "out Hello OpenSandbox E2E", "complete"), seen);
      check(done.getError() == null && done.getLogs().getStderr().isEmpty(), "no error");
    });
    test("working directory and environment", () -> {
      same(List.of("/tmp"), out(box.commands().run(RunCommandRequest.builder().command("pwd").workingDirectory("/tmp").build())));
      same(List.of("true"), out(box.commands().run("echo $E2E_TEST")));
    });
    test("a failing and an unknown command have an error", () -> {
      Execution failing = box.commands().run("exit 7");
      same("CommandExecError", failing.getError().getName());
      same("7", failing.getError().getValue());
      Execution unknown = box.commands().run("nonexistent-command-xyz");
      same("127", unknown.getError().getValue());
      check(unknown.getLogs().getStderr().get(0).getText().contains("nonexistent-command-xyz"), "it names itself");
    });
    test("background returns at once", () -> {
      long began = System.nanoTime();
      Execution done = box.commands().run(RunCommandRequest.builder().command("sleep 30").background(true).build());
      check(System.nanoTime() - began < 10_000_000_000L, "at once");
      check(done.getId() != null && done.getError() == null, "an id and no error");
    });
    test("interrupt ends the stream with one terminal event", () -> {
      CountDownLatch started = new CountDownLatch(1);
      StringBuffer id = new StringBuffer();
      List<String> ends = java.util.Collections.synchronizedList(new ArrayList<>());
      var handlers = ExecutionHandlers.builder().onInit(e -> { id.append(e.getId()); started.countDown(); })
          .onError(e -> ends.add("error")).onExecutionComplete(e -> ends.add("complete")).build();
      var run = java.util.concurrent.CompletableFuture.supplyAsync(
          () -> box.commands().run(RunCommandRequest.builder().command("sleep 30").handlers(handlers).build()));
      check(started.await(10, TimeUnit.SECONDS), "it starts");
      box.commands().interrupt(id.toString());
      Execution done = run.get(20, TimeUnit.SECONDS);
      same(id.toString(), done.getId());
      same(1, ends.size());
    });
  }

  static WriteEntry entry(String path, Object data, int mode) { return WriteEntry.builder().path(path).data(data).mode(mode).build(); }

  static void files(Sandbox box) {
    String dir = "/tmp/fs_test_" + UUID.randomUUID().toString().substring(0, 8);
    String text = "Hello Filesystem!\nLine 2 with special chars: åäö\n";
    test("files: directories are made with their modes", () -> {
      box.files().createDirectories(List.of(WriteEntry.builder().path(dir).mode(755).build(), WriteEntry.builder().path(dir + "/sub").mode(755).build()));
      var info = box.files().readFileInfo(List.of(dir)).get(dir);
      same(755, info.getMode());
      same(dir, info.getPath());
    });
    test("files: text, bytes and streams are written in one call and read back", () -> {
      byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
      box.files().write(List.of(entry(dir + "/a.txt", text, 644), entry(dir + "/b.txt", bytes, 755),
          entry(dir + "/c.txt", new ByteArrayInputStream(bytes), 755)));
      same(text, box.files().readFile(dir + "/a.txt"));
      check(java.util.Arrays.equals(bytes, box.files().readByteArray(dir + "/b.txt")), "bytes");
      try (var stream = box.files().readStream(dir + "/c.txt")) {
        check(java.util.Arrays.equals(bytes, stream.readAllBytes()), "stream");
      }
      same("Hello File", box.files().readFile(dir + "/a.txt", "UTF-8", "bytes=0-9"));
      same((long) bytes.length, box.files().readFileInfo(List.of(dir + "/a.txt")).get(dir + "/a.txt").getSize());
    });
    test("files: search finds exactly what is there", () -> {
      Set<String> found = box.files().search(SearchEntry.builder().path(dir).pattern("*.txt").build()).stream().map(e -> e.getPath()).collect(Collectors.toSet());
      same(Set.of(dir + "/a.txt", dir + "/b.txt", dir + "/c.txt"), found);
    });
    test("files: permissions, replacing and moving", () -> {
      box.files().setPermissions(List.of(SetPermissionEntry.builder().path(dir + "/a.txt").mode(600).build()));
      same(600, box.files().readFileInfo(List.of(dir + "/a.txt")).get(dir + "/a.txt").getMode());
      box.files().replaceContents(List.of(ContentReplaceEntry.builder().path(dir + "/a.txt").oldContent("Hello").newContent("Goodbye").build()));
      check(box.files().readFile(dir + "/a.txt").startsWith("Goodbye"), "replaced");
      box.files().moveFiles(List.of(MoveEntry.builder().src(dir + "/a.txt").dest(dir + "/sub/a.txt").build()));
      check(box.files().readFile(dir + "/sub/a.txt").startsWith("Goodbye"), "moved");
      statusOf(() -> box.files().readFile(dir + "/a.txt"));
    });
    test("files: deleted is gone", () -> {
      box.files().deleteFiles(List.of(dir + "/b.txt"));
      statusOf(() -> box.files().readFile(dir + "/b.txt"));
      box.files().deleteDirectories(List.of(dir));
      same(List.of("OK"), out(box.commands().run("test ! -d " + dir + " && echo OK")));
    });
  }

  static Set<UUID> ids(SandboxManager manager, String tag, List<String> states, Map<String, String> more) {
    Map<String, String> metadata = new java.util.HashMap<>(more);
    metadata.put("tag", tag);
    var filter = SandboxFilter.builder().metadata(metadata).pageSize(50);
    if (states != null) filter.states(states);
    return manager.listSandboxInfos(filter.build()).getSandboxInfos().stream().map(info -> info.getId()).collect(Collectors.toSet());
  }

  static void manager() {
    SandboxManager manager = SandboxManager.builder().connectionConfig(config(Map.of())).build();
    test("list filters states by or, metadata by and", () -> {
      String tag = "mgr-" + UUID.randomUUID().toString().substring(0, 8);
      UUID first = create(Map.of("tag", tag, "team", "t1", "env", "prod")).getId();
      UUID second = create(Map.of("tag", tag, "team", "t1", "env", "dev")).getId();
      UUID third = create(Map.of("tag", tag, "env", "prod")).getId();
      manager.pauseSandbox(third);
      same(Set.of(first, second, third), ids(manager, tag, List.of("Running", "Paused"), Map.of()));
      same(Set.of(third), ids(manager, tag, List.of("Paused"), Map.of()));
      same(Set.of(first, second), ids(manager, tag, List.of("Running"), Map.of()));
      same(Set.of(first), ids(manager, tag, null, Map.of("team", "t1", "env", "prod")));
      same(new HashSet<UUID>(), ids(manager, tag, null, Map.of("team", "t2")));
      manager.resumeSandbox(third);
      same("Running", manager.getSandboxInfo(third).getStatus().getState());
      manager.renewSandbox(third, Duration.ofMinutes(10));
      manager.killSandbox(third);
      same(404, statusOf(() -> manager.getSandboxInfo(third)));
    });
    test("every operation on an unknown id rejects", () -> {
      same(404, statusOf(() -> manager.getSandboxInfo(UNKNOWN)));
      same(404, statusOf(() -> manager.pauseSandbox(UNKNOWN)));
      same(404, statusOf(() -> manager.resumeSandbox(UNKNOWN)));
      same(404, statusOf(() -> manager.killSandbox(UNKNOWN)));
      same(404, statusOf(() -> manager.renewSandbox(UNKNOWN, Duration.ofMinutes(5))));
    });
    test("a wrong key is refused", () -> {
      var wrong = ConnectionConfig.Companion.builder().domain(System.getenv("OSB_DOMAIN")).apiKey("not-the-key").protocol("http").build();
      try (SandboxManager other = SandboxManager.builder().connectionConfig(wrong).build()) {
        same(401, statusOf(() -> other.getSandboxInfo(UNKNOWN)));
      }
    });
    manager.close();
  }
}
