"""Pages. A view reads the request, asks `access`, calls an action, and renders; it holds no rule.

Each module begins with the templates that it renders and what it gives them.
"""
