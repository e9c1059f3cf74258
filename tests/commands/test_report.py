"""samix report: a table in the terminal and one page that needs no other file."""


def test_value_table_and_page(call, trained, write_run, tmp_path):
    cutmix = write_run("demo/cutmix", "cutmix", top1=61.25)
    out = call("report", trained, cutmix, "--out", "page.html")
    assert "61.25" in out
    assert "page: page.html" in out
    page = (tmp_path / "page.html").read_text()
    assert "<html" in page and "data:image/png;base64," in page
    assert "cutmix" in page.lower() and "samix" in page.lower()
    assert "<link" not in page and 'src="http' not in page


def test_value_the_page_lies_in_the_first_folder(call, write_run, tmp_path):
    write_run("demo/plain", "plain")
    call("report", "runs/demo/plain")
    assert (tmp_path / "runs" / "demo" / "plain" / "report.html").exists()


def test_error_a_folder_without_runs(fail, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "empty" in fail("report", "empty")


def test_value_tables_for_a_text_and_no_page(call, write_run, tmp_path):
    folder = write_run("demo/cutmix", "cutmix", top1=61.25)
    assert "| cutmix | 1 | 61.25 |" in call("report", folder, "--format", "md")
    assert r"cutmix & 1 & 61.25" in call("report", folder, "--format", "latex")
    assert not list(tmp_path.rglob("*.html"))


def test_error_formats(fail, write_run):
    folder = write_run("demo/cutmix", "cutmix")
    assert "unknown format 'latx'. Did you mean 'latex'?" in fail("report", folder, "--format", "latx")
    assert "--out is the page's" in fail("report", folder, "--format", "md", "--out", "a.html")
