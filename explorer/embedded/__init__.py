"""What stands in for Redis and a process manager when Trimtab runs alone: a broker and a channel layer over
SQLite.

Only settings choose between this and the real stack; tasks, consumers and the shape of the processes are
the same.
"""
