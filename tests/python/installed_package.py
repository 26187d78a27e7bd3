"""The package as it is published, in an environment that has nothing else. It downloads, so .ci/proof runs it."""

import pathlib
import subprocess
import sys
import tarfile
import venv

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "clients" / "python"
PROGRAM = """
import hearback

with hearback.Hearback() as hb:
    turn = hb.project("support").conversation("c-1").begin("How do I return an item?")
    turn.complete("Within 30 days.")
    print(turn.ok("thanks").wait(30, processed=True).status)
"""


def test_the_wheel_runs_in_an_empty_environment(tmp_path, bundle, user):
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), str(PACKAGE)]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    (source,), (wheel,) = tmp_path.glob("*.tar.gz"), tmp_path.glob("*.whl")
    names = {pathlib.PurePath(name).name for name in tarfile.open(source).getnames()}
    assert {"README.md", "CHANGELOG.md", "LICENSE", "py.typed", "generate.py"} <= names

    venv.create(tmp_path / "environment", with_pip=True)
    python = tmp_path / "environment" / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel]
    subprocess.run(install, check=True)
    subprocess.run([python, "-m", "pip", "check"], check=True, stdout=subprocess.DEVNULL)

    environment = {"HEARBACK_URL": bundle.url, "HEARBACK_TOKEN": bundle.token(user)}
    printed = subprocess.check_output([python, "-c", PROGRAM], env=environment, cwd=tmp_path, text=True)
    assert printed == "processed\n"
