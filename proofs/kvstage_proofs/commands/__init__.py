"""The command `kvstage`: a file for each subcommand, and `main`, which has them all.

Read `main` first. `outcomes` has the exit codes.
"""
