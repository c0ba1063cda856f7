/** `svc workflow test`: rehearses a workflow from scripted outcomes. No server takes part. */
import { basename } from 'node:path'
import { createCompat } from '../../core/compat/index.ts'
import { readJson } from '../../lib/json/index.ts'
import { CliCommand } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { readTextFile } from '../input/text-file.ts'
import { addCommonOptions, type CommonFlags } from '../options.ts'
import { printable } from '../output/print.ts'
import { isCalledAsStackstorm } from '../program-names.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'
import { renderRehearsal } from '../workflows/rehearsal.ts'
import { MAX_DEFINITION_BYTES, printEntries, warnOf } from './workflow-inspect.ts'

const MAX_MOCKS_BYTES = 1_048_576

interface TestFlags extends CommonFlags {
  mock?: string
  input?: string[]
}

export function createWorkflowTestCommand(context: CommandContext): CliCommand {
  return addCommonOptions(new CliCommand('test'))
    .description('Rehearse a workflow with scripted outcomes. Nothing is run, and no server is needed.')
    .argument('<file>', 'workflow definition, .yaml')
    .completions({ file: 'file', '--mock': 'file' })
    .option('--mock <file>', 'outcomes of the actions, and what is expected, .yaml')
    .option('--input <name=value...>', 'input of the workflow, such as count=3; it goes before that in the mocks')
    .notes(
      'The command prints which tasks ran, what their actions would have got, which transitions were taken and why, and the output. A task without a mock succeeds with an empty result. Actions end in the order of the time that they take, else in that of their starts.',
      'A value of --input is read as JSON if it is JSON, else as text. docs/workflows.md explains the file of mocks.',
      'The exit code is 0 when everything is as expected; without "expect", when the workflow succeeds. It is 1 otherwise, and 2 when a file cannot be used. Warnings do not count.',
    )
    .examples('svc workflow test deploy.yaml --mock mocks.yaml', 'svc workflow test deploy.yaml --input who=Ana -j')
    .sample(
      'mocks.yaml',
      `tasks:
  build:
    - {status: failed, result: {stderr: no space}}
    - {result: {stdout: "1.4"}}
  approve: {answer: {continue: true}}
expect:
  status: succeeded
  tasks: [build, approve, deploy]
  output: {version: "1.4"}`,
    )
    .action((file: string, flags: TestFlags) =>
      withSession(context, flags, (session) => testWorkflow(session, file, flags), { withoutLogin: true }),
    )
}

async function testWorkflow(session: Session, file: string, { mock, input = [] }: TestFlags): Promise<number> {
  const text = await readTextFile(file, MAX_DEFINITION_BYTES)
  const mocks =
    mock === undefined ? undefined : { name: basename(mock), text: await readTextFile(mock, MAX_MOCKS_BYTES) }
  const { rehearseText } = await import('../../modules/workflows/offline.ts')
  const ours = createCompat(isCalledAsStackstorm()).definition(text)
  const answer = ours.asWritten(
    rehearseText({ text: ours.text, mocks, input: Object.fromEntries(input.map(readInput)) }),
  )
  if ('problem' in answer) throw new CliFailure(printable(answer.problem), exitCodes.usage)
  if ('mistakes' in answer) {
    if (session.form === 'human')
      await printEntries(
        session,
        answer.mistakes.map((entry) => ({ ...entry })),
        text,
      )
    else await session.printMachine({ mistakes: answer.mistakes })
    return exitCodes.failed
  }
  const { rehearsal, differences } = answer
  const warnings = answer.warnings.map((entry) => ({ ...entry }))
  warnOf(session, warnings, text, basename(file))
  if (session.form === 'human') await session.print(renderRehearsal(rehearsal, differences, session.isColored))
  else await session.printMachine({ ...rehearsal, differences })
  return differences.length === 0 && rehearsal.problem === null ? exitCodes.ok : exitCodes.failed
}

/** @throws CliFailure */
function readInput(word: string): [name: string, value: unknown] {
  const at = word.indexOf('=')
  if (at < 1) throw new CliFailure(`--input ${printable(word)}: it must have the form name=value.`, exitCodes.usage)
  const [name, text] = [word.slice(0, at), word.slice(at + 1)]
  try {
    return [name, readJson(text)]
  } catch {
    return [name, text]
  }
}
