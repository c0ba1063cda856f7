/** `svc workflow graph`: draws the graph of a definition. */
import { existsSync } from 'node:fs'
import { Option } from 'commander'
import { pathToOpen } from '../cli-process.ts'
import { CliCommand } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { readTextFile } from '../input/text-file.ts'
import { addCommonOptions, type CommonFlags } from '../options.ts'
import { printable } from '../output/print.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'
import { graphFormats, renderGraph, type GraphFormat } from '../workflows/graph.ts'
import { MAX_DEFINITION_BYTES, readActionFile } from './workflow-inspect.ts'

interface GraphFlags extends CommonFlags {
  format: GraphFormat
}

export function createWorkflowGraphCommand(context: CommandContext): CliCommand {
  return addCommonOptions(new CliCommand('graph'))
    .description('Draw the graph of a workflow: its tasks, and the transitions between them.')
    .argument('<definition>', 'workflow definition, .yaml; or the reference of an action on the server')
    .completions({ definition: 'file' })
    .addOption(new Option('--format <format>', 'dot is the language of Graphviz').choices(graphFormats).default('text'))
    .notes('A file needs no server. -j and -y print the graph as the web client gets it.')
    .examples(
      'svc workflow graph deploy.yaml',
      'svc workflow graph examples.deploy --format dot | dot -Tsvg > deploy.svg',
    )
    .action((definition: string, flags: GraphFlags) =>
      withSession(context, flags, (session) => drawGraph(session, definition, flags.format)),
    )
}

/** `<pack>.<name>`; what ends like a file is one, also when it does not exist. */
const isReference = (text: string): boolean => /^[\w-]+\.[\w.-]+$/.test(text) && !/\.ya?ml$/i.test(text)

async function drawGraph(session: Session, definition: string, format: GraphFormat): Promise<number> {
  const text =
    isReference(definition) && !existsSync(pathToOpen(definition))
      ? await readActionFile(session, definition)
      : await readTextFile(definition, MAX_DEFINITION_BYTES)
  const { graphOfText } = await import('../../modules/workflows/offline.ts')
  const graph = graphOfText(text)
  if ('problem' in graph)
    throw new CliFailure(printable(`Failed to load workflow definition because ${graph.problem}`), exitCodes.usage)
  if (session.form === 'human') await session.print(renderGraph(graph, format))
  else await session.printMachine(graph)
  return exitCodes.ok
}
