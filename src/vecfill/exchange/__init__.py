"""Where vectors live besides files: objects of other libraries, tables and databases.

Each module serves one library, which is an extra of its name (``pip install 'vecfill[gensim]'``).
The library is imported when a function needs it. `vecfill.inputs.objects` reads what these modules
write, so that such objects are accepted wherever an `Embedding` is.
"""
