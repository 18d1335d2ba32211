"""Commands around a model and the shell: export, completion."""

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from coterie.cli.application import Refused, app, user_errors


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
    with user_errors():
        loaded = TableModel.load(model)
        export_onnx(loaded, file)
    print(f"{file}: columns {', '.join(loaded.encoding.names)}")


@app.command()
def completion(
    context: typer.Context,
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")] = Shell.bash,
) -> None:
    """Print a script that completes commands, options and files in a shell.

    [bold]Examples[/]

    \b
    coterie completion bash >> ~/.bashrc
    coterie completion zsh >> ~/.zshrc
    coterie completion fish > ~/.config/fish/completions/coterie.fish
    """
    group: Any = context.parent.command if context.parent is not None else None
    commands = {name: _options(group.get_command(context, name)) for name in group.list_commands(context)}
    print(_fish(commands) if shell is Shell.fish else _bash(commands, zsh=shell is Shell.zsh))


def _options(command: Any) -> list[str]:
    return sorted(name for one in command.params for name in (*one.opts, *one.secondary_opts) if name.startswith("--"))


def _bash(commands: dict[str, list[str]], *, zsh: bool) -> str:
    cases = "\n".join(f'    {name}) words="{" ".join([*options, "--help"])}" ;;' for name, options in commands.items())
    first = "autoload -Uz bashcompinit && bashcompinit\n" if zsh else ""
    return f"""{first}_coterie() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" words="{" ".join(commands)} --help --version"
  if [ "$COMP_CWORD" -gt 1 ]; then
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
    case "$current" in -*) ;; *) words="" ;; esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _coterie coterie"""


def _fish(commands: dict[str, list[str]]) -> str:
    names = " ".join(commands)
    lines = [f"complete -c coterie -n 'not __fish_seen_subcommand_from {names}' -f -a '{names}'"]
    lines += [
        f"complete -c coterie -n '__fish_seen_subcommand_from {name}' -l {option.removeprefix('--')}"
        for name, options in commands.items()
        for option in options
    ]
    return "\n".join(lines)
