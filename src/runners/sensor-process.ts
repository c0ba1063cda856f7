/** Processes of sensors: they run until they end or are stopped, and talk to the server in lines of JSON. */
import type { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { childEnvironment } from './environment.ts'
import { ChildOutput } from './process/child-output.ts'
import { MARKER_NAME, SHUTDOWN_GRACE_MS, type KillReport, type ProcessTrees } from './process/kill-tree.ts'
import { SpawnError, type Child, type Exit, type Launcher } from './process/launcher.ts'
import { createLineReader } from './process/line-reader.ts'
import { readRest } from './process/pipe-rest.ts'
import { markOf } from './process/process-table.ts'
import { returnCodeOf } from './process/run-command.ts'
import { signalText } from './process/signal-text.ts'
import type { Virtualenvs } from './python/virtualenv.ts'
import type { OutputType, ProcessIdentity } from './runner.ts'
import { readJson, writeJson } from '../lib/json/index.ts'
import { isObject } from '../lib/schema/index.ts'

export interface SensorRequest {
  pack: string
  packFolder: string
  /** Absolute path of the program or the Python file. */
  file: string
  /** Value of the environment marker; ends like an id. */
  marker: string
  /** Variables of the sensor. */
  env: Record<string, string>
  /** What the sensor gets first, on stdin. */
  job: Record<string, unknown>
  /** Text on stdout or stderr, or of the preparations. */
  readonly emit: (type: OutputType, text: string) => void
  /** An object that the sensor sends; a returned promise pauses the pipe until it resolves. */
  readonly message: (value: Record<string, unknown>) => Promise<void> | undefined
  /** A line that is no object in JSON; undefined: it is longer than `MAX_SENSOR_LINE_BYTES`. Pauses the pipe likewise. */
  readonly wrongLine: (line: string | undefined) => Promise<void> | undefined
  /** Gives up the preparations. */
  signal: AbortSignal
}

export interface SensorEnd {
  /** Negative: the number of a signal. */
  exitCode: number
  /** A sentence; undefined for exit code 0. */
  problem: string | undefined
}

export interface SensorProcess {
  readonly identity: ProcessIdentity
  /** The command, for people. */
  readonly command: string
  /** Sends a line. What a sensor does not read is dropped when much of it waits. */
  send(message: Record<string, unknown>): void
  /** TERM, KILL after 5 s, to the whole tree. Resolves when it is gone. */
  stop(): Promise<KillReport>
  /** Resolves when the process itself has ended; what it sent may still be read. Never rejects. */
  readonly exited: Promise<unknown>
  /** Resolves when the process has ended, all that it sent has been handled, and what it left behind is killed. */
  readonly ended: Promise<SensorEnd>
}

export interface SensorProcesses {
  /** Runs a class of a Python file with the environment of its pack. */
  startPython(request: SensorRequest): Promise<SensorProcess | { problem: string }>
  /** Runs a program, which sends its lines on stdout. */
  startProgram(request: SensorRequest): Promise<SensorProcess | { problem: string }>
}

/** Bytes of one line from a sensor; a payload in JSON with its frame. */
export const MAX_SENSOR_LINE_BYTES = 1024 * 1024
/** Lines, and UTF-16 units in them, after which other work has its turn. */
export const MAX_LINES_PER_TURN = 256
const MAX_TURN_LENGTH = 64 * 1024
/** Bytes that wait for a sensor that does not read. */
const MAX_WAITING_BYTES = 1024 * 1024
/** Bytes of the configuration in `SVC_SENSOR_CONFIG`; the kernel limits one variable to 128 KiB. */
const MAX_CONFIG_BYTES = 100 * 1024

export function createSensorProcesses(deps: {
  launcher: Launcher
  trees: ProcessTrees
  virtualenvs: Pick<Virtualenvs, 'interpreterFor'>
  inheritedEnv: Readonly<Record<string, string>>
  startFile: string
  cacheFolder: string
  /** `actionrunner.python_runner_log_level` */
  logLevel: string
  /** Folders of packs. */
  packsPaths: readonly string[]
  /** `api.max_page_size` */
  maxPageSize: number
}): SensorProcesses {
  const { launcher, trees, inheritedEnv } = deps

  function watch(child: Child, request: SensorRequest, channel: Readable, command: string): SensorProcess {
    const { identity, stdin } = child
    const streams: { output: ChildOutput; stream: Readable }[] = []
    const watchOutput = (type: OutputType, stream: Readable): void => {
      streams.push({
        stream,
        output: new ChildOutput(stream, {
          maxBytes: 0,
          emit: (text) => {
            request.emit(type, text)
            return undefined
          },
        }),
      })
    }
    if (channel !== child.stdout) watchOutput('stdout', child.stdout)
    watchOutput('stderr', child.stderr)
    const lines = readLines(channel, request)
    const target = { marker: request.marker, identity }
    let stopped: Promise<KillReport> | undefined

    async function end(): Promise<SensorEnd> {
      const exit = await child.exited
      // What it left behind must not hold the pipes, and must not live on without it.
      const killed = stopped ?? trees.kill({ ...target, graceMs: 0 })
      await killed
      await Promise.all([lines.drained(), ...streams.map(({ output }) => output.drain())])
      for (const stream of [stdin, channel, ...streams.map((each) => each.stream)]) stream?.destroy()
      return describeExit(exit)
    }

    return {
      identity,
      command,
      send(message) {
        if (stdin === undefined || !stdin.writable || stdin.writableLength > MAX_WAITING_BYTES) return
        stdin.write(`${writeJson(message)}\n`)
      },
      stop: () => (stopped ??= trees.kill({ ...target, graceMs: SHUTDOWN_GRACE_MS })),
      exited: child.exited,
      ended: end(),
    }
  }

  async function start(
    request: SensorRequest,
    spawn: { file: string; args: string[]; env: Record<string, string>; hasReply: boolean; cwd?: string },
    job: Record<string, unknown>,
  ): Promise<SensorProcess | { problem: string }> {
    const mark = markOf(request.marker)
    let child: Child
    try {
      child = await launcher.spawn({ ...spawn, stdin: 'open', ...(mark === undefined ? {} : { mark }) })
    } catch (error) {
      if (!(error instanceof SpawnError)) throw error
      return { problem: error.message }
    }
    const channel = spawn.hasReply ? child.reply : child.stdout
    if (channel === undefined) throw new Error('A sensor has no channel.')
    const process = watch(child, request, channel, [spawn.file, ...spawn.args].join(' '))
    process.send(job)
    return process
  }

  return {
    async startPython(request) {
      const { pack, packFolder, signal, marker } = request
      const emit = (type: OutputType, text: string): undefined => {
        request.emit(type, text)
      }
      const interpreter = await deps.virtualenvs.interpreterFor({ pack, packFolder, signal, emit, executionId: marker })
      if ('problem' in interpreter) return interpreter
      const job = {
        ...request.job,
        pack,
        file: request.file,
        env: request.env,
        cwd: packFolder,
        mark: markOf(marker)?.toString() ?? null,
        log_level: deps.logLevel,
        packs_paths: deps.packsPaths,
        page_size: deps.maxPageSize,
      }
      const args = [deps.startFile, deps.cacheFolder, 'sensor']
      const env = { ...inheritedEnv, [MARKER_NAME]: marker }
      return start(request, { file: interpreter.program, args, env, hasReply: true }, job)
    },
    startProgram(request) {
      const { packFolder: cwd, env, marker, job } = request
      const config = writeJson(job['config'] ?? {})
      const own = {
        ...env,
        ...(Buffer.byteLength(config) <= MAX_CONFIG_BYTES ? { SVC_SENSOR_CONFIG: config } : {}),
        // Without a parent shell bash takes a socket on stdin for a remote shell, and reads startup files.
        SHLVL: inheritedEnv['SHLVL'] ?? '1',
        [MARKER_NAME]: marker,
      }
      const environment = childEnvironment(inheritedEnv, undefined, own)
      return start(request, { file: request.file, args: [], env: environment, cwd, hasReply: false }, job)
    },
  }
}

/** Reads messages one after the other, some in each turn of the event loop. */
function readLines(stream: Readable, request: SensorRequest): { drained(): Promise<void> } {
  const reader = createLineReader(MAX_SENSOR_LINE_BYTES)
  const atEnd = Promise.withResolvers<void>()
  const pipe = { isEnded: false, ended: atEnd.promise, bytesRead: 0, held: undefined as Promise<void> | undefined }

  function handle(line: string | undefined): Promise<void> | undefined {
    const text = line?.trimStart()
    if (text === '') return undefined
    // An exception for each line of a flood would be expensive.
    const value = text?.startsWith('{') === true ? objectIn(text) : undefined
    return value === undefined ? request.wrongLine(line) : request.message(value)
  }

  /** Resolves when reading may go on; undefined: all lines have been handled. */
  function handleSome(lines: Iterator<string | undefined, void>): Promise<void> | undefined {
    let length = 0
    for (let count = 0; count < MAX_LINES_PER_TURN && length < MAX_TURN_LENGTH; count++) {
      const next = lines.next()
      if (next.done === true) return undefined
      const held = handle(next.value)
      // What holds it may do so for no turn at all.
      if (held !== undefined) return held.then(() => setImmediate())
      length += next.value?.length ?? MAX_TURN_LENGTH
    }
    return setImmediate()
  }

  async function handleAll(lines: Iterator<string | undefined, void>, from: Promise<void>): Promise<void> {
    for (let held: Promise<void> | undefined = from; held !== undefined; held = handleSome(lines)) await held
  }

  function take(lines: Iterator<string | undefined, void>): void {
    const held = handleSome(lines)
    if (held === undefined) return
    stream.pause()
    pipe.held = handleAll(lines, held).finally(() => {
      pipe.held = undefined
      stream.resume()
    })
  }

  const end = (): void => {
    pipe.isEnded = true
    atEnd.resolve()
  }

  const receive = (bytes: Buffer): void => {
    pipe.bytesRead += bytes.length
    take(reader.push(bytes))
  }

  stream.on('data', receive)
  stream.on('error', () => undefined)
  stream.on('close', end)
  stream.on('end', end)
  return {
    async drained() {
      await readRest(pipe)
      // Later data is that of a process which has survived.
      stream.off('data', receive)
      await pipe.held
      take(reader.end())
      await pipe.held
    },
  }
}

/** Undefined: it is no object in JSON. */
function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value = readJson(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function describeExit(exit: Exit): SensorEnd {
  const exitCode = returnCodeOf(exit)
  const problem = exitCode === 0 ? undefined : (signalText(exit) ?? `Failed: exit code ${exitCode}.`)
  return { exitCode, problem }
}
