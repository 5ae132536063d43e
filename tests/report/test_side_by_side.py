from mxopt.report.side_by_side import SideBySide, lines_of


def before():
    a = 1
    for _ in range(a):
        print("<b>")
    return a


def after():
    a = 1
    b = 2
    for _ in range(a + b):
        print("<b>")
    return a


def test_the_lines_that_differ_are_marked():
    shown = SideBySide(before, after)
    assert shown.titles == ("before", "after")
    assert shown.changed == 3
    rows = list(shown.rows())
    assert rows[0] == (("a = 1", ""), ("a = 1", ""))
    assert ("for _ in range(a):", "old") in [left for left, _ in rows]
    assert ("b = 2", "new") in [right for _, right in rows]
    html = shown._repr_html_()
    assert html.count("rgba(220") == 1
    assert html.count("rgba(40") == 2
    assert "&lt;b&gt;" in html
    assert "- for _ in range(a):" in str(shown)


def test_of_a_function_its_body_is_shown():
    assert lines_of(before)[0] == "a = 1"
    assert lines_of(before)[-1] == "return a"
    assert lines_of("  x = 1\n  y = 2\n") == ["x = 1", "y = 2"]
    assert SideBySide("a", "a").changed == 0
