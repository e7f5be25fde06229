# SPDX-License-Identifier: Apache-2.0
"""Installs the built library, moves the installed prefix, and builds and runs the clients against it.

usage: run_client.py install WORK CMAKE BUILD     installs into WORK/first and moves that to WORK/moved
       run_client.py LANGUAGE WORK CMAKE MODEL    builds and runs one client; all but c are compared with c's output

Exit 77: a tool that the language needs is not installed.
"""
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def call(*command, **options):
    run = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if run.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{run.stdout}\nexit status {run.returncode}")
    return run.stdout


def need(*tools):
    missing = [tool for tool in tools if not shutil.which(tool)]
    if missing:
        print(f"skipped: {', '.join(missing)} not installed")
        sys.exit(77)


def only(paths, what):
    found = sorted(set(paths))
    if len(found) != 1:
        sys.exit(f"expected one {what} in the installed prefix, found {found}")
    return found[0]


def install(work, cmake, build):
    shutil.rmtree(work, ignore_errors=True)
    call(cmake, "--install", build, "--prefix", work / "first")
    (work / "first").rename(work / "moved")  # whatever remembers its place now fails
    library = only((path.resolve() for path in (work / "moved").rglob("librlx.so")), "librlx.so")
    doc = only((path.parent for path in (work / "moved").rglob("LICENSE")), "LICENSE")
    for path in ("CHANGELOG.md", "docs/ops.md", "docs/semantics.md", "examples/custom_op.c", "notices"):
        if not (doc / path).exists():
            sys.exit(f"{path} is not installed beside LICENSE")
    for text in list((work / "moved").rglob("*.pc")) + list((work / "moved").rglob("*.cmake")):
        if str(work / "first") in text.read_text(encoding="utf-8"):
            sys.exit(f"{text} names the folder that it was installed into")
    return f"installed {library.name} and moved it\n"


def environment(moved):
    """Where pkg-config and the loader look; nothing of the build folder."""
    pkgconfig = only((path.parent for path in moved.rglob("rlx.pc")), "rlx.pc")
    library = only((path.parent for path in moved.rglob("librlx.so")), "librlx.so")
    return {**os.environ, "PKG_CONFIG_PATH": str(pkgconfig), "LD_LIBRARY_PATH": str(library)}


def c(folder, build, moved, cmake, env):
    need("pkg-config", "cc")
    flags = call("pkg-config", "--cflags", "--libs", "rlx", env=env).split()
    call("cc", "-std=c89", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", folder / "client.c", "-o", build / "client", *flags)
    return [build / "client"]


def cpp(folder, build, moved, cmake, env):
    need("ninja", "c++")
    call(cmake, "-G", "Ninja", "-S", folder, "-B", build, f"-DCMAKE_PREFIX_PATH={moved}")
    call(cmake, "--build", build)
    return [build / "client"]


def rust(folder, build, moved, cmake, env):
    need("bindgen", "rustc", "pkg-config")
    header, library = (call("pkg-config", f"--variable={kind}", "rlx", env=env).strip() for kind in ("includedir", "libdir"))
    sizes = [flag for flag in ["--size_t-is-usize"] if flag in call("bindgen", "--help")]  # since 0.61 they always are
    call("bindgen", f"{header}/rlx.h", "--output", build / "rlx.rs", "--allowlist-function", "rlx_.*", "--allowlist-var", "RLX_.*",
         "--default-macro-constant-type", "signed", *sizes)
    call("rustc", "--edition=2021", folder / "client.rs", "-o", build / "client", "-L", library, "-l", "rlx",
         env={**env, "OUT_DIR": str(build)})
    return [build / "client"]


def go(folder, build, moved, cmake, env):
    need("go", "pkg-config")
    call("go", "build", "-o", build / "client", ".", cwd=folder, env={**env, "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"})
    return [build / "client"]


def python(folder, build, moved, cmake, env):
    return [sys.executable, folder / "client.py", only(moved.rglob("librlx.so"), "librlx.so")]


LANGUAGES = {function.__name__: function for function in (c, cpp, rust, go, python)}


def main(what, work, cmake, path):
    work = pathlib.Path(work)
    if what == "install":
        print(install(work, cmake, path), end="")
        return
    build = work / what
    build.mkdir(parents=True, exist_ok=True)
    env = environment(work / "moved")
    printed = call(*LANGUAGES[what](HERE / what, build, work / "moved", cmake, env), path, env=env)
    print(printed, end="")
    if "\nsize 3\n" not in printed or "\nerror RLX_E_" not in printed:
        sys.exit("expected a run at size 3 and an error")
    if what == "c":
        (work / "expected.txt").write_text(printed, encoding="utf-8")
    elif printed != (work / "expected.txt").read_text(encoding="utf-8"):
        sys.exit(f"this is not what the client in C prints, see {work / 'expected.txt'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
