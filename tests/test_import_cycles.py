"""No module imports itself by way of others, not even for the type checker alone."""

from __future__ import annotations

import graphlib

import grimp


def cycle_in(imports: dict[str, set[str]]) -> list[str]:
    """One cycle of these imports; none if they can be put in an order."""
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def test_there_is_no_import_cycle() -> None:
    graph = grimp.build_graph("realtime_tts", "tts_scheduler")
    imports = {one: graph.find_modules_directly_imported_by(one) for one in graph.modules}
    assert len(imports) > 300, "the packages were found"
    assert cycle_in(imports) == []


def test_a_cycle_would_be_found() -> None:
    assert cycle_in({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert {*cycle_in({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})} == {"a", "b", "c"}
