"""The pictures of the lessons, one function each. What is drawn is computed: by the library, the simulator, a virtual clock.

Each function gives a `Picture` (style.py): a drawing, its finding in words that are made from the same data, and the data as a
table, which is what tests look at.
"""
