"""The header of a scheme: its functions, what is demanded of their arguments, and the verdicts on top.

Read `header` first, then `function`. `operations` has what each operation is in C++, and `arguments` what a parameter is.
"""
