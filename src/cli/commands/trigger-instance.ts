/** `svc trigger-instance`: events and their outcome (contract 09, 9.3; contract 05, 5.3). */
import { CliCommand } from '../command.ts'
import { recordIn, textOrEmpty, toList, toObject } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import { names } from '../names.ts'
import { addCommonOptionsWithoutT, addTimeOptions, type CommonFlags, type TimeFlags } from '../options.ts'
import { formatTime, printable, type Json } from '../output/print.ts'
import { callOn, subjectOf } from '../records.ts'
import {
  createEachCommand,
  createGetCommand,
  createListCommand,
  type ListFlags,
  type Operand,
  type CliResource,
} from '../resources.ts'
import { withProgramSession } from '../operator-session.ts'
import type { CommandContext, Session } from '../session.ts'
import { describeRuleOutcome } from '../rule-outcome.ts'

const triggerInstance: CliResource = {
  name: 'Trigger Instance',
  pluralName: 'Trigger Instances',
  path: '/triggerinstances',
  columns: ['id', 'trigger', 'occurrence_time', 'status'],
  order: ['id', 'trigger', 'trigger_type', 'occurrence_time', 'status', 'trace_id', 'payload'],
  isNewestFirst: true,
  isSelective: true,
}
const instances: Operand = ['<id...>', 'ids']

interface InstanceListFlags extends ListFlags, TimeFlags {
  trigger?: string
  triggerType?: string
  status?: string
}

export function createTriggerInstanceCommand(context: CommandContext): CliCommand {
  const queryOf = ({ trigger, triggerType, status, timestampGt, timestampLt }: InstanceListFlags) => ({
    trigger,
    trigger_type: triggerType,
    status,
    timestamp_gt: timestampGt,
    timestamp_lt: timestampLt,
  })
  const list = addTimeOptions(createListCommand(context, triggerInstance, queryOf), 'trigger instances that occurred')
    .description('List trigger instances (events), newest last.')
    .option('--trigger <ref>', 'only trigger instances of this trigger; see: svc trigger getspecs')
    .option('--trigger-type <ref>', 'only trigger instances of this trigger type, such as core.svc.webhook')
    .option('--status <status>', 'only trigger instances in this status: pending, processed or processing_failed')
    .completions({ '--trigger-type': names.trigger, '--status': ['pending', 'processed', 'processing_failed'] })
    .examples('svc trigger-instance list -n 10 --trigger-type core.svc.webhook')

  const get = createGetCommand(context, triggerInstance, ...instances)
    .description('Show trigger instances with their payloads.')
    .examples('svc trigger-instance get 6000000000000000000000aa')

  const reEmit = createEachCommand(context, 're-emit', instances, (session, id) => reEmitInstance(session, id))
    .description('Re-emit trigger instances: the current rules process the same payload again.')
    .examples('svc trigger-instance re-emit 6000000000000000000000aa')

  const explain = createEachCommand(context, 'explain', instances, explainInstance)
    .description('Explain why each rule of the trigger did or did not start an execution.')
    .notes(
      'For each rule the output shows that it is disabled, that it matched and which execution it started, or which criterion failed and for which value. -j prints the complete answer of the server.',
    )
    .examples('svc trigger-instance explain 6000000000000000000000aa')

  return new CliCommand('trigger-instance')
    .addCommand(list)
    .addCommand(get)
    .addCommand(reEmit)
    .addCommand(explain)
    .addCommand(createRefireCommand(context), { hidden: true })
}

/** `svc-trigger-refire -t <id>` (contract 05, 5.12). */
function createRefireCommand(context: CommandContext): CliCommand {
  return addCommonOptionsWithoutT(new CliCommand('refire'))
    .description('Re-emit a trigger instance. Also called svc-trigger-refire: --config-file is that of the server.')
    .requiredOption('-t, --trigger-instance-id <id>', 'id of the trigger instance')
    .examples('svc-trigger-refire -t 6000000000000000000000aa')
    .action((flags: CommonFlags & { triggerInstanceId: string }) =>
      withProgramSession('svc-trigger-refire', context, flags, (session) =>
        reEmitInstance(session, flags.triggerInstanceId, 'Trigger re-fired.'),
      ),
    )
}

/** @param message printed instead of the server's message */
async function reEmitInstance(session: Session, id: string, message?: string): Promise<number> {
  const answer = await callOn(session, 'POST', { ...subjectOf(triggerInstance, id), part: '/re_emit' })
  const said = recordIn(answer)
  if (session.form !== 'human') {
    await session.printMachine(said)
    return exitCodes.ok
  }
  await session.print(`${message ?? printable(textOrEmpty(said['message']))}\n`)
  const newId = answer.headers['svc-trigger-instance-id']
  if (typeof newId === 'string') session.note(`Note: New trigger instance: ${printable(newId)}\n`)
  return exitCodes.ok
}

async function explainInstance(session: Session, id: string): Promise<number> {
  const answer = recordIn(await callOn(session, 'GET', { ...subjectOf(triggerInstance, id), part: '/explain' }))
  if (session.form === 'human') await session.print(describeExplanation(answer, session.settings.timezone))
  else await session.printMachine(answer)
  return exitCodes.ok
}

function describeExplanation(answer: Json, timezone: string): string {
  const instance = toObject(answer['trigger_instance'])
  const [id, trigger, status] = ['id', 'trigger', 'status'].map((name) => printable(textOrEmpty(instance[name])))
  const time = formatTime(instance['occurrence_time'], timezone)
  const hidden = Number(answer['hidden'])
  return [
    `${id} (${trigger}, ${time}) is ${status}.\n`,
    `${printable(textOrEmpty(answer['message']))}\n`,
    ...(typeof answer['payload_reduced'] === 'string' ? [`${printable(answer['payload_reduced'])}\n`] : []),
    ...toList(answer['rules']).map((verdict) => `\n${describeRuleOutcome(verdict)}`),
    ...(hidden > 0
      ? [`\nNot shown: ${hidden === 1 ? '1 rule' : `${hidden} rules`} that you have no permission to view.\n`]
      : []),
  ].join('')
}
