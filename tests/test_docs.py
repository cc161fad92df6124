"""The examples in the documents and docstrings run and print what is said there.

Every ```python block of a document is run as a program, the blocks of one document in order and in
one module; a ```text block right after one is its output.
"""

import contextlib
import doctest
import importlib
import io
import linecache
import re
import runpy
import tempfile
import warnings
from pathlib import Path

import pytest

import npjit

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n*^```text\n(.*?)^```$)?", re.M | re.S)


def run_blocks(document: Path, folder: Path) -> None:
    namespace = {"__name__": document.stem}
    for number, (code, output) in enumerate(BLOCK.findall(document.read_text())):
        path = folder / f"{document.stem}_{number}.py"
        path.write_text(code)
        linecache.checkcache(str(path))
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("error", npjit.NpjitWarning)  # examples run compiled
            exec(compile(code, str(path), "exec"), namespace)
        if output:
            assert printed.getvalue().strip() == output.strip(), code


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_examples(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_blocks(document, tmp_path)


def test_wrong_output_is_seen(tmp_path):
    document = tmp_path / "page.md"
    document.write_text("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n")
    with pytest.raises(AssertionError):
        run_blocks(document, tmp_path)


def test_quoted_rows_stand_in_the_table():
    table = "".join(path.read_text() for path in ROOT.glob("npjit/ops/*.py"))
    for page in ("README.md", "docs/adding_an_op.md"):
        quoted = re.findall(r"^```py\n(.*?)\n```$", (ROOT / page).read_text(), re.M | re.S)
        assert quoted
        for row in quoted:
            assert row in table, page


def test_links_between_documents():
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_coverage_page_is_the_tables():
    script = runpy.run_path(str(ROOT / "docs" / "coverage.py"))
    if f"for NumPy {script['VERSION']}.\n" not in script["PAGE"].read_text():
        pytest.skip("the page is of another NumPy")
    assert script["page"]() == script["PAGE"].read_text(), "run python docs/coverage.py"


WITH_EXAMPLES = [p for p in sorted(ROOT.glob("npjit/**/*.py")) if ">>> " in p.read_text()]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.stem)
def test_examples_in_docstrings(path):
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried and not failed


@pytest.mark.parametrize("example", sorted(ROOT.glob("examples/*.py")), ids=lambda path: path.stem)
def test_example_runs(example, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # what an example leaves goes with it
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out
