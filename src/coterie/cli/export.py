"""Commands around a model and the shell: export, completion."""

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from coterie.cli.application import Refused, app, user_errors
from coterie.cli.outputs import identity


class Shell(str, Enum):
    bash = "bash"
    zsh = "zsh"
    fish = "fish"


@app.command()
def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that `coterie cluster --save MODEL` wrote.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The ONNX file to write: .onnx.")],
) -> None:
    """Write a model of k-means or one of its variants as an ONNX graph, which runs without Python.

    The graph takes the columns of the table, in the order of the model, and scales them itself. Its outputs are the
    labels and the squared distances to the centres.

    [bold]Examples[/]

    \b
    coterie cluster shop.csv -k 5 --scale --save shop.model
    coterie export shop.model shop.onnx
    """
    from coterie.tabular import TableModel
    from coterie.tabular.onnx_export import export_onnx

    if file.suffix.lower() != ".onnx":
        raise Refused(f"{file}: choose a name that ends in .onnx")
    if identity(file) == identity(model):
        raise Refused(f"{file} would overwrite the model: choose another name.")
    with user_errors():
        loaded = TableModel.load(model)
        export_onnx(loaded, file)
    print(f"{file}: columns {', '.join(loaded.encoding.names)}")


@app.command()
def completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")] = Shell.bash,
) -> None:
    """Print a script that completes commands, options and files in a shell.

    [bold]Examples[/]

    \b
    coterie completion bash >> ~/.bashrc
    coterie completion zsh >> ~/.zshrc
    coterie completion fish > ~/.config/fish/completions/coterie.fish
    """
    from typer.completion import get_completion_script

    print(get_completion_script(prog_name="coterie", complete_var="_COTERIE_COMPLETE", shell=shell.value))
