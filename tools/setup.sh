#!/usr/bin/env bash
# Installs everything that the Makefile's targets need: a virtual environment in .venv and, as root on Debian, the system packages.
# Does nothing if everything is installed. `tools/setup.sh interop` also installs the clients of other languages, `docs` the site
# generator, and `peers` the other systems in the benchmarks.
set -euo pipefail
cd "$(dirname "$0")/.."
wanted=${1:-}

say() { printf 'setup: %s\n' "$*" >&2; }

missing_packages() {
  local packages=()
  [ -n "$(find_python)" ] || packages+=(python3 python3-venv)
  has_venv || packages+=(python3-venv)
  command -v java >/dev/null || packages+=(openjdk-17-jre-headless)
  [ -f /usr/share/java/zookeeper.jar ] || packages+=(zookeeper)
  command -v kcat >/dev/null || packages+=(kcat)
  command -v psql >/dev/null || packages+=(postgresql-client)
  compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || packages+=(postgresql)
  [ -x /usr/sbin/mariadbd ] || packages+=(mariadb-server)
  command -v make >/dev/null || packages+=(make)
  if [ "$wanted" = interop ]; then
    command -v mvn >/dev/null || packages+=(maven)
    command -v go >/dev/null || packages+=(golang)
    command -v node >/dev/null || packages+=(nodejs npm)
  fi
  if [ "$wanted" = peers ]; then
    command -v mvn >/dev/null || packages+=(maven)
    command -v javac >/dev/null || packages+=(openjdk-17-jdk-headless)
    [ -x /usr/sbin/rabbitmq-server ] || packages+=(rabbitmq-server)
    command -v nats-server >/dev/null || packages+=(nats-server)
    command -v redis-server >/dev/null || packages+=(redis-server)
  fi
  printf '%s\n' "${packages[@]:-}" | sort -u | xargs
}

find_python() {
  local candidate
  for candidate in "${PYTHON:-}" python3 python3.11 python3.12 python3.13 python3.14; do
    [ -n "$candidate" ] && command -v "$candidate" >/dev/null || continue
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
}

has_venv() { local python; python=$(find_python); [ -n "$python" ] && "$python" -c 'import ensurepip' 2>/dev/null; }

install_packages() {
  local packages
  packages=$(missing_packages)
  [ -n "$packages" ] || return 0
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    say "missing on this machine: $packages. Install them (on Debian: apt-get install $packages) and run this again."
    exit 2
  fi
  say "installing $packages"
  keep_services_down
  apt-get update -qq
  # shellcheck disable=SC2086  # a list of packages, split into words
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
}

# Server packages start their servers at installation. This prevents it, because tests and benchmarks start the servers themselves.
keep_services_down() {
  [ ! -e /usr/sbin/policy-rc.d ] || return 0
  printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
  chmod +x /usr/sbin/policy-rc.d
  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
}

make_environment() {
  local stamp=.venv/.requirements python
  if [ -f "$stamp" ] && cmp -s requirements/dev.txt "$stamp" && cmp -s pyproject.toml "$stamp.project"; then return 0; fi
  python=$(find_python)
  [ -n "$python" ] || { say "no Python of at least 3.11 found; set PYTHON to one"; exit 2; }
  [ -x .venv/bin/python ] || "$python" -m venv .venv
  say "installing Python packages into .venv"
  .venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
  .venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
  cp requirements/dev.txt "$stamp"
  cp pyproject.toml "$stamp.project"
}

add_documentation() {
  local stamp=.venv/.requirements.docs
  if [ -f "$stamp" ] && cmp -s requirements/docs.txt "$stamp"; then return 0; fi
  say "installing the generator of the site into .venv"
  .venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/docs.txt
  cp requirements/docs.txt "$stamp"
}

# Like pip for an installed package: compiles to bytecode, so that the broker starts fast even if Python may not write bytecode. With a
# C compiler, the check of records becomes machine code; without one, the check runs in Python and is slower.
compile_source() {
  local records=src/barnabas/protocol/records code
  code=$(compgen -G "$records/_request_scan*.so" | head -1 || true)
  if [ -z "$code" ] || [ "$records/_request_scan.c" -nt "$code" ]; then
    .venv/bin/python tools/build_hook.py || say "records are checked in plain Python"
  fi
  .venv/bin/python -m compileall -q src
}

install_packages
make_environment
[ "$wanted" != docs ] || add_documentation
compile_source
