"""Scripts that make bash, zsh and fish ask the program for completions.

Each sends the command line up to the cursor in `COMP_LINE`, and the program's own word in
`COMP_COMMAND`. An answer has a line for each completion: its type, the value, a description,
divided by tabs. The types: `plain`; `part`, behind which more may follow without a space; `file`
and `dir`, for which the shell completes names of files or directories itself.
"""

from __future__ import annotations

from typing import Final

VARIABLE: Final = "_STREAMER_COMPLETE"
"""The environment variable that asks for completions: `bash_complete`, or `bash_source`."""

# Bash 3 of macOS has neither nosort nor compopt. Bash splits words at the characters of
# COMP_WORDBREAKS, and replaces only what stands behind the last of them.
_BASH: Final = """\
_streamer_completion() {
    local type value description
    COMPREPLY=()
    while IFS=$'\\t' read -r type value description; do
        case $type in
            plain) COMPREPLY+=("$value") ;;
            part) COMPREPLY+=("$value"); compopt -o nospace 2>/dev/null ;;
            file) compopt -o default 2>/dev/null ;;
            dir) compopt -o dirnames 2>/dev/null ;;
        esac
    done < <(COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_COMMAND="$1" \\
        COMP_WORDBREAKS="$COMP_WORDBREAKS" _STREAMER_COMPLETE=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F _streamer_completion streamer 2>/dev/null ||
    complete -o default -F _streamer_completion streamer
"""

_ZSH: Final = """\
#compdef streamer
_streamer_completion() {
    local -a lines values parts
    local line type value description
    lines=("${(@f)$(COMP_LINE="${(j: :)words[1,CURRENT]}" COMP_COMMAND="${words[1]}" \\
        _STREAMER_COMPLETE=zsh_complete "${(Q)words[1]/#\\~/$HOME}" 2>/dev/null)}")
    for line in $lines; do
        IFS=$'\\t' read -r type value description <<< "$line"
        value="${value//:/\\\\:}${description:+:$description}"
        case $type in
            plain) values+=("$value") ;;
            part) parts+=("$value") ;;
            file) _files ;;
            dir) _files -/ ;;
        esac
    done
    (( $#values )) && _describe -V value values
    (( $#parts )) && _describe -V value parts -S ''
    return 0
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _streamer_completion "$@"
elif (( $+functions[compdef] )); then
    compdef _streamer_completion streamer
else
    autoload -Uz compinit && compinit && compdef _streamer_completion streamer
fi
"""

_FISH: Final = """\
function _streamer_completion
    set -l command (commandline -opc)[1]
    set -l lines (env COMP_LINE=(commandline -cp | string collect) COMP_COMMAND=$command \\
        _STREAMER_COMPLETE=fish_complete (string replace -r '^~' $HOME -- $command) 2>/dev/null)
    for line in $lines
        set -l parts (string split \\t -- $line)
        switch $parts[1]
            case dir
                __fish_complete_directories $parts[2]
            case file
                __fish_complete_path $parts[2]
            case '*'
                printf '%s\\t%s\\n' $parts[2] $parts[3]
        end
    end
end
complete --no-files --command streamer --arguments '(_streamer_completion)'
"""

SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
"""The script of each shell."""
