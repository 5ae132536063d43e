import summary

REPORT = """<testsuites><testsuite>
<testcase classname="a" name="runs"/>
<testcase classname="a" name="mpi"><skipped message="no MPI: make test-cluster"/></testcase>
<testcase classname="a" name="mpi2"><skipped message="no MPI: make test-cluster"/></testcase>
<testcase classname="a" name="wheels"><skipped message="needs mxnet-cu112"/></testcase>
{more}
</testsuite></testsuites>"""
WHEELS = """<testsuites><testsuite>
<testcase classname="a" name="wheels"/></testsuite></testsuites>"""
FAILED = '<testcase classname="a" name="bad"><failure message="1 != 2&#10;more"/></testcase>'


def write(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


def test_what_one_environment_skips_and_another_runs_has_run(tmp_path, capsys):
    paths = [write(tmp_path, "all", REPORT.format(more="")), write(tmp_path, "cu112", WHEELS)]
    assert summary.main(paths) == 0
    assert capsys.readouterr().out.splitlines() == [
        "2 passed, 0 failed, 2 skipped in every environment",
        "  skipped 2: no MPI: make test-cluster",
    ]


def test_a_failure_or_a_missing_report_is_named_and_fails(tmp_path, capsys):
    failed = write(tmp_path, "all", REPORT.format(more=FAILED))
    assert summary.main([failed]) == 1
    assert "  failed: a.bad: 1 != 2" in capsys.readouterr().out.splitlines()
    passed = write(tmp_path, "all", REPORT.format(more=""))
    assert summary.main([passed, tmp_path / "numpy2"]) == 1
    assert f"  no report: {tmp_path / 'numpy2'}; its tests did not end" in capsys.readouterr().out


def test_an_error_after_a_test_has_passed_is_a_failure(tmp_path):
    twice = '<testcase classname="a" name="runs"><error message="teardown"/></testcase>'
    path = write(tmp_path, "all", REPORT.format(more=twice))
    assert summary.outcomes(path)["a.runs"] == ("failed", "teardown")
