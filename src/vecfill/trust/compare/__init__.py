"""What else one could have done, on the same hidden rows.

- `rivals`: What a user could do instead, each tuned on the rows that it may see.
- `competitors`: Everything that `auto` is compared with in one fold: the paper, tuned rivals,
  single sources.
- `evaluation`: Known rows hidden and imputed again, against rivals.
"""
