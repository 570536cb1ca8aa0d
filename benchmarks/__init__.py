"""Speed and memory of `lessonlib` beside the official SDKs, on the same bytes.

    make bench                        everything: half an hour on a machine that does nothing else
    python -m benchmarks --short      the same with shorter streams
    python -m benchmarks --only reading,growth

The results go into a folder (`--out`, by default `build/benchmarks`): `results.json`, from which `results.md` and
`results.svg` are made. docs/benchmarks.md says how is measured and what came of it.

    streams.py      what is read: answers, written as each of the five wires would send them
    contestants.py  who reads: lessonlib, httpx-sse, the floor;  sdks.py: the vendors' own packages
    timing.py       how is measured: alternating, medians, every result checked
    suites.py       what is measured in this process;  apart.py: what needs a process of its own;  loopback.py: with a server
    report.py       the table and the ratios, made of the JSON;  picture.py: the drawing

Nothing here is imported by the library, and no test looks at a time.
"""
