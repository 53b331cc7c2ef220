"""Speed, measured so that it can be believed: contenders take turns on one machine, each in a process of its own.

A contender prepares itself (imports, data, model, first steps), and then sleeps but for its turns of a few seconds.
What is compared is paired: the rates of one round, taken one after the other.
"""
