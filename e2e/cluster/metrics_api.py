#!/usr/bin/env python3
"""Serves the API of external metrics with one metric, jobs_queued, whose value is in a file.

    metrics_api.py VALUE_FILE

Its certificate lives as long as the process, and nobody verifies it: only loopback hears it."""

import datetime
import json
import ssl
import subprocess
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

VERSION = "external.metrics.k8s.io/v1beta1"
METRIC = "jobs_queued"


def resources() -> dict:
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": VERSION, "resources": [
        {"name": METRIC, "singularName": "", "namespaced": True, "kind": "ExternalMetricValueList",
         "verbs": ["get"]}]}


def values(value: str) -> dict:
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"kind": "ExternalMetricValueList", "apiVersion": VERSION, "metadata": {}, "items": [
        {"metricName": METRIC, "metricLabels": {}, "timestamp": now, "value": value}]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.split("?")[0].rstrip("/")
        if path == f"/apis/{VERSION}":
            self.answer(200, resources())
        elif path.startswith(f"/apis/{VERSION}/namespaces/") and path.endswith(f"/{METRIC}"):
            self.answer(200, values(Path(sys.argv[1]).read_text().strip()))
        else:
            self.answer(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404})

    def answer(self, code: int, body: dict) -> None:
        text = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *arguments: object) -> None:
        """Says nothing of a request."""


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile(suffix=".pem") as certificate:
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "1", "-subj", "/CN=localhost", "-keyout", certificate.name, "-out",
             certificate.name + ".crt"], check=True, capture_output=True)
        crt = Path(certificate.name + ".crt")
        context.load_cert_chain(crt, certificate.name)
        crt.unlink()
    server.socket = context.wrap_socket(server.socket, server_side=True)
    print(f"serving on 127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
