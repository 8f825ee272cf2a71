"""The web app, the editor of schedules, and the server of an agent's tools."""
