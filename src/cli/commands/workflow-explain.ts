/** `svc workflow explain`, also `svc execution explain`: why a workflow went the way it did, and what it waits for. */
import { CliCommand } from '../command.ts'
import { recordIn } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import { addCommonOptions, type CommonFlags } from '../options.ts'
import { callOn } from '../records.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'
import { renderExplanation } from '../workflows/explanation.ts'
import { readExplanation } from '../workflows/read-explanation.ts'

interface ExplainFlags extends CommonFlags {
  task?: string
}

/** @param group the command that it belongs to: `workflow` or `execution` */
export function createWorkflowExplainCommand(context: CommandContext, group: string): CliCommand {
  return addCommonOptions(new CliCommand('explain'))
    .description('Explain a workflow: which transitions were taken and why, what failed, and what it waits for.')
    .argument('<id>', 'execution of a workflow')
    .option('--task <name>', 'only this task')
    .notes(
      'For each task that has ended it prints each transition with the value of its condition and what it read; for a join, who has come and who is missing; for a failed expression, what it saw. Secrets are masked.',
    )
    .examples(`svc ${group} explain 6000000000000000000000aa`)
    .action((id: string, flags: ExplainFlags) => withSession(context, flags, (session) => explain(session, id, flags)))
}

async function explain(session: Session, id: string, { task }: ExplainFlags): Promise<number> {
  const subject = { kind: 'Workflow execution', path: '/executions', id, part: '/workflow/explain' }
  const explanation = recordIn(await callOn(session, 'GET', subject, { query: { task } }))
  if (session.form === 'human') await session.print(renderExplanation(readExplanation(explanation), session.isColored))
  else await session.printMachine(explanation)
  return exitCodes.ok
}
