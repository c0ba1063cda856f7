/** `svc help`: shows the help of a command or a topic. */
import { styleText } from 'node:util'
import { canStyle, cliProcess, widthOf } from '../cli-process.ts'
import { CliCommand, findChild } from '../command.ts'
import { UnknownCommand } from '../failures.ts'
import { renderBlocks, usableWidth } from '../reference/screen.ts'
import { topics, type Topic } from '../reference/topics.ts'
import type { CommandContext } from '../session.ts'
import { commands, findEntry, loadCommand } from './index.ts'

export function createHelpCommand(context: CommandContext): CliCommand {
  return new CliCommand('help')
    .argument('[command...]', 'command, such as execution list, or topic; default: list all commands and topics')
    .examples('svc help execution list', 'svc help exit-codes')
    .action(async (words: string[]) => {
      const [word, ...rest] = words
      const topic = topics.find(({ name }) => name === word)
      const entry = word === undefined ? undefined : findEntry(word)
      if (word === undefined) await context.showHelp()
      else if (entry !== undefined) (await find(await loadCommand(entry, context), rest)).outputHelp()
      else if (topic !== undefined && rest.length === 0) showTopic(topic)
      else
        throw new UnknownCommand(
          'svc',
          words,
          [...commands, ...topics].map(({ name }) => name),
        )
    })
}

/** @throws UnknownCommand when there is no such sub-command */
async function find(command: CliCommand, words: readonly string[]): Promise<CliCommand> {
  const [word, ...rest] = words
  if (word === undefined) return command
  const found = findChild(command, word)
  if (found instanceof CliCommand) return find(found, rest)
  throw new UnknownCommand(
    command.name(),
    words,
    command.commands.map((each) => each.name()),
  )
}

function showTopic({ title, blocks }: Topic): void {
  const { stdout } = cliProcess()
  const width = usableWidth(widthOf(stdout) ?? 80)
  const heading = canStyle(stdout) ? styleText('bold', title, { validateStream: false }) : title
  stdout.write(`${heading}\n\n${renderBlocks(blocks, width)}\n`)
}
