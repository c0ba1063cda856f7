/** `svc trigger-instance`: what has happened, and what came of it (contract 09, 9.3; contract 05, 5.3). */
import { CliCommand } from '../command.ts'
import { recordIn, textOf, toList, toObject } from '../connection/answers.ts'
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
  type Resource,
} from '../resources.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'
import { describeVerdict } from '../verdict.ts'

const triggerInstance: Resource = {
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
  const list = addTimeOptions(createListCommand(context, triggerInstance, queryOf), 'what happened')
    .description('List what has happened, the newest last.')
    .option('--trigger <ref>', 'only of this trigger; see: svc trigger getspecs')
    .option('--trigger-type <ref>', 'only of triggers of this type, such as core.svc.webhook')
    .option('--status <status>', 'only in this status: pending, processed or processing_failed')
    .words({ '--trigger-type': names.trigger, '--status': ['pending', 'processed', 'processing_failed'] })
    .examples('svc trigger-instance list -n 10 --trigger-type core.svc.webhook')

  const get = createGetCommand(context, triggerInstance, ...instances)
    .description('Show what has happened, and what it carried.')
    .examples('svc trigger-instance get 6000000000000000000000aa')

  const reEmit = createEachCommand(context, 're-emit', instances, (session, id) => reEmitInstance(session, id))
    .description('Let it happen again: rules look at the same payload as they are now.')
    .examples('svc trigger-instance re-emit 6000000000000000000000aa')

  const explain = createEachCommand(context, 'explain', instances, explainInstance)
    .description('Tell why it has, or has not, started anything: the verdict of each rule.')
    .notes(
      'Of each rule of the trigger: that it is disabled, that it matched and which execution it started, or which criterion did not hold, with the value it saw. -j prints all of what the server says.',
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
    .description('Let something that has happened happen again. Called svc-trigger-refire.')
    .requiredOption('-t, --trigger-instance-id <id>', 'what has happened')
    .examples('svc-trigger-refire -t 6000000000000000000000aa')
    .action((flags: CommonFlags & { triggerInstanceId: string }) =>
      withSession(context, flags, (session) => reEmitInstance(session, flags.triggerInstanceId, 'Trigger re-fired.')),
    )
}

/** @param words what is printed in place of what the server says */
async function reEmitInstance(session: Session, id: string, words?: string): Promise<number> {
  const answer = await callOn(session, 'POST', { ...subjectOf(triggerInstance, id), part: '/re_emit' })
  const said = recordIn(answer)
  if (session.form !== 'human') {
    await session.printMachine(said)
    return exitCodes.ok
  }
  await session.print(`${words ?? printable(textOf(said['message']))}\n`)
  const newId = answer.headers['svc-trigger-instance-id']
  if (typeof newId === 'string') session.note(`Note: Its new id is ${printable(newId)}\n`)
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
  const [id, trigger, status] = ['id', 'trigger', 'status'].map((name) => printable(textOf(instance[name])))
  const time = formatTime(instance['occurrence_time'], timezone)
  const hidden = Number(answer['hidden'])
  return [
    `${id} (${trigger}, ${time}) is ${status}.\n`,
    `${printable(textOf(answer['message']))}\n`,
    ...toList(answer['rules']).map((verdict) => `\n${describeVerdict(verdict)}`),
    ...(hidden > 0
      ? [`\nThere ${hidden === 1 ? 'is 1 more rule' : `are ${hidden} more rules`} that you may not view.\n`]
      : []),
  ].join('')
}
