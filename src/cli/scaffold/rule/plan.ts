/** A new rule: its trigger, customary criteria, and the parameters of its action. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isObject } from '../../../lib/schema/index.ts'
import { readYamlDocument } from '../../../lib/text/index.ts'
import { writeJson } from '../../../lib/json/index.ts'
import { toYaml } from '../../output/yaml.ts'
import type { ContentRef } from '../names.ts'
import type { PlannedFile } from '../write-files.ts'
import { senders, type Sender, type SenderName } from './senders.ts'

/** What a rule waits for. */
export type Waiting =
  | { kind: 'webhook'; sender: SenderName; url: string; secretKey: string }
  | { kind: 'cron'; cron: string; timeZone: string }
  | { kind: 'every'; unit: string; delta: number }
  | { kind: 'failure'; action: string }

export interface NewRule {
  ref: ContentRef
  /** Of the pack, absolute. */
  folder: string
  waiting: Waiting
  /** Reference of the action. */
  action: string
  /** Given ones. */
  parameters: Readonly<Record<string, string>>
  /** Of the action, where its file was found. */
  known: readonly KnownParameter[]
  /** Destinations of notifications. */
  notify: readonly string[]
  enabled: boolean
}

export interface KnownParameter {
  name: string
  isRequired: boolean
}

/** The parameters of an action that is in the same packs folder; empty when its file is not there. */
export async function parametersOf(packs: string, { pack, name }: ContentRef): Promise<KnownParameter[]> {
  for (const extension of ['yaml', 'yml', 'json']) {
    const path = join(packs, pack, 'actions', `${name}.${extension}`)
    const text = await readFile(path, 'utf8').catch(() => undefined)
    if (text === undefined) continue
    const read = readYamlDocument(text)
    const schemas = 'value' in read && isObject(read.value) ? read.value['parameters'] : undefined
    if (!isObject(schemas)) return []
    return Object.entries(schemas).map(([each, schema]) => ({
      name: each,
      isRequired: isObject(schema) && schema['required'] === true && schema['default'] === undefined,
    }))
  }
  return []
}

/** Of a finished execution, for a rule about failures. */
const failureValues = {
  execution: '{{ trigger.execution_id }}',
  action: '{{ trigger.action_ref }}',
  status: '{{ trigger.status }}',
  error: '{{ trigger.error }}',
  url: '{{ trigger.web_url }}',
} as const

/** The body of a test delivery; undefined: the rule waits for no webhook. */
export function samplePath({ folder, ref, waiting }: Pick<NewRule, 'folder' | 'ref' | 'waiting'>): string | undefined {
  return waiting.kind === 'webhook' ? join(folder, 'tests', `${ref.name}.json`) : undefined
}

/** Required parameters that get no value. */
export function missingParameters(rule: NewRule): string[] {
  const given = parametersFor(rule)
  return rule.known.filter(({ name, isRequired }) => isRequired && !Object.hasOwn(given, name)).map(({ name }) => name)
}

export function planRule(rule: NewRule): PlannedFile[] {
  const { ref, folder, waiting } = rule
  const sample = samplePath(rule)
  return [
    ...(sample === undefined || waiting.kind !== 'webhook'
      ? []
      : [{ path: sample, text: `${writeJson(senders[waiting.sender].sample, 2)}\n` }]),
    { path: join(folder, 'rules', `${ref.name}.yaml`), text: ruleText(rule) },
  ]
}

/** Given ones, and those of the action that are called as a value of the event is. */
function parametersFor({ waiting, known, parameters }: NewRule): Record<string, string> {
  const values = valuesOf(waiting)
  const fitting = known.flatMap(({ name }) => (Object.hasOwn(values, name) ? [[name, values[name] ?? '']] : []))
  return { ...(Object.fromEntries(fitting) as Record<string, string>), ...parameters }
}

function valuesOf(waiting: Waiting): Readonly<Record<string, string>> {
  switch (waiting.kind) {
    case 'webhook':
      return senders[waiting.sender].values
    case 'failure':
      return failureValues
    default:
      return {}
  }
}

function ruleText(rule: NewRule): string {
  const { ref, waiting, action, notify, enabled } = rule
  const parameters = parametersFor(rule)
  const rest = Object.entries(valuesOf(waiting)).filter(([, value]) => !Object.values(parameters).includes(value))
  const criteria = criteriaOf(waiting)
  return [
    '---\n',
    toYaml({ name: ref.name, description: descriptionOf(waiting, action), enabled }),
    toYaml({ trigger: triggerOf(waiting) }),
    ...(Object.keys(criteria).length === 0
      ? ['# Without criteria, every event matches; docs/events.md has the operators.\n']
      : ['# All must match.\n', toYaml({ criteria })]),
    'action:\n',
    `  ${toYaml({ ref: action })}`,
    ...(rest.length === 0
      ? []
      : [
          '  # Further values of the event. Never put one into the text of a shell command: use parameters and "env".\n',
          ...rest.map(([name, value]) => `  #   ${name}: ${value}\n`),
        ]),
    ...(Object.keys(parameters).length === 0
      ? ['  parameters: {}\n']
      : toYaml({ parameters })
          .trimEnd()
          .split('\n')
          .map((line) => `  ${line}\n`)),
    ...(notify.length === 0 ? [] : [toYaml({ notify: notify.length === 1 ? notify[0] : notify })]),
  ].join('')
}

function descriptionOf(waiting: Waiting, action: string): string {
  switch (waiting.kind) {
    case 'webhook':
      return `Runs ${action} on an event of ${senders[waiting.sender].title}.`
    case 'cron':
      return `Runs ${action} at ${waiting.cron}.`
    case 'every':
      return `Runs ${action} every ${waiting.delta} ${waiting.unit}.`
    case 'failure':
      return `Runs ${action} when ${waiting.action} has failed.`
  }
}

function triggerOf(waiting: Waiting): object {
  switch (waiting.kind) {
    case 'webhook': {
      const { signature }: Sender = senders[waiting.sender]
      const secret = `{{ svckv.system.${waiting.secretKey} | decrypt_kv }}`
      return {
        type: 'core.svc.webhook',
        parameters: { url: waiting.url, ...(signature === undefined ? {} : { signature: { ...signature, secret } }) },
      }
    }
    case 'cron':
      return { type: 'core.svc.CronTimer', parameters: { cron: waiting.cron, timezone: waiting.timeZone } }
    case 'every':
      return { type: 'core.svc.IntervalTimer', parameters: { unit: waiting.unit, delta: waiting.delta } }
    case 'failure':
      return { type: 'core.svc.generic.actiontrigger' }
  }
}

function criteriaOf(waiting: Waiting): Readonly<Record<string, unknown>> {
  switch (waiting.kind) {
    case 'webhook':
      return senders[waiting.sender].criteria
    case 'failure':
      return {
        'trigger.action_ref': { type: 'equals', pattern: waiting.action },
        'trigger.status': { type: 'inside', pattern: ['failed', 'timeout', 'abandoned'] },
        // Not while svc will try again.
        'trigger.will_retry': { type: 'nequals', pattern: true },
      }
    default:
      return {}
  }
}
