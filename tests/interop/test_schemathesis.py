"""schemathesis against the registry: requests made from its OpenAPI document, right ones and wrong ones.

Two of its checks are left out. Random texts are mostly no schemas, so right requests may be refused. Query parameters are read as
Confluent's registry reads them: each text but `true` is false, and unknown names are ignored, so wrong ones may be accepted.
"""

from __future__ import annotations

import json
import subprocess
import urllib.request
from pathlib import Path

import pytest

from barnabas.testing import Broker
from tests.interop.environments import environment

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
LEFT_OUT = "positive_data_acceptance,negative_data_rejection"
AVRO = {"schema": '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'}
RULE = {"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}
OTHERS = {
    "j": {"schema": '{"type":"object"}', "schemaType": "JSON"},
    ":.c:s": {
        "schema": '"string"',
        "metadata": {"properties": {"owner": "x"}},
        "ruleSet": {"domainRules": [RULE]},
    },
}


def test_no_answer_differs_from_the_document(tmp_path: Path) -> None:
    program = str(environment("schemathesis").parent / "schemathesis")
    with Broker() as broker:
        url = broker.schema_registry_url
        for subject, body in {"s": AVRO, **OTHERS}.items():
            headers = {"content-type": "application/json"}
            request = urllib.request.Request(f"{url}/subjects/{subject}/versions", json.dumps(body).encode(), headers)
            urllib.request.urlopen(request, timeout=30).close()
        command = [program, "--no-color", "run", f"{url}/openapi.json", "--generation-deterministic", "--phases=fuzzing"]
        command += ["--max-examples=20", f"--exclude-checks={LEFT_OUT}", "--continue-on-failure", "--warnings=off"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=800, check=False)
        with urllib.request.urlopen(f"{url}/subjects", timeout=30) as answer:
            assert answer.status == 200
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr
    assert "Errored" not in done.stdout, done.stdout[-10_000:]
