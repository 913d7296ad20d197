"""The notebook runs from beginning to end, and shows what it says."""

import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).resolve().parents[1] / "notebooks" / "first.ipynb"


def test_the_notebook_runs(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) <= 10
    assert not any(cell.outputs for cell in code), "the repository keeps no outputs"
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    shown = [output for cell in code for output in cell.outputs]
    html = [output.data.get("text/html", "") for output in shown if "data" in output]
    assert any("<progress" in text or "done" in text for text in html), "the bar"
    assert any("iframe" in text and "srcdoc" in text for text in html), "the report"
    assert any("<table" in text and "pressure" in text for text in html), "the schema"
    assert (tmp_path / "model.json").exists()
    assert (tmp_path / "model.onnx").exists()
    if kept := os.environ.get("HEDA_NOTEBOOK_OUT"):
        nbformat.write(notebook, kept)
