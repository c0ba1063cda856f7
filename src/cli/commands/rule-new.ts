/** `svc rule new`: a new rule in a pack of files. */
import { dirname } from 'node:path'
import { InvalidArgumentError, Option } from 'commander'
import { isTimeZone, machineTimeZone, readCrontab, readDuration } from '../../lib/calendar/index.ts'
import { CliCommand } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { addCommonOptions, type CommonFlags } from '../options.ts'
import { printable } from '../output/print.ts'
import { readContentRef, type ContentRef } from '../scaffold/names.ts'
import { findPack, placeNote } from '../scaffold/packs-folder.ts'
import { reportFiles, type NextStep } from '../scaffold/report.ts'
import {
  missingParameters,
  parametersOf,
  planRule,
  samplePath,
  type NewRule,
  type Waiting,
} from '../scaffold/rule/plan.ts'
import { senderNames, senders, testDelivery, type Sender, type SenderName } from '../scaffold/rule/senders.ts'
import { shownPath, writeFiles } from '../scaffold/write-files.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'
import { installStep } from './pack-create.ts'

interface NewFlags extends CommonFlags {
  webhook?: SenderName
  hook?: string
  secret?: string
  cron?: string
  timezone?: string
  every?: string
  onFailureOf?: string
  run?: string
  parameter?: Record<string, string>
  notify?: string[]
  enable?: boolean
  path?: string
}

export function createRuleNewCommand(context: CommandContext): CliCommand {
  return addCommonOptions(new CliCommand('new'))
    .description('Create the file of a rule in the folder of its pack. No server is needed.')
    .argument('<pack.name>', 'reference of the rule; `svc pack create` makes a pack')
    .addOption(new Option('--webhook <sender>', 'run on a webhook of this sender').choices(senderNames))
    .option('--hook <name>', 'name of the webhook, the part after /v1/webhooks/; default: <pack>/<name>')
    .option('--secret <key>', 'key of the datastore that holds the secret; default: <pack>_<name>_secret')
    .option('--cron <expression>', 'run at these times, such as "*/5 8-18 * * mon-fri"')
    .option('--timezone <zone>', 'time zone of --cron; default: that of this machine')
    .option('--every <duration>', 'run in this interval, such as 90s, 5m or 1d')
    .option('--on-failure-of <action>', 'run when an execution of this action has failed, after its last attempt')
    .requiredOption('--run <action>', 'action to run')
    .option(
      '--parameter <name=value>',
      'parameter of the action, may be a template such as branch={{ trigger.body.ref }}; repeatable',
      collectParameter,
    )
    .option('--notify <destination...>', 'destinations of notifications about its runs, such as slack')
    .option('--enable', 'enable the rule; default: it is disabled')
    .option('--path <folder>', 'folder that has the folder of the pack')
    .completions({ 'pack.name': [], '--hook': [], '--secret': [], '--timezone': [], '--parameter': [], '--notify': [] })
    .notes(
      'Give one of --webhook, --cron, --every and --on-failure-of. Parameters of the action that are named as a value of the event get it, when the file of the action is in the same packs folder.',
      'The command prints what comes next: the secret, the registration, and, for a webhook, a signed test delivery with the body in tests/<name>.json.',
      placeNote,
    )
    .examples(
      'svc rule new web.push --webhook github --run web.deploy --notify slack --enable',
      'svc rule new web.nightly --cron "0 3 * * *" --timezone Europe/Berlin --run web.backup',
      'svc rule new web.failed --on-failure-of web.backup --run web.cleanup',
    )
    .action((ref: string, flags: NewFlags) =>
      withSession(context, flags, (session) => createRule(session, ref, flags), { withoutLogin: true }),
    )
}

function collectParameter(text: string, before: Record<string, string> | undefined): Record<string, string> {
  const [, name = '', value = ''] = /^([\p{L}\p{N}_]+)=([^]*)$/u.exec(text) ?? []
  if (name === '' || name === '__proto__') {
    throw new InvalidArgumentError('It must be a name, "=" and a value, such as count=3.')
  }
  return { ...before, [name]: value }
}

async function createRule(session: Session, given: string, flags: NewFlags): Promise<number> {
  const ref = readContentRef(given, 'the reference of a rule')
  const waiting = waitingOf(ref, flags)
  const action = readActionRef(flags.run ?? '', '--run')
  if (waiting.kind === 'failure' && waiting.action === flags.run) {
    throw new CliFailure(
      `A rule on failures of ${waiting.action} that runs ${waiting.action} would run on its own failures. Use another action, or a retry.`,
      exitCodes.usage,
    )
  }
  const notify = (flags.notify ?? []).flatMap((each) => each.split(',')).map(readDestination)
  const { folder, isServed } = await findPack(ref.pack, flags.path)
  const rule: NewRule = {
    ref,
    folder,
    waiting,
    action: `${action.pack}.${action.name}`,
    parameters: flags.parameter ?? {},
    known: await parametersOf(dirname(folder), action),
    notify,
    enabled: flags.enable === true,
  }
  const files = planRule(rule)
  await writeFiles(files)
  const missing = missingParameters(rule)
  if (missing.length > 0) {
    session.warn(
      `The action ${rule.action} needs ${missing.join(', ')}: add it to the parameters in the file of the rule.`,
    )
  }
  const delivery = waiting.kind === 'webhook' ? deliveryOf(rule, waiting) : undefined
  await reportFiles(session, files, nextSteps(rule, isServed), { ref: given, test_delivery: delivery ?? null })
  if (session.form === 'human' && delivery !== undefined) {
    const how = isSigned(waiting) ? ', signed as the sender does (needs openssl and jq)' : ''
    await session.print(`\nA test delivery${how}:\n${indented(delivery)}\n`)
  }
  return exitCodes.ok
}

function isSigned(waiting: Waiting): boolean {
  return waiting.kind === 'webhook' && (senders[waiting.sender] as Sender).signature !== undefined
}

const indented = (text: string): string =>
  text
    .split('\n')
    .map((line) => `  ${line}`)
    .join('\n')

/** @throws CliFailure (2) */
function waitingOf({ pack, name }: ContentRef, flags: NewFlags): Waiting {
  const { webhook, cron, every, onFailureOf, timezone, hook, secret } = flags
  if ([webhook, cron, every, onFailureOf].filter((each) => each !== undefined).length !== 1) {
    throw new CliFailure('Give one of --webhook, --cron, --every and --on-failure-of.', exitCodes.usage)
  }
  if (timezone !== undefined && cron === undefined) throw new CliFailure('--timezone is for --cron.', exitCodes.usage)
  if ((hook ?? secret) !== undefined && webhook === undefined) {
    throw new CliFailure('--hook and --secret are for --webhook.', exitCodes.usage)
  }
  if (webhook !== undefined) {
    return {
      kind: 'webhook',
      sender: webhook,
      url: readUrl(hook ?? `${pack}/${name}`),
      secretKey: readSecretKey(secret ?? `${pack}_${name}_secret`.replaceAll('-', '_').replace(/^(?=\d)/, '_')),
    }
  }
  if (cron !== undefined) return readCronOption(cron, timezone ?? machineTimeZone())
  if (every !== undefined) return readInterval(every)
  const action = readActionRef(onFailureOf ?? '', '--on-failure-of')
  return { kind: 'failure', action: `${action.pack}.${action.name}` }
}

/** @throws CliFailure (2) */
function readActionRef(text: string, option: string): ContentRef {
  const [, pack = '', name = ''] = /^([a-z0-9_-]+)\.([^\s.][^\s/\\]*)$/.exec(text) ?? []
  if (name === '' || /\p{C}/u.test(name)) {
    throw new CliFailure(
      `${option} ${printable(text)}: write <pack>.<name> of an action, such as web.deploy.`,
      exitCodes.usage,
    )
  }
  return { pack, name }
}

/** @throws CliFailure (2) */
function readDestination(name: string): string {
  if (/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}$/.test(name)) return name
  throw new CliFailure(`--notify ${printable(name)}: write the name of a destination, such as slack.`, exitCodes.usage)
}

/** @throws CliFailure (2) */
function readUrl(text: string): string {
  const isFine =
    /^[A-Za-z0-9_~.-]+(?:\/[A-Za-z0-9_~.-]+)*$/.test(text) &&
    text !== 'svc' &&
    !text.split('/').some((part) => /^\.+$/.test(part)) &&
    !/^(?:api\/)?v1\/webhooks(?:\/|$)/.test(text)
  if (isFine) return text
  throw new CliFailure(
    `--hook ${printable(text)}: write the part after /v1/webhooks/, such as github/push: letters, digits, "_", "-", "." and "/".`,
    exitCodes.usage,
  )
}

/** @throws CliFailure (2) */
function readSecretKey(text: string): string {
  if (/^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*$/.test(text)) return text
  throw new CliFailure(
    `--secret ${printable(text)}: use letters, digits and "_"; this is the name of a key, not the secret.`,
    exitCodes.usage,
  )
}

/** @throws CliFailure (2) */
function readCronOption(cron: string, timeZone: string): Waiting {
  const read = readCrontab(cron)
  if ('problem' in read) throw new CliFailure(`--cron: ${printable(read.problem)}.`, exitCodes.usage)
  if (!isTimeZone(timeZone)) {
    throw new CliFailure(
      `--timezone ${printable(timeZone)}: this is no time zone. Use a name such as Europe/Berlin or UTC.`,
      exitCodes.usage,
    )
  }
  return { kind: 'cron', cron: cron.trim(), timeZone }
}

const units = [
  ['weeks', 604_800],
  ['days', 86_400],
  ['hours', 3600],
  ['minutes', 60],
  ['seconds', 1],
] as const

/** @throws CliFailure (2) */
function readInterval(text: string): Waiting {
  const read = readDuration(text)
  if ('problem' in read) throw new CliFailure(`--every: ${printable(read.problem)}.`, exitCodes.usage)
  const found = units.find(([, size]) => read.seconds >= size && read.seconds % size === 0)
  if (found === undefined) {
    throw new CliFailure(`--every ${printable(text)}: use whole seconds, 1 or more.`, exitCodes.usage)
  }
  const [unit, size] = found
  return { kind: 'every', unit, delta: read.seconds / size }
}

function nextSteps(rule: NewRule, isServed: boolean): NextStep[] {
  const { ref, folder, waiting, enabled } = rule
  return [
    ...(waiting.kind !== 'webhook'
      ? []
      : isSigned(waiting)
        ? [{ command: `svc key set -e ${waiting.secretKey}`, about: 'asks for the secret; give it to the sender, too' }]
        : [
            {
              command: `svc apikey create -k --scope 'webhook_send@webhook:${waiting.url}'`,
              about: 'with authentication: the key for the sender',
            },
          ]),
    installStep(ref.pack, folder, isServed),
    ...(enabled ? [] : [{ command: `svc rule enable ${ref.pack}.${ref.name}`, about: 'lets the rule run' }]),
    ...rule.notify.map((name) => ({ command: `svc notify test ${name}`, about: `tries the destination "${name}"` })),
    ...(waiting.kind === 'failure'
      ? [{ command: `svc rule get ${ref.pack}.${ref.name}`, about: 'shows the rule' }]
      : []),
    ...(waiting.kind === 'cron' || waiting.kind === 'every'
      ? [{ command: 'svc timer list', about: 'shows when it runs next' }]
      : []),
  ]
}

function deliveryOf(rule: NewRule, { sender, url, secretKey }: Extract<Waiting, { kind: 'webhook' }>): string {
  return testDelivery(sender, url, shownPath(samplePath(rule) ?? ''), secretKey)
}
