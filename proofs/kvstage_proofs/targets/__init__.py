"""From what a user names to obligations: names of the catalogue, and schemes in files.

Read `names` first. `user_file` loads a file, `guard` turns what goes wrong in it into errors with a line.
"""
