"""samix report: a table in the terminal and one page that needs no other file."""

import json


def test_value_table_and_page(call, trained, small, tmp_path):
    call("train", "demo/cutmix", "--out", "cutmix/0", "--quiet", *small)
    out = call("report", trained, "cutmix", "--out", "page.html")
    top1 = json.loads((tmp_path / "cutmix" / "0" / "summary.json").read_text())["top1"]
    assert f"{top1:.2f}" in out or f"{top1:.1f}" in out
    assert "page: page.html" in out
    page = (tmp_path / "page.html").read_text()
    assert "<html" in page and "data:image/png;base64," in page
    assert "cutmix" in page.lower() and "samix" in page.lower()
    assert "<link" not in page and 'src="http' not in page


def test_value_the_page_lies_in_the_first_folder(call, small, tmp_path):
    call("train", "demo/plain", "--out", "plain/0", "--quiet", *small, "--epochs", 1)
    call("report", "plain")
    assert (tmp_path / "plain" / "report.html").exists()


def test_error_a_folder_without_runs(fail, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "empty" in fail("report", "empty")
