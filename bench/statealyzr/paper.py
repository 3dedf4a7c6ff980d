"""What the paper measured: Khalid's dissertation, Tables 4.13 and 4.17 and Figure 4.14."""

# Table 4.13: all variables, persistent, top-level, updateable, impact on packets, on logs.
VARIABLES = {
    "PRADS": (1529, 61, 29, 10, None, 6),
    "Snort": (18393, 507, 333, 148, None, 148),
    "HAproxy": (7876, 272, 176, 115, 101, 109),
    "OpenVPN": (8704, 156, 131, 106, 97, 102),
}

# Table 4.17: hours to compile and to analyse, gigabytes of memory.
COST = {
    "PRADS": (0.2, 0.25, 0.3),
    "Snort": (1.5, 19, 6),
    "HAproxy": (0.25, 6, 6),
    "OpenVPN": (0.5, 5, 7.3),
}

# Figure 4.14, as far as the text says it (§4.6.1): the most header fields that key a variable.
MOST_FIELDS = {"PRADS": 3, "Snort": 6}
