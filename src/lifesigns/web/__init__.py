"""The web: the hub's HTTP API.

    server.py      listens: TLS, limits on files
    connections.py open connections, their time limits, and which are closed; exchange.py is one request on them
    app.py         every request: principal, route, permission, answer
    routes.py      what a route is; the table in table.py is the API, and its OpenAPI page is made from it
    access.py      the principal of a request
    answers.py     JSON, problems, streams

and one file for each resource of the API.
"""
