"""For the people who build kvstage: budgets of solver steps, other versions of z3, shuffled copies of queries."""
