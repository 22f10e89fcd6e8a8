"""A daemon that serves gRPC, and the client that grpcio-tools makes from spec/*.proto."""
import importlib
import sys
import tempfile
from pathlib import Path

import grpc
from grpc_tools import protoc

import harness

SPEC = harness.ROOT / "spec"
INCLUDE = Path(protoc.__file__).parent / "_proto"  # what protoc itself brings along
SERVICE = "opensandbox.session.v1.SessionService"


def generate_into(folder):
    code = protoc.main(["protoc", f"-I{SPEC}/opensandbox/session/v1", f"-I{INCLUDE}", f"--python_out={folder}", f"--grpc_python_out={folder}", "session.proto"])
    assert code == 0


def generate():
    """The modules (messages, stubs), made once a run."""
    if "session_pb2" not in sys.modules:
        with tempfile.TemporaryDirectory(prefix="osb-stubs-") as folder:
            generate_into(folder)
            sys.path.insert(0, folder)
            try:
                importlib.import_module("session_pb2_grpc")
            finally:
                sys.path.remove(folder)
    return sys.modules["session_pb2"], sys.modules["session_pb2_grpc"]


class GrpcDaemon(harness.Daemon):
    def __init__(self, name="grpc", config=""):
        self.grpc_port = harness.free_port()
        super().__init__(name, f"grpc:\n  enabled: true\n  port: {self.grpc_port}\n{config}")

    def start(self):
        super().start()
        self.metadata = (("open-sandbox-api-key", self.key),)
        return self

    @property
    def session_port(self):
        return int(self.sessions_url.split(":")[2].split("/")[0])

    def channel(self, *options):
        return grpc.insecure_channel(f"127.0.0.1:{self.grpc_port}", options=options)

    def door(self):
        """The pid of this daemon's opensandbox-grpc, or None."""
        for pid, exe, command in harness.processes():
            if Path(exe).name.startswith("opensandbox-grpc") and any(self.instance in word for word in command):
                return pid
        return None
