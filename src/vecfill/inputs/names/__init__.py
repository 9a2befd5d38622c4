"""Names of entities: matched with words, and what they say about vectors.

- `folding`: Names -> what is left of them when spelling does not matter.
- `vocabulary`: The words of a whole embedding file and their vectors, or an even sample of a larger
  one.
- `matching`: Entity names -> vocabulary words, and a report of how each was found.
- `match_report`: How each entity's word was found: the result of `match_names`; and which words are
  not to be relied on.
- `kept_names`: Very many names in two arrays, with an index: found without holding them as texts.
- `ngrams`: Names -> hashed character n-grams, many thousand names at once.
- `spelling_model`: A model of spelling as files of models of earlier versions hold it.
- `near_spellings`: What the words of the vocabulary that are spelled most like a name say about
  its vector.
- `parts`: What the parts of names of several words make of the whole, by the vectors of these
  words.
- `siblings`: Inflected siblings: words of the vocabulary that are another form of an entity's name.
- `readers`: How the names of entities that come later are read.
- `domains`: Names of entities -> sources: what their spelling, the words spelled most like them and
  their parts say about their vectors.
"""
