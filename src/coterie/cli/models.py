"""The command ``coterie models``."""

from coterie.cli.application import app, user_errors


@app.command()
def models() -> None:
    """List the networks that come with the package, and your own."""
    from rich.table import Table

    from coterie import checkpoints
    from coterie.cli.console import escape, wide_console

    with user_errors(ValueError):
        shelves = {"package": checkpoints.SHELF, "own": checkpoints.user_shelf()}
        cards = [(title, card) for title, shelf in shelves.items() for card in checkpoints.available(shelf)]
    table = Table()
    for title in ("name", "kind", "shelf", "description", "size", "training", "licence"):
        table.add_column(title, overflow="fold")
    for shelf, card in cards:
        size, minutes = f"{card['bytes'] / 2**10:,.1f} kB", f"{card['training']['cpu_seconds'] / 60:.0f} CPU min"
        cells = (card["name"], card["kind"], shelf, card["about"], size, minutes, card["licence"])
        table.add_row(*map(escape, cells))
    wide_console().print(table)
    print(f"Your own networks are in {shelves['own']}. Estimators take a name or a path: FlowMixture(network='NAME').")
