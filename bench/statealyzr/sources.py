"""Fetches sources from Debian's archive and builds bitcode of them.

Package lists are this bench's own, so that the system's are left alone. Everything is kept in the folder of
CATENA_STATEALYZR (default: target/statealyzr).
"""

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = pathlib.Path(os.environ.get("CATENA_STATEALYZR", ROOT / "target/statealyzr")).resolve()


def apt(*arguments):
    """Run apt-get with lists of our own."""
    lists = WORK / "apt"
    (lists / "lists/partial").mkdir(parents=True, exist_ok=True)
    archive = "http://deb.debian.org/debian bookworm main\n"
    (lists / "sources.list").write_text(f"deb-src {archive}deb {archive}")
    options = [f"Dir::Etc::sourcelist={lists}/sources.list", "Dir::Etc::sourceparts=/dev/null",
               f"Dir::State::lists={lists}/lists", "Dir::Cache::pkgcache=", "Dir::Cache::srcpkgcache=",
               "APT::Sandbox::User=root"]
    flags = [part for option in options for part in ("-o", option)]
    if not (lists / "ready").exists() and arguments != ("update",):
        if apt("update").returncode == 0:
            (lists / "ready").touch()
    return subprocess.run(["apt-get", *flags, "-qq", *arguments], cwd=WORK, capture_output=True, text=True)


def source(package):
    """Return the folder of a package's sources, fetched at need, or None.

    Where the archive has the authors' file but not Debian's changes, the former is enough."""
    folder = WORK / package
    if folder.is_dir():
        return folder
    apt("source", "--download-only", package)
    described = sorted(WORK.glob(f"{package}_*.dsc"))
    if described:
        done = subprocess.run(["dpkg-source", "--no-check", "-x", described[-1].name, folder.name], cwd=WORK,
                              capture_output=True)
        if done.returncode != 0:
            shutil.rmtree(folder, ignore_errors=True)
    if not folder.is_dir():
        original = sorted(f for f in WORK.glob(f"{package}_*.orig.tar.*") if f.suffix != ".asc")
        if not original:
            return None
        folder.mkdir()
        subprocess.run(["tar", "xf", original[-1], "-C", folder, "--strip-components=1"], check=True)
    return folder


def libraries(packages):
    """Unpack packages that a program is built against, and return where."""
    folder = WORK / "libraries"
    for package in packages:
        if not list(WORK.glob(f"{package}_*.deb")):
            apt("download", package)
        for file in WORK.glob(f"{package}_*.deb"):
            subprocess.run(["dpkg", "-x", file, folder], check=True)
    return folder


def bitcode(name, program):
    """Return a program's bitcode, built at need, or None with a message."""
    folder = source(program.package)
    if folder is None:
        print(f"{name}: left out, the archive does not have its source", file=sys.stderr)
        return None
    return built(name, folder, program.build.format(libraries=libraries(program.needs)), program.bitcode)


def built(name, folder, command, file):
    """Return the bitcode that a command makes in a folder, or None with a message."""
    if not (folder / file).exists():
        done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)
        if not (folder / file).exists():
            print(f"{name}: cannot be built: {(done.stdout + done.stderr)[-500:]}", file=sys.stderr)
            return None
    return folder / file
