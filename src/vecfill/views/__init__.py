"""Numbers -> pictures: a page for a browser, figures for papers.

Figures:

- `plots`: Numbers -> Matplotlib figures, for papers and notebooks.

A page:

- `report`: A result -> one HTML page that needs nothing but a browser.
- `page_data`: A result -> the plain values that its page shows, of bounded size and cost.
- `trust_data`: What a page says about trust: the verdict, proofs, sources, kinds of entities,
  confidence.
- `map_data`: Where entities lie on the map of a page, and which of them belong together.
- `columns`: A user's table -> the columns of it that a page shows, and where entities lie on the
  Earth.
- `made`: A manifest -> the lines of it that a page shows, of bounded size whatever it holds.
"""
