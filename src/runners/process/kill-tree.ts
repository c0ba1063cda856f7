/**
 * Stops all processes that an execution started, however they try to escape (contract 03, 3.8; decision 19).
 *
 * A process belongs to an execution when it is in the session that the first process leads, descends from a member, or
 * carries the execution's marker in its environment, or the mark derived from it. So `setsid`, a double fork, a cleared
 * environment and an ignored TERM do not help it escape.
 */
import { setImmediate, setTimeout } from 'node:timers/promises'
import type { ProcessIdentity } from '../runner.ts'
import type { Launcher } from './launcher.ts'
import type { ProcessKeys } from './process-questions.ts'
import { createProcessReader } from './process-reader.ts'
import { listPids, markOf, type ProcessRow } from './process-table.ts'
import { killThroughSudo, markersThroughSudo, type SudoAccess } from './sudo-kill.ts'

/** Every process of an execution inherits this variable; its value is the execution's id. */
export const MARKER_NAME = 'SVC_ACTION_EXECUTION_ID'

export interface KillTarget {
  /** Execution id: the value of the marker. */
  marker: string
  /** The first process of the tree, a session leader. */
  identity: ProcessIdentity
  /** Time between the first TERM and KILL; 0 sends KILL immediately. */
  graceMs: number
  /** Access to processes of other users; absent when the run had none. */
  sudo?: SudoAccess
}

/** A run whose server has stopped; its processes may still run. */
export interface OrphanedRun {
  marker: string
  /** A session leader started since the last boot. */
  identity?: ProcessIdentity
}

export interface KillReport {
  /** Processes that were signalled. */
  killed: number
  /** Pids that survived KILL: stuck in the kernel, or owned by another user and out of reach. */
  survivors: number[]
}

export interface FoundProcess {
  pid: number
  /**
   * It runs the program of the first process: a fork of it in its session, such as a subshell, that has started no other
   * program.
   */
  continuesFirst: boolean
}

export interface ProcessTrees {
  /** Resolves when the tree is gone, except `survivors`. Concurrent calls share their passes over `/proc`. */
  kill(target: KillTarget): Promise<KillReport>
  /**
   * Kills the processes of runs whose server has stopped: processes with the marker, the recorded process if its start
   * time matches too, their sessions and their descendants. A pid alone proves nothing after a restart.
   */
  killOrphans(orphans: OrphanedRun[], options?: { graceMs?: number; sudo?: SudoAccess }): Promise<KillReport>
  /** The processes of a tree that are alive, least pid first; finds them as `kill` does, but asks no sudo. */
  find(target: Pick<KillTarget, 'marker' | 'identity'>): Promise<FoundProcess[]>
  /** Stops the thread that reads processes; idempotent. Kills in progress continue without it. */
  stop(): Promise<void>
}

/** Contract 03, 3.8. */
export const DEFAULT_GRACE_MS = 2000
/** The same when the server stops (decision 17). */
export const SHUTDOWN_GRACE_MS = 5000
/** After KILL only the kernel can delay an exit; svc waits no longer than this. */
const UNKILLABLE_AFTER_MS = 5000
/** Generations between a process and the one that started it first. */
const MAX_LEVELS = 100
/** Listings per pass; a machine that keeps starting processes always has new ones. */
const MAX_ROUNDS = 8
const SHORTEST_WAIT_MS = 1
const LONGEST_WAIT_MS = 20
/** First look at a tree during its grace period; the interval doubles each time. */
const FIRST_LOOK_MS = 50
/**
 * A tree that answers TERM with this many new processes is not cleaning up; it gets KILL before it fills the machine.
 */
const MAX_NEWCOMERS = 64
/** Time between two looks for storms, plus a share per watched process that keeps looking cheap. */
const STORM_LOOK_MS = 10
const STORM_LOOK_MS_EACH = 0.1
/** While several trees are being stopped, those that are due wait this long to share a pass. */
const PASS_EVERY_MS = 25

interface Member {
  row: ProcessRow
  /** The last signal delivered; the same one is not sent twice. */
  sent: 'SIGTERM' | 'SIGKILL' | undefined
  /** When KILL was first tried. */
  killedAt: number | undefined
  /** Its children when it got TERM. */
  childCount: number
}

/** Marker and mark of a process; the marker is null when it is not readable. */
interface Carried {
  marker: string | undefined | null
  mark: bigint | undefined
}

/** What belongs to an execution, as far as it is known. */
interface Tree {
  target: Omit<KillTarget, 'identity'> & { identity: ProcessIdentity | undefined }
  /** Then its pid cannot be reused. False after a restart: a session without its leader may be unrelated. */
  isOwnChild: boolean
  minStartTime: number
  members: Map<number, Member>
  sessions: Set<number>
  signalled: Set<string>
  isKilling: boolean
  /** Infinite until TERM is sent: a tree that is slow to find still gets its full grace period. */
  graceEnd: number
  /** When to look again although processes are still alive. */
  nextLook: number
  nextLookMs: number
  newcomers: number
  passes: number
  liveInPass: number
}

interface Active extends Tree {
  resolve(report: KillReport): void
  reject(error: unknown): void
}

/** One per server: it joins all concurrent kills into one loop. */
export function createProcessTrees(deps: { launcher: Launcher }): ProcessTrees {
  return new SharedKiller(deps.launcher)
}

class SharedKiller implements ProcessTrees {
  readonly #launcher: Launcher
  readonly #reader = createProcessReader()
  readonly #actives = new Set<Active>()
  /** Marker and mark of unrelated processes; cached while the loop runs. */
  readonly #carried = new Map<number, Carried & { startTime: number }>()
  #isRunning = false
  #wake: AbortController = new AbortController()

  constructor(launcher: Launcher) {
    this.#launcher = launcher
  }

  kill(target: KillTarget): Promise<KillReport> {
    return this.#add({ ...target }, true)
  }

  async killOrphans(
    orphans: OrphanedRun[],
    options: { graceMs?: number; sudo?: SudoAccess } = {},
  ): Promise<KillReport> {
    const { graceMs = DEFAULT_GRACE_MS, sudo } = options
    const reports = await Promise.all(
      orphans.map(({ marker, identity }) =>
        this.#add({ marker, identity, graceMs, ...(sudo === undefined ? {} : { sudo }) }, false),
      ),
    )
    return {
      killed: reports.reduce((sum, { killed }) => sum + killed, 0),
      survivors: reports.flatMap(({ survivors }) => survivors),
    }
  }

  async find({ marker, identity }: Pick<KillTarget, 'marker' | 'identity'>): Promise<FoundProcess[]> {
    const tree = treeOf({ marker, identity, graceMs: 0 }, true)
    const rows = new Map<number, ProcessRow>()
    for (const row of await this.#reader.rows(await listPids())) if (row?.alive === true) rows.set(row.pid, row)
    const young = [...rows.values()].filter(
      ({ pid, startTime }) => startTime >= tree.minStartTime && !isOutOfBounds(pid),
    )
    const pids = young.map(({ pid }) => pid)
    const markers = await this.#reader.markers(pids, MARKER_NAME)
    const marks = await this.#reader.marks(pids)
    const mark = markOf(marker)
    const first = new Set([identity.pid])
    const carriers = young
      .filter(
        (row, i) => markers[i] === marker || (mark !== undefined && marks[i] === mark && !isHelper(row, rows, first)),
      )
      .map(({ pid }) => pid)
    const { children, sessions } = relationsOf(rows)
    findMembers(tree, rows, children, sessions, carriers)
    const found = [...tree.members.values()].map(({ row }) => row).sort((a, b) => a.pid - b.pid)
    return found.map((row) => ({ pid: row.pid, continuesFirst: continues(row, identity.pid, tree.members) }))
  }

  stop(): Promise<void> {
    return this.#reader.stop()
  }

  #add(target: Tree['target'], isOwnChild: boolean): Promise<KillReport> {
    return new Promise((resolve, reject) => {
      this.#actives.add({ ...treeOf(target, isOwnChild), resolve, reject })
      this.#wake.abort()
      if (!this.#isRunning) void this.#run()
    })
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    const ended = new AbortController()
    void this.#watchStorms(ended.signal)
    try {
      // Let all calls of one turn share the first pass.
      await setImmediate()
      while (this.#actives.size > 0) {
        const passed = [...this.#actives]
        for (const active of passed) beginPass(active)
        await this.#pass(passed)
        for (const active of passed) {
          const survivors = active.liveInPass === 0 ? [] : await this.#survivorsOf(active)
          if (survivors !== undefined) this.#finish(active, survivors)
        }
        await this.#waitForChange()
      }
    } catch (error) {
      for (const active of this.#actives) active.reject(error)
      this.#actives.clear()
    } finally {
      ended.abort()
      this.#isRunning = false
      this.#carried.clear()
    }
  }

  #finish(active: Active, survivors: number[]): void {
    this.#actives.delete(active)
    active.resolve({ killed: active.signalled.size, survivors })
  }

  /** Waits until a pass can learn or do something new. */
  async #waitForChange(): Promise<void> {
    const passedAt = performance.now()
    for (let waitMs = SHORTEST_WAIT_MS; this.#actives.size > 0; waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)) {
      this.#wake = new AbortController()
      const waited = [...this.#actives]
      if (waited.some(isDue)) return
      const running = await this.#reader.areRunning(waited.map(keysOf))
      const ready = running.filter((isRunning) => !isRunning).length
      if (ready === waited.length || (ready > 0 && performance.now() - passedAt >= PASS_EVERY_MS)) return
      await setTimeout(waitMs, undefined, { signal: this.#wake.signal }).catch(() => undefined)
    }
  }

  /**
   * Looks at every process once, then at new ones, until a listing has no new process. Only then can no process have
   * escaped by forking and exiting between two looks.
   */
  async #pass(actives: Active[]): Promise<void> {
    const rows = new Map<number, ProcessRow>()
    const seen = new Set<number>()
    const carriers = new Map<string, number[]>()
    const markers = new Set(actives.map(({ target }) => target.marker))
    const byMark = new Map(actives.map(({ target }) => [markOf(target.marker), target.marker]))
    const ownRuns = actives.filter(({ isOwnChild }) => isOwnChild)
    const own = new Set(ownRuns.map(({ target }) => target.marker))
    const first = new Set(ownRuns.flatMap(({ target: { identity } }) => (identity === undefined ? [] : [identity.pid])))
    const minStartTime = Math.min(...actives.map((active) => active.minStartTime))
    const sudo = actives.find((active) => active.target.sudo !== undefined)?.target.sudo
    const unreadable: number[] = []

    for (let round = 0; round < MAX_ROUNDS; round++) {
      // TERM need not reach all: a later look finds newly started processes, without waiting for their exec.
      if (round > 0 && !actives.some(({ isKilling }) => isKilling)) break
      const fresh = (await listPids()).filter((pid) => !seen.has(pid))
      if (round > 0 && fresh.length === 0) break
      for (const pid of fresh) seen.add(pid)
      for (const row of await this.#reader.rows(fresh)) if (row !== undefined) rows.set(row.pid, row)
      // Before reading the environments, which may take long too.
      await this.#match(actives, rows, carriers, round)
      const members = new Set(actives.flatMap((active) => [...active.members.values()].map(({ row }) => nameOf(row))))
      const strangers = fresh.flatMap((pid) => {
        const row = rows.get(pid)
        if (row === undefined || !row.alive || row.startTime < minStartTime || isOutOfBounds(pid)) return []
        return members.has(nameOf(row)) ? [] : [row]
      })
      for (const [pid, { marker, mark }] of await this.#carriedBy(strangers)) {
        const marked = mark === undefined ? undefined : byMark.get(mark)
        const isOthers = marked !== undefined && own.has(marked) && isHelper(rows.get(pid), rows, first)
        if (marked !== undefined && !isOthers) collect(carriers, marked, pid)
        else if (marker === null) unreadable.push(pid)
        else if (marker !== undefined && markers.has(marker)) collect(carriers, marker, pid)
      }
      if (sudo !== undefined && unreadable.length > 0) {
        const found = await markersThroughSudo(this.#launcher, sudo, unreadable.splice(0), MARKER_NAME, [...markers])
        for (const [pid, marker] of found) collect(carriers, marker, pid)
      }
      if (carriers.size > 0) await this.#match(actives, rows, carriers, round)
    }
  }

  /**
   * Kills processes that answer TERM with ever more children.
   *
   * The kernel blocks reads of `stat` and `environ` of a process during exec, and in a storm of processes each waits
   * long for its turn. A pass over all processes then takes 18 s (measured), while the storm grows.
   */
  async #watchStorms(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const watched = [...this.#actives].flatMap((active) =>
        active.isKilling
          ? []
          : [...active.members.values()].flatMap((member) => (member.sent === undefined ? [] : [{ active, member }])),
      )
      const counts = await this.#reader.childCounts(watched.map(({ member }) => member.row.pid))
      const storms = watched.filter(({ member }, i) => (counts[i] ?? 0) > member.childCount + MAX_NEWCOMERS)
      const answers = await this.#reader.signal(
        storms.map(({ member }) => member.row),
        'SIGKILL',
      )
      for (const [i, { active, member }] of storms.entries()) {
        const answer = answers[i]
        if (answer === undefined) continue
        startKilling(active)
        member.killedAt ??= performance.now()
        // The pass handles processes of other users, through sudo.
        if (answer.outcome === 'sent') member.sent = 'SIGKILL'
      }
      const waitMs = STORM_LOOK_MS + STORM_LOOK_MS_EACH * watched.length
      await setTimeout(waitMs, undefined, { signal }).catch(() => undefined)
    }
  }

  async #carriedBy(rows: ProcessRow[]): Promise<Map<number, Carried>> {
    const found = new Map<number, Carried>()
    const unknown: ProcessRow[] = []
    for (const row of rows) {
      const known = this.#carried.get(row.pid)
      if (known?.startTime === row.startTime) found.set(row.pid, known)
      else unknown.push(row)
    }
    const pids = unknown.map(({ pid }) => pid)
    const markers = await this.#reader.markers(pids, MARKER_NAME)
    const marks = await this.#reader.marks(pids)
    for (const [i, { pid, ppid, startTime }] of unknown.entries()) {
      const carried = { marker: markers[i], mark: marks[i], startTime }
      found.set(pid, carried)
      // Until exec, a child of ours shows our own environment.
      if (carried.marker !== null && ppid !== process.pid) this.#carried.set(pid, carried)
    }
    return found
  }

  async #match(
    actives: Active[],
    rows: ReadonlyMap<number, ProcessRow>,
    carriers: ReadonlyMap<string, number[]>,
    round: number,
  ): Promise<void> {
    const { children, sessions } = relationsOf(rows)
    for (const active of actives) {
      const before = active.passes === 1 && round === 0 ? undefined : active.members.size
      findMembers(active, rows, children, sessions, carriers.get(active.target.marker) ?? [])
      if (before !== undefined) active.newcomers += active.members.size - before
      escalate(active)
      await this.#signal(active)
    }
  }

  async #signal(active: Active): Promise<void> {
    const signal = active.isKilling ? 'SIGKILL' : 'SIGTERM'
    // Parents first, so that no shell reports the death of its child.
    const members = [...active.members.values()]
      .filter(({ sent }) => sent !== signal)
      .sort((a, b) => a.row.pid - b.row.pid)
    const denied: ProcessRow[] = []
    const groups = new Set<number>()
    const answers = await this.#reader.signal(
      members.map(({ row }) => row),
      signal,
    )
    if (members.length > 0) active.graceEnd = Math.min(active.graceEnd, performance.now() + active.target.graceMs)
    for (const [i, member] of members.entries()) {
      const answer = answers[i]
      if (answer === undefined) continue
      if (signal === 'SIGKILL') member.killedAt ??= performance.now()
      else member.childCount = answer.childCount
      active.signalled.add(nameOf(member.row))
      if (answer.outcome === 'denied') denied.push(member.row)
      if (answer.outcome !== 'sent') continue
      if (member.sent !== 'SIGKILL') member.sent = signal
      // A fork cannot outrun a signal to a group; it can outrun signals to the members.
      if (signal === 'SIGKILL' && active.sessions.has(member.row.sid)) groups.add(member.row.pgid)
    }
    await this.#reader.signalGroups([...groups], signal)
    if (denied.length > 0 && active.target.sudo !== undefined) {
      await killThroughSudo(this.#launcher, active.target.sudo, signal, denied)
    }
  }

  /**
   * The pids that resist KILL, when no others are left; undefined while work remains. A process found late gets its
   * full time too, so no tree is given up with members that were never signalled.
   */
  async #survivorsOf({ isKilling, members }: Active): Promise<number[] | undefined> {
    if (!isKilling) return undefined
    const triedBefore = performance.now() - UNKILLABLE_AFTER_MS
    const isTried = ({ killedAt }: Member): boolean => killedAt !== undefined && killedAt < triedBefore
    if (![...members.values()].some(isTried)) return undefined
    const rows = await this.#reader.rows([...members.keys()])
    const alive = [...members.values()].filter(
      ({ row }, i) => rows[i]?.alive === true && rows[i].startTime === row.startTime,
    )
    return alive.length > 0 && alive.every(isTried) ? alive.map(({ row }) => row.pid) : undefined
  }
}

function beginPass(active: Active): void {
  const now = performance.now()
  active.liveInPass = 0
  active.nextLook = now + (active.isKilling ? PASS_EVERY_MS : active.nextLookMs)
  if (active.passes > 0) active.nextLookMs *= 2
  active.passes += 1
}

function escalate(active: Active): void {
  if (active.isKilling) return
  if (performance.now() >= active.graceEnd || active.newcomers > MAX_NEWCOMERS) startKilling(active)
}

function startKilling(active: Active): void {
  active.isKilling = true
  active.nextLook = performance.now() + PASS_EVERY_MS
}

/** Whether a pass can do or learn something, whoever is still alive. */
function isDue({ passes, nextLook, isKilling, graceEnd }: Active): boolean {
  const now = performance.now()
  return passes === 0 || now >= nextLook || (!isKilling && now >= graceEnd)
}

function treeOf(target: Tree['target'], isOwnChild: boolean): Tree {
  return {
    target,
    isOwnChild,
    minStartTime: target.identity === undefined ? 0 : Number(target.identity.startTime),
    members: new Map(),
    sessions: new Set(),
    signalled: new Set(),
    isKilling: target.graceMs <= 0,
    graceEnd: Infinity,
    nextLook: 0,
    nextLookMs: FIRST_LOOK_MS,
    newcomers: 0,
    passes: 0,
    liveInPass: 0,
  }
}

/** Processes by their parents, and by their sessions. */
function relationsOf(
  rows: ReadonlyMap<number, ProcessRow>,
): Record<'children' | 'sessions', Map<number, ProcessRow[]>> {
  const children = new Map<number, ProcessRow[]>()
  const sessions = new Map<number, ProcessRow[]>()
  for (const row of rows.values()) {
    collect(children, row.ppid, row)
    collect(sessions, row.sid, row)
  }
  return { children, sessions }
}

/** Adds all rows that belong to the tree to its members, and counts those alive. */
function findMembers(
  active: Tree,
  rows: ReadonlyMap<number, ProcessRow>,
  children: ReadonlyMap<number, ProcessRow[]>,
  sessions: ReadonlyMap<number, ProcessRow[]>,
  carriers: number[],
): void {
  const { identity } = active.target
  const found = new Map<number, ProcessRow>()
  const open: ProcessRow[] = []
  const add = (row: ProcessRow | undefined): void => {
    if (row === undefined || found.has(row.pid) || isOutOfBounds(row.pid)) return
    found.set(row.pid, row)
    open.push(row)
  }
  const addSession = (sid: number): void => {
    active.sessions.add(sid)
    for (const row of sessions.get(sid) ?? []) add(row)
  }

  if (identity !== undefined) {
    const leader = rows.get(identity.pid)
    const isSession = leader === undefined ? active.isOwnChild : leader.startTime === Number(identity.startTime)
    if (isSession) addSession(identity.pid)
  }
  for (const pid of carriers) add(rows.get(pid))
  for (const { row } of active.members.values()) {
    if (rows.get(row.pid)?.startTime === row.startTime) add(rows.get(row.pid))
  }
  for (let row = open.pop(); row !== undefined; row = open.pop()) {
    for (const child of children.get(row.pid) ?? []) add(child)
    if (active.sessions.has(row.sid)) continue
    // The session of a member belongs to the tree, unless a process outside the tree leads it.
    const leader = rows.get(row.sid)
    if (leader === undefined || !leader.alive || found.has(row.sid)) addSession(row.sid)
  }

  active.liveInPass = 0
  for (const row of found.values()) {
    if (!row.alive) continue
    active.liveInPass += 1
    const known = active.members.get(row.pid)
    if (known?.row.startTime === row.startTime) known.row = row
    else active.members.set(row.pid, { row, sent: undefined, killedAt: undefined, childCount: 0 })
  }
}

/** Whether the row and its parents in the tree are forks of the leader of the session. */
function continues(row: ProcessRow, session: number, members: ReadonlyMap<number, Member>): boolean {
  let one: ProcessRow | undefined = row
  // Rows of different moments could name each other as parents.
  for (let left = members.size; one !== undefined && left > 0; left--) {
    if (one.pid !== session && (!one.isFork || one.sid !== session)) return false
    one = members.get(one.ppid)?.row
  }
  return true
}

/** The server itself and pid 1 are never part of a tree. */
/**
 * Whether this process has started it by itself, or what it descends from. The mark of a run is a limit of the whole process
 * while the run is started, so that a helper which starts at the same moment inherits it.
 *
 * @param first pids of the first processes of runs
 */
function isHelper(
  row: ProcessRow | undefined,
  rows: ReadonlyMap<number, ProcessRow>,
  first: ReadonlySet<number>,
): boolean {
  // The orphans of every run are its children.
  if (process.pid === 1) return false
  let current = row
  for (let level = 0; current !== undefined && level < MAX_LEVELS; level++) {
    if (first.has(current.pid)) return false
    if (current.ppid === process.pid) return true
    current = rows.get(current.ppid)
  }
  return false
}

function isOutOfBounds(pid: number): boolean {
  return pid <= 1 || pid === process.pid
}

function nameOf({ pid, startTime }: ProcessRow): string {
  return `${pid}:${startTime}`
}

function keysOf({ members }: Active): ProcessKeys {
  return [...members.values()].flatMap(({ row }) => [row.pid, row.startTime])
}

function collect<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key)
  if (list === undefined) map.set(key, [value])
  else list.push(value)
}
