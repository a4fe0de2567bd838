"""How much may be published at most: processes of a GPU, series, lines of the log.

What a budget leaves out is counted, so that it is never missing in silence.
"""
