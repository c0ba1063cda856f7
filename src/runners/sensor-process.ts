/** Processes of sensors: they run until they end or are stopped, and talk to the server in lines of JSON. */
import type { Readable } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import { childEnvironment } from './environment.ts'
import { ChildOutput } from './process/child-output.ts'
import { MARKER_NAME, SHUTDOWN_GRACE_MS, type KillReport, type ProcessTrees } from './process/kill-tree.ts'
import { SpawnError, type Child, type Exit, type Launcher } from './process/launcher.ts'
import { createLineReader } from './process/line-reader.ts'
import { markOf } from './process/process-table.ts'
import { returnCodeOf } from './process/run-command.ts'
import { signalText } from './process/signal-text.ts'
import type { Virtualenvs } from './python/virtualenv.ts'
import type { OutputType, ProcessIdentity } from './runner.ts'
import { readJson, writeJson } from '../lib/json/index.ts'

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
  /** A line that the sensor sends, read as JSON; a returned promise pauses the pipe until it resolves. */
  readonly message: (value: unknown) => Promise<void> | undefined
  /** A line that is no JSON, or is too long. */
  readonly wrongLine: (problem: string) => void
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
const MAX_SENSOR_LINE_BYTES = 1024 * 1024
/** After the kill, for the end of the pipe. */
const MAX_DRAIN_MS = 2000
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

/** Reads messages one after the other. */
function readLines(stream: Readable, request: SensorRequest): { drained(): Promise<void> } {
  const reader = createLineReader(MAX_SENSOR_LINE_BYTES)
  const ended = Promise.withResolvers<void>()
  let work: Promise<void> | undefined

  function handle(line: string | undefined): Promise<void> | undefined {
    if (line === undefined) {
      request.wrongLine(`a line has more than ${MAX_SENSOR_LINE_BYTES} bytes`)
      return undefined
    }
    if (line.trim() === '') return undefined
    let value: unknown
    try {
      value = readJson(line)
    } catch {
      request.wrongLine(`a line is not JSON: ${line.slice(0, 200)}`)
      return undefined
    }
    return request.message(value)
  }

  async function handleAll(lines: readonly (string | undefined)[], from: Promise<void>): Promise<void> {
    await from
    for (const line of lines) await handle(line)
  }

  function take(lines: readonly (string | undefined)[]): void {
    for (const [i, line] of lines.entries()) {
      const held = handle(line)
      if (held === undefined) continue
      stream.pause()
      work = handleAll(lines.slice(i + 1), held).finally(() => {
        work = undefined
        stream.resume()
      })
      return
    }
  }

  async function idle(): Promise<void> {
    while (work !== undefined) await work
  }

  stream.on('data', (bytes: Buffer) => take(reader.push(bytes)))
  stream.on('error', () => undefined)
  stream.on('close', () => ended.resolve())
  stream.on('end', () => ended.resolve())
  return {
    async drained() {
      // A survivor of the kill may hold the pipe.
      await Promise.race([ended.promise, setTimeout(MAX_DRAIN_MS, undefined, { ref: false })])
      await idle()
      take(reader.end())
      await idle()
    },
  }
}

function describeExit(exit: Exit): SensorEnd {
  const exitCode = returnCodeOf(exit)
  const problem = exitCode === 0 ? undefined : (signalText(exit) ?? `Failed: exit code ${exitCode}.`)
  return { exitCode, problem }
}
