/** Commands of the client as stories with a known outcome: run without a terminal and at one, and compared as a whole. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runCli, runCliAtTerminal, spawnCli, type CliOptions } from './cli.ts'
import { startAtTerminal } from './pty.ts'
import { executable, projectRoot } from './server.ts'
import { waitFor } from './wait.ts'

export interface Scenario {
  /** The command that it shows, such as `action list`. */
  command: string
  /** What is particular about it; scenarios of one command differ in it. */
  about?: string
  /** All arguments, beginning with those of `command`; made for each of the two runs. */
  args(): readonly string[] | Promise<readonly string[]>
  /** Makes things as they have to be, before each of the two runs. */
  before?(): unknown
  /** By which name the program is called. Default: the executable. */
  program?: string
  env?: Record<string, string>
  cwd?: string
  /** Standard input, when there is no terminal. */
  input?: string
  /** At a terminal: what has to be on the screen, and what is typed then. */
  typed?: readonly (readonly [prompt: string, keys: string])[]
  /** Replaced in what is printed, besides ids and times. */
  unstable?: readonly (readonly [pattern: RegExp, replacement: string])[]
  /** Only without a terminal, and why. */
  notAtTerminal?: string
  /** Only as a process of its own, and why. */
  onlySpawned?: string
}

export interface Stage {
  /** All there is besides PATH. */
  env: Record<string, string>
  /** Folder in `tests/golden/cli` that the outcomes are kept in. */
  folder: string
}

const COLUMNS = 120

/**
 * Where the outcome is kept. `npx vitest run <file> -u` writes what has changed: read the difference before it is
 * committed.
 */
export function outcomeFile(scenario: Scenario, { folder }: Stage): string {
  return join(projectRoot, 'tests', 'golden', 'cli', folder, `${nameOf(scenario)}.txt`)
}

export function nameOf({ command, about }: Scenario): string {
  return about === undefined ? command : `${command} - ${about}`
}

const SCREEN = '\n=== at a terminal: '

/** The part of a kept outcome that is about the terminal; for an outcome that was not played at one. */
export async function keptScreen(file: string): Promise<string> {
  const outcome = await readFile(file, 'utf8')
  const start = outcome.indexOf(SCREEN)
  return start === -1 ? '' : outcome.slice(start)
}

export interface Manner {
  isSpawned: boolean
  isAtTerminal: boolean
}

/**
 * Runs it without a terminal and, when asked to, at one: inside this process, or as a process of its own. What is typed
 * needs a real terminal either way.
 *
 * @returns the outcome: exit code, output and errors; and what is on the screen of a terminal
 */
export async function playScenario(
  scenario: Scenario,
  stage: Stage,
  { isSpawned, isAtTerminal }: Manner,
): Promise<string> {
  const env = { ...stage.env, ...scenario.env }
  const { input, program, cwd } = scenario
  const options = {
    ...(program === undefined ? {} : { program }),
    ...(cwd === undefined ? {} : { cwd }),
  }
  await scenario.before?.()
  const run = isSpawned ? spawnCli : runCli
  const piped = await run(await scenario.args(), env, { ...options, ...(input === undefined ? {} : { input }) })
  const stable = stabiliser(scenario.unstable ?? [])
  const outcome = [
    `exit code ${piped.code}`,
    `=== standard output\n${stable(piped.stdout)}`,
    `=== standard error\n${stable(piped.stderr)}`,
  ].join('\n')
  if (!isAtTerminal) return outcome
  await scenario.before?.()
  const { code, screen } = await playAtTerminal(scenario, env, options, isSpawned || scenario.typed !== undefined)
  return `${outcome}${SCREEN}exit code ${code}\n${stabiliser(scenario.unstable ?? [])(screen)}`
}

async function playAtTerminal(
  scenario: Scenario,
  env: Record<string, string>,
  options: CliOptions,
  isSpawned: boolean,
): Promise<{ code: number | null; screen: string }> {
  const args = await scenario.args()
  const play = isSpawned
    ? playAtRealTerminal(args, scenario, env)
    : runCliAtTerminal(args, { TERM: 'xterm', ...env }, { ...options, columns: COLUMNS })
  const { code, screen } = await play
  // As it looks in the end: what was drawn over is gone.
  const shown = screen
    .replaceAll('\r\n', '\n')
    .replaceAll('\u001b', '\\e')
    .replace(/[^\n]*\r\\e\[K/g, '')
  return { code, screen: shown }
}

async function playAtRealTerminal(
  args: readonly string[],
  { program = executable, cwd, typed = [] }: Scenario,
  env: Record<string, string>,
): Promise<{ code: number | null; screen: string }> {
  const command = [process.execPath, program, ...args]
  const words = cwd === undefined ? command : ['env', '-C', cwd, ...command]
  const run = await startAtTerminal(words, { TERM: 'xterm', ...env }, COLUMNS)
  let ended = false
  void run.exit.then(() => (ended = true))
  for (const [prompt, keys] of typed) {
    await waitFor(`"${prompt}" or the end`, () => ended || run.screen().includes(prompt))
    if (ended) break
    await run.typeAt(prompt, keys)
  }
  return { code: await run.exit, screen: run.screen() }
}

/**
 * What differs from run to run is replaced by something of the same width, so that tables stay straight: each id by the
 * number of its first appearance.
 */
function stabiliser(unstable: NonNullable<Scenario['unstable']>): (text: string) => string {
  const ids = new Map<string, string>()
  const numbered = (id: string): string => {
    const known = ids.get(id) ?? String(ids.size + 1).padStart(24, '0')
    ids.set(id, known)
    return known
  }
  return (text) =>
    unstable
      .reduce((changed, [pattern, replacement]) => changed.replace(pattern, replacement), text)
      .replace(/\b(?!6000000000)[0-9a-f]{24}\b/g, numbered)
      // In narrow columns a time takes two lines.
      .replace(/\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4}\b/g, 'Tue, 01 Jan 2030')
      .replace(/\b(?<!\d{4}-\d\d-\d\d )\d\d:\d\d:\d\d\b/g, '10:00:00')
      .replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z/g, '2030-01-01T10:00:00.000000Z')
      .replace(
        /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g,
        '11111111-1111-4111-8111-111111111111',
      )
      .replace(/\((\d+)s elapsed\)/g, '(0s elapsed)')
      .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:9101')
}
