/** `svc workflow`: workflow definitions. */
import { CliCommand } from '../command.ts'
import type { CommandContext } from '../session.ts'
import { createWorkflowExplainCommand } from './workflow-explain.ts'
import { createWorkflowGraphCommand } from './workflow-graph.ts'
import { createWorkflowInspectCommand } from './workflow-inspect.ts'
import { createWorkflowTestCommand } from './workflow-test.ts'

export function createWorkflowCommand(context: CommandContext): CliCommand {
  return new CliCommand('workflow')
    .addCommand(createWorkflowInspectCommand(context))
    .addCommand(createWorkflowTestCommand(context))
    .addCommand(createWorkflowGraphCommand(context))
    .addCommand(createWorkflowExplainCommand(context, 'workflow'))
}
