"""kvstage's model: schemes, axioms, traces and the simulator in plain Python, and the z3 model of them."""
