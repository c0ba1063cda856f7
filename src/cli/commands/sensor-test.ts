/** `svc sensor test`: runs a sensor of a pack folder on a server of its own, and prints what it dispatches. */
import { existsSync } from 'node:fs'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { InvalidArgumentError } from 'commander'
import { describeProblem, readMetadataFile } from '../../lib/text/index.ts'
import { absolutePath } from '../cli-process.ts'
import { CliCommand } from '../command.ts'
import { segment } from '../connection/client.ts'
import { listIn, recordIn, textOrEmpty, toList, toObject } from '../connection/responses.ts'
import { withTrialServer } from '../control/trial-server.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { REGISTER_MS, toProblem } from '../migrate/calls.ts'
import { addCommonOptions, type CommonFlags } from '../options.ts'
import { printable, toJsonLine, type Json } from '../output/print.ts'
import type { CommandContext, Session } from '../session.ts'

interface TestFlags extends CommonFlags {
  packConfig?: string
  count?: number
}

const MAX_CONFIG_BYTES = 1_048_576
/** Seconds between two looks at what the sensor has dispatched, while it prints nothing. */
const LOOK_SECONDS = 1
const PAGE_SIZE = 100
/** Sensors start only when this command says so. */
const nothingRuns = 'sensors: { defaults: { enabled: false } }\n'

export function createSensorTestCommand(context: CommandContext): CliCommand {
  return addCommonOptions(new CliCommand('test'))
    .description('Run a sensor of a pack directory and print what it dispatches. No server is needed or changed.')
    .argument('<folder>', 'directory of the pack')
    .argument('[class]', 'class_name of the sensor; needed if the pack has several')
    .completions({ folder: 'file', '--pack-config': 'file' })
    .option('--pack-config <file>', 'configuration of the pack, .yaml')
    .option('--count <n>', 'end after so many dispatches', parseCount)
    .notes(
      'The command prints each dispatch that svc would store. The output of the sensor, and why svc drops a dispatch, go to standard error. No rule reacts, and the datastore is empty.',
      'The sensor runs in its folder until it ends, fails, or you press Ctrl-C; all its processes end then.',
      'The exit code is 0 when the sensor has ended by itself or has dispatched so often as --count says, and 1 when it has failed or the pack is invalid.',
    )
    .examples('svc sensor test ./my-pack', 'svc sensor test ./my-pack HeartbeatSensor --count 3 -j')
    .action(async (given: string, className: string | undefined, flags: TestFlags) => {
      const folder = absolutePath(given)
      if (!existsSync(join(folder, 'pack.yaml')))
        throw new CliFailure(`${given} is not a pack directory: it has no pack.yaml.`)
      const config = flags.packConfig === undefined ? undefined : await readConfig(flags.packConfig)
      await withTrialServer(
        context,
        {
          flags,
          settings: {
            'sensorcontainer.enable': 'True',
            // Nobody waits here for a sensor that fails.
            'sensorcontainer.respawn_delay': '0',
            'http_runner.allowed_private_networks': '127.0.0.0/8',
          },
          prepare: (base) => prepare(base),
        },
        async (session, base) => {
          const path = join(base, 'packs', basename(folder))
          // Not copied: a sensor may need its place, and the directory may be large.
          await symlink(folder, path)
          return testSensor(session, path, className, config, flags.count ?? Infinity)
        },
      )
    })
}

async function prepare(base: string): Promise<void> {
  for (const folder of ['packs', 'overrides']) await mkdir(join(base, folder), { mode: 0o700 })
  await writeFile(join(base, 'overrides', '_global.yaml'), nothingRuns)
}

async function readConfig(given: string): Promise<unknown> {
  const path = absolutePath(given)
  const file = await readMetadataFile(dirname(path), basename(path), MAX_CONFIG_BYTES)
  if ('document' in file) return file.document.value
  throw new CliFailure(printable(describeProblem({ ...file.problem, file: given })), exitCodes.usage)
}

async function testSensor(
  session: Session,
  path: string,
  className: string | undefined,
  config: unknown,
  count: number,
): Promise<number> {
  const { client } = session
  const body = { packs: [path], fail_on_failure: false }
  const answer = recordIn(await client.call('POST', '/packs/register', { body, timeoutMs: REGISTER_MS }))
  const problems = toList(answer['problems']).map(toProblem)
  for (const problem of problems) session.note(`${printable(describeProblem(problem))}\n`)
  const pack = listIn(await client.call('GET', '/packs', { query: { limit: PAGE_SIZE } }))
    .map(toObject)
    .find((each) => each['path'] === path)
  if (pack === undefined) throw new CliFailure('svc cannot register the pack; see above.')
  const ref = textOrEmpty(pack['ref'])
  if (config !== undefined) await client.call('PUT', `/configs/${segment(ref)}`, { body: config })
  const sensor = await findSensor(session, ref, className)
  await client.call('PUT', `/sensortypes/${segment(sensor)}`, { body: { enabled: true } })
  return follow(session, sensor, count)
}

/** Its reference. */
async function findSensor({ client }: Session, pack: string, className: string | undefined): Promise<string> {
  const sensors = listIn(await client.call('GET', '/sensortypes', { query: { pack, limit: PAGE_SIZE } })).map(toObject)
  const names = sensors.map((each) => textOrEmpty(each['class_name']))
  const wanted = className ?? (names.length === 1 ? names[0] : undefined)
  if (wanted !== undefined && names.includes(wanted)) return `${pack}.${wanted}`
  const all = names.length === 0 ? 'has no sensor' : `has the sensors ${names.join(', ')}`
  throw new CliFailure(
    printable(
      className === undefined ? `Name a sensor: the pack ${all}.` : `There is no ${className}: the pack ${all}.`,
    ),
    exitCodes.usage,
  )
}

async function follow(session: Session, sensor: string, count: number): Promise<number> {
  const { client } = session
  const place = `/sensortypes/${segment(sensor)}`
  let seq = 0
  let seen = 0
  let printed = 0
  const printOutput = async (wait: number): Promise<void> => {
    for (const line of listIn(await client.call('GET', `${place}/output`, { query: { after: seq, wait } }))) {
      const { seq: number, data } = toObject(line)
      seq = Math.max(seq, Number(number))
      session.note(printable(textOrEmpty(data)))
    }
  }
  const printDispatches = async (): Promise<void> => {
    for (;;) {
      const query = { sort: 'id', limit: PAGE_SIZE, offset: seen }
      const page = listIn(await client.call('GET', '/triggerinstances', { query })).map(toObject)
      seen += page.length
      for (const instance of page) {
        // Events of the server itself.
        if (printed >= count || textOrEmpty(instance['trigger']).startsWith('core.svc.')) continue
        printed += 1
        await printDispatch(session, instance)
      }
      if (page.length < PAGE_SIZE || printed >= count) return
    }
  }
  for (;;) {
    await printOutput(LOOK_SECONDS)
    const { runtime } = recordIn(await client.call('GET', place))
    // After the state: a sensor that has ended dispatches no more.
    await printDispatches()
    if (printed >= count) return exitCodes.ok
    const { state, last_error: problem } = toObject(runtime)
    if (state !== 'finished' && state !== 'failed') continue
    await printOutput(0)
    if (state === 'finished') return exitCodes.ok
    session.warn(`The sensor has failed: ${textOrEmpty(problem)}`)
    return exitCodes.failed
  }
}

async function printDispatch(session: Session, { trigger, payload, occurrence_time: time }: Json): Promise<void> {
  if (session.form === 'human') await session.print(`${printable(textOrEmpty(trigger))} ${toJsonLine(payload)}\n`)
  else await session.printRecordLine({ trigger, payload, occurrence_time: time })
}

function parseCount(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1.')
  return Number(text)
}
