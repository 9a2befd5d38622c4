"""Whether an imputed vector is any good: held-out proof, choice, confidence, explanation."""
