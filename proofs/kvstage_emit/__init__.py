"""Schemes as C++: a readable header out of the very functions that are proved.

Read `reading` first, which runs a scheme function over C++ expressions, then `writing`, which makes the header of what it finds.
`include` has the headers of the library, ready to use: a test holds them to what is emitted today.
"""
