"""EC2's instance metadata service, version 2, for one instance: a token first, then what is asked."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = "a-session-token"


@contextmanager
def metadata_service(instance_id: str, tags: Mapping[str, str]) -> Iterator[str]:
    """Its URL."""
    document = {
        "instanceId": instance_id,
        "privateIp": "127.0.0.1",
        "pendingTime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
    }
    answers = {f"meta-data/tags/instance/{name}": value for name, value in tags.items()}
    answers["dynamic/instance-identity/document"] = json.dumps(document)

    class Service(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            is_asked_right = self.path == "/latest/api/token" and "X-aws-ec2-metadata-token-ttl-seconds" in self.headers
            self._answer(200 if is_asked_right else 400, TOKEN)

        def do_GET(self) -> None:
            if self.headers.get("X-aws-ec2-metadata-token") != TOKEN:
                return self._answer(401, "")
            found = answers.get(self.path.removeprefix("/latest/"))
            return self._answer(404 if found is None else 200, found or "")

        def _answer(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
