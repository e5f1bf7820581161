# `at` is the subcommand so far, such as " data prepare". Where nothing fits, the shell completes file names.
_mrs() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} at="" option="" fitting="" word
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        if [[ '@paths@' == *"|$at $word|"* ]]; then at="$at $word"; fi
        if [[ $word == --* ]]; then option=$word; fi
    done
    case "$at $before" in
@values@
    esac
    if [[ -z $fitting ]]; then case "$at $option" in
@many@
    esac; fi
    if [[ -z $fitting || $current == -* ]]; then case "$at" in
@own@
    esac; fi
    COMPREPLY=($(compgen -W "$fitting" -- "$current"))
}
complete -o default -F _mrs mrs
