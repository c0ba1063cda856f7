/** `svc webhook send`: calls a webhook as an external service would (contract 06, 6.3). */
import { InvalidArgumentError, Option } from 'commander'
import { CliCommand } from '../command.ts'
import { recordIn, textOrEmpty, toList, type ApiResponse } from '../connection/responses.ts'
import { exitCodeOf, recordStatusOf } from '../executions/calls.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { addCommonOptions, type CommonFlags } from '../options.ts'
import { printable, type Json } from '../output/print.ts'
import { callOn } from '../records.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'
import { readFileBytes } from '../input/text-file.ts'
import { readWholeInput } from '../input/whole-input.ts'
import { toYaml } from '../output/yaml.ts'

/** The default limit of the server. */
const MAX_BODY_BYTES = 16 * 1024 * 1024
const DEFAULT_WAIT_SECONDS = 60
const MAX_WAIT_SECONDS = 300
/** Added to the wait: the server may answer only when the wait is over. */
const ANSWER_MARGIN_MS = 30_000

interface SendFlags extends CommonFlags {
  header?: Header[]
  form?: [name: string, value: string][]
  traceTag?: string
  wait?: number | true
}

interface Header {
  name: string
  value: string
}

export function createWebhookSendCommand(context: CommandContext): CliCommand {
  return addCommonOptions(new CliCommand('send'))
    .description('Send a request to a webhook, as an external service would.')
    .argument('<url>', 'webhook name: the part after /v1/webhooks/; "svc" takes {"trigger": …, "payload": {…}}')
    .argument('[body]', 'JSON, @file to read a file, or - to read standard input; default: no body')
    .option('-H, --header <line>', 'request header, such as "X-Kind: order"; repeatable', collectHeader)
    .addOption(new Option('--form <name=value>', 'form field, instead of a body; repeatable').argParser(collectField))
    .option('--trace-tag <tag>', 'tag of the trace to start or join', checkValue)
    .option(
      '--wait [seconds]',
      'wait for the executions that it starts, at most 300 seconds; without a number: 60',
      parseWait,
    )
    .notes(
      'svc sends the body byte for byte, so a signature of the file stays valid, such as one of `openssl dgst -sha256 -hmac <secret> push.json`. The content type is JSON unless -H sets "Content-Type: …".',
      'The exit code is 1 when the server refuses the request, and 2 when the webhook does not exist. With --wait it is also 1 when a started execution failed.',
    )
    .examples(
      `svc webhook send orders '{"kind": "order", "id": 17}' --wait`,
      'svc webhook send github/push @push.json -H "X-Hub-Signature-256: sha256=$SIGNATURE"',
      'svc webhook send orders --form kind=order --form id=17',
    )
    .action((url: string, body: string | undefined, flags: SendFlags) =>
      withSession(context, flags, (session) => send(session, url, body, flags)),
    )
}

async function send(session: Session, url: string, given: string | undefined, flags: SendFlags): Promise<number> {
  const { form, wait, traceTag } = flags
  if (given !== undefined && form !== undefined) {
    throw new CliFailure('Use either a body or --form, not both.', exitCodes.usage)
  }
  const seconds = wait === true ? DEFAULT_WAIT_SECONDS : wait
  const bytes = form === undefined ? await readBody(session, given) : Buffer.from(new URLSearchParams(form).toString())
  const headers = new RequestHeaders()
  if (bytes !== undefined) {
    headers.set('Content-Type', form === undefined ? 'application/json' : 'application/x-www-form-urlencoded')
  }
  for (const { name, value } of flags.header ?? []) headers.add(name, value)
  if (traceTag !== undefined) headers.set('Svc-Trace-Tag', traceTag)
  if (seconds !== undefined) headers.set('Prefer', `wait=${seconds}`)

  const progress = seconds === undefined ? undefined : session.progress('Waiting for the executions')
  let answer: ApiResponse
  try {
    answer = await callOn(
      session,
      'POST',
      { kind: 'Webhook', path: '/webhooks', id: url },
      {
        headers: headers.record(),
        ...(bytes === undefined ? {} : { bytes }),
        ...(seconds === undefined ? {} : { timeoutMs: seconds * 1000 + ANSWER_MARGIN_MS }),
      },
    )
  } finally {
    progress?.stop()
  }
  return show(session, answer, seconds)
}

/** @returns the exit code */
async function show(session: Session, answer: ApiResponse, waitedSeconds: number | undefined): Promise<number> {
  const ids = textOrEmpty(answer.headers['svc-trigger-instance-id'])
    .split(',')
    .filter((id) => id !== '')
  const [first] = ids
  // Without an id there was no event: the request only verified the webhook, and its answer is printed.
  const record = first === undefined ? recordIn(answer) : outcomeOf(answer, ids)
  if (session.form === 'human') await session.print(toYaml(record))
  else await session.printMachine(record)
  const executions = toList(record['executions'])
  if (session.form === 'human' && first !== undefined && executions.length === 0) {
    const why = `svc trigger-instance explain ${printable(first)}\n`
    if (waitedSeconds === undefined) session.note(`Note: To see the outcome: ${why}`)
    else if (answer.status === 200) session.note(`Note: No execution was started. To see why: ${why}`)
    else {
      const time = waitedSeconds === 1 ? '1 second' : `${waitedSeconds} seconds`
      session.note(`Note: Not finished within ${time}. To see the outcome: ${why}`)
    }
  }
  return Math.max(exitCodes.ok, ...executions.map((execution) => exitCodeOf(recordStatusOf(execution))))
}

/** The ids from the headers, together with the outcome when it is known. */
function outcomeOf({ status, headers, body }: ApiResponse, ids: readonly string[]): Json {
  const outcome = status === 200 ? recordIn({ status, headers, body }) : {}
  return {
    trace_id: textOrEmpty(headers['svc-trace-id']),
    ...(headers['idempotent-replayed'] === 'true' ? { repetition: true } : {}),
    trigger_instances: outcome['trigger_instances'] ?? ids.map((id) => ({ id })),
    ...(outcome['executions'] === undefined ? {} : { executions: outcome['executions'] }),
  }
}

async function readBody(session: Session, given: string | undefined): Promise<Buffer | undefined> {
  if (given === undefined) return undefined
  if (given === '-') return readWholeInput(session, MAX_BODY_BYTES)
  if (given.startsWith('@')) return readFileBytes(given.slice(1), MAX_BODY_BYTES)
  return Buffer.from(given)
}

/** Headers by their names, in which upper and lower case are the same. */
class RequestHeaders {
  readonly #headers = new Map<string, Header>()
  readonly #given = new Set<string>()

  set(name: string, value: string): void {
    this.#headers.set(name.toLowerCase(), { name, value })
  }

  /** Replaces a header that was set by default; one that is added twice is sent as a list. */
  add(name: string, value: string): void {
    const key = name.toLowerCase()
    const before = this.#given.has(key) ? this.#headers.get(key) : undefined
    this.#given.add(key)
    this.#headers.set(key, before === undefined ? { name, value } : { name, value: `${before.value}, ${value}` })
  }

  record(): Record<string, string> {
    return Object.fromEntries([...this.#headers.values()].map(({ name, value }) => [name, value]))
  }
}

const credentialHeaders: ReadonlySet<string> = new Set(['x-auth-token', 'svc-api-key'])
const ownHeaders: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
])

function collectHeader(line: string, before: Header[] | undefined): Header[] {
  const [, name = '', value = ''] = /^([\w!#$%&'*+.^`|~-]+):\s*([^]*?)\s*$/.exec(line) ?? []
  if (name === '') throw new InvalidArgumentError('It must be a name, a colon and a value, such as "X-Kind: order".')
  if (credentialHeaders.has(name.toLowerCase())) {
    throw new InvalidArgumentError('For credentials, use -t/--token or --api-key.')
  }
  if (ownHeaders.has(name.toLowerCase())) throw new InvalidArgumentError('svc sets this header itself.')
  return [...(before ?? []), { name, value: checkValue(value) }]
}

function checkValue(text: string): string {
  if (!/^[\t\x20-\x7e\xa0-\xff]*$/.test(text)) {
    throw new InvalidArgumentError('It must contain only printable ISO 8859-1 characters, as HTTP headers require.')
  }
  return text
}

function collectField(text: string, before: [string, string][] | undefined): [string, string][] {
  const [, name = '', value = ''] = /^([^=]+)=([^]*)$/.exec(text) ?? []
  if (name === '') throw new InvalidArgumentError('It must be a name, "=" and a value, such as kind=order.')
  return [...(before ?? []), [name, value]]
}

function parseWait(text: string): number {
  if (!/^\d{1,3}$/.test(text) || Number(text) < 1 || Number(text) > MAX_WAIT_SECONDS) {
    throw new InvalidArgumentError(
      `It must be a whole number of seconds from 1 to ${MAX_WAIT_SECONDS}; to use the default, put --wait last.`,
    )
  }
  return Number(text)
}
