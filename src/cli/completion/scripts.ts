/** What `svc completion` prints: each script asks the program itself, which alone knows its commands. */
import { programNames } from '../program-names.ts'

export type Shell = 'bash' | 'zsh' | 'fish'

const names = programNames.join(' ')

export const scripts: Readonly<Record<Shell, string>> = {
  bash: `# Completion of svc for bash, made by: svc completion bash
_svc() {
  local kind= line
  COMPREPLY=()
  {
    IFS= read -r kind
    while IFS= read -r line; do COMPREPLY+=("$line"); done
  } < <(command svc __complete bash "\${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" "$COMP_TYPE" "\${COLUMNS:-80}" \\
    2>/dev/null </dev/null)
  case $kind in *files*) compopt -o default ;; esac
  case $kind in *part*) compopt -o nospace ;; esac
}
complete -o nosort -F _svc ${names} 2>/dev/null || complete -F _svc ${names}
`,
  zsh: `#compdef ${names}
# Completion of svc for zsh, made by: svc completion zsh
_svc() {
  local line kind text
  local -a lines found space
  lines=("\${(@f)$(command svc __complete zsh "\${(@Q)words[1,CURRENT-1]}" "\${(Q)IPREFIX}\${(Q)PREFIX}" 2>/dev/null </dev/null)}")
  kind=$lines[1]
  for line in "\${(@)lines[2,-1]}"; do
    text=\${\${line%%$'\\t'*}//\\\\/\\\\\\\\}
    found+=("\${text//:/\\\\:}:\${line#*$'\\t'}")
  done
  [[ $kind == *part* ]] && space=(-S '')
  (( $#found )) && _describe -V svc found "\${space[@]}"
  if [[ $kind == *files* ]]; then
    compset -P 1 '*='
    _files
  fi
}
if [[ $funcstack[1] == _svc ]]; then _svc "$@"; else compdef _svc ${names}; fi
`,
  fish: `# Completion of svc for fish, made by: svc completion fish
function __svc_complete
    set -l word (commandline -ct)
    set -l lines (command svc __complete fish (commandline -opc) "$word" 2>/dev/null </dev/null)
    for line in $lines[2..-1]
        echo -- "$line"
    end
    if string match -q '*files*' -- $lines[1]
        set -l before (string match -r '^[^=]*=' -- $word)
        for path in (__fish_complete_path (string replace -r '^[^=]*=' '' -- $word))
            echo -- "$before$path"
        end
    end
end
for name in ${names}
    complete -c $name -f -k -a '(__svc_complete)'
end
`,
}
