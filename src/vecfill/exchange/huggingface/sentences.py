"""Sentences in which a model is shown new tokens, and ordinary ones that have none.

They are plain and about many things, because nothing is known of the texts that the model will
read. Texts of one's own are better: pass them as a corpus.
"""

from __future__ import annotations

TEMPLATES = (
    "{}",
    "This is about {}.",
    "What is {}, and why does it matter?",
    "The report mentions {} twice.",
    "They had never heard of {} before.",
    "{} was discussed at length in the first chapter.",
    "He compared {} with everything else on the list.",
    "New results on {} were published last week.",
)
"""Where new tokens are fitted to what the model reads in their pieces."""

HELD_OUT = (
    "She asked whether {} could be the reason.",
    "Most people know little of {} until they need it.",
)
"""Where it is seen whether fitting goes on helping."""

JUDGED = (
    "There was a long talk with {} as its subject.",
    "The second part explains how {} came to be known.",
    "Without {} the story would have ended differently.",
)
"""Where the harm check looks, and nothing is fitted."""

ORDINARY = (
    "The train to the coast leaves at seven in the morning and arrives before noon.",
    "Water boils at a lower temperature in the mountains than at sea level.",
    "She put the letters back into the drawer and locked it.",
    "Most of the houses in this street were built before the war.",
    "The committee will meet again next week to decide on the budget.",
    "A good map shows not only where things are, but how to get there.",
    "He had worked in the same office for thirty years when it closed.",
    "Prices rose by three percent last year, a little less than wages did.",
    "The children played in the garden until it was too dark to see the ball.",
    "Scientists measured how fast the ice melts at the edge of the glacier.",
    "If the light is red, press the button and wait for ten seconds.",
    "The museum has a collection of clocks from the eighteenth century.",
    "You can pay by card or in cash when you pick up the order.",
    "After the rain the river rose and flooded the lower fields.",
    "The team won the first match and lost the next three.",
    "Her second novel is about two brothers who run a small hotel.",
    "Bread is made of flour, water, salt and yeast.",
    "The new law gives tenants more time to answer a notice.",
    "We walked along the harbor and watched the boats come in.",
    "Doctors advise adults to sleep seven to nine hours a night.",
    "The program reads a file, counts the words and prints the result.",
    "In spring the farmers plant beans and corn between the rows of trees.",
    "The engine stopped twice on the way up, but never on the way down.",
    "Many birds fly south in autumn and return when the days grow longer.",
    "The company plans to open a second factory near the border.",
    "He asked for the bill, paid and left without a word.",
    "Old songs are easier to remember than new ones.",
    "The bridge was closed for repairs, so traffic had to take the tunnel.",
    "Students who finish early may read quietly or help the others.",
    "The stars seem to move because the earth turns.",
    "A short walk every day does more good than a long one now and then.",
    "The jury listened to both sides and asked for more time.",
    "It is cheaper to repair the roof now than to replace it later.",
    "The cook tasted the soup and added a little more pepper.",
    "They met at a station, missed their trains and have been friends since.",
    "The library is open on weekdays from nine to six.",
    "Wind and sun supply half of the electricity on this island.",
    "The painting was sold for more than anyone had expected.",
    "When the power failed, the whole town was dark for an hour.",
    "Nobody could say who had left the door open.",
)
"""Texts by which it is seen that nothing else has changed."""
