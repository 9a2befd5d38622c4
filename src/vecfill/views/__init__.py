"""Numbers -> pictures: a page for a browser, figures for papers."""
