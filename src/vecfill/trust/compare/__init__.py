"""What else one could have done, on the same hidden rows.

- `rivals`: What a user could do instead, each method tuned on the rows that it may see.
- `evaluation`: Known rows hidden and imputed again, against rivals.
"""
