"""Files <-> Embedding, a module a format; the one atomic writer."""
