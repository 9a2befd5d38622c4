"""What else one could have done, on the same hidden rows.

- `rivals`: What a user could do instead, each method tuned on the rows that it may see.
- `migration`: Stay on the old embedding, translate, or re-embed: what a search finds under each.
- `options`: What a search finds under each option, fold by fold, among documents with both vectors.
- `evaluation`: Known rows hidden and imputed again, against rivals.
"""
