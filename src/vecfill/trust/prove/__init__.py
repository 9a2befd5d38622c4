"""What hidden known rows prove about the imputed ones: confidence, bounds, and how they look.

- `hidden`: Known rows hidden and imputed again: what could be seen of them, and what was true.
- `signals`: What can be seen of an imputed row without its truth; each signal is one entry of
  `SIGNALS`.
- `strata`: Kinds of entities that are judged apart: a proof on one kind need not hold for another.
- `confidence`: How far to trust each imputed row: what to expect, and bounds.
- `relation`: Signals of hidden rows -> what to expect of others, and how far truths scatter about
  it.
- `bounds`: Hidden rows -> expectation and lower bound of others, kind by kind.
- `learning`: Hidden rows -> how far to trust others: the one way from signals and kinds to
  confidence.
- `pattern`: How well rows of a source restore known vectors, and whether unknown rows follow
  their pattern.
- `leaks`: Sources that know the answer for known entities and nothing about the unknown ones.
- `gaps`: Which facts rows lack, and the same rows without further ones.
- `lessons`: What hidden rows without some facts teach about rows that lack the same facts.
- `reach`: Rows farther from the known ones than hidden rows are: what can be learnt of them.
- `limits`: Confidence where rows lack facts, or are far from the known ones: one limit after
  the other.
- `proof`: What hidden known rows prove about the imputed ones.
- `translated`: How far to trust vectors that were mapped from another embedding, cheaply enough for
  millions.
- `sanity`: What a person sees who looks at imputed vectors: are they told apart, and what is near
  them.
"""
