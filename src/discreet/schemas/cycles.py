"""Finds the vertices of a graph that lie on a cycle. Does not recurse, so the graph may be of any depth."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

V = TypeVar("V", bound=Hashable)


def circles(edges: Mapping[V, Iterable[V]]) -> dict[V, int]:
    """Each vertex on a circle, and the number of the strongly connected component that it is in (Tarjan 1972)."""
    index: dict[V, int] = {}
    low: dict[V, int] = {}
    component: dict[V, int] = {}
    stack: list[V] = []
    on_stack: set[V] = set()
    for start in edges:
        if start in index:
            continue
        work: list[tuple[V, Iterator[V]]] = [(start, iter(edges[start]))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            vertex, rest = work[-1]
            for target in rest:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(edges.get(target, ()))))
                    break
                if target in on_stack:
                    low[vertex] = min(low[vertex], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[vertex])
                if low[vertex] == index[vertex]:
                    _close(vertex, stack, on_stack, component, edges)
    return component


def _close(
    vertex: V, stack: list[V], on_stack: set[V], component: dict[V, int], edges: Mapping[V, Iterable[V]]
) -> None:
    members: list[V] = []
    while not members or members[-1] != vertex:
        members.append(stack.pop())
        on_stack.discard(members[-1])
    if len(members) > 1 or vertex in edges.get(vertex, ()):
        number = len(component)
        component.update(dict.fromkeys(members, number))
