/** `svc runner`: the runners of actions (contract 09, 9.3; contract 02, 2.3). */
import { CliCommand } from '../command.ts'
import {
  createGetCommand,
  createListCommand,
  createSwitchCommand,
  type Operand,
  type CliResource,
} from '../resources.ts'
import type { CommandContext } from '../session.ts'

const runner: CliResource = {
  name: 'Runner',
  pluralName: 'Runners',
  path: '/runnertypes',
  columns: ['id', 'name', 'description'],
  order: ['id', 'uid', 'name', 'description', 'enabled', 'runner_package', 'runner_module', 'runner_parameters'],
}
const runners: Operand = ['<name...>', 'names or ids']

export function createRunnerCommand(context: CommandContext): CliCommand {
  const list = createListCommand(context, runner)
    .description('List runners.')
    .examples('svc runner list', 'svc runner list -a name enabled')

  const get = createGetCommand(context, runner, ...runners)
    .description('Show runners with the parameters that their actions inherit.')
    .examples('svc runner get local-shell-cmd')

  const enable = createSwitchCommand(context, runner, 'enable', ...runners)
    .description('Enable runners.')
    .examples('svc runner enable remote-shell-cmd')

  const disable = createSwitchCommand(context, runner, 'disable', ...runners)
    .description('Disable runners: executions of their actions fail.')
    .examples('svc runner disable remote-shell-cmd')

  return new CliCommand('runner').addCommand(list).addCommand(get).addCommand(enable).addCommand(disable)
}
