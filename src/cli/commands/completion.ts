/** `svc completion`: prints the completion scripts of shells. */
import { cliProcess } from '../cli-process.ts'
import { CliCommand } from '../command.ts'
import { scripts } from '../completion/scripts.ts'
import { exitCodes } from '../exit-codes.ts'
import type { CommandContext } from '../session.ts'

const notes =
  'The script calls `svc` from the PATH; a shell alias is not enough. It asks the server for names, with the stored token of a login or with the credentials in the environment, and waits at most one second.'

export function createCompletionCommand({ setExitCode }: CommandContext): CliCommand {
  const print = (shell: keyof typeof scripts) => (): void => {
    cliProcess().stdout.write(scripts[shell])
    setExitCode(exitCodes.ok)
  }

  const bash = new CliCommand('bash')
    .description('Print the completion script for bash.')
    .notes(
      'For all users, write it to `/etc/bash_completion.d/`. For yourself, write it to `~/.local/share/bash-completion/completions/`. Both need the package bash-completion; without it, add this line to `~/.bashrc`: `source <(svc completion bash)`.',
      notes,
    )
    .examples(
      'svc completion bash > /etc/bash_completion.d/svc',
      'svc completion bash > ~/.local/share/bash-completion/completions/svc',
      'source <(svc completion bash)',
    )
    .action(print('bash'))

  const zsh = new CliCommand('zsh')
    .description('Print the completion script for zsh.')
    .notes(
      'For all users, write it to `/usr/local/share/zsh/site-functions/_svc`. For yourself, add this line to `~/.zshrc`, after compinit: `source <(svc completion zsh)`.',
      'It needs `autoload -Uz compinit && compinit` in `~/.zshrc`.',
      notes,
    )
    .examples('svc completion zsh > /usr/local/share/zsh/site-functions/_svc', 'source <(svc completion zsh)')
    .action(print('zsh'))

  const fish = new CliCommand('fish')
    .description('Print the completion script for fish.')
    .notes(
      'For all users, write it to `/etc/fish/completions/svc.fish`. For yourself, write it to `~/.config/fish/completions/svc.fish`.',
      notes,
    )
    .examples(
      'svc completion fish > /etc/fish/completions/svc.fish',
      'svc completion fish > ~/.config/fish/completions/svc.fish',
    )
    .action(print('fish'))

  return new CliCommand('completion').addCommand(bash).addCommand(zsh).addCommand(fish)
}
