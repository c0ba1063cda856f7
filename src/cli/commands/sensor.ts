/** `svc sensor`: lists, shows, enables and disables sensors (contract 09, 9.3; contract 05, 5.10). */
import { Option } from 'commander'
import { CliCommand } from '../command.ts'
import type { Query } from '../connection/client.ts'
import {
  createGetCommand,
  createListCommand,
  createSwitchCommand,
  type CliResource,
  type ListFlags,
  type Operand,
} from '../resources.ts'
import type { CommandContext } from '../session.ts'
import { names } from '../names.ts'
import { createSensorTailCommand } from './sensor-tail.ts'
import { createSensorTestCommand } from './sensor-test.ts'

const sensor: CliResource = {
  name: 'Sensor',
  pluralName: 'Sensors',
  path: '/sensortypes',
  columns: ['ref', 'pack', 'description', 'enabled', 'runtime.state'],
  order: [
    'id',
    'uid',
    'ref',
    'pack',
    'class_name',
    'description',
    'enabled',
    'sensor_type',
    'poll_interval',
    'trigger_types',
    'entry_point',
    'artifact_uri',
    'metadata_file',
    'runtime',
  ],
}
const sensors: Operand = ['<ref...>', 'references or ids']

interface SensorListFlags extends ListFlags {
  pack?: string
  trigger?: string
  enabled?: boolean
  disabled?: boolean
}

export function createSensorCommand(context: CommandContext): CliCommand {
  const list = createListCommand(context, sensor, queryOf)
    .description('List sensors.')
    .option('-p, --pack <pack>', 'only items of this pack')
    .option('-g, --trigger <ref>', 'only sensors that dispatch this trigger type')
    .completions({ '--trigger': names.trigger })
    .addOption(new Option('--enabled', 'only enabled sensors').conflicts('disabled'))
    .option('--disabled', 'only disabled sensors')
    .examples('svc sensor list -p examples')

  const get = createGetCommand(context, sensor, ...sensors)
    .description('Show sensors.')
    .examples('svc sensor get examples.HeartbeatSensor')

  const enable = createSwitchCommand(context, sensor, 'enable', ...sensors)
    .description('Enable sensors: they start at once.')
    .examples('svc sensor enable examples.HeartbeatSensor')

  const disable = createSwitchCommand(context, sensor, 'disable', ...sensors)
    .description('Disable sensors: they stop at once.')
    .examples('svc sensor disable examples.HeartbeatSensor')

  return new CliCommand('sensor')
    .addCommand(list)
    .addCommand(get)
    .addCommand(enable)
    .addCommand(disable)
    .addCommand(createSensorTailCommand(context, sensor))
    .addCommand(createSensorTestCommand(context))
}

function queryOf({ pack, trigger, enabled, disabled }: SensorListFlags): Query {
  return { pack, trigger, enabled: enabled ?? (disabled === true ? false : undefined) }
}
