/** The same run without a browser. Secrets are left out: what is copied ends up in files and histories of shells. */
import type { Field } from '../../components/form/field.ts'
import { quote } from '../../shell.ts'
import { hasSecret } from './secret-parts.ts'
import { writeJson } from '../../json.ts'

export interface RequestedRun {
  ref: string
  parameters: Readonly<Record<string, unknown>>
  traceTag?: string | undefined
  user?: string | undefined
}

export interface CommandText {
  text: string
  /** Parameters that are not in it: secrets, and what cannot be written that way. */
  omitted: string[]
}

/** `svc run core.local cmd='date -R'` */
export function svcCommand({ ref, parameters, traceTag, user }: RequestedRun, fields: readonly Field[]): CommandText {
  const known = new Map(fields.map((field) => [field.name, field]))
  const words = ['svc', 'run']
  if (traceTag !== undefined) words.push(`--trace-tag=${quote(traceTag)}`)
  if (user !== undefined) words.push(`--user=${quote(user)}`)
  words.push(quote(ref))
  const omitted: string[] = []
  for (const [name, value] of Object.entries(parameters)) {
    const field = known.get(name)
    const text = field === undefined || hasSecret(field.schema) ? undefined : argumentOf(field, value)
    if (text === undefined) omitted.push(name)
    else words.push(`${name}=${text === '' ? '' : quote(text)}`)
  }
  return { text: words.join(' '), omitted }
}

/** As the command line reads it by the type of the parameter; undefined: it has no way to write it. */
function argumentOf({ types }: Field, value: unknown): string | undefined {
  const [type, ...others] = types.filter((each) => each !== 'null')
  if (value === null) return undefined
  const isText = type === undefined || type === 'string' || others.length > 0
  if (isText) return typeof value === 'string' ? value : undefined
  if (typeof value !== 'string') return writeJson(value)
  // Templates: numbers and the like would be refused before the server sees them.
  return undefined
}

/** @param address of `POST /executions` */
export function curlCommand(
  { ref, parameters, traceTag, user }: RequestedRun,
  fields: readonly Field[],
  address: string,
  hasLogin: boolean,
): CommandText {
  const secret = new Set(fields.filter(({ schema }) => hasSecret(schema)).map(({ name }) => name))
  const given = Object.entries(parameters).filter(([name]) => !secret.has(name))
  const body = {
    action: ref,
    ...(given.length > 0 && { parameters: Object.fromEntries(given) }),
    ...(user !== undefined && { user }),
    ...(traceTag !== undefined && { context: { trace_context: { trace_tag: traceTag } } }),
  }
  const lines = [
    `curl -X POST ${quote(address)}`,
    ...(hasLogin ? ['-H "X-Auth-Token: $SVC_AUTH_TOKEN"'] : []),
    "-H 'Content-Type: application/json'",
    `-d ${quote(writeJson(body))}`,
  ]
  return {
    text: lines.join(' \\\n  '),
    omitted: Object.keys(parameters).filter((name) => secret.has(name)),
  }
}
